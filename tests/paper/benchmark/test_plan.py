"""Cells and plans: keys, checks and combinations."""

import dataclasses
from pathlib import Path

import pytest

from sparcets.core.errors import ConfigError, SparcetsError
from sparcets_paper.benchmark.plan import Cell, check_plan, file_digest, grid
from sparcets_paper.benchmark.published import ABLATION, DATASETS, MEASURES, METHODS, SECONDS, TABLE1, TARGETS, TERMS
from sparcets_paper.benchmark.store import ResultStore

KEY = "d467565a977ffc9f"
OTHER = {"dataset": "moving_box", "options": {"seed": 1}, "source": "copy.npz", "classifier": "fcn", "method": "ics"}
OTHER |= {"classifier_config": {"epochs": 3}, "preset": "paper", "settings": ("steps=3",), "target": "ups", "seed": 1}
OTHER |= {"sparsity": 0.1, "label": "another name", "queries": 5, "experiment": "table1", "keep": 3, "curve": True}
OTHER |= {"seconds_per_query": 1.5, "figures": True}


def test_every_field_is_in_the_list():
    assert set(OTHER) == {f.name for f in dataclasses.fields(Cell)}


@pytest.mark.parametrize("name", OTHER)
def test_the_key_depends_on_what_determines_the_result(name):
    one = Cell(dataset="catching", label="a name")
    other = dataclasses.replace(one, **{name: OTHER[name]})
    assert (one.key == other.key) == (name in ("label", "experiment", "keep", "figures"))


def test_the_key_stays_the_same_from_version_to_version():
    # Stored results are found by it.
    assert Cell(dataset="catching", options={"b": 1, "a": 2}, target="Control").key == KEY
    assert Cell(dataset="catching", options={"a": 2, "b": 1}, target="Control").key == KEY


RESULTS = Path(__file__).resolve().parents[3] / "results"


@pytest.mark.parametrize("file", ["reproduction/results.jsonl", "peers.jsonl", "flagship/ablation.jsonl"])
def test_stored_rows_are_found_by_the_keys_of_their_cells(file):
    if not RESULTS.is_dir():
        pytest.skip("the stored results are not part of the package")
    names = {f.name for f in dataclasses.fields(Cell)}
    rows = ResultStore(RESULTS / file).rows()
    assert len(rows) > 5
    for row in rows:
        fields = {k: v for k, v in {**row, **row["request"]}.items() if k in names}
        cell = Cell(**{**fields, "settings": tuple(fields.get("settings", ()))})
        assert row["key"].startswith(cell.key)  # parts that were taken away are named behind it


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "best"}, "'preset' must be one of default, quick, paper, tiny, got 'best'"),
        ({"queries": 0}, "'queries' must be >= 1 or None, got 0"),
        ({"seconds_per_query": 0}, "'seconds_per_query' must be > 0"),
        ({"keep": -1}, "'keep' must be >= 0"),
        ({"settings": ("seed=1",)}, "'settings' must not contain seed=1: the seed is a field of the cell (--seed)"),
        ({"settings": ("steps=1", " device = cpu")}, "must not contain  device = cpu: "),
        ({"sparsity": 0}, "'sparsity' must be in (0, 1] or None, got 0"),
        ({"sparsity": float("nan")}, "got nan"),
        ({"queries": 0, "keep": -1}, "'queries' must be >= 1 or None, got 0; 'keep' must be"),
    ],
)
def test_an_invalid_cell_raises(changes, message):
    with pytest.raises(ConfigError) as caught:
        Cell(**{"dataset": "catching", **changes})
    assert message in str(caught.value)


def test_a_grid_holds_every_combination():
    plan = grid(["a", "b"], ["fcn", "tcn"], ["ics", "gan"], range(3), ["x", None], queries=4)
    cells = [(c.dataset, c.classifier, c.method, c.seed, c.target) for c in plan]
    assert len(set(cells)) == len(cells) == 48 == len({c.key for c in plan})
    assert {c.queries for c in plan} == {4}


def test_settings_may_be_for_one_method_alone():
    settings = ["batch_size=8", "sparce:train.epochs=1", "cfts:comte:seconds_per_query=2"]
    plan = grid(["catching"], methods=["sparce", "nearest", "cfts:comte"], settings=settings)
    assert {cell.method: cell.settings for cell in plan} == {
        "sparce": ("batch_size=8", "train.epochs=1"),
        "nearest": ("batch_size=8",),
        "cfts:comte": ("batch_size=8", "seconds_per_query=2"),
    }
    with pytest.raises(ConfigError, match=r"'sparse', which is not in this benchmark\. Did you mean 'sparce'\?"):
        grid(["catching"], methods=["sparce"], settings=["sparse:train.epochs=1"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": "catchin"}, "Did you mean 'catching'?"),
        ({"dataset": "no/such/file.npz"}, "no file no/such/file.npz"),
        ({"method": "sparse"}, "Did you mean 'sparce'?"),
        ({"classifier_config": {"epoch": 1}}, "did you mean 'epochs'?"),
        ({"method": "sparce", "preset": "paper"}, "sparce: "),
        ({"preset": "paper", "target": "a"}, "sparcets: ExplainerConfig has no preset 'paper'"),
        ({"settings": ("max_serie=9",)}, "did you mean 'max_series'?"),
    ],
)
def test_unknown_names_and_settings_raise_before_any_run(changes, message):
    fine = Cell(dataset="catching")
    paper = dataclasses.replace(fine, dataset="NATOPS", method="sparce", preset="paper", target="1")
    check_plan([fine, paper])
    with pytest.raises(SparcetsError) as caught:
        check_plan([fine, dataclasses.replace(fine, **changes)])
    assert message in str(caught.value)


def test_a_setting_that_one_of_several_methods_does_not_have():
    plan = grid(["catching"], methods=["sparce", "nearest"], settings=["train.epochs=1"])
    with pytest.raises(ConfigError, match=r"^nearest: .*'train'.* sparce:train\.epochs=5"):
        check_plan(plan)
    check_plan(grid(["catching"], methods=["sparce", "nearest"], settings=["sparce:train.epochs=1"]))


def test_a_file_is_identified_by_its_content(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"abc")
    by_name, by_source = Cell(dataset=str(tmp_path / "a.npz")), Cell(dataset="x", source=str(tmp_path / "a.npz"))
    assert file_digest(by_name) == file_digest(by_source) == "ba7816bf8f01cfea"  # of SHA-256's own test vector
    (tmp_path / "a.npz").write_bytes(b"abd")
    assert file_digest(by_name) not in (None, "ba7816bf8f01cfea")
    assert file_digest(Cell(dataset="catching")) is None is file_digest(Cell(dataset="gone.npz"))


def test_nothing_is_missing():
    names = ["catching", "motionsense", "moving_box"]
    assert sorted(DATASETS) == sorted(TABLE1) == sorted(TARGETS) == sorted(ABLATION) == sorted(SECONDS) == names
    for name in names:
        described = DATASETS[name]
        assert list(TABLE1[name]) == list(SECONDS[name]) == list(METHODS)
        assert list(ABLATION[name]) == list(TERMS)
        assert list(TARGETS[name]) == [c for c in described.classes if c not in described.left_out]
        for rows in (TABLE1[name], TARGETS[name], ABLATION[name]):
            assert all(tuple(row) == MEASURES for row in rows.values())
