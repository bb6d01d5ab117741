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


@pytest.mark.parametrize("name", ["gait", "pressures", "arm", "everything"])
def test_planted_laws_are_found_and_no_others(bench, name):
    data = bench.MAKE[name](bench.np.random.default_rng(0), 120)
    found = bench.laws_of(data)
    assert [law for law in data.laws if not bench.is_found(law, found)] == []
    assert [one for one in found if not any(bench.is_found(law, [one]) for law in data.laws + data.also)] == []


def test_what_breaks_a_law_is_told(bench):
    data = bench.everything(bench.np.random.default_rng(0), 20)
    made = data.X.copy()
    assert not any(broken.any() for broken in data.broken(data.X, made).values())
    made[:, 3] *= 1.0137  # lengths and identities change, whole numbers are none, and a wrist turns about its elbow
    made[:, 5, [data.names.index("diastolic"), data.names.index("mean")]] = 900, 500
    at = [data.names.index(f"RightWrist_{axis}") for axis in "xy"]
    elbow = [data.names.index(f"RightElbow_{axis}") for axis in "xy"]
    made[:, 7, at] = 2 * made[:, 7, elbow] - made[:, 7, at]
    made[:, 9, 0] += 0.01
    broken = data.broken(data.X, made)
    assert all(one.all() for (kind, _), one in broken.items() if kind in ("identity", "whole", "limb")), broken
    assert all(one.any() for one in broken.values())
