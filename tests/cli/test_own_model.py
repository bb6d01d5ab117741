"""Models of the user's own on the command line: an ONNX file, or a function in a Python file."""

import json
import multiprocessing
import shutil
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.testing.data import make_series
from tests.test_security import write_onnx

from .conftest import output, save_series, user_error

MODEL = """
from pathlib import Path

import numpy as np
from neighbour import SHARPNESS  # imported from beside it

print("loading")  # not among the results


def load():
    weight = np.load(Path(__file__).with_name("weight.npy"))

    def scores(X):
        return {"state": None, "scores": SHARPNESS * (X.mean(1) @ weight)}

    return scores


def broken():
    raise FileNotFoundError("no weights\\nhere")


def nothing():
    return None
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Yield a folder with data of three classes, and a model of them."""
    save_series(tmp_path / "own.npz", 60, n_steps=8)
    (tmp_path / "my_model.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("SHARPNESS = 9.0\n")
    # Of the classes brisk, calm, wild, in the order of the alphabet.
    np.save(tmp_path / "weight.npy", np.eye(4)[:, [1, 0, 2]])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(("my_model", "neighbour"))]:
        del sys.modules[name]


FIT = ("fit", "-d", "own.npz", "-m", "nearest", "--preset", "tiny", "--out", "fitted")
NAMED = ("--model", "my_model.py:load")
PYTHON = (*NAMED, "--output", "logits:scores")


def test_a_function_of_a_python_file_from_fit_to_report(place, capsys):
    fitted = json.loads(output(capsys, *FIT, *PYTHON, "--json"))
    assert fitted["classifier"] == "my_model.py:load" and fitted["test_accuracy"] == 1.0
    explain = "-t wild --rows 0:3 --out run.npz --json".split()
    answers = json.loads(output(capsys, "explain", "fitted", *NAMED, *explain))
    assert all(a["valid"] for a in answers)
    e = sp.load_explanation("run.npz")
    np.testing.assert_array_equal((e.counterfactual.mean(1) @ np.load("weight.npy")).argmax(1), e.target)


@pytest.mark.parametrize("apart", [False, True])
def test_an_onnx_file_is_copied(place, capsys, apart):
    (place / "models").mkdir()
    write_onnx(place / "models" / "gait.onnx", "weights.bin" if apart else None, order=(1, 0, 2))
    output(capsys, *FIT, "--model", "models/gait.onnx", "--output", "logits", "--classes", "brisk, calm,wild")
    shutil.rmtree(place / "models")
    shutil.move("fitted", "elsewhere")
    assert "neighbour" in output(capsys, "explain", "elsewhere", "-t", "wild", "--rows", "0:3")
    copy = place / "elsewhere" / "classifier" / ("weights.bin" if apart else "gait.onnx")
    content = bytearray(copy.read_bytes())
    content[-20 if apart else content.index(b"\x00\x00\x80?")] ^= 1
    copy.write_bytes(bytes(content))
    assert "has changed since the fit" in user_error(capsys, "explain", "elsewhere", "-t", "wild")


def test_a_model_that_changed_is_refused(place, capsys):
    output(capsys, *FIT, *PYTHON)
    explain = ("explain", "fitted", *NAMED, "-t", "wild", "--rows", "0:2")
    np.save("weight.npy", np.eye(4)[:, :3])  # another model, of which the Python file knows nothing
    assert "my_model.py:load is not the model of the fit: its probabilities" in user_error(capsys, *explain)
    np.save("weight.npy", np.eye(4)[:, [1, 0, 2]])
    output(capsys, *explain)
    (place / "my_model.py").write_text(MODEL + "\n")
    assert "my_model.py has changed since the fit, or is another file: its sha256" in user_error(capsys, *explain)
    (place / "my_model.py").unlink()
    assert "no file my_model.py, where your model should be" in user_error(capsys, *explain)


def renamed(fit, source):
    """Let a fit name another Python file, with all digests as they have to be: as a stranger could."""
    from sparcets.io.files import read_json, write_json
    from sparcets.methods.folder import RUN, digests_of

    header = fit / "classifier" / "model.json"
    write_json(header, {**read_json(header, ""), "source": source})
    write_json(fit / RUN, {**read_json(fit / RUN, ""), "parts": digests_of(fit)})


