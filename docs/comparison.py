"""Tables and figures of ``comparison.md``: sparcets, the paper's methods and those of other packages."""

from pathlib import Path
from statistics import fmean, stdev

from sparcets.evaluation.families import FAMILIES
from sparcets_paper.benchmark.store import ResultStore

RESULTS = Path(__file__).parent.parent / "results"
SETS = {
    "moving_box": "Moving Box (17,600 series of 50 × 50, 2 classes)",
    "motionsense": "MotionSense, random split (7,544 windows of 100 × 12, 4 classes)",
    "motionsense_by_subject": "MotionSense, split by subject (people of the test are not in the training)",
    "catching": "Simulated catching (1,975 series of 60 × 20, 3 classes)",
    "basic_motions": "BasicMotions (40 training series of 100 × 6, 4 classes)",
}
COLUMNS = {
    "valid": "valid",
    "transfer": "transfer",
    "oracle": "oracle",
    "sparsity": "changed",
    "similarity": "similarity",
    "smoothness": "smoothness",
    "universality": "universality",
    "saliency_auc": "AUC",
    "knn_ratio": "5-NN",
    "features_touched": "features",
    "segments_per_feature": "segments per feature",
    "limb_deviation": "limbs",
}
# Columns of the table of judges, for rows whose transfer was measured by judges of several families.
JUDGES = {
    "sparsity": "changed",
    **{f"transfer_{name}": name for name in FAMILIES},
    "transfer": "mean",
    "transfer_unseen": "unseen",
    "knn_ratio": "5-NN",
    "valid": "valid",
}
OURS = "**sparcets**"
ORDER = ("catching", "basic_motions", "motionsense")


def read(name: str) -> list[dict]:
    return [row for row in ResultStore(RESULTS / name).all_rows() if "measures" in row]


def groups() -> dict[tuple[str, str, str], list[dict]]:
    """Return the repetitions of every method by data set, target and label; ours first."""
    found: dict[tuple[str, str, str], list[dict]] = {}
    for row in read("flagship/results.jsonl"):
        cap = row.get("sparsity")
        label = OURS if on_gpu(row) else f"{OURS} on a CPU"
        label += "" if cap is None else f", at most {cap:g} changed"
        dataset = row["dataset"] + ("_by_subject" if row["data"]["split"] == "subject" else "")
        found.setdefault((dataset, row["target"] or "runner-up", label), []).append(row)
    for row in read("reproduction/results.jsonl"):
        if "," not in row["label"]:  # ablations and other changed settings are on another page
            found.setdefault((row["dataset"], row["target"], row["label"]), []).append(row)
    for row in read("peers.jsonl"):
        if row["method"] != "sparcets":
            found.setdefault((row["dataset"], row["target"] or "runner-up", f"`{row['method']}`"), []).append(row)
    return found


def on_gpu(row: dict) -> bool:
    return row["device"].startswith("NVIDIA")


def number(rows: list[dict], name: str) -> str:
    values = [row["measures"][name] for row in rows if row["measures"].get(name) is not None]
    if not values:
        return ""
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 and stdev(values) >= 0.005 else ""
    places = 3 if name in ("smoothness", "limb_deviation") else 2
    return f"{fmean(values):.{places}f}{spread}"


def by_families(row: dict) -> bool:
    """Return whether judges of several families measured the row's transfer; in the first rows, three networks did."""
    return "transfer_statistics" in row["measures"]


def same_judges(rows: list[dict], among: list[dict]) -> list[dict]:
    """Return those of ``rows`` that were measured by families, if any row of the table was; else all of them."""
    return [row for row in rows if by_families(row)] if any(map(by_families, among)) else rows


