"""Models of the user's own on the command line: an ONNX file, or a function in a Python file."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.cli.fit import _likely_order
from sparcets.cli.model_options import own_model
from sparcets.testing.data import make_series

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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder with data of three classes, and a model of them."""
    X, y = make_series(60, n_steps=8)
    np.savez(tmp_path / "own.npz", X=X, y=np.array(["calm", "brisk", "wild"])[y])
    (tmp_path / "my_model.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("SHARPNESS = 9.0\n")
    # Of the classes brisk, calm, wild, in the order of the alphabet.
    np.save(tmp_path / "weight.npy", np.eye(4)[:, [1, 0, 2]])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(("my_model", "neighbour"))]:
        del sys.modules[name]


FIT = ("fit", "-d", "own.npz", "-m", "nearest", "--preset", "tiny", "--out", "fitted")
PYTHON = ("--model", "my_model.py:load", "--output", "logits:scores")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def user_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    err = err.replace("loading\n", "")  # what the file itself prints
    assert out == "" and len(err.strip().splitlines()) == 1, err
    return err


def onnx_model(path: Path, *, apart: bool = False) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = np.eye(4, dtype=np.float32)[:, [1, 0, 2]]
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["series"], ["mean"], axes=[1], keepdims=0),
            helper.make_node("MatMul", ["mean", "weight"], ["logits"]),
        ],
        "model",
        [helper.make_tensor_value_info("series", kind, ["batch", None, 4])],
        [helper.make_tensor_value_info("logits", kind, ["batch", 3])],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    weights = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0} if apart else {}
    onnx.save(model, str(path), **weights)


def test_a_function_of_a_python_file_from_fit_to_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = json.loads(run(capsys, *FIT, *PYTHON, "--json"))
    assert fitted["classifier"] == "my_model.py:load" and fitted["test_accuracy"] == 1.0
    answers = json.loads(run(capsys, "explain", "fitted", "-t", "wild", "--rows", "0:3", "--out", "run.npz", "--json"))
    assert all(a["valid"] for a in answers)
    e = sp.load_explanation("run.npz")
    np.testing.assert_array_equal((e.counterfactual.mean(1) @ np.load("weight.npy")).argmax(1), e.target)
    run(capsys, "report", "run.npz", "--out", "report.html")
    assert (place / "report.html").exists()


def test_evaluate_finds_the_model(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import sparcets.evaluation.evaluate as evaluation

    run(capsys, *FIT, *PYTHON)
    run(capsys, "explain", "fitted", "-t", "wild", "--rows", "0:2", "--out", "run.npz")
    seen = []

    def measured(e, data, *, classifier, **_):  # type: ignore[no-untyped-def]
        seen.append(classifier.predict(data.X_test))
        raise sp.SparcetsError("enough")

    monkeypatch.setattr(evaluation, "evaluate", measured)
    assert user_error(capsys, "evaluate", "run.npz", "--model", "fitted") == "sparcets: enough\n"
    assert len(seen) == 1


@pytest.mark.parametrize("apart", [False, True])
def test_an_onnx_file_is_copied(place: Path, capsys: pytest.CaptureFixture[str], apart: bool) -> None:
    (place / "models").mkdir()
    onnx_model(place / "models" / "gait.onnx", apart=apart)
    run(capsys, *FIT, "--model", "models/gait.onnx", "--output", "logits", "--classes", "brisk, calm,wild")
    shutil.rmtree(place / "models")
    shutil.move("fitted", "elsewhere")
    assert "neighbour" in run(capsys, "explain", "elsewhere", "-t", "wild", "--rows", "0:3")
    copy = place / "elsewhere" / "classifier" / ("weights.bin" if apart else "gait.onnx")
    content = bytearray(copy.read_bytes())
    content[-20 if apart else content.index(b"\x00\x00\x80?")] ^= 1
    copy.write_bytes(bytes(content))
    assert "has changed since the fit" in user_error(capsys, "explain", "elsewhere", "-t", "wild")


def test_a_model_that_changed_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *FIT, *PYTHON)
    explain = ("explain", "fitted", "-t", "wild", "--rows", "0:2")
    np.save("weight.npy", np.eye(4)[:, :3])  # another model, of which the Python file knows nothing
    assert "my_model.py:load is not the model of the fit: its probabilities" in user_error(capsys, *explain)
    np.save("weight.npy", np.eye(4)[:, [1, 0, 2]])
    run(capsys, *explain)
    (place / "my_model.py").write_text(MODEL + "\n")
    assert "my_model.py has changed since the fit: its sha256" in user_error(capsys, *explain)
    (place / "my_model.py").unlink()
    assert "needs your model" in user_error(capsys, *explain)