READERS = (
    ("explain", "fitted"),
    ("serve", "fitted"),
    ("export", "fitted", "--out", "generator.onnx"),
    ("evaluate", "run.npz", "--model", "fitted"),
    ("studio", "--explainer", "fitted"),
)


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_every_command_says_what_to_type_and_takes_it(place, capsys, command, monkeypatch):
    from sparcets.methods import folder as folders

    output(capsys, *FIT, *PYTHON)
    output(capsys, "explain", "fitted", *NAMED, "-t", "wild", "--rows", "0:2", "--out", "run.npz")
    (place / "my_model.py").write_text("open('ran', 'w')\n")
    typed = " ".join(["sparcets", *command, "--model", f"{place / 'my_model.py'}:load"])
    assert user_error(capsys, *command).endswith(f"If you trust it, type: {typed}\n")
    assert not (place / "ran").exists()
    (place / "my_model.py").write_text(MODEL)
    seen = []

    def loaded(*_, model, **__):
        seen.append(model)
        raise sp.SparcetsError("enough")

    monkeypatch.setattr(folders, "load_fit", loaded)
    monkeypatch.setattr(folders, "load_fitted_model", loaded)
    monkeypatch.setattr("sparcets.server.app.serve", lambda *_, own_model, **__: loaded(model=own_model))
    assert user_error(capsys, *typed.split()[1:]) == "sparcets: enough\n"
    assert seen == [f"{place / 'my_model.py'}:load"]


@pytest.mark.parametrize(
    "where",
    [
        "{place}/fitted/my_model.py",
        "{place}/elsewhere/../fitted/my_model.py",
        "{place}/link.py",
        "{place}/folder/my_model.py",
        "/proc/self/cwd/fitted/my_model.py",
        "fitted/my_model.py",
        "my_model.py",
        "{place}/my_model.py",
    ],
)
def test_no_python_file_that_a_folder_names_is_run(place, capsys, where):
    output(capsys, *FIT, *PYTHON)
    shutil.copy("my_model.py", "fitted/my_model.py")
    (place / "elsewhere").mkdir()
    (place / "link.py").symlink_to(place / "fitted" / "my_model.py")
    (place / "folder").symlink_to(place / "fitted")
    renamed(place / "fitted", f"{where.format(place=place)}:load")
    sys.modules.pop("my_model", None)
    for name in ("my_model.py", "fitted/my_model.py"):
        Path(name).write_text(MODEL + "\nopen('ran', 'w')\n")
    assert "names Python code" in user_error(capsys, "explain", "fitted")
    inside = where not in ("my_model.py", "{place}/my_model.py")
    if inside:
        assert "--model FILE.py:FUNCTION\n" in user_error(capsys, "explain", "fitted")  # nothing of the folder
        named = f"{where.format(place=place)}:load"
        assert "no Python file in it is run" in user_error(capsys, "explain", "fitted", "--model", named)
    assert not (place / "ran").exists()


def test_fit_says_how_to_go_on_and_workers_of_the_server_run_the_named_file(place, capsys):
    pytest.importorskip("fastapi")
    from sparcets.server.pool import start_workers

    assert "next: sparcets explain fitted --model my_model.py:load --target" in output(capsys, *FIT, *PYTHON)
    somebody_elses = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    somebody_elses.start()
    with pytest.raises(sp.SparcetsError, match="names Python code"):
        start_workers(place / "fitted", "cpu", 1)
    assert somebody_elses.is_alive()
    somebody_elses.kill()
    somebody_elses.join()
    somebody_elses.close()
    workers, described = start_workers(place / "fitted", "cpu", 1, "my_model.py:load")
    for worker in workers:
        worker.close()
    assert described["classes"] == ["brisk", "calm", "wild"]


def test_what_is_proposed_for_typing_is_one_word(place, capsys):
    output(capsys, *FIT, *PYTHON)
    renamed(place / "fitted", "/tmp/a b; touch ran/x.py:load")
    assert user_error(capsys, "explain", "fitted").endswith("--model '/tmp/a b; touch ran/x.py:load'\n")
    for hidden in ("/tmp/\x1b[2Jx.py:load", "/tmp/\n/x.py:load", "/tmp/x.py:os.system"):
        renamed(place / "fitted", hidden)
        assert user_error(capsys, "explain", "fitted").endswith("--model FILE.py:FUNCTION\n")


def test_a_named_file_must_be_that_of_the_fit(place, capsys):
    output(capsys, *FIT, *PYTHON)
    shutil.copy("my_model.py", "fitted/my_model.py")
    assert "where no Python file is run" in user_error(capsys, *FIT, "--model", "fitted/my_model.py:load", "--force")
    (place / "moved").mkdir()
    for name in ("my_model.py", "neighbour.py", "weight.npy"):
        shutil.move(name, place / "moved" / name)
    for name in [name for name in sys.modules if name.startswith(("my_model", "neighbour"))]:
        del sys.modules[name]
    output(capsys, "explain", "fitted", "--model", "moved/my_model.py:load", "-t", "wild", "--rows", "0:2")
    (place / "my_model.py").write_text("open('ran', 'w')\n")
    for model, message in (
        ("my_model.py:load", "has changed since the fit, or is another file"),
        ("moved/my_model.py:broken", "was fitted to the function 'load', got moved/my_model.py:broken"),
        ("moved/none.py:load", "no file moved/none.py"),
    ):
        assert message in user_error(capsys, "explain", "fitted", "--model", model)
    assert not (place / "ran").exists()
    output(capsys, *FIT, "-c", "fcn", "--set-classifier", "epochs=1", "--force")
    assert "for which no file is run: leave out my_model.py:load" in user_error(capsys, "explain", "fitted", *NAMED)


