"""Who may import whom: downwards only, and nothing heavy where it is not used; and the words of the names."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparcets

PACKAGE = Path(sparcets.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up; a module may import from its own row and from the rows above it in this list.
LAYERS = [
    {"errors", "interrupts", "notebooks"},
    {"registry", "seeding", "arrays", "gaps", "padding", "progress", "digests", "warning_filters"},
    {"storage", "folders", "locks", "npz", "validation", "targets", "side_inputs"},
    {"config", "datasets"},
    {"skeletons"},
    {"explanation"},
    {"constraints"},
    {"narrate", "plots", "metrics", "report"},
    {"networks"},
    {"training"},
    {"classifiers"},
    {"explainers"},
    {"evaluation"},
    {"peers"},
    {"engines"},
    {"experiments"},
    {"web"},
    {"studio", "server"},
    {"cli", "testing"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Explanation's convenience methods call up, lazily: e.text(), e.plot().
UPWARD = {("explanation", "narrate"), ("explanation", "plots")}

# Heavy or optional packages, and the parts of the package that may import them at module level.
TORCH = {"networks", "training", "classifiers", "explainers", "evaluation", "peers", "testing"}
NEVER_AT_MODULE_LEVEL = {
    "matplotlib",
    "plotly",
    "aeon",
    "pyarrow",
    "ray",
    "rich",
    "sklearn",
    "requests",
    "onnx",
    "onnxruntime",
}


def part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports(tree: ast.AST, *, module_level: bool = False) -> set[str]:
    found = set()
    nodes = tree.body if module_level else ast.walk(tree)  # type: ignore[attr-defined]
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_arrows_point_down(path: Path) -> None:
    here = part(path)
    if here == "__init__":
        return
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if not name.startswith("sparcets.") or (here, name.split(".")[1]) in UPWARD:
            continue
        there = name.split(".")[1]
        assert LEVEL[there] <= LEVEL[here], f"{here} imports {there}, which stands above it"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    top = {name.split(".")[0] for name in imports(ast.parse(path.read_text(encoding="utf-8")), module_level=True)}
    allowed = {"matplotlib"} if path.name == "picture.py" else set()  # which is imported with the first figure
    assert not top & NEVER_AT_MODULE_LEVEL - allowed
    if part(path) not in TORCH:
        assert "torch" not in top
    if part(path) not in {"datasets"} or path.name not in {"sheets.py", "tables.py", "motionsense.py"}:
        assert "pandas" not in top


def test_only_engines_know_of_ray() -> None:
    importing = {part(path) for path in MODULES if "ray" in imports(ast.parse(path.read_text(encoding="utf-8")))}
    assert importing == {"engines"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_stay_readable(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common"}


def test_every_part_has_its_place_in_the_layers() -> None:
    assert {part(path) for path in MODULES} - {"__init__"} == set(LEVEL)


def test_no_explainer_is_more_than_two_levels_below_the_base_class() -> None:
    from sparcets.explainers.base import BaseExplainer

    for path in MODULES:
        if part(path) == "explainers" and path.stem != "fused_mixer":  # which needs Triton, and holds no class of ours
            importlib.import_module(".".join(["sparcets", *path.relative_to(PACKAGE).with_suffix("").parts]))

    def below(kind: type) -> Iterator[tuple[int, type]]:
        for derived in kind.__subclasses__():
            if derived.__module__.startswith("sparcets."):
                yield 1, derived
                yield from ((level + 1, one) for level, one in below(derived))

    levels = list(below(BaseExplainer))
    assert len(levels) >= 6
    assert [kind.__name__ for level, kind in levels if level > 2] == []


def test_what_the_methods_share_knows_nothing_of_our_own_method() -> None:
    importing = set()
    for path in (PACKAGE / "explainers").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = imports(tree) | {
            f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if any(f"{name}.".startswith("sparcets.explainers.sparcets.") for name in names):
            importing.add(path.name)
    assert importing == {"onnx.py"}  # the registry names it as text


# Words that were replaced by the field's own: ensemble, auxiliary classifier, selector, surrogate, scale, ...
OLD_WORDS = {
    *("voice voices witness witnesses referee student loudness recipe".split()),
    *("worth told guide guides guided shelf desk knee".split()),
}


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield every name of a module: of functions, classes, arguments, attributes, variables, imports, keywords."""
    for node in ast.walk(tree):
        for field in ("name", "id", "arg", "attr", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names


def words(identifier: str) -> set[str]:
    """Return the parts of a name in lower case, whether it is written with underscores or capitals."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_names_are_free_of_old_words(path: Path) -> None:
    named = {path.stem, *identifiers(ast.parse(path.read_text(encoding="utf-8")))}
    assert [name for name in sorted(named) if words(name) & OLD_WORDS] == []


def test_old_words_are_found_wherever_a_name_may_stand() -> None:
    code = """
def told_it(guides, *, worth=1): shelf: int = 3; x.knee = desk(student=1)
class BestVoices: from a.witness import Referee as loudness
lambda guided: 0
"""
    found = {word for name in identifiers(ast.parse(code)) for word in words(name) & OLD_WORDS}
    expected = "told guides worth shelf knee desk student voices witness referee loudness guided"
    assert found == set(expected.split())
    assert not any(words(name) & OLD_WORDS for name in ("toldo", "knees", "GUIDELINE", "deskew", "worthless"))


def test_nothing_is_unpickled_and_nothing_prints() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "allow_pickle=True", "joblib.load"):
            assert word not in text, f"{path.name} holds {word!r}"
