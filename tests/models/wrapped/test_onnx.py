"""ONNX files and sessions of onnxruntime."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, FileFormatError, ModelOutputError

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
WEIGHT = np.random.default_rng(1).normal(size=(10, 3)).astype(np.float32)


def write(path, *, shape=("batch", 5, 2), end="Softmax", columns=3, kind=None, apart=False, several=False):
    """Write a model: one dense layer on the flattened series, and an activation."""
    helper = onnx.helper
    kind = onnx.TensorProto.FLOAT if kind is None else kind
    weight = WEIGHT[:, :columns].astype({onnx.TensorProto.FLOAT: np.float32}.get(kind, np.float64))
    nodes = [
        helper.make_node("Flatten", ["series"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "weight"], ["logits"]),
        helper.make_node(end, ["logits"], ["probabilities"]),
    ]
    outputs = [helper.make_tensor_value_info("probabilities", kind, [shape[0], columns])]
    if several:
        outputs.insert(0, helper.make_tensor_value_info("logits", kind, [shape[0], columns]))
    series = helper.make_tensor_value_info("series", kind, list(shape))
    graph = helper.make_graph(nodes, "model", [series], outputs, [onnx.numpy_helper.from_array(weight, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    weights = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0} if apart else {}
    onnx.save(model, str(path), **weights)
    return path


def expected(x=X):
    z = x.reshape(len(x), -1).astype(np.float64) @ WEIGHT
    return np.exp(z) / np.exp(z).sum(1, keepdims=True)


def session(path):
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_a_file_and_a_session_are_black_boxes(tmp_path):
    path = write(tmp_path / "gait.onnx")
    for model in (path, str(path), session(path)):
        clf = sp.wrap(model)
        assert clf.n_classes == 3 and clf.interface.layout == "btf"
        np.testing.assert_allclose(clf.predict_proba(X), expected(), atol=1e-5)
    assert repr(sp.wrap(path)).startswith("BlackBox(gait.onnx (classification, output 'probabilities' (assumed), lay")
    p = sp.wrap(write(tmp_path / "a.onnx", end="Sigmoid", columns=1)).predict_proba(X)[:, 1]  # of class 1
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-(X.reshape(6, -1) @ WEIGHT[:, 0]))), atol=1e-5)
    path = write(tmp_path / "b.onnx", several=True)
    for output in (None, "probabilities", 1, ("logits", "logits"), ("logits", 0), "logits"):
        np.testing.assert_allclose(sp.wrap(path, output=output).predict_proba(X), expected(), atol=1e-5)


@pytest.mark.parametrize(
    ("options", "layout", "batch", "atol"),
    [
        ({"shape": (4, 5, 2)}, "btf", (4, 4), 1e-5),
        ({"shape": ("batch", 10)}, "flat", None, 1e-5),
        ({"kind": onnx.TensorProto.DOUBLE}, "btf", None, 1e-9),
    ],
)
def test_the_file_says_type_batch_and_layout(tmp_path, options, layout, batch, atol):
    clf = sp.wrap(write(tmp_path / "own.onnx", **options))
    np.testing.assert_allclose(clf.predict_proba(X), expected(), atol=atol)
    assert (clf.interface.layout, clf.interface.batch) == (layout, batch)
    with pytest.raises(ModelOutputError, match=r"own.onnx failed .*It may want another layout"):
        clf.predict_proba(X[:, :4])
    with pytest.raises(ConfigError, match="n_classes says 2, the model itself says 3"):
        sp.wrap(tmp_path / "own.onnx", n_classes=2)


class Converted:
    """A stub of a session of what skl2onnx and onnxmltools write: labels, and a dict of probabilities per series."""

    def get_inputs(self):
        return [onnx_value("X", "tensor(float)", [None, 10])]

    def get_outputs(self):
        return [onnx_value("label", "tensor(string)", [None]), onnx_value("probabilities", "seq(map(string,…))", [])]

    def run(self, names, feeds):
        p = expected(feeds["X"])
        return [np.array(["a"] * len(p)), [dict(zip("abc", row, strict=True)) for row in p.tolist()]]


def onnx_value(name, kind, shape):
    return type("NodeArg", (), {"name": name, "type": kind, "shape": shape})()


def test_a_file_has_a_digest_of_all_that_determines_its_predictions(tmp_path):
    path = write(tmp_path / "a.onnx")
    digest = sp.wrap(path).digest()
    assert digest == sp.wrap(path).digest() is not None and sp.wrap(session(path)).digest() is None
    (tmp_path / "apart").mkdir()
    apart = write(tmp_path / "apart" / "a.onnx", apart=True)
    before = sp.wrap(apart).digest()
    np.testing.assert_allclose(sp.wrap(apart).predict_proba(X), expected(), atol=1e-5)
    weights = tmp_path / "apart" / "weights.bin"
    weights.write_bytes(b"\x00" * 8 + weights.read_bytes()[8:])
    assert sp.wrap(apart).digest() != before


def test_further_inputs_are_side_inputs(tmp_path):
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("ReduceMean", ["series"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("Gather", ["table", "ward"], ["of_ward"]),
        helper.make_node("Add", ["mean", "of_ward"], ["z"]),
        helper.make_node("Add", ["z", "age"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["p"]),
    ]
    given = {"ward": (kinds.INT64, ["n"]), "series": (kinds.FLOAT, ["n", 5, 2]), "age": (kinds.FLOAT, ["n", 2])}
    inputs = [helper.make_tensor_value_info(name, *about) for name, about in given.items()]
    outputs = [helper.make_tensor_value_info("p", kinds.FLOAT, ["n", 2])]
    table = WEIGHT[:3, :2]
    graph = helper.make_graph(nodes, "model", inputs, outputs, [onnx.numpy_helper.from_array(table, "table")])
    path = tmp_path / "aged.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    clf, ward, age = sp.wrap(path), np.arange(6) % 3, np.random.default_rng(2).normal(size=(6, 2))
    z = X.mean(1) + table[ward] + age
    softmax = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    assert clf.interface.layout == "btf" and clf.n_classes == 2
    np.testing.assert_allclose(clf.predict_proba(X, side={"age": age, "ward": ward}), softmax, atol=1e-5)
    with pytest.raises(CapabilityError, match=r"ONNX model takes ward, series, age. Name all but the series in side="):
        clf.predict_proba(X, side={"age": age})
    with pytest.raises(CapabilityError, match=r"ONNX model has no input 'wart'. Did you mean 'ward'"):
        clf.predict_proba(X, side={"age": age, "wart": ward})


def test_models_that_were_converted_from_scikit_learn():
    clf = sp.wrap(Converted(), class_names=["a", "b", "c"])
    assert clf.interface.layout == "flat"
    np.testing.assert_allclose(clf.predict_proba(X), expected(), atol=1e-9)

    class Two(Converted):
        def get_inputs(self):
            return [onnx_value("X", "tensor(float)", [None, 10]), onnx_value("name", "tensor(string)", [None, 5])]

    takes = r"this one takes X: tensor\(float\), name: tensor\(string\). Wrap a function"
    with pytest.raises(CapabilityError, match=takes):
        sp.wrap(Two())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m.joblib", r"m.joblib holds pickled Python objects.*with joblib: .*--model \"my_model.py:load\""),
        ("m.pkl", "pickled Python objects.*with pickle"),
        ("m.pt", "pickled Python objects.*with torch:"),
        ("m.pt2", r"a program of torch.export.*with torch.export:"),
        ("m.keras", "may hold Python code.*with keras"),
        ("m.safetensors", "without the network"),
        ("m.model", "is no ONNX file"),
    ],
)
def test_files_that_are_not_read_say_why_and_what_to_do(name, message, tmp_path):
    with pytest.raises(CapabilityError, match=message):
        sp.wrap(name)
    (tmp_path / "text.onnx").write_text("nothing")
    with pytest.raises(FileFormatError, match=r"text.onnx is not an ONNX file"):
        sp.wrap(tmp_path / "text.onnx")
    with pytest.raises(FileFormatError, match=r"no file .*none.onnx, where an ONNX model should be"):
        sp.wrap(tmp_path / "none.onnx")
