"""Tables from rows made by hand: numbers in the right cells, dashes for missing ones, errors."""

import csv
import io

from sparcets.show.tables import Table
from sparcets_paper.reproduce.tables import make_tables


def cell(table: Table, column: str, *row: str) -> str:
    (found,) = [r for r in table.rows if r[: len(row)] == row]
    return found[table.columns.index(column)]


def test_table1_by_hand(make_row, facts) -> None:
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


def test_a_run_that_failed_shows_its_error(make_row, facts) -> None:
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


def test_targets_by_hand(make_row, facts) -> None:
    rows = [make_row(target=t, similarity_all=0.5, seed=s) for t in ("Ataxia", "Control") for s in (0, 1)]
    table = make_tables(rows, facts, ["targets"])["targets"]
    assert cell(table, "similarity", "Catching (simulated)", "Ataxia") == "0.50 ± 0.00 / 0.15"  # no std
    assert cell(table, "similarity", "Catching (simulated)", "Control") == "**0.50 ± 0.00** / 0.09 ± 0.04"
    assert [row[1] for row in table.rows] == ["Ataxia", "Autism", "Control", "dws", "jog", "ups", "wlk"]


def test_ablation_by_hand(make_row, facts) -> None:
    labels = {"none": "SPARCE, λ4,5 = 0", "+λ4": "SPARCE, λ5 = 0", "+λ5": "SPARCE, λ4 = 0", "both": "SPARCE"}
    labels |= {"+λ4, with a gradient": "SPARCE, λ4 trains, λ5 = 0", "both, with a gradient": "SPARCE, λ4 trains"}
    rows = [make_row(label=label, sparsity_all=0.2 + i / 100) for i, label in enumerate(labels.values())]
    table = make_tables(rows, facts, ["ablation"])["ablation"]
    found = [cell(table, "sparsity", "Catching (simulated)", terms) for terms in labels]
    assert found == [
        "0.20 / 0.32 ± 0.06",
        "0.21 / 0.33 ± 0.13",
        "0.22 / 0.28 ± 0.14",
        "0.23 / 0.27 ± 0.10",
        "0.24",
        "0.25",
    ]


def test_timing_by_hand(make_row, facts) -> None:
    rows = [make_row(label="ICS", seed=s, fit_s=1.0, explain_s=20.0 + 2 * s) for s in (0, 1)]
    table = make_tables(rows, facts, ["timing"])["timing"]
    at = ("Catching (simulated)", "ICS")
    assert table.rows[0] == (*at, "1.00 ± 0.00", "21.00 ± 1.41", "22.00 ± 1.41", "693 ± 34", "31.5 ×")
    assert cell(table, "faster", "Catching (simulated)", "GAN") == "–"
    assert (
        "Ours on cpu, one run at a time; the paper's on a Quadro RTX 5000." in table.note
        and "less work" not in table.note
    )


def test_times_of_less_work_are_not_compared(make_row, facts) -> None:
    rows = [make_row(label="GAN") | {"settings": ["train.epochs=3"]}]
    table = make_tables(rows, facts, ["timing"])["timing"]
    at = ("Catching (simulated)", "GAN")
    assert cell(table, "total, s", *at) == "11.00" and cell(table, "faster", *at) == "–"
    assert "At this scale there is less work than in the paper" in table.note


def test_datasets_by_hand(facts) -> None:
    table = make_tables([], facts, ["table1"])["datasets"]
    assert cell(table, "samples", "MotionSense") == "7,544 / 7,544"
    assert cell(table, "per class", "MotionSense") == (
        "dws: 1,283 / 1,283; jog: 1,317 / 1,317; ups: 1,536 / 1,536; wlk: 3,408 / 3,408"
    )
    assert cell(table, "mutable", "Catching (simulated)") == "18 / 18"
    assert "13,950 samples in all" in table.note


def test_saliency_by_hand(make_row, facts) -> None:
    areas = {
        "saliency_auc_pooled_all": 0.8,
        "saliency_auc_pooled": 0.2,
        "saliency_auc_all": 0.7,
        "saliency_auc": 0.1,
        "oracle": 0.25,
    }
    rows = [make_row("moving_box", "GAN", target="0", **areas), make_row("moving_box", "ICS", error="E: x")]
    tables = make_tables(rows, {"moving_box": facts["catching"]}, ["figures"])
    assert list(tables) == ["datasets", "saliency"]
    found = tables["saliency"]
    assert [row[:2] for row in found.rows[::5]] == [("1", "ICS"), ("0", "ICS")]
    assert [cell(found, c, "0", "GAN") for c in ("AUC, pooled", "AUC, mean", "oracle", "valid")] == [
        "0.80",
        "0.70",
        "0.25",
        "–",
    ]
    assert cell(found, "AUC, pooled", "1", "ICS") == "E: x"