def comparison_tables() -> str:
    """Return the tables of every data set, with a figure of changed entries against transfer."""
    lines = []
    found = groups()
    for dataset, title in SETS.items():
        everything = [row for key, rows in found.items() if key[0] == dataset for row in rows]
        of_set = {key[1:]: same_judges(rows, everything) for key, rows in found.items() if key[0] == dataset}
        of_set = {key: rows for key, rows in of_set.items() if rows}
        if not of_set:
            continue
        rows_of_set = [row for rows in of_set.values() for row in rows]
        names = [n for n in COLUMNS if any(row["measures"].get(n) is not None for row in rows_of_set)]
        lines += [f"### {title}", ""]
        target = figure(dataset, of_set)
        if target is not None:
            lines += [f"![Changed entries against transfer, target {target}](images/trade-off-{dataset}.png)", ""]
            lines += [f"*Target {target}.*", ""]
        heads = " | ".join(COLUMNS[n] for n in names)
        lines += [
            f"| target | method | runs | {heads} | generated | fit, s |",
            "|---|---|---|" + "---|" * (len(names) + 2),
        ]
        ordered = sorted(of_set.items(), key=lambda item: (item[0][0], OURS not in item[0][1]))
        for (target, label), rows in ordered:
            generated = [
                row["statuses"]["generated"] / max(1, row["queries"] - row["statuses"]["unchanged"]) for row in rows
            ]
            values = " | ".join(number(rows, n) for n in names)
            seconds = fmean(row["fit_s"] for row in rows)
            lines.append(f"| {target} | {label} | {len(rows)} | {values} | {fmean(generated):.2f} | {seconds:.0f} |")
        lines.append("")
        if any(map(by_families, rows_of_set)):
            lines += [*judge_table(ordered), ""]
    return "\n".join(lines).rstrip()


def judge_table(ordered: list[tuple[tuple[str, str], list[dict]]]) -> list[str]:
    """Return the lines of the table with one column per family of judges."""
    lines = [f"| target | method | {' | '.join(JUDGES.values())} |", "|---|---|" + "---|" * len(JUDGES)]
    for (target, label), rows in ordered:
        lines.append(f"| {target} | {label} | {' | '.join(number(rows, name) for name in JUDGES)} |")
    return lines


def ablation_table() -> str:
    """Return the table of the default settings and of the method without each of its components."""
    ablated = read("flagship/ablation.jsonl")
    ours = [r for r in read("flagship/results.jsonl") if r.get("sparsity") is None and r["data"]["split"] != "subject"]
    variants: dict[tuple[str, str], list[dict]] = {}
    for name in ORDER:
        # Compare rows of the same machine, targets and seeds.
        same = {(on_gpu(r), r["target"], r["seed"]) for r in ablated if r["dataset"] == name}
        default = [r for r in ours if r["dataset"] == name and (on_gpu(r), r["target"], r["seed"]) in same]
        if default:
            variants[name, "**default**"] = default
    for row in ablated:
        variants.setdefault((row["dataset"], row["label"]), []).append(row)
    for name in ORDER:
        of_set = {key: rows for key, rows in variants.items() if key[0] == name}
        everything = [row for rows in of_set.values() for row in rows]
        variants |= {key: same_judges(rows, everything) for key, rows in of_set.items()}
    variants = {key: rows for key, rows in variants.items() if rows}
    names = [n for n in COLUMNS if n not in ("oracle", "saliency_auc", "limb_deviation")]
    heads = " | ".join(COLUMNS[n] for n in names)
    lines = [f"| data | variant | {heads} | fit, s |", "|---|---|" + "---|" * (len(names) + 1)]
    for (dataset, label), rows in sorted(variants.items(), key=lambda item: ORDER.index(item[0][0])):
        values = " | ".join(number(rows, n) for n in names)
        lines.append(f"| {dataset} | {label} | {values} | {fmean(row['fit_s'] for row in rows):.0f} |")
    return "\n".join(lines)


def figure(dataset: str, of_set: dict[tuple[str, str], list[dict]]) -> str | None:
    """Draw the methods for the target that most of them have results for, and return it; None if there is only one."""
    from matplotlib import pyplot

    from sparcets_paper.plots.benchmark import plot_trade_off

    targets = [target for target, _ in of_set]
    most = max(dict.fromkeys(targets), key=targets.count)
    if targets.count(most) < 2:
        return None
    points = [
        (
            label.replace("*", "").replace("`", "").replace("at most ", "≤ ").replace(" changed", ""),
            fmean(row["measures"]["sparsity"] for row in rows),
            fmean(row["measures"]["transfer"] for row in rows),
        )
        for (target, label), rows in of_set.items()
        if target == most
    ]
    drawn = plot_trade_off(points)
    path = Path(__file__).parent / "images" / f"trade-off-{dataset}.png"
    drawn.savefig(path, dpi=110)
    pyplot.close(drawn)
    return most