def test_no_python_file_of_a_folder_is_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sparcets.explainers.fit_folder import RUN, digests_of
    from sparcets.storage import read_json, write_json

    run(capsys, *FIT, *PYTHON)
    shutil.copy("my_model.py", "fitted/my_model.py")
    for source in (place / "fitted" / "my_model.py", Path("my_model.py")):  # as a stranger could write it
        header = place / "fitted" / "classifier" / "model.json"
        write_json(header, {**read_json(header, ""), "source": f"{source}:load"})
        record = place / "fitted" / RUN
        write_json(record, {**read_json(record, ""), "parts": digests_of(place / "fitted")})
        assert "no Python file in the folder itself is run" in user_error(capsys, "explain", "fitted")
    run(capsys, *FIT, *PYTHON, "--force")
    assert "where no Python file is run" in user_error(capsys, *FIT, "--model", "fitted/my_model.py:load", "--force")


def test_classes_of_another_order_are_noticed_and_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(place / "weight.npy", np.eye(4)[:, [0, 2, 1]])  # calm, wild, brisk
    data = sp.load_dataset("own.npz")
    assert _likely_order(own_model(PYTHON[1], PYTHON[3], None, None).load(), data) == "calm, wild, brisk"  # type: ignore[union-attr]
    assert "Check that model and labels use the same classes" in user_error(capsys, *FIT, *PYTHON)
    named = run(capsys, *FIT, *PYTHON, "--classes", "calm,wild,brisk", "--force")
    assert "test accuracy 0.9" in named or "test accuracy 1.0" in named
    assert (
        _likely_order(
            own_model(PYTHON[1], PYTHON[3], None, None).load(),
            sp.load_dataset("own.npz", class_names=["calm", "wild", "brisk"]),
        )
        == ""
    )
    run(capsys, "explain", "fitted", "--target", "calm", "--predicted", "wild", "--out", "run.npz")
    e = sp.load_explanation("run.npz")
    assert e.class_names == ("calm", "wild", "brisk") and len(e) and (e.proba_before.argmax(1) == 1).all()
    assert e.valid.all() and (e.proba_after.argmax(1) == 0).all()
    assert "no class 'wide'" in user_error(capsys, "explain", "fitted", "--predicted", "wide")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "none.onnx"), "no file none.onnx"),
        (("--model", "none.py:load"), "no file none.py"),
        (("--model", "my_model.py"), "name a function of my_model.py that returns the model, such as my_model.py:load"),
        (("--model", "my_model.py:los"), "my_model.py has no function 'los'"),
        (("--model", "my_model.py:broken"), "my_model.py:broken failed: FileNotFoundError: no weights here"),
        (("--model", "my_model.py:nothing"), "my_model.py:nothing: NoneType has neither predict_proba nor"),
        (("--model", "my_model.py:load", "--output", "logit"), "my_model.py:load: no output 'logit'. Did you mean"),
        (("--model", "my_model.py:load", "--layout", "tbf"), "no layout 'tbf'. Did you mean 'btf'?"),
        (("--model", "my_model.py:load"), "returned a dict of state, scores. Say which part"),
        (
            (*PYTHON, "--classes", "calm,brisk,wide"),
            "it has the classes brisk, calm, wild, got ['calm', 'brisk', 'wide']",
        ),
        ((*PYTHON, "--classifier", "fcn"), "give --model for your own model, or --classifier"),
        (("--output", "logits"), "--output is for a model of your own: give --model too"),
        (("--model", "m.joblib"), "m.joblib holds pickled Python objects"),
        (("--model", "m.pkl"), '--model "my_model.py:load" on the command line'),
        (("--model", "m.pt2"), "with torch.export"),
        (("--model", "m.pth"), "with torch:"),
    ],
)
def test_mistakes(place: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert message in user_error(capsys, *FIT, *arguments)
    assert not (place / "fitted").exists()


AGED = """
def load():
    from sparcets.testing.mocks import mean_proba

    def model(X, age):
        return mean_proba(X + 0.01 * (age[:, None, None] - 50))

    return model
"""


def test_side_inputs_come_with_the_data(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = make_series(60, n_steps=8)
    np.savez(place / "aged.npz", X=X, y=y, side_age=np.linspace(20, 90, 60))
    (place / "my_aged.py").write_text(AGED)
    fit = ("fit", "-d", "aged.npz", "-m", "nearest", "--model", "my_aged.py:load", "--out", "aged")
    assert main([*fit]) == 0 and "side input age)" in capsys.readouterr().out
    assert main(["explain", "aged", "--target", "1", "--rows", "0:3", "--out", "run.npz"]) == 0
    e = sp.load_explanation("run.npz")
    assert e.side is not None and e.side["age"].shape == (3,) and e.query.shape[2] == 4
    (place / "my_aged.py").write_text(AGED.replace("0.01", "0.02"))
    capsys.readouterr()
    assert main(["explain", "aged", "--target", "1"]) == 2 and "has changed since the fit" in capsys.readouterr().err
    np.savez(place / "own.npz", X=X, y=y)
    assert main([*FIT, "--model", "my_aged.py:load"]) == 2
    assert "--option side=age" in capsys.readouterr().err
