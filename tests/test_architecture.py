"""Who may import whom: downwards only, and nothing heavy where it is not used."""

import ast
import importlib
import re
from pathlib import Path

import sparcets
import sparcets_paper

PACKAGE, PAPER = Path(sparcets.__file__).parent, Path(sparcets_paper.__file__).parent
SOURCES = {
    ".".join([root.name, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__"): path
    for root in (PACKAGE, PAPER)
    for path in sorted(root.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}

# From the bottom up; a module may import from its own row and from the rows above it in this list. The first name that
# a module starts with counts.
LAYERS = [
    ["sparcets.core.errors", "sparcets.interrupts", "sparcets.core.registry"],
    ["sparcets.motion.skeleton"],  # names of features, which anything may look at
    ["sparcets.core", "sparcets.io.files", "sparcets.io.folders", "sparcets.io.locks", "sparcets.io.tensors"],
    ["sparcets.data", "sparcets.motion.simulator", "sparcets.motion.catching"],
    ["sparcets.io.explanations", "sparcets.io.parquet", "sparcets.motion.limbs"],
    ["sparcets.show", "sparcets.motion.stick_figure"],
    ["sparcets.training"],
    ["sparcets.models"],
    ["sparcets.io"],  # engines
    ["sparcets.methods"],
    ["sparcets.evaluation"],
    ["sparcets.web"],
    ["sparcets.studio", "sparcets.server"],
    ["sparcets.cli", "sparcets.testing"],
    ["sparcets.__main__"],
    ["sparcets_paper"],
]

# Explanation's convenience methods call up, lazily: e.text(), e.plot(), e.save().
UPWARD = {("sparcets.core.explanation", "sparcets.show"), ("sparcets.core.explanation", "sparcets.io")}

# Heavy or optional packages, and the parts of the package that may import them at module level.
TORCH = ("training", "models", "methods", "evaluation", "testing")
NEVER_AT_MODULE_LEVEL = set("matplotlib plotly aeon pyarrow ray rich sklearn requests onnx onnxruntime".split())


def level(name):
    """Return the row of a module: that of the longest name it starts with."""
    matching = [(len(top), row) for row, tops in enumerate(LAYERS) for top in tops if f"{name}.".startswith(f"{top}.")]
    assert matching, f"{name} has no place in the layers"
    return max(matching)[1]


def imports(tree, *, module_level=False):
    """Yield the names of imported modules, except those that only type checkers import."""
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {id(inner) for node in blocks for inner in ast.walk(node)}
    for node in tree.body if module_level else ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (full for alias in node.names if (full := f"{node.module}.{alias.name}") in SOURCES)


def test_arrows_point_down():
    wrong = []
    for name, tree in TREES.items():
        for other in imports(tree) if name != "sparcets" else ():
            known = other.startswith(("sparcets.", "sparcets_paper")) and other in SOURCES
            upward = known and SOURCES[other].name != "__init__.py" and level(other) > level(name)
            if upward and not any(name == here and other.startswith(there) for here, there in UPWARD):
                wrong.append(f"{name} imports {other}, which stands above it")
    assert not wrong


def test_heavy_packages_are_imported_where_they_are_used():
    for name, tree in TREES.items():
        top = {other.split(".")[0] for other in imports(tree, module_level=True)}
        part = name.split(".")[1] if "." in name else ""
        if not name.startswith("sparcets_paper"):
            assert not top & NEVER_AT_MODULE_LEVEL, name
            assert part in TORCH or "torch" not in top, name
        assert "pandas" not in top or name in {"sparcets.data.tables", "sparcets.data.motionsense"}, name
    assert {name for name, tree in TREES.items() if "ray" in imports(tree)} == {"sparcets.io.ray"}


def test_the_files_that_decide_the_numbers_of_the_paper_exist():
    """Whoever moves one names it in ``sparcets_paper/reproduce/provenance.py``."""
    from sparcets_paper.reproduce.provenance import deciding_files

    assert [file for file in deciding_files() if not file.is_file()] == []


def test_files_stay_readable_and_nothing_is_unpickled():
    for name, path in SOURCES.items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 600, name
        assert path.stem not in {"utils", "helpers", "common"}
    for name, path in SOURCES.items():
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "allow_pickle=True", "joblib.load"):
            assert word not in text, f"{name} holds {word!r}"


def test_no_explainer_is_more_than_two_levels_below_the_base_class():
    from sparcets.methods.base import BaseExplainer

    for name in SOURCES:
        if name.startswith("sparcets.methods"):
            importlib.import_module(name)

    def below(kind):
        for derived in kind.__subclasses__():
            if derived.__module__.startswith("sparcets."):
                yield 1, derived
                yield from ((depth + 1, one) for depth, one in below(derived))

    levels = list(below(BaseExplainer))
    assert len(levels) >= 6 and [kind.__name__ for depth, kind in levels if depth > 2] == []


def test_what_the_methods_share_knows_nothing_of_our_own_method():
    importing = {
        name
        for name, tree in TREES.items()
        if name.startswith("sparcets.methods") and not name.startswith("sparcets.methods.own")
        if any(other.startswith("sparcets.methods.own") for other in imports(tree))
    }
    assert not importing  # the registry names it as text


# What deletes, renames or changes modes, wherever the name occurs; and what writes, unless to a temporary file.
DELETES = {"rmtree", "unlink", "rmdir", "removedirs", "rename", "renames", "renameat2", "chmod", "chown", "copymode"}
DELETES |= {"lchmod", "lchown", "truncate", "ftruncate"}
WRITES = {"write_text", "write_bytes", "touch", "copyfile", "copytree", "copy2", "symlink_to", "hardlink_to"}
NO_FILES = {"data/tables.py: _sheet", "core/progress.py: _NotebookBar.draw", "server/batching.py: Batcher._retry"}


def _changes_files(node):
    """Return whether a node deletes, overwrites or changes the mode of a file, other than a temporary one."""
    if isinstance(node, ast.Attribute) and node.attr in DELETES:
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, ast.unparse(node.func.value)
    if owner in ("os", "shutil") and name in ("remove", "replace", "move", "mknod", "mkfifo"):
        return True
    if owner == "os" and name == "open":
        return "O_CREAT" in ast.unparse(node)
    if name == "replace":  # that of text has two arguments, that of dataclasses has keywords
        return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
    if name == "open":
        modes = [v for v in node.args[:1] if isinstance(v, (ast.Constant, ast.IfExp))]
        how = [ast.unparse(v) for v in (*modes, *(k.value for k in node.keywords if k.arg == "mode"))]
        return owner not in ("temporary", "archive") and any(set(text) & set("wax+") for text in how)
    return name in WRITES and owner != "temporary"


def _places(path):
    """Yield the functions of a module that change files, as ``module.py: Class.function``."""

    def visit(node, names):
        for child in ast.iter_child_nodes(node):
            if _changes_files(child):
                within = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else PAPER.parent)
                yield f"{within.as_posix()}: {'.'.join(names)}"
            named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            yield from visit(child, (*names, child.name) if named else names)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), ())


def test_all_that_may_delete_or_overwrite_is_told():
    text = (PACKAGE.parent / "SECURITY.md").read_text(encoding="utf-8").partition("## What may delete or overwrite")[2]
    told = re.findall(r"`([\w/]+\.py: [\w.]+)`", text.partition("\n## ")[0])
    found = {place for path in SOURCES.values() for place in _places(path)} - NO_FILES
    assert sorted(told) == sorted(found)
