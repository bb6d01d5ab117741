"""Tables from rows made by hand: numbers in the right cells, dashes for missing ones, errors."""

import csv
import io

from sparcets_paper.reproduce.tables import make_tables


def cell(table, column, *row):
    (found,) = [r for r in table.rows if r[: len(row)] == row]
    return found[table.columns.index(column)]


def test_table1_by_hand(make_row, facts):
    rows = [
        make_row(
            seed=seed,
            precision_index=0.05,
            precision=0.5,
            similarity_all=0.10 + 0.02 * seed,
            similarity=9.0,
            sparsity_all=0.9,
            smoothness_all=0.0125,
            valid=0.96,
            transfer=0.4,
            oracle=None,
            universality=0.26,
            knn_ratio=1.5,
        )
        for seed in (0, 1)
    ]
    table = make_tables(rows, facts, ["table1"])["table1"]
    assert len(table.rows) == 8  # two sets, four methods
    at = ("Catching (simulated)", "SPARCE")
    assert cell(table, "runs", *at) == "2"
    assert cell(table, "precision", *at) == "0.050 ± 0.000 / 0.01 ± 0.01"  # within the margin of errors near zero
    assert cell(table, "similarity", *at) == "0.11 ± 0.01 / 0.09 ± 0.04"
    assert cell(table, "sparsity", *at) == "**0.90 ± 0.00** / 0.27 ± 0.10"
    assert cell(table, "smoothness", *at) == "0.013 ± 0.000 / 0.01 ± 0.01"
    assert cell(table, "valid", *at) == "0.96 ± 0.00"
    assert cell(table, "oracle", *at) == "–"
    assert cell(table, "5-NN ratio", *at) == "1.50 ± 0.00"
    assert cell(table, "similarity", "MotionSense", "ICS") == "– / 1.32 ± 0.01"
    assert cell(table, "runs", "MotionSense", "ICS") == "0"


def test_a_run_that_failed_shows_its_error(make_row, facts):
    rows = [make_row(label="GAN", error="TrainingError: dead | gone"), make_row(seed=0, valid=0.5)]
    rows += [make_row(seed=1, error="MemoryError: full")]
    tables = make_tables(rows, facts, ["all"])
    at = ("Catching (simulated)", "GAN")
    assert cell(tables["table1"], "precision", *at) == "TrainingError: dead | gone"
    assert cell(tables["table1"], "valid", *at) == "–"
    assert r"TrainingError: dead \| gone |" in tables["table1"].to_markdown()
    assert cell(tables["timing"], "total, s", *at) == "TrainingError: dead | gone"
    # If another seed succeeded, its numbers are in the table, and the error is in the note.
    assert cell(tables["table1"], "valid", "Catching (simulated)", "SPARCE") == "0.50"
    assert "Failed: Catching (simulated), SPARCE, seed 1: MemoryError: full" in tables["table1"].note


def test_timing_by_hand(make_row, facts):
    rows = [make_row(label="ICS", seed=s, fit_s=1.0, explain_s=20.0 + 2 * s) for s in (0, 1)]
    table = make_tables(rows, facts, ["timing"])["timing"]
    at = ("Catching (simulated)", "ICS")
    assert table.rows[0] == (*at, "1.00 ± 0.00", "21.00 ± 1.41", "22.00 ± 1.41", "693 ± 34", "31.5 ×")
    assert cell(table, "faster", "Catching (simulated)", "GAN") == "–"
    assert (
        "Ours on cpu, one run at a time; the paper's on a Quadro RTX 5000." in table.note
        and "less work" not in table.note
    )


def test_times_of_less_work_are_not_compared(make_row, facts):
    rows = [make_row(label="GAN") | {"settings": ["train.epochs=3"]}]
    table = make_tables(rows, facts, ["timing"])["timing"]
    at = ("Catching (simulated)", "GAN")
    assert cell(table, "total, s", *at) == "11.00" and cell(table, "faster", *at) == "–"
    assert "At this scale there is less work than in the paper" in table.note


def test_accuracies_of_classifier_and_judges(make_row, facts):
    rows = [make_row(error="E: x"), {**make_row(seed=1), "accuracy": 0.91, "judges": {"fcn": 0.9, "bigru": 0.8}}]
    assert make_tables(rows, facts, [])["datasets"].rows[0][-2:] == ("0.910", "fcn 0.900, bigru 0.800")
    assert make_tables([], facts, [])["datasets"].rows[0][-2:] == ("–", "–")


def test_only_the_tables_of_the_given_parts(facts):
    assert list(make_tables([], facts, ["targets", "timing"])) == ["datasets", "targets", "timing"]
    assert list(make_tables([], facts, ["all"])) == ["datasets", "table1", "targets", "ablation", "timing", "geometry"]
    assert list(make_tables([], facts, ["figures"])) == ["datasets", "geometry"]


def test_csv_of_a_real_table(make_row, facts):
    rows = [make_row(label="SPARCE, λ4 = 0", sparsity_all=0.9, seed=seed) for seed in (0, 1)]
    table = make_tables(rows, facts, ["ablation"])["ablation"]
    parsed = list(csv.reader(io.StringIO(table.to_csv())))
    assert parsed[0] == list(table.columns) and all(len(line) == len(table.columns) for line in parsed)
    assert parsed[3][:2] == ["Catching (simulated)", "+λ5"] and parsed[3][5] == "0.90 ± 0.00 / 0.28 ± 0.14"
