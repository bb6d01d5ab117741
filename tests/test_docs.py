"""The documentation is complete and up to date, and its code runs."""

import dataclasses
import re
import runpy
import sys
from functools import cache
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest
import torch

import sparcets
from sparcets.core.settings import ClassifierConfig
from sparcets.data.load import DATASETS
from sparcets.evaluation import judges
from sparcets.methods import EXPLAINERS
from sparcets.methods.own import quality
from sparcets.training import ARCHITECTURES
from sparcets_paper.benchmark.published import METHODS
from sparcets_paper.benchmark.store import RESULTS, ResultStore
from sparcets_paper.reproduce.agreement import Runs

ROOT = Path(__file__).parents[1]
PACKAGE = Path(sparcets.__file__).parent


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


README = read("README.md")
DESIGN = read("docs/design.md")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.M | re.S)
SHELL = ("", "bash")  # languages of blocks with commands; without one, a block may also be output
PAGES = sorted(
    file.relative_to(ROOT).as_posix()
    for file in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if not file.is_relative_to(ROOT / "docs" / "gallery")  # made by scripts, which are run themselves
)


@cache
def script(name):
    """Return the names that a script of the docs defines."""
    sys.path.insert(0, str(ROOT / "docs"))  # as ``python docs/generate.py`` has it
    try:
        return runpy.run_path(str(ROOT / "docs" / name))
    finally:
        sys.path.remove(str(ROOT / "docs"))


def blocks(page):
    """Return the Python code of a page."""
    return [code for language, code in FENCED.findall(read(page)) if language == "python"]


def test_everything_that_is_registered_is_named():
    for registry, page in ((EXPLAINERS, "choosing"), (DATASETS, "datasets"), (ARCHITECTURES, "datasets")):
        for name in registry:
            assert f"`{name}`" in read(f"docs/{page}.md"), f"docs/{page}.md does not mention {registry.kind} {name}"


# Those of the first three raise errors or need other packages; those of the last run against a server, in tests/server.
RUN_ELSEWHERE = ("docs/faq.md", "docs/parquet.md", "docs/peers.md", "docs/serving.md")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and page not in RUN_ELSEWHERE])
def test_code_in_the_docs_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judges, "JUDGE_CONFIG", dataclasses.replace(judges.JUDGE_CONFIG, hidden=4, epochs=2))
    monkeypatch.setattr(quality, "MAX_SEARCHED", 1)
    names = {}
    for block in blocks(page):
        small = block.replace("ExplainerConfig.quick()", "ExplainerConfig.tiny()").replace("[:8]", "[:1]")
        small = small.replace('processes=["Gaussian"]', 'processes=["Gaussian"], n_per_combination=60')
        exec(compile(small, page, "exec"), names)
    if page == "docs/reading.md":
        assert {file.name for file in tmp_path.iterdir()} == {"answer.png", "map.html", "report.html"}


