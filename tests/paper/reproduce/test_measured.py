"""Numbers of repeated runs, by hand."""

import math

from sparcets_paper.benchmark.published import Reported
from sparcets_paper.reproduce.agreement import Runs, compare, number, reported, with_published


def test_repetitions_are_found_by_what_they_repeat(make_row) -> None:
    rows = [
        make_row(seed=1, valid=0.5),
        make_row(seed=0, valid=0.7),
        make_row(label="GAN", valid=0.1),
        make_row(target="Autism", valid=0.2),
        make_row(dataset="moving_box", valid=0.3),
    ]
    runs = Runs(rows)
    assert runs.of("catching", "SPARCE").values("valid") == [0.7, 0.5]  # by seed
    assert runs.of("catching", "SPARCE", "Autism").values("valid") == [0.2]
    assert runs.of("moving_box", "SPARCE").values("valid") == [0.3]  # the paper's target is 1
    assert runs.of("moving_box", "SPARCE", "0").rows == ()


def test_of_two_rows_with_one_key_the_last_counts(make_row) -> None:
    runs = Runs([make_row(error="RuntimeError: no"), make_row(valid=0.5)])
    assert runs.of("catching", "SPARCE").values("valid") == [0.5]
    assert runs.of("catching", "SPARCE").errors == ()


def test_values_leave_out_what_is_not_there(make_row) -> None:
    rows = [make_row(valid=None), make_row(seed=1, valid=math.nan), make_row(seed=2, error="E: x"), make_row(seed=3)]
    group = Runs(rows).of("catching", "SPARCE")
    assert group.values("valid") == []
    assert group.values("fit_s") == [10.0, 10.0, 10.0]
    assert group.errors == ("seed 2: E: x",)


def test_numbers_by_hand() -> None:
    assert number([0.20, 0.24, 0.22]) == "0.22 ± 0.02"
    assert number([0.01, 0.03]) == "0.020 ± 0.014"  # std of two values: half their difference times sqrt 2
    assert number([1.0]) == "1.00"
    assert number([-0.02]) == "-0.020"
    assert number([]) == "–"


def test_bold_where_the_paper_is_missed() -> None:
    published = Reported(0.40, 0.06)
    assert with_published([0.63, 0.60, 0.66], published) == "**0.63 ± 0.03** / 0.40 ± 0.06"
    assert with_published([0.43, 0.40, 0.46], published) == "0.43 ± 0.03 / 0.40 ± 0.06"
    assert with_published([0.9], published) == "0.90 / 0.40 ± 0.06"  # one repetition has no spread
    assert with_published([0.9, 0.9], Reported(0.40)) == "0.90 ± 0.00 / 0.40"  # no std, not compared
    assert with_published([], published) == "– / 0.40 ± 0.06"


def test_numbers_behind_figures(make_row) -> None:
    rows = [{**make_row(seed=seed), "figures": {"map": {"targets": 0.1 * seed}}} for seed in (1, 2)]
    group = Runs([*rows, make_row(seed=3), {**make_row(seed=4), "figures": {"map": None}}]).of("catching", "SPARCE")
    assert group.figure("map", "targets") == [0.1, 0.2]
    assert group.figure("places", "inside", "size") == []


def test_reported_keeps_the_papers_digits() -> None:
    assert reported(Reported(1, 0)) == "1.00 ± 0.00"


def test_comparisons_by_hand(make_row) -> None:
    rows = [
        make_row(label="GAN", precision_index=0.001, similarity_all=0.30 + 0.01 * s, similarity=0.22, seed=s)
        for s in (0, 1, 2)
    ]
    found = compare(Runs(rows), "catching")
    assert [(c.method, c.measure, c.outcome, c.near_zero) for c in found] == [
        ("GAN", "precision", "equivalent", True),
        # 0.31 over all queries against 0.22 ± 0.02; the mean over valid answers is not used
        ("GAN", "similarity", "different", False),
    ]
    assert (found[1].ours, found[1].papers) == ("0.31 ± 0.01", "0.22 ± 0.02")
