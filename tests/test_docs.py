"""The documentation is true: every method, architecture, option and setting appears, and the README's code runs."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparcets.config.base import Config
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.load import DATASETS
from sparcets.evaluation import judges
from sparcets.explainers import EXPLAINERS
from sparcets.networks import ARCHITECTURES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_names_everything_that_is_registered() -> None:
    for registry in (EXPLAINERS, DATASETS, ARCHITECTURES):
        for name in registry:
            assert f"`{name}`" in README, f"the README does not mention {registry.kind} {name}"


def test_code_in_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for page in (
        ROOT / "README.md",
        ROOT / "docs" / "methods.md",
        ROOT / "docs" / "configuration.md",
        ROOT / "docs" / "performance.md",
    ):
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
        assert blocks
        for block in blocks:
            exec(compile(block, page.name, "exec"), {})


def test_the_page_on_reading_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judges, "JUDGE_CONFIG", dataclasses.replace(judges.JUDGE_CONFIG, hidden=4, epochs=2))
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "reading.md").read_text(encoding="utf-8"), re.S):
        exec(compile(block, "reading.md", "exec"), names)
    assert {file.name for file in tmp_path.iterdir()} == {"answer.png", "map.html", "report.html"}


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_command_line_page_is_up_to_date() -> None:
    import runpy

    page = runpy.run_path(str(ROOT / "docs" / "generate.py"))["cli_page"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == page, "run: make docs"


def test_the_speed_tables_are_those_of_the_stored_runs() -> None:
    import runpy

    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert made["between"](page, "speed", made["speed_tables"]()) == page, "run: make docs"


def test_settings_are_described() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    configs = [EXPLAINERS.load(name).config_class for name in EXPLAINERS]
    for config in (ClassifierConfig, *configs):
        for name in settings(config()):
            assert f"`{name}`" in page, f"docs/configuration.md does not mention {config.__name__}.{name}"


def settings(config: Config, prefix: str = "") -> Iterator[str]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, Config):
            yield from settings(value, f"{field.name}.")
        else:
            yield prefix + field.name
