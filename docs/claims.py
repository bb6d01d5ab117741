"""``claims.md``: a verdict on every claim of the paper, with numbers from the stored rows of the reproduction."""

from collections import Counter
from pathlib import Path

from claims_list import VERDICTS, claims

from sparcets_paper.benchmark.published import ABLATION, DATASETS, METHODS, TABLE1, TARGETS
from sparcets_paper.reproduce.agreement import DENSE, OUTCOMES, ROW_MEASURES, Runs, agreement, number, reported
from sparcets_paper.reproduce.page import folder_rows
from sparcets_paper.reproduce.plans import ABLATED

FOLDER = Path(__file__).parent.parent / "results" / "reproduction"
INTRODUCTION = """\
# The paper, claim by claim

Every claim of Lang, Giese, Ilg and Otte (2022) in our words, where it is made, what we measured, and a verdict. Numbers
are those of the stored rows behind [reproduction.md](reproduction.md) (mean ± std over repetitions), filled in by
`make docs`; the verdicts are ours, and their reasons are given. *Cannot be tested* is what needs the paper's private
recordings or what nobody ran. What differs from the paper by our choice is in [deviations.md](deviations.md).

Numbers of Moving Box on this page were measured with [earlier processes](datasets.md#moving-box) and will be measured
again."""


class Numbers:
    """Our numbers and the paper's as text; a number without a row is an error."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def ours(self, dataset: str, label: str, measure: str, target: str | None = None) -> str:
        group = self.runs.of(dataset, label, target)
        kind, _, name = measure.partition(":")
        if kind == "figure":
            values = group.figure(*name.split("."))
        elif kind == "history":
            values = [float(row["history"][name]) for row in group.finished]
        else:
            values = group.values(ROW_MEASURES.get(measure, measure))
        if not values:
            raise LookupError(f"no row has {measure} of {label} on {dataset} towards {target}")
        return number(values)

    def papers(self, dataset: str, of: str, measure: str) -> str:
        """Return a number of the paper by method, target class or loss terms."""
        for table in (TABLE1, TARGETS, ABLATION):
            if of in table[dataset]:
                return reported(table[dataset][of][measure])
        raise LookupError(f"the paper has no {of} on {dataset}")

    def outcomes(self, table: str, dataset: str) -> str:
        """Return how many numbers of a table are equivalent, different, undecided; not those 1 by construction."""
        if table == "table1":
            groups = [(METHODS[m], None, four, m in DENSE) for m, four in TABLE1[dataset].items()]
        elif table == "targets":
            groups = [("SPARCE", target, four, False) for target, four in TARGETS[dataset].items()]
        else:
            groups = [(ABLATED[terms], None, four, False) for terms, four in ABLATION[dataset].items()]
        found = Counter(
            agreement(self.runs.of(dataset, label, target).values(ROW_MEASURES[m]), published, error=m == "precision")
            for label, target, four, dense in groups
            for m, published in four.items()
            if not (dense and m == "sparsity")
        )
        return f"of {sum(found[o] for o in OUTCOMES)} numbers " + ", ".join(f"{found[o]} {o}" for o in OUTCOMES)


def claims_page() -> str:
    """Return the page."""
    rows = folder_rows(FOLDER)
    numbers = Numbers(Runs(rows))
    found = claims(numbers.ours, numbers.papers, numbers.outcomes)
    counted = Counter(claim.verdict for claim in found)
    commits, digests = ({str(row[name]) for row in rows} for name in ("git", "code"))
    repetitions = min(len(numbers.runs.of(d, m).finished) for d in DATASETS for m in METHODS.values())
    lines = [
        INTRODUCTION,
        "",
        f"{len(rows)} rows, commit {', '.join(sorted(commits))[:12]}, digest {', '.join(sorted(digests))}; "
        f"at least {repetitions} repetitions of what the paper repeats.",
        "",
        f"**{len(found)} claims: {', '.join(f'{counted[v]} {v}' for v in VERDICTS)}.**",
        "",
        "| claim | where | measured | verdict | why |",
        "|---|---|---|---|---|",
    ]
    for claim in found:
        cells = (claim.claim, claim.where, claim.measured, f"**{claim.verdict}**", claim.why)
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
