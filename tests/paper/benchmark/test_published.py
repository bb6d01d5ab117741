"""The paper's numbers: complete, typed in right, and consistent where the paper states a thing twice."""

import pytest

from sparcets_paper.benchmark.published import (
    ABLATION,
    DATASETS,
    MEASURES,
    METHODS,
    SECONDS,
    TABLE1,
    TARGETS,
    TERMS,
    Reported,
)


def test_nothing_is_missing() -> None:
    names = ["catching", "motionsense", "moving_box"]
    assert sorted(DATASETS) == sorted(TABLE1) == sorted(TARGETS) == sorted(ABLATION) == sorted(SECONDS) == names
    for name in names:
        described = DATASETS[name]
        assert list(TABLE1[name]) == list(SECONDS[name]) == list(METHODS)
        assert list(ABLATION[name]) == list(TERMS)
        assert list(TARGETS[name]) == [c for c in described.classes if c not in described.left_out]
        for rows in (TABLE1[name], TARGETS[name], ABLATION[name]):
            assert all(tuple(row) == MEASURES for row in rows.values())


def test_classes_add_up_to_the_samples() -> None:
    assert {name: sum(d.classes.values()) for name, d in DATASETS.items()} == {
        "catching": 1975,
        "motionsense": 13950,
        "moving_box": 17600,
    }
    assert DATASETS["motionsense"].n_used == 7544
    assert all(d.n_samples == sum(d.classes.values()) for d in DATASETS.values())
    assert [(d.n_steps, d.n_features, d.n_mutable) for d in DATASETS.values()] == [
        (60, 20, 18),
        (100, 12, 12),
        (50, 50, 50),
    ]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (TABLE1["catching"]["ics"]["similarity"], (1.66, 0.04)),
        (TABLE1["catching"]["sparce"]["sparsity"], (0.27, 0.10)),
        (TABLE1["motionsense"]["gan"]["similarity"], (0.71, 0.21)),
        (TABLE1["motionsense"]["countergan"]["smoothness"], (0.03, 0.02)),
        (TABLE1["motionsense"]["sparce"]["precision"], (0.04, 0.06)),
        (TABLE1["moving_box"]["ics"]["precision"], (0.99, 0.00)),
        (TABLE1["moving_box"]["countergan"]["similarity"], (0.59, 0.05)),
        (TABLE1["moving_box"]["sparce"]["sparsity"], (0.30, 0.05)),
        (TARGETS["motionsense"]["wlk"]["precision"], (0.19, 0.08)),
        (TARGETS["motionsense"]["jog"]["sparsity"], (0.45, 0.15)),
        (TARGETS["catching"]["Ataxia"]["sparsity"], (0.47, None)),
        (TARGETS["moving_box"]["0"]["similarity"], (0.52, None)),
        (ABLATION["catching"]["+λ4"]["similarity"], (0.14, 0.04)),
        (ABLATION["motionsense"]["none"]["smoothness"], (0.06, 0.04)),
        (ABLATION["moving_box"]["+λ4"]["sparsity"], (0.35, None)),
        (SECONDS["catching"]["sparce"], (398, 4)),
        (SECONDS["motionsense"]["ics"], (2678, 13)),
        (SECONDS["moving_box"]["gan"], (22789, 1071)),
    ],
)
def test_numbers_by_hand(found: Reported, expected: tuple[float, float | None]) -> None:
    assert tuple(found) == expected


def test_what_the_paper_states_twice_is_one_number() -> None:
    for name, described in DATASETS.items():
        assert TARGETS[name][described.target] == ABLATION[name]["both"] == TABLE1[name]["sparce"]