def test_messages_of_the_questions_are_those_of_the_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (_, setup), *pairs = FENCED.findall(read("docs/faq.md"))
    names = {}
    exec(compile(setup, "faq.md", "exec"), names)
    assert [language for language, _ in pairs] == ["python", "text"] * (len(pairs) // 2) and len(pairs) > 20
    for (_, code), (_, message) in zip(pairs[::2], pairs[1::2], strict=True):
        with pytest.raises(sparcets.SparcetsError) as raised:
            exec(compile(code, "faq.md", "exec"), names)
        assert f"{raised.typename}: {raised.value}\n" == message, code


def test_the_example_of_parquet_files_runs(tmp_path, monkeypatch):
    for package in ("duckdb", "polars", "pyarrow"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    for block in blocks("docs/parquet.md"):
        exec(compile(block, "parquet.md", "exec"), {})
    assert sorted(path.name for path in (tmp_path / "answers").iterdir() if path.is_dir()) == ["ward=0", "ward=1"]


def test_links_lead_somewhere():
    built = {"changelog.md", "contributing.md", "security.md", "index.md"}  # of the site, from files of the root
    for page in (ROOT / name for name in PAGES):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists() or Path(target).name in built, f"{page.name} links to {target}"


def test_generated_pages_are_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    made_by = {"cli": ("generate.py", "cli_page"), "data": ("generate.py", "data_page")}
    for page, (file, made) in {**made_by, "claims": ("claims.py", "claims_page")}.items():
        assert read(f"docs/{page}.md") == script(file)[made](), "run: make docs"


def test_commands_in_the_docs_exist():
    from typer.main import get_command

    from sparcets.cli.main import app

    made = script("generate.py")
    flags = {
        path[1:]: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for path, command in made["walk"](get_command(app))
    }
    for page in (ROOT / name for name in PAGES):
        text = page.read_text(encoding="utf-8")
        shell = "\n".join(code for language, code in FENCED.findall(text) if language in SHELL)
        lines = re.findall(r"^sparcets (.+)$", shell, flags=re.M) + re.findall(r"`sparcets ([^`\n]+)`", text)
        for line in lines:
            words = line.partition("#")[0].split()
            command = ()
            for word in words:  # the command is the longest path that exists
                if (*command, word) not in flags:
                    break
                command = (*command, word)
            assert command or words[0].startswith("-"), f"{page.name}: no command sparcets {words[0]}"
            given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            unknown = given - flags[command] - {"--help"}
            assert not unknown, f"{page.name}: sparcets {line} has no {', '.join(unknown)}"


def test_other_commands_in_the_docs_exist():
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), flags=re.M))
    section = read("pyproject.toml").partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", section, flags=re.M))
    for page in PAGES:
        shell = [code for language, code in FENCED.findall(read(page)) if language in SHELL]
        for line in "".join(shell).splitlines() + re.findall(r"`([^`\n]+)`", read(page)):
            for target in re.findall(r"^make ([\w-]+)", line):
                assert target in targets, f"{page}: no target {target}"
            for extra in ",".join(re.findall(r"(?:sparcets|'\.)\[([\w,]+)\]", line)).split(","):
                assert not extra or extra in extras, f"{page}: no extra {extra}"
            for file in re.findall(r"^(?:python|bash) ([\w/]+\.\w+)", line):
                assert (ROOT / file).exists(), f"{page}: no file {file}"
    for extra in extras - {"dev", "docs", "release", "browser"}:
        assert f"`sparcets[{extra}]`" in read("docs/faq.md"), f"docs/faq.md does not say what the extra {extra} brings"


@pytest.mark.parametrize(
    ("page", "name", "made"),
    [
        ("performance.md", "speed", "speed_tables"),
        ("methods.md", "backbones", "backbone_table"),
        ("methods.md", "gradient", "gradient_table"),
        ("methods.md", "sizes", "sizes_table"),
        ("regression.md", "regression", "regression_table"),
        ("configuration.md", "quick", "quick_table"),
        ("reading.md", "report", "report_line"),
        ("serving.md", "serve", "serve_table"),
        ("studio.md", "studio", "studio_table"),
        ("peers.md", "peers", "peer_table"),
        ("scale.md", "scale", "scale_tables"),
    ],
)
def test_tables_are_those_of_the_stored_runs(page, name, made):
    generate, text = script("generate.py"), read(f"docs/{page}")
    assert generate["between"](text, name, generate[made]()) == text, "run: make docs"


def test_the_comparison_has_the_tables_of_the_stored_rows():
    made = script("comparison.py")
    made["comparison_tables"].__globals__["figure"] = lambda dataset, of_set: None  # draws nothing
    lines = [line for line in made["comparison_tables"]().splitlines() if line.startswith("|")]
    lines += made["ablation_table"]().splitlines()
    assert len(lines) > 40 and set(lines) <= set(read("docs/comparison.md").splitlines()), "run: make docs"


