"""The documentation is complete and up to date, and its code runs."""

import dataclasses
import re
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import sparcets
from sparcets.config.base import Config
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.load import DATASETS
from sparcets.evaluation import judges
from sparcets.experiments.benchmark.published import METHODS
from sparcets.experiments.benchmark.store import RESULTS, ResultStore
from sparcets.experiments.reproduce.measured import Runs
from sparcets.experiments.reproduce.page import folder_page, read_run
from sparcets.experiments.reproduce.tables import make_tables
from sparcets.explainers import EXPLAINERS
from sparcets.networks import ARCHITECTURES

ROOT = Path(__file__).parents[1]
PACKAGE = Path(sparcets.__file__).parent


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


README = read("README.md")
DESIGN = read("docs/design.md")


@cache
def script(name: str) -> dict[str, Any]:
    """Return the names that a script of the docs defines."""
    return runpy.run_path(str(ROOT / "docs" / name))


def blocks(page: str) -> list[str]:
    """Return the Python code of a page."""
    found = re.findall(r"```python\n(.*?)```", read(page), flags=re.S)
    assert found, f"{page} has no code"
    return found


def test_readme_names_everything_that_is_registered() -> None:
    for registry in (EXPLAINERS, DATASETS, ARCHITECTURES):
        for name in registry:
            assert f"`{name}`" in README, f"the README does not mention {registry.kind} {name}"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/models.md",
        "docs/lengths.md",
        "docs/methods.md",
        "docs/configuration.md",
        "docs/evaluation.md",
        "docs/performance.md",
        "docs/regression.md",
    ],
)
def test_code_in_the_docs_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judges, "JUDGE_CONFIG", dataclasses.replace(judges.JUDGE_CONFIG, hidden=4, epochs=2))
    for block in blocks(page):
        exec(compile(block, page, "exec"), {})


def test_the_page_on_reading_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judges, "JUDGE_CONFIG", dataclasses.replace(judges.JUDGE_CONFIG, hidden=4, epochs=2))
    names: dict[str, object] = {}
    for block in blocks("docs/reading.md"):
        exec(compile(block, "reading.md", "exec"), names)
    assert {file.name for file in tmp_path.iterdir()} == {"answer.png", "map.html", "report.html"}


def test_code_of_the_peers_compiles() -> None:
    for block in blocks("docs/peers.md"):  # needs an extra, so it is not run
        compile(block, "peers.md", "exec")


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_command_line_page_is_up_to_date() -> None:
    assert read("docs/cli.md") == script("generate.py")["cli_page"](), "run: make docs"


def test_commands_in_the_docs_exist() -> None:
    from typer.main import get_command

    from sparcets.cli.main import app

    made = script("generate.py")
    flags = {
        path[1:]: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for path, command in made["walk"](get_command(app))
    }
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
        shell = "\n".join(code for language, code in fenced if not language)
        lines = re.findall(r"^sparcets (.+)$", shell, flags=re.M) + re.findall(r"`sparcets ([^`\n]+)`", text)
        for line in lines:
            words = line.partition("#")[0].split()
            command: tuple[str, ...] = ()
            for word in words:  # the command is the longest path that exists
                if (*command, word) not in flags:
                    break
                command = (*command, word)
            assert command or words[0].startswith("-"), f"{page.name}: no command sparcets {words[0]}"
            given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            unknown = given - flags[command] - {"--help"}
            assert not unknown, f"{page.name}: sparcets {line} has no {', '.join(unknown)}"


@pytest.mark.parametrize(
    ("page", "name", "made"),
    [
        ("performance.md", "speed", "speed_tables"),
        ("methods.md", "backbones", "backbone_table"),
        ("methods.md", "gradient", "gradient_table"),
        ("methods.md", "sizes", "sizes_table"),
        ("regression.md", "regression", "regression_table"),
        ("configuration.md", "quick", "quick_table"),
        ("reading.md", "like_real", "like_real_table"),
        ("reading.md", "report", "report_line"),
        ("studio.md", "studio", "studio_table"),
        ("peers.md", "peers", "peer_table"),
    ],
)
def test_tables_are_those_of_the_stored_runs(page: str, name: str, made: str) -> None:
    generate, text = script("generate.py"), read(f"docs/{page}")
    assert generate["between"](text, name, generate[made]()) == text, "run: make docs"


