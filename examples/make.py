"""Run the examples: ``python examples/make.py [NAME ...]`` writes their notebooks, and the pages of the gallery.

An example is a script of cells, ``# %%`` and ``# %% [markdown]``, as editors and jupytext read them. It is run once, as
a notebook, and what it printed and drew is stored with it in ``examples/notebooks`` and shown in ``docs/gallery``. A
line that ends with ``# in the tests: VALUE`` has this value in the tests, where all has to be quick.
"""

import os
import re
import sys
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
NOTEBOOKS = FOLDER / "notebooks"
GALLERY = FOLDER.parent / "docs" / "gallery"
# In the order of the gallery: from the plain case to the special ones.
NAMES = (
    "catching_skeleton",
    "phone_sensors",
    "minirocket",
    "forest_on_summaries",
    "unequal_lengths",
    "missing_values",
    "regression",
    "forecaster",
    "onnx_model",
    "ten_thousand",
)
SMALLER = re.compile(r"^(\s*[\w, ]+ = ).*  # in the tests: (.*)$", flags=re.M)
WIDTH = 1000  # of a picture, in pixels; 320 of the small ones
COLOURS = 256


class Cell(NamedTuple):
    """A cell of an example."""

    kind: str  # "markdown" or "code"
    source: str


def small(source: str) -> str:
    """Return an example as the tests run it."""
    return SMALLER.sub(r"\1\2", source)


def cells(source: str) -> list[Cell]:
    """Return the cells of an example, without the notes on the tests."""
    source = re.sub(r"  # in the tests: .*$", "", source, flags=re.M)
    found = []
    for head, body in re.findall(r"^# %%([^\n]*)\n(.*?)(?=^# %%|\Z)", source, flags=re.M | re.S):
        if "markdown" in head:
            found.append(Cell("markdown", re.sub(r"^# ?", "", body, flags=re.M).strip()))
        else:
            found.append(Cell("code", body.strip()))
    return found


def execute(name: str) -> Any:
    """Return the notebook of an example, run in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    new = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    made = [new[cell.kind](cell.source) for cell in cells((FOLDER / f"{name}.py").read_text(encoding="utf-8"))]
    for number, cell in enumerate(made):
        cell["id"] = f"{name}-{number}"  # at random otherwise, and different after every run
    notebook = nbformat.v4.new_notebook(cells=made)
    with TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": folder}}, record_timing=False)
        client.execute()
    notebook["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            picture = reduced(b64decode(output["data"]["image/png"]), WIDTH)
            output["data"]["image/png"] = b64encode(picture).decode()
    return notebook


def reduced(picture: bytes, width: int) -> bytes:
    """Return a PNG of at most this width and few colours, which takes a fraction of the space."""
    from PIL import Image

    image, made = Image.open(BytesIO(picture)).convert("RGB"), BytesIO()
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(made, format="png", optimize=True)
    return made.getvalue()


def page(name: str, notebook: Any) -> str:
    """Return an example as a page of the gallery: its texts and code, with what was printed and drawn."""
    parts, title = [], "".join(notebook["cells"][0]["source"]).partition("\n")[0].removeprefix("# ")
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        printed = "".join("".join(out["text"]) for out in cell.get("outputs", []) if out["output_type"] == "stream")
        if printed.strip():
            parts.append(f"```text\n{printed.rstrip()}\n```")
        if pictures({"cells": [cell]}):
            parts.append(f"![{title}: what the example draws](images/{name}.png)")
    script, stored = f"../../examples/{name}.py", f"../../examples/notebooks/{name}.ipynb"
    return "\n\n".join([*parts, f"This example as a [script]({script}) and as a [notebook]({stored})."]) + "\n"


def pictures(notebook: Any) -> list[bytes]:
    """Return the pictures of a notebook."""
    found = (
        output.get("data", {}).get("image/png") for cell in notebook["cells"] for output in cell.get("outputs", [])
    )
    return [b64decode("".join(picture)) for picture in found if picture]


def index() -> str:
    """Return the first page of the gallery: a picture, a title and a few words for each example."""
    rows = []
    for name in NAMES:
        title, about = cells((FOLDER / f"{name}.py").read_text(encoding="utf-8"))[0].source.split("\n\n", 1)
        title, about = title.removeprefix("# "), " ".join(about.split())
        rows.append(f"| [![{title}](images/{name}-small.png)]({name}.md) | **[{title}]({name}.md)**<br>{about} |")
    return "\n".join([INDEX.strip(), "", "| picture | example |", "|---|---|", *rows, ""])


INDEX = """
# Gallery

Worked examples, from the data to a picture and a sentence. Each is a script of less than a hundred lines that needs no
data from elsewhere; copy one and put your own data in. They are the files of `examples/`, and in `examples/notebooks/`
the same as notebooks, with what they printed and drew. `python examples/make.py` runs them all and writes these pages.
"""


def main(names: list[str]) -> None:
    """Run examples, and write what they give."""
    import nbformat

    os.environ |= {"SPARCETS_PROGRESS": "0", "PYTHONPATH": str(FOLDER.parent), "OMP_NUM_THREADS": "1"}
    NOTEBOOKS.mkdir(exist_ok=True)
    (GALLERY / "images").mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        notebook = execute(name)
        nbformat.write(notebook, NOTEBOOKS / f"{name}.ipynb")
        (GALLERY / f"{name}.md").write_text(page(name, notebook), encoding="utf-8")
        (drawn,) = pictures(notebook)
        (GALLERY / "images" / f"{name}.png").write_bytes(drawn)
        (GALLERY / "images" / f"{name}-small.png").write_bytes(reduced(drawn, 320))
        print(f"{name}: {len(drawn) // 1000} kB of picture")
    (GALLERY / "index.md").write_text(index(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
