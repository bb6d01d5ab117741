"""The site of the documentation is whole: every page has its place, every public name its entry and its example."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import sparcets
from sparcets.core import errors
from sparcets.core.explanation import STATUSES
from sparcets.methods.folder import FILES as EXPLAINER
from sparcets.models.network import FILES as CLASSIFIER
from sparcets.testing import data, mocks
from tests.axe import serious_findings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAVIGATION = CONFIG.partition("\nnav:\n")[2]
REFERENCE = {file.stem: file.read_text(encoding="utf-8") for file in (DOCS / "reference").glob("*.md")}
FROM_ROOT = {"index.md", "changelog.md", "contributing.md", "security.md", "code-of-conduct.md"}  # as hooks.py has it


def test_the_navigation_holds_every_page_once():
    listed = re.findall(r"(?:: |- )(\S+\.md)$", re.sub(r"^ *#.*$", "", NAVIGATION, flags=re.M), flags=re.M)
    found = {file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == found | FROM_ROOT, "add the page to the navigation in mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site, as `make site` does."""
    if find_spec("mkdocstrings") is None:
        pytest.skip("needs sparcets[docs]; `make site` builds it as well")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_links_lead_to_files_of_the_site_and_nothing_is_loaded_from_elsewhere(site):
    """MkDocs itself looks neither at links by name, as the README has them, nor at files that it leaves out."""
    broken = []
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\"\s>]+)", text)
        links = re.findall(r"<a\b[^>]*?\bhref=\"?([^\"#\s>:?]+)[\"#\s>?]", text) if page.name != "404.html" else []
        links += re.findall(r"(?:src|href)=\"?(\.\./examples/[^\"\s>]+|images/[^\"\s>]+)", text)
        broken += [f"{page.name}: {x}" for x in [*loaded, *(x for x in set(links) if not (page.parent / x).exists())]]
    assert broken == []


@pytest.mark.browser
def test_axe_finds_nothing_serious(site, browser):
    page = browser.new_page()
    for name in ("start.html", "reference/targets.html", "gallery/index.html", "gallery/regression.html"):
        page.goto((site / name).as_uri())
        assert serious_findings(page, "light") == serious_findings(page, "dark") == [], name
    page.close()


def test_every_public_name_has_an_entry_and_an_example():
    text = "\n".join(REFERENCE.values())
    for name in sparcets.__all__:
        if name == "__version__":
            continue
        assert f"[sparcets.{name}]" in REFERENCE["index"], f"docs/reference/index.md does not list {name}"
        shown = r"sparcets\.core\.errors" if name in {"SparcetsError", "ModelWarning"} else rf"sparcets\.{name}"
        assert re.search(rf"^::: {shown}$", text, flags=re.M), f"no page of the reference shows {name}"
        assert ">>> " in (inspect.getdoc(getattr(sparcets, name)) or ""), f"{name} has no example in its docstring"
    for page in REFERENCE.values():  # also what is not in `sparcets.__all__`
        for module, name in re.findall(r"^::: (\S+)\.(\w+)$", page, flags=re.M):
            code = "".join(re.findall(r"```python\n(.*?)```", page, flags=re.S))
            shown = name == "errors" or name in code  # errors are shown by the questions and their messages
            thing = None if shown else getattr(importlib.import_module(module), name)
            assert shown or ">>> " in (inspect.getdoc(thing) or ""), f"{module}.{name} has no example"


def test_the_tree_of_errors_is_that_of_the_classes():
    drawn = re.findall(r"(\w+(?:Error|Warning))(?: \((\w+)\))?", (errors.__doc__ or "").partition("::")[2])
    classes = {n: k for n, k in vars(errors).items() if inspect.isclass(k) and k.__module__ == errors.__name__}
    assert [name for name, _ in drawn] == list(classes)
    for name, builtin in drawn:
        assert not builtin or builtin in {kind.__name__ for kind in classes[name].__bases__}


def test_the_formats_are_those_of_the_files(tmp_path):
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    X, y = data.make_series(30)
    ex = sparcets.Nearest(sparcets.wrap(mocks.MeanModule(n_classes=3), n_classes=3)).fit(X, y)
    e = ex.explain(X[:3], target=1, ids=["a", "b", "c"], subjects=["p", "p", "q"])
    e.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        arrays, header = set(file.files), json.loads(str(file["header"]))
    ex.save(tmp_path / "explainer")
    ex.explain(X[:3], target=1, out=tmp_path / "answers")
    sparcets.TorchClassifier("fcn", sparcets.ClassifierConfig(epochs=1)).fit(X, y).save(tmp_path / "classifier")
    of_shards = json.loads((tmp_path / "answers" / "explanation.json").read_text("utf-8"))
    headers = (EXPLAINER.header(tmp_path / "explainer"), of_shards, CLASSIFIER.header(tmp_path / "classifier"))
    entries = {name for header in headers for name in header}
    for name in (*arrays, *header, *entries):
        assert f"`{name}`" in page, f"docs/formats.md does not mention {name}"
    for status in STATUSES:
        assert f"`{status}`" in (DOCS / "stability.md").read_text(encoding="utf-8")
    stated = re.search(
        r"explanations have `schema` (\d), classifiers `format` (\d), explainers `format` (\d), shards `format` (\d)",
        page,
    )
    explainer, shards, classifier = (header["format"] for header in headers)
    assert [int(n) for n in stated.groups()] == [header["schema"], classifier, explainer, shards]