@pytest.mark.parametrize("page", ["methods.md", "comparison.md"])
def test_numbers_in_the_text_are_filled_in_from_rows_or_are_settings(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    quoted, text = script("quoted.py"), read(f"docs/{page}")
    assert quoted["fill"](page, text) == text, "run: make docs"
    rest = quoted["without_quotes"](page, text)
    rest = re.sub(r"<!-- begin: (\w+) -->.*?<!-- end: \1 -->|```.*?```", "", rest, flags=re.S)
    left = set(re.findall(r"\d+\.\d+", rest)) - quoted["SETTINGS"][page]
    assert not left, f"docs/{page} has numbers without a row: add them to docs/quoted.py"


def test_runs_made_twice_gave_the_same_answers() -> None:
    stored = ROOT / "results" / "reproduction"
    first = {row["key"]: row for row in ResultStore(stored / RESULTS).rows()}
    again = ResultStore(stored / "repeated.jsonl").rows()
    assert len(again) == len(list((stored / "answers").glob("*.npz"))) == 15
    for row in again:
        before = first[row["key"]]
        assert (row["code"], row["git"], row["figures"]) == (before["code"], before["git"], before["figures"])
        assert {n for n, v in row["measures"].items() if v != before["measures"][n]} <= {
            "seconds",
            *(n for n in before["measures"] if n.startswith("transfer")),
        }


def test_the_reproduction_is_that_of_the_stored_rows_of_one_code(tmp_path: Path) -> None:
    stored = ROOT / "results" / "reproduction"
    rows = ResultStore(stored / RESULTS).rows()
    assert len({(row["code"], row["git"]) for row in rows}) == 1
    assert read("docs/reproduction.md") == folder_page(stored, root="../results/reproduction/"), "run: make docs"
    run = read_run(stored)
    for stem, table in make_tables(rows, run["datasets"], run["parts"]).items():
        table.save(tmp_path, stem)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (stored / "tables" / file.name).read_bytes(), "run: make docs"


def test_the_claims_have_the_numbers_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    assert read("docs/claims.md") == script("claims.py")["claims_page"](), "run: make docs"
    listed = script("claims_list.py")
    every = listed["claims"](*[lambda *given: "X"] * 3)
    assert {claim.verdict for claim in every} == set(listed["VERDICTS"])
    for claim in every:  # with all numbers left out, none is left: none is written by hand
        assert not re.search(r"\d[.,]\d", claim.measured + claim.why), claim.claim
        assert claim.verdict != listed["AGREES"] or "X" in claim.measured or "no number" in claim.measured


def test_numbers_quoted_in_the_text_are_those_of_the_rows() -> None:
    runs = Runs(ResultStore(ROOT / "results" / "reproduction" / RESULTS).rows())
    sparce = runs.of("moving_box", "SPARCE")
    transfer, oracle = (fmean(sparce.values(name)) for name in ("transfer", "oracle"))
    assert f"a transfer of {transfer:.2f}, but an oracle of {oracle:.3f}" in read("docs/evaluation.md")
    every = [runs.of("moving_box", method, target) for method in METHODS.values() for target in ("1", "0")]
    found = [100 * fmean(group.values("oracle")) for group in every]
    assert f"puts only {min(found):.0f} to {max(found):.0f} % of them" in README
    assert min(fmean(group.values("valid")) for group in every) > 0.99 and "more than 99 % of the answers" in README


def test_the_page_on_data_is_up_to_date() -> None:
    assert read("docs/data.md") == script("generate.py")["data_page"](), "run: make docs"


def test_design_names_every_folder_and_every_file_of_our_own_method() -> None:
    for folder in sorted(file.parent for file in PACKAGE.rglob("__init__.py")):
        name = folder.relative_to(PACKAGE).as_posix()
        assert name == "." or f"`{name}/`" in DESIGN, f"docs/design.md does not mention {name}/"
    for file in sorted(PACKAGE.glob("*.py")):
        assert file.name.startswith("__") or f"`{file.name}`" in DESIGN, f"docs/design.md does not mention {file.name}"
    own = DESIGN.partition("## Our own method, file by file")[2].partition("\n## ")[0]
    described = re.findall(r"^\| `(\w+\.py)` \|", own, flags=re.M)
    found = {file.name for file in (PACKAGE / "explainers" / "sparcets").rglob("*.py")} - {"__init__.py"}
    assert sorted(described) == sorted(found)


def test_files_that_design_names_exist() -> None:
    known = {file.name for file in (*PACKAGE.rglob("*.py"), *ROOT.glob("docs/*.py"))}
    paths = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")}
    for name in re.findall(r"`([\w/]+\.py)`", DESIGN):
        where = name.removeprefix("sparcets/")
        assert where in paths or ("/" not in name and name in known) or (ROOT / name).exists(), f"no file {name}"


def test_design_shows_the_walk() -> None:
    walk = script("walk.py")
    section = DESIGN.partition("<!-- begin: walk -->")[2].partition("<!-- end: walk -->")[0]
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| (\d+) \| (\d+) \|$", section, flags=re.M)
    crossed = {(method, call): int(files) for method, call, files, _ in rows}
    assert list(crossed) == [(method, call) for method in walk["METHODS"] for call in ("fit", "explain")]
    for key, bar in walk["BARS"].items():
        assert crossed[key] <= bar, f"{'.'.join(key)} crosses {crossed[key]} files, at most {bar}: see docs/walk.py"
    # Tracing all methods takes more than 20 s; the shortest one stands for the others.
    X, y = walk["make_series"](120, seed=0)
    classifier = sparcets.wrap(walk["Model"](), n_classes=3)
    for _ in range(2):
        explainer = sparcets.Nearest(classifier, sparcets.NearestConfig.tiny())
        measured = {
            "fit": walk["walk"](lambda e=explainer: e.fit(X, y, progress=False)),
            "explain": walk["walk"](lambda e=explainer: e.explain(X[:8], target=1, progress=False)),
        }
    assert {call: len(set(path)) for call, path in measured.items()} == {
        call: crossed["Nearest", call] for call in ("fit", "explain")
    }, "run: python docs/walk.py, and put its table into docs/design.md"


def test_settings_are_described() -> None:
    page = read("docs/configuration.md")
    configs = [EXPLAINERS.load(name).config_class for name in EXPLAINERS]
    for config in (ClassifierConfig, *configs):
        for name in settings(config()):
            assert f"`{name}`" in page, f"docs/configuration.md does not mention {config.__name__}.{name}"


def test_defaults_are_those_described() -> None:
    page = read("docs/configuration.md")
    for title, config in (
        ("ClassifierConfig", ClassifierConfig()),
        *((EXPLAINERS.load(name).config_class.__name__, EXPLAINERS.load(name).config_class()) for name in EXPLAINERS),
    ):
        sections = [part for part in page.split("\n## ")[1:] if f"`{title}`" in part.partition("\n")[0]]
        assert len(sections) == 1, f"docs/configuration.md has {len(sections)} sections on {title}"
        for names, values in re.findall(r"^\| (`[^|]+`) \| ([^|]*) \|", sections[0], flags=re.M):
            found = re.findall(r"`([^`]+)`", names)
            texts = values.split(", ") if len(found) > 1 else [values]  # the default of one may be a list
            for name, text in zip(found, texts, strict=True):
                value: Any = config
                for part in name.split("."):
                    value = getattr(value, part)
                if title in ("GanConfig", "CounterGanConfig") and name in ("weights.sparsity", "weights.smoothness"):
                    text = "0"  # as the text above the table says
                if isinstance(value, tuple):
                    value = ", ".join(value)
                stated = type(value)(text) if isinstance(value, (int, float)) and not isinstance(value, bool) else text
                assert stated == value or text == str(value), f"{title}.{name} is {value}, described as {text}"


def settings(config: Config, prefix: str = "") -> Iterator[str]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, Config):
            yield from settings(value, f"{field.name}.")
        else:
            yield prefix + field.name