def test_accuracies_of_classifier_and_judges(make_row, facts) -> None:
    rows = [make_row(error="E: x"), {**make_row(seed=1), "accuracy": 0.91, "judges": {"fcn": 0.9, "bigru": 0.8}}]
    assert make_tables(rows, facts, [])["datasets"].rows[0][-2:] == ("0.910", "fcn 0.900, bigru 0.800")
    assert make_tables([], facts, [])["datasets"].rows[0][-2:] == ("–", "–")


def test_both_spreads_count(make_row, facts) -> None:
    def similarity(*values):
        rows = [make_row(label="GAN", seed=seed, similarity_all=v) for seed, v in enumerate(values)]
        return cell(make_tables(rows, facts, ["table1"])["table1"], "similarity", "Catching (simulated)", "GAN")

    assert similarity(0.16, 0.17, 0.18) == "**0.17 ± 0.01** / 0.22 ± 0.02"
    assert similarity(0.09, 0.17, 0.25) == "0.17 ± 0.08 / 0.22 ± 0.02"


def test_numbers_behind_the_figures_by_hand(make_row, facts) -> None:
    shares = {"queries": 0.5, "targets": 0.2, "counterfactuals": 0.3}
    limbs = {"LeftElbow–LeftWrist": {"queries": [0.1, 0.2, 0.3], "answers": [0.2, 0.3, 0.4]}}
    places = {p: {"size": i / 10, "changed": i / 20} for i, p in enumerate(("inside", "outside", "first", "last"), 1)}
    rows = [{**make_row(), "figures": {"map": shares, "space": shares, "limbs": limbs}}]
    rows += [{**make_row("moving_box"), "figures": {"places": places}}]
    tables = make_tables(rows, facts, ["figures"])
    assert tables["neighbours"].rows == (("Catching (simulated)", "SPARCE", "1", *("0.50", "0.20", "0.30") * 2),)
    sizes, changed = ("0.10", "0.20", "0.30", "0.40"), ("0.050", "0.10", "0.15", "0.20")
    assert tables["places"].rows == (("1", "SPARCE", "1", *sizes, *changed),)
    quartiles = "0.200 · 0.300 · 0.400"
    assert tables["limbs"].rows == (("LeftElbow–LeftWrist", "0.100 · 0.200 · 0.300", "", "", "", quartiles),)


def test_probes_by_hand(make_row, facts) -> None:
    rows = [make_row(label="ICS, published search", similarity_all=0.5)]
    found = make_tables(rows, facts, ["probes"])["probes"].rows
    expected = ("ICS, published search", "steps=10, max_lambdas=5, lambda_step=0.001", "1", "– / 0.24 ± 0.05")
    assert [row[1:5] for row in found] == [expected] and found[0][5] == "0.50 / 1.66 ± 0.04"
    assert "probes" not in make_tables([], facts, ["probes"])


def test_geometry_by_hand(make_row, facts) -> None:
    rows = [make_row(seed=seed, limb_deviation=v, joint_deviation=10 * v) for seed, v in enumerate((0.02, 0.04))]
    found = make_tables(rows, facts, ["figures"])["geometry"]
    assert found.rows[3][:5] == ("SPARCE", "2", "3.00 ± 1.41", "0.30 ± 0.14", "–")  # per cent, and degrees
    assert found.rows[0][:4] == ("ICS", "0", "–", "–")


def test_the_note_on_times_has_the_number_of_workers(make_row, facts) -> None:
    def note(*workers):
        rows = [{**make_row(seed=seed), "workers": n} for seed, n in enumerate(workers)]
        return make_tables(rows, facts, ["timing"])["timing"].note

    assert "one run at a time" in note(1, 1)
    assert "up to 9 runs in parallel" in note(1, 9)


def test_only_the_tables_of_the_given_parts(facts) -> None:
    assert list(make_tables([], facts, ["targets", "timing"])) == ["datasets", "targets", "timing"]
    assert list(make_tables([], facts, ["all"])) == ["datasets", "table1", "targets", "ablation", "timing", "geometry"]
    assert list(make_tables([], facts, ["figures"])) == ["datasets", "geometry"]


def test_csv_and_latex_of_a_real_table(make_row, facts) -> None:
    rows = [make_row(label="SPARCE, λ4 = 0", sparsity_all=0.9, seed=seed) for seed in (0, 1)]
    table = make_tables(rows, facts, ["ablation"])["ablation"]
    parsed = list(csv.reader(io.StringIO(table.to_csv())))
    assert parsed[0] == list(table.columns) and all(len(line) == len(table.columns) for line in parsed)
    assert parsed[3][:2] == ["Catching (simulated)", "+λ5"] and parsed[3][5] == "0.90 ± 0.00 / 0.28 ± 0.14"
    assert r"+$\lambda$5 & 2 & -- / 0.02 $\pm$ 0.03" in table.to_latex()
    assert r"\textbf{0.90 $\pm$ 0.00} / 0.28 $\pm$ 0.14" in table.to_latex()
