"""Models of somebody's own: every kind of output, any order of axes and size of batches, and nothing left behind."""

from collections import namedtuple
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import nn

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, DataError, ModelOutputError
from sparcets.models.views import Goal, Within
from sparcets.testing.data import make_series

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])]
X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
SERIES, Y = make_series(30, n_steps=9)
FLAT = SERIES.reshape(30, -1)


class Given(nn.Module):
    """Applies a function, and keeps what it was given."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        self.x = x.detach().clone()
        found = self.function(x)
        return found * self.weight if isinstance(found, torch.Tensor) and found.is_floating_point() else found


class Box:
    """An estimator that keeps what it was given."""

    def __init__(self, classes=None):
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        self.x = X
        return np.tile([0.25, 0.75], (len(X), 1))


class Lstm(nn.Module):
    """A recurrent net with dropout between its layers, and everything that evaluation mode changes."""

    def __init__(self, n_classes=3):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.lstm = nn.LSTM(2, 8, num_layers=2, dropout=0.5, batch_first=True)
            self.norm = nn.BatchNorm1d(8)
            self.drop = nn.Dropout(0.5)
            self.head = nn.Linear(8, n_classes)

    def forward(self, x):
        return self.head(self.drop(self.norm(self.lstm(x)[0][:, -1])))


def means(x):
    return 3 * x.mean(1)  # (B, 2)


def softmax(z):
    weights = np.exp(np.asarray(z, dtype=np.float64))
    return weights / weights.sum(1, keepdims=True)


def black_box(function):
    """Return a function of tensors as one of arrays, without gradients."""
    return lambda x: function(torch.from_numpy(x))


Z = X.astype(np.float64).mean((1, 2))
OUTPUTS = {
    "logits": (means, "logits", softmax(3 * X.astype(np.float64).mean(1))),
    "one logit": (lambda x: x.mean((1, 2))[:, None], "logits", softmax(np.stack([0 * Z, Z], 1))),
    "one logit each": (lambda x: x.mean((1, 2)), "logits", softmax(np.stack([0 * Z, Z], 1))),
    "probabilities": (lambda x: means(x).softmax(1), "probabilities", softmax(3 * X.astype(np.float64).mean(1))),
    "sigmoid": (lambda x: x.mean((1, 2)).sigmoid(), "sigmoid", softmax(np.stack([0 * Z, Z], 1))),
}


@pytest.mark.parametrize("kind", [Given, black_box])
@pytest.mark.parametrize(("function", "output", "expected"), OUTPUTS.values(), ids=list(OUTPUTS))
def test_every_kind_of_output_becomes_probabilities(kind, function, output, expected):
    clf = sp.wrap(kind(function), output=output)
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-6)
    assert clf.class_names == ("0", "1") and not clf.named
    assert np.array_equal(clf.predict(X), expected.argmax(1)) and clf.differentiable == (kind is Given)
    single = sp.wrap(kind(lambda x: function(x).squeeze()), output=output)  # drops the batch of one
    np.testing.assert_allclose(single.predict_proba(X[:1]), expected[:1], atol=1e-6)
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    if kind is Given:
        smooth = sp.wrap(Given(lambda x: function(x.sin())).double(), output=output)
        assert torch.autograd.gradcheck(smooth.log_proba, (x,))
    else:
        with pytest.raises(CapabilityError, match="is a black box"):
            clf.log_proba(x)


@pytest.mark.parametrize("kind", [Given, lambda f: Box()], ids=["module", "box"])
@pytest.mark.parametrize(("layout", "shape"), [("btf", (6, 5, 2)), ("bft", (6, 2, 5)), ("flat", (6, 10))])
def test_a_model_is_given_its_own_layout_bit_for_bit_in_contiguous_memory(kind, layout, shape):
    model = kind(lambda x: x.view(len(x), -1)[:, :2])
    for series in (X, X[:, ::-1]):  # the second runs backwards in memory
        sp.wrap(model, layout=layout).predict_proba(series)
        expected = {"btf": series, "bft": series.swapaxes(1, 2), "flat": series.reshape(6, 10)}[layout]
        given = np.asarray(model.x)
        assert given.shape == shape and given.flags.c_contiguous and given.flags.writeable
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_module_is_given_the_type_of_its_weights_and_others_the_users_own_bits(dtype):
    module = Given(means).to(dtype)
    proba = sp.wrap(module).predict_proba(X.astype(np.float64))
    assert module.x.dtype == dtype
    np.testing.assert_allclose(proba, sp.wrap(Given(means)).predict_proba(X), atol=0.01)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-6)  # also of half a precision
    del module.weight
    module.weight = 1.0
    for model in (module, Box()):
        for series in (X + 1e-9, (X + 1e-9).astype(np.float64)):
            sp.wrap(model).predict_proba(series)
            np.testing.assert_array_equal(np.asarray(model.x), series)
            assert np.asarray(model.x).dtype == series.dtype


@pytest.mark.parametrize("kind", [Given, black_box])
def test_models_that_write_into_their_input_harm_nobody(kind):
    locked = X.copy()
    locked.setflags(write=False)
    clf = sp.wrap(kind(lambda x: means(x.zero_() + 1)), output="logits")
    np.testing.assert_allclose(clf.predict_proba(locked), 0.5, atol=1e-6)
    np.testing.assert_array_equal(locked, X)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_flow_through_a_module_that_is_left_as_it_was_found(device, left_alone):
    module = Lstm().to(device).train()
    module.norm.eval()
    module.head.bias.requires_grad_(False)
    clf = sp.wrap(module)
    x = torch.tensor(X, device=device, requires_grad=True)
    with left_alone(module):
        log_proba = clf.log_proba(x)
        log_proba[:, 1].sum().backward()
        assert (x.grad.abs() > 0).all()
        np.testing.assert_allclose(log_proba.detach().exp().cpu(), clf.predict_proba(X), atol=1e-5)
        assert torch.equal(clf.log_proba(x), log_proba), "dropout was active"
        for call, series in ((clf.predict_proba, X.transpose(0, 2, 1)), (clf.log_proba, x.swapaxes(1, 2))):
            with pytest.raises(ModelOutputError, match="your model Lstm failed on an input of shape"):
                call(series)


@pytest.mark.parametrize("layout", ["btf", "bft", "flat"])
def test_gradients_come_back_in_our_axis_order(layout):
    weight = torch.arange(1.0, 11).reshape(5, 2)
    turned = {"btf": weight, "bft": weight.T, "flat": weight.ravel()}[layout]
    clf = sp.wrap(Given(lambda x: (x * turned).flatten(1).sum(1)), layout=layout)
    x = torch.zeros(1, 5, 2, requires_grad=True)
    clf.log_proba(x)[0, 1].backward()
    torch.testing.assert_close(x.grad[0], weight / 2)  # the sigmoid's slope at 0 is 1/4, its logarithm's 1/2
    x = torch.ones(1, 5, 2, requires_grad=True)
    sp.wrap(Given(lambda x: (1e4 * x.mean((1, 2))).sigmoid()), output="sigmoid").log_proba(x)[0, 0].backward()
    assert torch.isfinite(x.grad).all(), "of a saturated probability"


def picky(x):
    assert 2 <= len(x) <= 4, f"a batch of {len(x)}"
    return means(x)


@pytest.mark.parametrize("kind", [Given, black_box])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 6])
def test_small_batches_are_padded_and_large_ones_split(kind, n):
    clf = sp.wrap(kind(picky), batch=(2, 4), output="logits")
    np.testing.assert_allclose(clf.predict_proba(X[:n]), sp.wrap(Given(means)).predict_proba(X[:n]), atol=1e-6)
    if kind is Given:
        x = torch.tensor(X[:n], requires_grad=True)
        clf.log_proba(x)[:, 0].sum().backward()
        assert (x.grad != 0).all()
    with pytest.raises(ModelOutputError, match="a batch of 1") as caught:
        sp.wrap(kind(picky), output="logits").predict_proba(X[:1])
    assert isinstance(caught.value.__cause__, AssertionError)


class _Leaves(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        torch.set_num_threads(3)
        raise self.error


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", [_Leaves, lambda error: _Leaves(error).forward], ids=["module", "function"])
def test_a_model_that_exits_is_one_that_fails_and_ctrl_c_passes(task, kind, left_alone):
    with left_alone():  # threads too, which numba sets for those of aeon
        with pytest.raises(ModelOutputError, match=r"failed on an input of shape \(6, 5, 2\).*SystemExit: no licence"):
            sp.wrap(kind(SystemExit("no licence")), task=task).predict(X)
        with pytest.raises(KeyboardInterrupt):
            sp.wrap(kind(KeyboardInterrupt()), task=task).predict(X)


LABELS = {"output": "probabilities"}


@pytest.mark.parametrize("kind", [Given, black_box])
@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (means, {"output": "sigmoid"}, r"means one probability per series, but .* returned 2 columns"),
        (lambda x: x.mean((1, 2)).sigmoid(), LABELS, r"returned one number per series; .*with output='sigmoid'"),
        (lambda x: x.mean((1, 2))[:, None].sigmoid(), LABELS, r"returned one column"),
        (lambda x: means(x).sigmoid(), LABELS, r"several labels\? .*output=\('sigmoid', lambda p: p\[:, 0\]\)"),
        (means, {"output": "logits", "n_classes": 3}, r"returned 2 columns for 3 classes"),
        (lambda x: torch.cat([means(x)] * 2, 1).softmax(1), {"output": "logits"}, "probabilities already"),
        (lambda x: x, {"output": "logits"}, r"must return \(batch, classes\), got \(6, 5, 2\) for 6 series"),
        (lambda x: means(x)[:4], {"output": "logits"}, r"got \(4, 2\) for 6 series"),
        (lambda x: means(x) * torch.nan, {"output": "logits"}, r"returned NaN or infinity"),
        (lambda x: x[:, 99], {"output": "logits"}, r"failed on an input of .*\(layout 'btf'\): IndexError.*layout="),
    ],
)
def test_what_a_model_returns_is_checked(kind, function, options, message):
    with pytest.raises(ModelOutputError, match=message):
        sp.wrap(kind(function), **options).predict_proba(X)


Both = namedtuple("Both", "scores state")
PARTS = {
    "tuple": (lambda z: (None, z), 1),
    "only one": (lambda z: (z,), None),
    "dict": (lambda z: {"state": None, "scores": z}, "scores"),
    "dict by index": (lambda z: {"state": None, "scores": z}, 1),
    "dict by kind": (lambda z: {"loss": None, "logits": z}, None),
    "named tuple": (lambda z: Both(z, None), "scores"),
    "object": (lambda z: SimpleNamespace(scores=z), "scores"),
    "function": (lambda z: {"deep": [z]}, lambda returned: returned["deep"][0]),
}


@pytest.mark.parametrize("kind", [Given, black_box])
@pytest.mark.parametrize(("function", "part"), PARTS.values(), ids=list(PARTS))
def test_the_part_that_is_meant_is_taken(kind, function, part):
    clf = sp.wrap(kind(lambda x: function(means(x))), output="logits" if part is None else ("logits", part))
    np.testing.assert_allclose(clf.predict_proba(X), OUTPUTS["logits"][2], atol=1e-6)
    module = Given(lambda x: {"p": means(x).sigmoid()[:, :1], "probabilities": means(x).softmax(1)})
    one, whole = sp.wrap(module, output=["sigmoid", "p"]), sp.wrap(module, output="probabilities")
    np.testing.assert_allclose(one.predict_proba(X)[:, 1], 1 / (1 + np.exp(-3 * X.mean(1)[:, 0])), atol=1e-6)
    np.testing.assert_allclose(whole.predict_proba(X), OUTPUTS["logits"][2], atol=1e-6)
    assert "output 'sigmoid' in part 'p'" in repr(one)


def parts(function):
    return Given(lambda x: function(means(x)))


OURS, BATCHES = Given(means), (3, (0, 4), (4, 2), (1, 2, 3), (1.5, 2), "ab", (True, 2))
MISTAKES = {
    ModelOutputError: [  # what only one kind of model can return, and parts that are not there
        (Given(lambda x: means(x).long()), {}, r"returned torch.int64; wrap a model that returns logits"),
        (Given(lambda x: "no"), {}, r"returned str; wrap a module that returns a tensor"),
        (OURS, LABELS, "'probabilities' promises probabilities. If these are logits"),
        (lambda x: x.mean(1), {}, r"no probabilities \(.*\). If they are logits, wrap with output='logits'"),
        (lambda x: np.full((len(x), 2), "a"), {}, "labels"),
        (lambda x: None, {}, r"got \(\) for"),
        (parts(lambda z: (z, z)), {}, r"a tuple of 2 \(indices 0 to 1\). Say which part is its output: output=\("),
        (parts(lambda z: {"a": z}), {"output": "b"}, r"returned a dict of a, which has no part 'b'"),
        (parts(lambda z: (z, z)), {"output": 2}, r"returned a tuple of 2 .* has no part 2"),
        (OURS, {"output": 0}, r"output=0 names a part of what Given returns, but it returned one Tensor. Leave it out"),
        (parts(lambda z: (z, z)), {"output": lambda z: z[7]}, r"Given failed on an input .*IndexError"),
    ],
    ConfigError: [
        (OURS, {"output": "logit"}, r"no output 'logit'. Did you mean 'logits'\? .* output=\('logits', 'logit'"),
        (OURS, {"output": ("logit", 0)}, r"output must be a kind \(logits, .* and a part, .* got \('logit', 0"),
        (OURS, {"output": True}, "no output True. Known: logits, probabilities, sigmoid"),
        (OURS, {"layout": "tbf"}, r"no layout 'tbf'. Did you mean 'btf'\?"),
        (OURS, {"task": "regresion"}, r"no task 'regresion'. Did you mean 'regression'"),
        (OURS, {"task": "regression", "n_classes": 2}, "n_classes, class_names and kinds of output are for classes"),
        (OURS, {"n_classes": 1}, r"at least 2 classes apart, but n_classes says 1"),
        (OURS, {"class_names": ["a", "b"], "n_classes": 3}, r"n_classes says 3, class_names says 2"),
        (OURS, {"output": "sigmoid", "n_classes": 3}, r"n_classes says 3, output='sigmoid' says 2"),
        *((OURS, {"batch": batch}, r"smallest and the largest number of series.*such as \(2,") for batch in BATCHES),
        (sp.wrap(OURS), {"n_classes": 2}, "Given is a classifier of sparcets already"),
        (OURS, {"lengths": "argumant"}, r"no lengths 'argumant'. Did you mean 'argument'\? Known: argument, packed"),
        (lambda X: X, {"lengths": "packed"}, r"lengths='packed' is for an nn.Module"),
        (lambda X: X, {"lengths": "list", "layout": "flat"}, "lengths='list' needs the axis of time"),
        (Box(), {"output": "logits"}, r"Box returns probabilities, so it cannot have output='logits'"),
        (SVC(), {"output": "probabilities"}, "SVC returns logits, so it cannot have output='prob"),
    ],
    DataError: [
        (OURS, {"class_names": "ab"}, r"class_names must be a list of names, got 'ab'"),
        (OURS, {"class_names": ["a", "a"]}, "class_names must be distinct, but 'a' appears 2 times"),
    ],
    CapabilityError: [
        (Lstm, {}, r"Lstm is a class. Wrap a trained model of it: sp.wrap\(Lstm\("),
        (Ridge, {}, r"Ridge is a class. .*\(\.\.\.\)\.fit\(X, y\)"),
        ([1], {}, r"list has neither predict_proba nor decision_function and is not call"),
        (Ridge(), {}, r"Ridge has neither .* It predicts without them, by predict\(\)"),
        (make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")), {}, "per pair of classes"),
        (LogisticRegression(), {"task": "regression"}, "LogisticRegression is a classifier; leave"),
        (3, {"task": "regression"}, "has no predict and is not callable"),
    ],
}


@pytest.mark.parametrize(
    ("error", "model", "options", "message"), [(error, *case) for error, cases in MISTAKES.items() for case in cases]
)
def test_mistakes_are_told(error, model, options, message):
    with pytest.raises(error, match=message):
        sp.wrap(model, **options).predict(X)


def test_what_was_assumed_is_in_the_repr_and_in_the_summary():
    clf = sp.wrap(Given(means), n_classes=2)  # as well a forecast of two numbers, which nobody can know
    assumed = "Given (classification, output 'logits' (assumed), layout 'btf' (assumed))"
    assert repr(clf) == f"WrappedModule({assumed}: 0, 1)"
    assert assumed in sp.Nearest(clf).fit(X, np.arange(6) % 2).summary()
    given = sp.wrap(Given(means), output="logits", layout="btf", batch=(2, 64))
    expected = "Given (classification, output 'logits', layout 'btf', batches of 2 to 64): classes not known yet"
    assert repr(given) == f"WrappedModule({expected})"


@pytest.mark.parametrize("package", ["aeon", "sktime"])
def test_models_of_aeon_and_sktime_are_given_channels_first_by_themselves(package):
    theirs = type("Theirs", (Box,), {"__module__": f"{package}.classification.x"})
    derived = type("Mine", (theirs,), {"__module__": "mine"})
    other = type("Other", (Box,), {"__module__": f"{package}ian.models"})()
    piped, other.steps = Box(), 100  # a setting of its own, no pipeline
    piped.steps = [("scale", StandardScaler()), ("model", theirs())]
    for box in (theirs(), derived(), piped, other):
        sp.wrap(box).predict_proba(X)
        assert box.x.shape == ((6, 5, 2) if box is other else (6, 2, 5))
    sp.wrap(piped, layout="btf").predict_proba(X)
    assert piped.x.shape == (6, 5, 2)
    classification = pytest.importorskip("aeon.classification")
    words = np.array(["calm", "wild", "brisk"])[Y]
    clf = sp.wrap(classification.DummyClassifier(strategy="prior").fit(SERIES.swapaxes(1, 2), words))
    assert clf.interface.layout == "bft" and clf.class_names == ("brisk", "calm", "wild")
    np.testing.assert_allclose(clf.predict_proba(SERIES), 1 / 3)


def test_estimators_of_tables_name_their_classes():
    labels = np.array(["calm", "wild", "brisk"])[Y]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(FLAT, labels)
    clf = sp.wrap(model, layout="flat")
    assert clf.class_names == ("brisk", "calm", "wild") and clf.named and clf.name == "Pipeline"
    np.testing.assert_array_equal(clf.predict_proba(SERIES), model.predict_proba(FLAT))
    np.testing.assert_array_equal(np.array(clf.class_names)[clf.predict(SERIES)], model.predict(FLAT))
    with pytest.raises(ModelOutputError, match=r"It may want another layout: layout='btf' .*'flat' for models of tab"):
        sp.wrap(model).predict_proba(SERIES)
    # The layouts are named after errors about shapes only.
    with pytest.raises(ModelOutputError, match="not fitted") as unfitted:
        sp.wrap(LogisticRegression(), layout="flat").predict_proba(X)
    assert "layout=" not in str(unfitted.value)
    both = RandomForestClassifier(3, random_state=0).fit(FLAT, np.stack([Y % 2, Y], axis=1))  # of two outputs
    one = sp.wrap(both, output=1, layout="flat")
    np.testing.assert_array_equal(one.predict_proba(SERIES), both.predict_proba(FLAT)[1])


@pytest.mark.parametrize(
    ("classes", "names", "named"),
    [
        (["b", "a"], ("b", "a"), True),
        ([0, 1], ("0", "1"), False),
        ([0.0, 1.0], ("0", "1"), False),
        ([1, 2], ("1", "2"), True),
        ([-1.0, 0.5], ("-1", "0.5"), True),
    ],
)
def test_the_names_are_the_models_own_which_may_be_translated_but_not_contradicted(classes, names, named):
    clf = sp.wrap(Box(classes))
    assert (clf.class_names, clf.named) == (names, named)
    assert sp.wrap(Box(classes), class_names=(name for name in ("off", "on"))).class_names == ("off", "on")
    with pytest.raises(ConfigError, match=r"are in another order than the model's classes \("):
        sp.wrap(Box(classes), class_names=names[::-1])
    with pytest.raises(ConfigError, match=r"class_names says 3, Box.classes_ says 2"):
        sp.wrap(Box(classes), class_names=["a", "b", "c"])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [SVC(), RidgeClassifier(), make_pipeline(StandardScaler(), RidgeClassifier())])
def test_decisions_become_probabilities_in_the_same_order(model, n_classes):
    model.fit(FLAT, np.array(["b", "a", "c"])[Y % n_classes])
    clf = sp.wrap(model, layout="flat")
    noisy = SERIES + np.random.default_rng(1).normal(size=SERIES.shape).astype(np.float32)
    proba, table = clf.predict_proba(noisy), noisy.reshape(30, -1)
    np.testing.assert_array_equal(np.array(clf.class_names)[proba.argmax(1)], model.predict(table))
    values = model.decision_function(table)
    if n_classes == 2:
        assert (np.diff(proba[np.argsort(values), 1]) >= 0).all()
    else:
        agree = values.argmax(1) == proba.argmax(1)  # the others are ties of votes
        in_order = np.take_along_axis(proba, np.argsort(values, axis=1), axis=1)[agree]
        assert agree.mean() > 0.9 and (np.diff(in_order, axis=1) >= 0).all()
    assert "not calibrated" in repr(clf) and "decision_function" in repr(clf)
    tied = SimpleNamespace(  # votes
        classes_=np.array([0, 1, 2]),
        decision_function=lambda X: np.tile([1.0, 1.2, -0.5], (len(X), 1)),
        predict=lambda X: np.zeros(len(X), int),
    )
    np.testing.assert_allclose(sp.wrap(tied, layout="flat").predict_proba(X[:1]), softmax([[1.2, 1.0, -0.5]]))


def test_regressors():
    model = Ridge().fit(X.reshape(6, -1), X[:, 0])
    reg = sp.wrap(model, task="regression", layout="flat")
    np.testing.assert_array_equal(reg.predict(X), model.predict(X.reshape(6, -1)))
    assert reg.n_outputs == 2 and sp.wrap(reg) is reg
    assert repr(reg) == "BlackBox(Ridge (regression, layout 'flat'): 2 outputs)"
    module = Lstm().train()
    reg = sp.wrap(module, task="regression", output=lambda z: z, batch=(2, 4))
    np.testing.assert_allclose(reg.predict(X), Lstm().eval()(torch.tensor(X)).detach(), rtol=1e-5, atol=1e-6)
    assert module.training and all(p.requires_grad for p in module.parameters())
    squeezed = sp.wrap(lambda x: x[:, :, 0].mean(1).squeeze(), task="regression")
    assert squeezed.predict(X[:1]).shape == (1, 1) and squeezed.predict(X).shape == (6, 1)


@pytest.mark.parametrize("kind", [Given, black_box])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: {"a": x, "b": x}, r"returned a dict of a, b"),
        (lambda x: x, r"must return numbers \(batch,\) or \(batch, outputs\), .* leave task='regression' out"),
        (lambda x: x[:, 0] * torch.nan, "returned NaN or infinity"),
        (lambda x: x[:, 99], "failed on an input of shape"),
    ],
)
def test_what_a_regressor_returns_is_checked(kind, function, message):
    with pytest.raises(ModelOutputError, match=message):
        sp.wrap(kind(function), task="regression").predict(X)


@pytest.mark.parametrize("kind", [Given, black_box])
def test_a_regressor_as_two_classes_whose_bounds_are_within(kind):
    bounds = np.array([[0.1, 0.3], [-np.inf, np.inf]])
    values = [np.nextafter(0.1, 0), 0.1, 0.2, 0.3, np.nextafter(0.3, 1), -1e9, 1e9]
    series = np.array(values)[:, None, None] * np.array([1.0, 7.0])
    model = kind(lambda x: x[:, 0])
    reg = sp.wrap(model.double() if kind is Given else model, task="regression")
    view = Within(reg, Goal(bounds, ("in", "out")), np.array([2.0, 1.0]))
    assert view.predict(series).tolist() == [1, 0, 0, 0, 1, 1, 1]
    # At the middle, the bounds are 0.05 spreads away.
    np.testing.assert_allclose(view.predict_proba(series)[2], [1 / (1 + np.exp(-0.05)), 1 / (1 + np.exp(0.05))])
    if kind is Given:
        x = torch.tensor(series[[0, 4]], requires_grad=True)
        view.log_proba(x)[:, 0].sum().backward()
        assert x.grad[0, 0, 0] > 0 > x.grad[1, 0, 0]
    with nullcontext() if kind is Given else pytest.raises(CapabilityError, match="black box"):
        view.log_proba(torch.tensor(series))


def test_a_narrow_goal_is_widened_and_another_is_not():
    bounds = np.array([[1.0, 1.2], [1.0, 1.9], [0.0, np.inf], [0.0, 1.1]])
    goal = Goal(bounds, ("in", "out")).widened(np.full(4, 0.5))
    np.testing.assert_allclose(goal.bounds, [[0.6, 1.6], [0.95, 1.95], [0.0, np.inf], [0.0, 1.1]])
