"""Who may import whom: arrows point down only, and nothing heavy is paid for by those who do not use it."""

import ast
from pathlib import Path

import pytest

import sparcets

PACKAGE = Path(sparcets.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up; a module may import from its own row and from the rows above it in this list.
LAYERS = [
    {"errors"},
    {"registry", "seeding", "arrays", "progress"},
    {"storage", "validation"},
    {"config", "datasets"},
    {"series_info", "segments", "skeletons", "trade_off"},
    {"enforcement"},
    {"constraints"},
    {"explanation", "shards"},
    {"narrate", "plots", "metrics", "report"},
    {"networks"},
    {"training"},
    {"classifiers"},
    {"explainers"},
    {"evaluation"},
    {"peers"},
    {"engines"},
    {"benchmark"},
    {"reproduce"},
    {"studio"},
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
    assert not top & NEVER_AT_MODULE_LEVEL
    if part(path) not in TORCH:
        assert "torch" not in top
    if part(path) not in {"datasets"} or path.name not in {"tables.py", "motionsense.py"}:
        assert "pandas" not in top


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_stay_readable(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common"}


def test_every_part_has_its_place_in_the_layers() -> None:
    assert {part(path) for path in MODULES} - {"__init__"} <= set(LEVEL)


def test_nothing_is_unpickled_and_nothing_prints() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "allow_pickle=True", "joblib.load"):
            assert word not in text, f"{path.name} holds {word!r}"