@pytest.mark.parametrize("page", ["methods.md", "comparison.md", "limits.md"])
def test_numbers_in_the_text_are_filled_in_from_rows_or_are_settings(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    quoted, text = script("quoted.py"), read(f"docs/{page}")
    assert quoted["fill"](page, text) == text, "run: make docs"
    rest = quoted["without_quotes"](page, text)
    rest = re.sub(r"<!-- begin: (\w+) -->.*?<!-- end: \1 -->|```.*?```", "", rest, flags=re.S)
    left = set(re.findall(r"\d+\.\d+", rest)) - quoted["SETTINGS"][page]
    assert not left, f"docs/{page} has numbers without a row: add them to docs/quoted.py"


def test_numbers_in_the_readme_are_those_of_the_rows(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    runs = Runs(ResultStore(ROOT / "results" / "reproduction" / RESULTS).rows())
    sparce = runs.of("moving_box", "SPARCE")
    transfer, oracle = (fmean(sparce.values(name)) for name in ("transfer", "oracle"))
    assert f"a transfer of {transfer:.2f}, but an oracle of {oracle:.3f}" in read("docs/evaluation.md")
    every = [runs.of("moving_box", method, target) for method in METHODS.values() for target in ("1", "0")]
    found = [100 * fmean(group.values("oracle")) for group in every]
    assert f"puts only {min(found):.0f} to {max(found):.0f} % of them" in README
    assert min(fmean(group.values("valid")) for group in every) > 0.99 and "more than 99 % of the answers" in README
    mean, ours = script("quoted.py")["mean"], script("quoted.py")["OURS"]
    oracle, changed = (100 * float(mean("moving_box", "1", ours, name)) for name in ("oracle", "sparsity"))
    assert f"{oracle:.0f} %, with {changed:.0f} % of the entries changed" in " ".join(README.split())


def test_the_page_on_models_is_that_of_the_stored_rows():
    made = script("models_and_data.py")
    assert read("docs/models-and-data.md") == made["page"](), "run: make docs"
    stored, (_, cells) = made["read_rows"](), made["read_cells"]()
    known = [{key: row[key] for key in ("group", "what", "prepared", "code")} for row in stored]
    assert known == [cell.identity for cell in cells], "run: python docs/models_and_data.py"
    assert all(row["version"] and row["commit"] and row["result"] for row in stored) and len(stored) >= 40


def test_files_that_design_names_exist():
    roots = (PACKAGE, ROOT / "sparcets_paper", ROOT / "docs")
    known = {file.name for root in roots for file in root.rglob("*.py")}  # of folders that a row names
    paths = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")}
    for name in re.findall(r"`([\w/]+\.py)`", DESIGN):
        where = name.removeprefix("sparcets/")
        assert where in paths or ("/" not in name and name in known) or (ROOT / name).exists(), f"no file {name}"


def test_design_shows_the_walk():
    walk = script("walk.py")
    section = DESIGN.partition("<!-- begin: walk -->")[2].partition("<!-- end: walk -->")[0]
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| (\d+) \| (\d+) \|$", section, flags=re.M)
    shown = {(method, call): (int(files), int(back)) for method, call, files, back in rows}
    assert shown == walk["BARS"]
    paths = walk["measure"](("Nearest",) if torch.cuda.is_available() else walk["METHODS"])  # networks walk differently
    assert not walk["exceeded"](paths)
    # A search takes a few returns more or fewer by its data, and a progress bar by the time; bars are not far above.
    for key, path in paths.items():
        files, back = shown[key]
        assert files <= len(set(path)) + 1, f"{key}: lower the bar in docs/walk.py and docs/design.md"
        assert back <= 1.25 * walk["returns"](path), f"{key}: lower the bar in docs/walk.py and docs/design.md"


def test_defaults_are_those_described():
    page = read("docs/configuration.md")
    for title, config in (
        ("ClassifierConfig", ClassifierConfig()),
        *((EXPLAINERS.load(name).config_class.__name__, EXPLAINERS.load(name).config_class()) for name in EXPLAINERS),
    ):
        sections = [part for part in page.split("\n## ")[1:] if f"`{title}`" in part.partition("\n")[0]]
        assert len(sections) == 1, f"docs/configuration.md has {len(sections)} sections on {title}"
        (settings,) = pd.json_normalize(config.to_dict()).to_dict("records")
        missing = [name for name in settings if f"`{name}`" not in page]
        assert not missing, f"docs/configuration.md does not mention {', '.join(missing)} of {title}"
        for names, values in re.findall(r"^\| (`[^|]+`) \| ([^|]*) \|", sections[0], flags=re.M):
            found = re.findall(r"`([^`]+)`", names)
            texts = values.split(", ") if len(found) > 1 else [values]  # the default of one may be a list
            for name, text in zip(found, texts, strict=True):
                value = settings[name]
                if title in ("GanConfig", "CounterGanConfig") and name in ("weights.sparsity", "weights.smoothness"):
                    text = "0"  # as the text above the table says
                if isinstance(value, list):
                    value = ", ".join(value)
                stated = type(value)(text) if isinstance(value, (int, float)) and not isinstance(value, bool) else text
                assert stated == value or text == str(value), f"{title}.{name} is {value}, described as {text}"
