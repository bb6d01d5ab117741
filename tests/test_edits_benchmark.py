"""A small form of ``benchmarks/edits.py``: answers are their edits, and planted laws are found."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def bench():
    if not (BENCHMARKS.parent / ".git").exists():
        pytest.skip("rows of results name a commit")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        edits = importlib.import_module("edits")
        patch.setattr(edits, "QUERIES", dict.fromkeys(edits.METHODS, 3))
        yield edits


LONG = pytest.param("long", marks=pytest.mark.long)


@pytest.mark.parametrize("kind", ["plain", "float64", "lengths", "gaps", "regression", "side", LONG])
def test_edits_give_answers_back_bit_for_bit(bench, kind, tmp_path):
    methods = ("Nearest", "Explainer") if kind in ("gaps", "regression") else bench.METHODS
    for method in methods:
        case = bench.build(method, kind, 0)
        for call in (0, 1):
            e = bench.ask(case, method, kind, 0, call)
            if e is not None:
                e.save(tmp_path / "e.npz")
                assert bench.inexact(e) == bench.inexact(e, bench.sp.load_explanation(tmp_path / "e.npz")) == []
