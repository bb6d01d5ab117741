"""The commands as a user types them: results on stdout, one line on stderr and exit code 2 for a user error."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.testing.data import make_series
from tests.campaigns.folders import snapshot

from .conftest import run, save_series, user_error


@pytest.fixture(scope="module")
def own_data(tmp_path_factory):
    return save_series(tmp_path_factory.mktemp("data") / "own.npz", feature_names=["left", "right", "top", "idle"])


@pytest.fixture(scope="module")
def model(own_data, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("model"))
    assert main(["fit", "-d", own_data, "--out", folder, *"-m nearest -c fcn --preset tiny --json".split()]) == 0
    return folder


def test_list(capsys):
    code, out, _ = run(capsys, "list", "--json")
    assert code == 0
    known = json.loads(out)
    assert {"sparcets", "sparce", "nearest"} <= set(known["explainers"])
    assert {"catching", "moving_box"} <= set(known["datasets"]) and "bilstm" in known["classifiers"]
    header, *lines, remark = run(capsys, "list")[1].splitlines()
    assert len(lines) == sum(len(names) for names in known.values()) and header == "kind\tname\tdescription"
    assert "dataset\tNATOPS\tUEA archive, multivariate\n" in run(capsys, "list", "--archive")[1]
    assert f"dataset\tmoving_box\t{known['datasets']['moving_box']}" in lines and "158 data sets" in remark


def test_data_info(capsys, own_data):
    code, out, _ = run(capsys, "data", "info", own_data)
    assert code == 0 and "72 training + 18 test series" in out and "left, right, top, idle" in out
    facts = json.loads(run(capsys, "data", "info", own_data, "--json")[1])
    assert sum(sum(v) for v in facts["classes"].values()) == 90 and facts["split"] == "random"


def test_fit_saves_what_explain_reads(capsys, model, tmp_path):
    saved = tmp_path / "run.npz"
    code, out, _ = run(capsys, *f"explain {model} -t wild --rows 0:6 --out {saved} --plots {tmp_path} --json".split())
    assert code == 0
    rows = json.loads(out)
    assert [r["series"] for r in rows] == [0, 1, 2, 3, 4, 5]
    assert {r["target"] for r in rows} == {"wild"} and all(r["valid"] for r in rows)
    assert {r["verdict"] for r in rows} <= {"doubtful", "unchanged"} and not any(r["believed"] for r in rows)
    e = sp.load_explanation(saved)
    assert len(e) == 6 and e.feature_names == ("left", "right", "top", "idle")
    assert e.ids.tolist() == [f"series {i}" for i in range(6)]
    changed = [r["series"] for r in rows if r["verdict"] != "unchanged"]
    assert 0 < len(changed) < 6
    assert sorted(file.name for file in tmp_path.glob("*.png")) == [f"series-{i:03d}.png" for i in changed]


def test_series_keep_their_names(capsys, model, own_data, tmp_path):
    with np.load(own_data) as stored:
        people = {"ids": [f"trial {i}" for i in range(90)], "subjects": [f"P{i // 9}" for i in range(90)]}
        np.savez(tmp_path / "named.npz", **stored, **people)
    named, saved = str(tmp_path / "named.npz"), str(tmp_path / "run.npz")
    ds = sp.load_dataset(named, seed=0)
    pictures = tmp_path / "pictures"
    run(capsys, "explain", model, "-d", named, "--rows", "2,5", "--plots", str(pictures), "-n", "2")
    files = {f"series-{k:03d}-{str(ds.ids_test[k]).replace(' ', '_')}{nth}.png" for k in (2, 5) for nth in ("", "_2")}
    assert {file.name for file in pictures.iterdir()} == files
    code, out, _ = run(capsys, "explain", model, "-d", named, "--rows", "2,5", "--out", saved)
    header, first = out.splitlines()[:2]
    assert code == 0 and header.split("\t")[:3] == ["series", "id", "subject"]
    assert first.split("\t")[:3] == ["2", str(ds.ids_test[2]), str(ds.subjects_test[2])]
    assert f"series 5 ({ds.ids_test[5]}, subject {ds.subjects_test[5]}): ? Doubtful" in out
    assert out.count("it is no advice for treatment") == 2, "people are the subject"
    assert sp.load_explanation(saved).ids.tolist() == ds.ids_test[[2, 5]].tolist()
    rows = json.loads(run(capsys, "explain", model, "-d", named, "--rows", "2,5", "--json")[1])
    assert [(r["id"], r["subject"]) for r in rows] == [(ds.ids_test[i], ds.subjects_test[i]) for i in (2, 5)]
    ids = ",".join(ds.ids_test[[5, 2]].tolist())
    rows = json.loads(run(capsys, "explain", model, "-d", named, "--rows", ids, "--json")[1])
    assert [r["series"] for r in rows] == [5, 2]
    code, _, err = run(capsys, "explain", model, "-d", named, "--rows", "trial x")
    assert code == 2 and f"or ids of test series, such as {ds.ids_test[0]}, got 'trial x'" in err
    rows = json.loads(run(capsys, "explain", model, "--rows", "0", "--json")[1])
    assert rows[0]["id"] is None and rows[0]["subject"] is None


def test_constraints_and_targets_reach_the_answer(capsys, model, tmp_path):
    saved = str(tmp_path / "run.npz")
    limits = "--immutable idle --frozen 0:5 --range right=-1:1.5 --range left=-9: --direction right=up"
    more = "--max-step top=0.5 --group pair=left,top --sparsity 0.6 -n 2 --seed 3 --rows 8:18"
    assert run(capsys, "explain", model, "-t", "brisk", "--out", saved, *limits.split(), *more.split())[0] == 0
    e = sp.load_explanation(saved)
    assert len(e) == 20 and e.seed == 3
    assert not e.changed[..., 3].any() and not e.changed[:, :5].any() and (e.delta[..., 1] >= 0).all()
    assert np.array_equal(e.changed[..., 0], e.changed[..., 2]) and e.share_changed.max() <= 0.6
    limits = (
        "--max-features 2 --frozen left=0:5 --frozen left=9: --integer right --monotone top=up --fixed-sum top,idle"
    )
    assert run(capsys, "explain", model, *f"--not brisk --confidence 0.4 --out {saved} {limits}".split())[0] == 0
    e = sp.load_explanation(saved)
    assert (e.target != e.class_names.index("brisk")).all() and (e.changed.any(1).sum(1) <= 2).all()
    given = e.constraints["explain"]
    assert given["frozen_features"] == [["left", [[0, 5], [9, None]]]] and given["fixed_sum"] == [["top", "idle"]]
    assert (given["integer"], given["monotone"], e.confidence) == (["right"], [["top", "up"]], 0.4)


def test_a_saved_classifier_can_be_explained_by_another_fit(capsys, own_data, model, tmp_path):
    arguments = ["fit", "-d", own_data, "--out", str(tmp_path), "-m", "nearest", "-c", f"{model}/classifier"]
    assert run(capsys, *arguments, "--set", "candidates=7")[0] == 0
    assert sp.load(tmp_path / "explainer", classifier=sp.load_classifier(f"{model}/classifier")).config.candidates == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "info", "catchng"], "Did you mean 'catching'?"),
        (["fit", "-d", "catching", "--out", "x", "-m", "nearst"], "Did you mean 'nearest'?"),
        (["fit", "-d", "catching", "--out", "x", "-m", "nearest", "--set", "candidate=3"], "did you mean 'candidates'"),
        (["fit", "-d", "catching", "--out", "x", "-m", "sparce", "--preset", "paper"], "--target"),
        (["fit", "-d", "catching", "--out", "x", "--device", "tpu9"], "no device 'tpu9'"),
        (["explain", "/no/such/folder"], "run.json"),
        (["fit", "--unknown"], "No such option"),
    ],
)
def test_a_user_error_is_one_line(capsys, arguments, message):
    assert message in user_error(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-t", "brisck"], "Did you mean 'brisk'?"),
        (["--rows", "3,18"], "--rows must be within the 18 test series, 0 to 17, got 3,18"),
        (["--rows", "a"], "must have the form 7, 0:10 or 1,4,9"),
        (["--range", "left"], "FEATURE=VALUE"),
        (["--frozen", "5"], "'5' is not START:STOP"),
        (["-t", "calm", "--not", "wild"], "give --target or --not, not both"),
        (["--frozen", "0:2", "--frozen", "left=3:4"], "not both"),
        (["--edits", "2"], "Nearest gives values, not edits"),
        (["--curve"], "Nearest has no models of other kinds"),
    ],
)
def test_a_user_error_about_a_model_is_one_line(capsys, model, arguments, message):
    assert message in user_error(capsys, "explain", model, *arguments)


@pytest.mark.parametrize(("command", "extra"), [(["studio"], "studio"), (["serve", "model"], "serve")])
def test_an_extra_that_is_not_installed_is_named(capsys, monkeypatch, command, extra):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert f"pip install 'sparcets[{extra}]'" in user_error(capsys, *command)


def test_debug_raises_the_error():
    with pytest.raises(sp.SparcetsError, match="no_such_set"):
        main(["data", "info", "no_such_set", "--debug"])


def test_version_and_help(capsys):
    assert run(capsys, "--version")[1].strip() == f"sparcets {sp.__version__}"
    for command in ([], ["fit"], ["explain"], ["demo"], ["data", "info"]):
        code, out, _ = run(capsys, *command, "--help")
        assert code == 0 and "Usage" in out


def test_a_trained_method_from_the_command_line(capsys, own_data, model, tmp_path):
    state = tmp_path / "state"
    arguments = ["fit", "-d", own_data, "--out", str(tmp_path / "m"), "-m", "countergan", "-c", f"{model}/classifier"]
    quick = ["--preset", "tiny", "--set", "train.epochs=2", "--target", "brisk", "--checkpoint", str(state)]
    assert run(capsys, *arguments, *quick)[0] == 0 and (state / "checkpoint.safetensors").exists()
    code, out, _ = run(capsys, "explain", str(tmp_path / "m"), "--rows", "0:3", "--json")
    assert code == 0 and {r["target"] for r in json.loads(out)} == {"brisk"}
    assert "'brisk'" in user_error(capsys, "explain", str(tmp_path / "m"), "-t", "wild")


def test_features_of_other_data_are_matched_by_name(capsys, own_data, model, tmp_path):
    with np.load(own_data) as stored:
        parts = dict(stored)
    back = parts | {"X": parts["X"][:, :, ::-1], "feature_names": parts["feature_names"][::-1]}
    np.savez(tmp_path / "turned.npz", **back)
    rows = ["--rows", "0:6", "-t", "brisk", "--json"]
    straight = run(capsys, "explain", model, "-d", own_data, *rows)[1]
    assert run(capsys, "explain", model, "-d", str(tmp_path / "turned.npz"), *rows)[1] == straight
    np.savez(tmp_path / "other.npz", **(parts | {"feature_names": ["left", "right", "top", "else"]}))
    said = user_error(capsys, "explain", model, "-d", str(tmp_path / "other.npz"), *rows)
    assert "fitted on left, right, top, idle" in said


@pytest.mark.parametrize("out", [".", "/dev/null", "/dev/stdout", "pipe"])
def test_an_out_that_is_no_file_is_refused_at_once(out, model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    saved = str(tmp_path / "run.npz")
    run(capsys, "explain", model, "--rows", "0:2", "--out", saved)
    before = snapshot(tmp_path)
    commands = (["explain", model], ["evaluate", saved], ["report", saved], ["export", model], ["benchmark", "speed"])
    for command in commands:
        said = user_error(capsys, *command, "--out", out)
        assert f"cannot write {out}: it is a" in said and "not a file. Name a file" in said and "free some" not in said
    assert snapshot(tmp_path) == before


def test_pictures_are_told_if_there_are_any(model, tmp_path, capsys):
    folder = tmp_path / "pictures"
    code, out, _ = run(capsys, "explain", model, "--predicted", "calm", "-t", "calm", "--plots", str(folder))
    assert code == 0 and "no pictures: no answer changes anything" in out and not folder.exists()
    for _ in range(2):
        assert f"pictures in {folder}" in run(capsys, "explain", model, "--rows", "0:3", "--plots", str(folder))[1]
    file = next(folder.iterdir())
    file.write_text("theirs")
    assert "is not a picture by" in user_error(capsys, "explain", model, "--rows", "0:3", "--plots", str(folder))
    assert file.read_text() == "theirs"
    assert "it is a file, not a folder" in user_error(capsys, "explain", model, "--plots", str(file))


def test_ragged_series_with_gaps_are_fitted_explained_and_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = make_series(90)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    lengths = 14 + np.arange(90) % 7
    np.savez("own.npz", X=X, y=y, lengths=lengths)
    fit = ["fit", "-d", "own.npz", "--out", "model", "-m", "nearest", "-c", "fcn", "--preset", "tiny"]
    assert "missing='forward'" in user_error(capsys, *fit)
    code, out, _ = run(capsys, *fit, "--set-classifier", "missing=forward")
    n_missing = sum(int(np.isnan(series[:n]).sum()) for series, n in zip(X, lengths, strict=True))
    assert code == 0 and f"{n_missing} values missing" in out
    assert main(["explain", "model", "-t", "1", "--out", "run.npz", "--plots", "pictures"]) == 0
    e = sp.load_explanation("run.npz")
    assert e.info.unequal and len(set(e.lengths.tolist())) > 3
    assert e.valid.any() and not e.changed[np.arange(20) >= e.lengths[:, None]].any()
    assert np.array_equal(np.isnan(e.counterfactual), e.missing)
    assert main(["report", "run.npz", "--out", "report.html"]) == 0
    assert "up to 20 steps" in Path("report.html").read_text(encoding="utf-8")

    np.savez("short.npz", X=X[:30, :15], y=y[:30])  # of one length, shorter than the longest of the fit
    assert main(["explain", "model", "-d", "short.npz", "-t", "1", "--out", "short_run.npz"]) == 0
    assert (sp.load_explanation("short_run.npz").lengths == 15).all()
