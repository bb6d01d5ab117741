"""What a report says about its rows: one digest, repetitions, missing runs."""

from typing import Any

from sparcets_paper.reproduce.provenance import describe, missing, of_latest_code


def run(**given: Any) -> dict[str, Any]:
    one = {"catching": {"title": "Catching (simulated)"}}
    return {"scale": "full", "repetitions": 2, "parts": ["table1"], "datasets": one, "seconds": 60.0, **given}


def test_rows_of_different_code_are_not_mixed(make_row) -> None:
    old = [{**make_row(seed=s), "code": "aa", "started": "2026-01-01"} for s in (0, 1)]
    new = {**make_row(seed=2), "code": "bb", "started": "2026-02-01"}
    assert of_latest_code([*old, new]) == of_latest_code([new, *old]) == [new]
    unknown = make_row()  # rows of earlier versions have no digest
    assert of_latest_code([unknown]) == [unknown] and of_latest_code([]) == []


def test_missing_runs_are_listed_by_seed(make_row) -> None:
    rows = [make_row(label=label, seed=0) for label in ("ICS", "GAN", "SPARCE")] + [make_row(label="GAN", seed=1)]
    assert missing(run(), rows) == {
        ("catching", "ICS", "Control"): [1],
        ("catching", "CounteRGAN", "Control"): [0, 1],
        ("catching", "SPARCE", "Control"): [1],
    }
    text = describe(run(), rows)
    assert "Missing, 4 of the planned runs: ICS on Catching towards Control (seed 1); CounteRGAN" in text
    assert "Experiments by their number of repetitions: 1 with 2, 2 with 1 (3 in all)." in text


def test_commit_and_digest_are_named(make_row) -> None:
    text = describe(run(note="A word."), [{**make_row(), "git": "0123456789abcdef", "code": "feed"}])
    assert "(commit 0123456789ab, digest feed of the code that decides the numbers)" in text and "\n\nA word.\n" in text
    assert "digest" not in describe(run(), [make_row()])
