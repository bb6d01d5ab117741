"""The examples run, in a small form; their notebooks and the pages of the gallery are what they gave."""

import importlib.util
import json
import re
import runpy
from base64 import b64decode
from pathlib import Path

import pytest

from sparcets.methods.own import surrogate

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
EXAMPLES, GALLERY = ROOT / "examples", ROOT / "docs" / "gallery"
MADE = runpy.run_path(str(EXAMPLES / "make.py"))
NAMES = MADE["NAMES"]
NEEDS = {"phone_sensors": "aeon", "minirocket": "aeon", "onnx_model": "onnxruntime"}


def source(name):
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def notebook(name):
    return json.loads((EXAMPLES / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))


def outputs(name):
    return [output for cell in notebook(name)["cells"] for output in cell.get("outputs", [])]


def test_every_script_is_in_the_gallery():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*NAMES, "make"}
    assert {file.stem for file in (EXAMPLES / "notebooks").iterdir()} == set(NAMES)
    assert {file.stem for file in GALLERY.glob("*.md")} == {*NAMES, "index"}
    assert (GALLERY / "index.md").read_text(encoding="utf-8") == MADE["index"](), "run: python examples/make.py"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_in_a_small_form(name, tmp_path, monkeypatch, capsys):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))  # nothing but what everyone has
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setitem(surrogate.distill.__kwdefaults__, "steps", 40)  # of black boxes: less exact, and quick
    small = MADE["small"](source(name))
    assert small != source(name) and "# in the tests:" not in small
    exec(compile(small, f"{name}.py", "exec"), {"__name__": "__main__"})
    assert (tmp_path / f"{name}.png").stat().st_size > 1000
    assert re.search(r"\w+ \w+ \w+.*\.$", capsys.readouterr().out, flags=re.M)  # a sentence
    if importlib.util.find_spec("matplotlib"):
        from matplotlib import pyplot

        pyplot.close("all")


def test_notebooks_and_pages_are_those_of_the_scripts():
    for name in NAMES:
        stored = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook(name)["cells"]]
        assert stored == [tuple(cell) for cell in MADE["cells"](source(name))], f"run: python examples/make.py {name}"
        page = (GALLERY / f"{name}.md").read_text(encoding="utf-8")
        assert page == MADE["page"](name, notebook(name)), f"run: python examples/make.py {name}"
        errors = [o for o in outputs(name) if o["output_type"] == "error" or o.get("name") == "stderr"]
        (drawn,) = (o["data"]["image/png"] for o in outputs(name) if "image/png" in o.get("data", {}))
        picture, small = (GALLERY / "images" / f"{name}{end}.png" for end in ("", "-small"))
        assert not errors and picture.read_bytes() == b64decode("".join(drawn)), name
        sizes = ((EXAMPLES / "notebooks" / f"{name}.ipynb", 300_000), (picture, 100_000), (small, 40_000))
        assert all(file.stat().st_size < limit for file, limit in sizes), name
        first, *_, last = MADE["cells"](source(name))
        assert 40 <= len(source(name).splitlines()) <= 85 and first.source.startswith("# "), name
        assert "## What this shows, and what it does not" in last.source and "Do not conclude" in last.source, name