def test_classes_of_another_order_are_noticed_and_named(place, capsys):
    np.save(place / "weight.npy", np.eye(4)[:, [0, 2, 1]])  # calm, wild, brisk
    with warnings.catch_warnings():
        warnings.simplefilter("always", sp.ModelWarning)
        assert main([*FIT, *PYTHON]) == 2
    said, error = capsys.readouterr().err.splitlines()[-2:]
    assert said.startswith("sparcets: scores: the classes seem to be in another order: class_names=['calm', 'wild', ")
    assert "Check that model and labels use the same classes" in error
    named = output(capsys, *FIT, *PYTHON, "--classes", "calm,wild,brisk", "--force")
    assert "test accuracy 0.9" in named or "test accuracy 1.0" in named
    assert "Careful" not in named
    output(capsys, "explain", "fitted", *NAMED, "--target", "calm", "--predicted", "wild", "--out", "run.npz")
    e = sp.load_explanation("run.npz")
    assert e.class_names == ("calm", "wild", "brisk") and len(e) and (e.proba_before.argmax(1) == 1).all()
    assert e.valid.all() and (e.proba_after.argmax(1) == 0).all()
    assert "no class 'wide'" in user_error(capsys, "explain", "fitted", *NAMED, "--predicted", "wide")


def test_a_model_that_knows_nothing_is_told_by_fit_and_explain(place, capsys):
    np.save(place / "weight.npy", np.random.default_rng(0).normal(0, 0.001, (4, 3)) + np.eye(4)[:, [3, 3, 3]])
    assert "Careful: the model" in output(capsys, *FIT, *PYTHON)
    assert main(["explain", "fitted", *NAMED, "--target", "calm", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "\ncareful: the model is not better than chance: " in err and err.endswith("; no answer is believed\n")
    answers = json.loads(out)
    assert not [answer for answer in answers if answer["verdict"] == "believed"]
    assert all(answer["doubts"][0].startswith("the model") for answer in answers if answer["verdict"] == "doubtful")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "none.py:load"), "no file none.py"),
        (("--model", "my_model.py"), "name a function of my_model.py that returns the model, such as my_model.py:load"),
        (("--model", "my_model.py:los"), "my_model.py has no function 'los'"),
        (("--model", "my_model.py:broken"), "my_model.py:broken failed: FileNotFoundError: no weights here"),
        (("--model", "my_model.py:nothing"), "my_model.py:nothing: NoneType has neither predict_proba nor"),
        (("--model", "my_model.py:load"), "returned a dict of state, scores. Say which part"),
        ((*PYTHON, "--classifier", "fcn"), "give --model for your own model, or --classifier"),
        (("--output", "logits"), "--output is for a model of your own: give --model too"),
        (("--model", "m.joblib"), "m.joblib holds pickled Python objects"),
    ],
)
def test_mistakes(place, capsys, arguments, message):
    assert message in user_error(capsys, *FIT, *arguments)
    assert not (place / "fitted").exists()


AGED = """
def load():
    from sparcets.testing.mocks import mean_proba

    def model(X, age):
        return mean_proba(X + 0.01 * (age[:, None, None] - 50))

    return model
"""


def test_side_inputs_come_with_the_data(place, capsys):
    X, y = make_series(60, n_steps=8)
    np.savez(place / "aged.npz", X=X, y=y, side_age=np.linspace(20, 90, 60))
    (place / "my_aged.py").write_text(AGED)
    fit = ("fit", "-d", "aged.npz", "-m", "nearest", "--model", "my_aged.py:load", "--out", "aged")
    assert main([*fit]) == 0 and "side input age)" in capsys.readouterr().out
    command = ["explain", "aged", "--model", "my_aged.py:load", "--target", "1", "--rows", "0:3", "--out", "run.npz"]
    assert main(command) == 0
    e = sp.load_explanation("run.npz")
    assert e.side["age"].shape == (3,) and e.query.shape[2] == 4
    np.savez(place / "own.npz", X=X, y=y)
    assert main([*FIT, "--model", "my_aged.py:load"]) == 2
    assert "--option side=age" in capsys.readouterr().err
