"""nn.Modules of somebody's own: every kind of output, either axis order, and nothing left behind."""

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, DataError, ModelOutputError

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])]
X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)


class Given(nn.Module):
    """Applies a function, and keeps what it was given."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        self.x = x.detach().clone()
        return self.function(x) * self.weight


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


def trace(module):
    return (
        [(m.training, getattr(m, "dropout", None)) for m in module.modules()],
        [(p.requires_grad, p.grad is None) for p in module.parameters()],
        {name: value.tolist() for name, value in module.state_dict().items()},
    )


def test_logits_become_probabilities_by_softmax():
    logits = 3 * X.astype(np.float64).mean(1)
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    clf = sp.wrap(Given(means))
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-6)
    assert clf.class_names == ("0", "1") and not clf.named


@pytest.mark.parametrize("shape", ["(B, 1)", "(B,)"])
def test_one_logit_is_that_of_class_1(shape):
    module = Given(lambda x: x.mean((1, 2)) if shape == "(B,)" else x.mean((1, 2))[:, None])
    p = 1 / (1 + np.exp(-X.astype(np.float64).mean((1, 2))))
    np.testing.assert_allclose(sp.wrap(module).predict_proba(X), np.stack([1 - p, p], axis=1), atol=1e-6)


@pytest.mark.parametrize("output", ["probabilities", "sigmoid"])
def test_probabilities_are_taken_as_they_are(output):
    p = torch.tensor([[0.25], [0.5], [1.0], [0.0], [0.75], [0.125]])
    module = Given(lambda x: p if output == "sigmoid" else torch.cat([1 - p, p], dim=1))
    proba = sp.wrap(module, output=output).predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], p.ravel().numpy(), atol=1e-6)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-6)


def test_a_module_that_ends_in_squeeze_takes_a_single_series():
    clf = sp.wrap(Given(lambda x: x.mean((1, 2), keepdim=True).squeeze()))
    np.testing.assert_allclose(clf.predict_proba(X[:1]), clf.predict_proba(X)[:1], atol=1e-6)
    clf = sp.wrap(Given(lambda x: means(x).squeeze()))
    np.testing.assert_allclose(clf.predict_proba(X[:1]), clf.predict_proba(X)[:1], atol=1e-6)


@pytest.mark.parametrize(("layout", "shape"), [("btf", (6, 5, 2)), ("bft", (6, 2, 5)), ("flat", (6, 10))])
def test_the_module_is_given_its_own_axis_order_bit_for_bit(layout, shape):
    module = Given(lambda x: x.reshape(len(x), -1)[:, :2])
    sp.wrap(module, layout=layout).predict_proba(X)
    expected = {"btf": X, "bft": X.transpose(0, 2, 1), "flat": X.reshape(6, 10)}[layout]
    assert module.x.shape == shape
    np.testing.assert_array_equal(module.x.numpy(), expected)


def test_a_module_that_needs_contiguous_memory_gets_it_in_either_order():
    for layout in ("btf", "bft", "flat"):
        sp.wrap(Given(lambda x: x.view(len(x), -1)[:, :2]), layout=layout).predict_proba(X)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_module_is_given_series_in_the_type_of_its_weights(dtype):
    module = Given(means).to(dtype)
    proba = sp.wrap(module).predict_proba(X.astype(np.float64))
    assert module.x.dtype == dtype
    np.testing.assert_allclose(proba, sp.wrap(Given(means)).predict_proba(X), atol=0.01)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-6)  # also of half a precision


def test_a_module_without_weights_is_given_the_users_own_bits():
    module = Given(means)
    del module.weight
    module.weight = 1.0
    for series in (X, X.astype(np.float64) + 1e-12):
        sp.wrap(module).predict_proba(series)
        np.testing.assert_array_equal(module.x.numpy(), series)
        assert module.x.numpy().dtype == series.dtype


def test_arrays_that_are_read_only_or_run_backwards_are_welcome_and_stay():
    locked = X.copy()
    locked.setflags(write=False)
    clf = sp.wrap(Given(lambda x: means(x.mul_(2).div_(2).zero_() + 1)))  # writes into what it is given
    np.testing.assert_allclose(clf.predict_proba(locked), 0.5, atol=1e-6)
    clf.predict_proba(X[:, ::-1])
    np.testing.assert_array_equal(locked, X)


def test_the_module_is_left_as_it_was_found():
    module = Lstm().train()
    module.norm.eval()
    module.head.bias.requires_grad_(False)
    before = trace(module)
    clf = sp.wrap(module)
    clf.predict_proba(X)
    x = torch.tensor(X, requires_grad=True)
    clf.log_proba(x)[:, 0].sum().backward()
    assert trace(module) == before
    with pytest.raises(ModelOutputError, match="Lstm failed on an input of shape"):
        clf.predict_proba(X.transpose(0, 2, 1))
    with pytest.raises(ModelOutputError, match="Lstm failed on an input of shape"):
        clf.log_proba(x.swapaxes(1, 2))
    assert trace(module) == before


class _Leaves(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", [_Leaves, lambda error: _Leaves(error).forward], ids=["module", "function"])
def test_a_model_that_exits_is_one_that_fails_and_ctrl_c_passes(task, kind):
    with pytest.raises(ModelOutputError, match=r"failed on an input of shape \(6, 5, 2\).*SystemExit: no licence"):
        sp.wrap(kind(SystemExit("no licence")), task=task).predict(X)
    with pytest.raises(KeyboardInterrupt):
        sp.wrap(kind(KeyboardInterrupt()), task=task).predict(X)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_flow_through_a_recurrent_module_in_evaluation_mode_and_agree_with_predictions(device):
    module = Lstm().to(device).train()
    before = trace(module)
    clf = sp.wrap(module)
    x = torch.tensor(X, device=device, requires_grad=True)
    log_proba = clf.log_proba(x)
    log_proba[:, 1].sum().backward()
    assert (x.grad.abs() > 0).all()
    np.testing.assert_allclose(log_proba.detach().exp().cpu(), clf.predict_proba(X), atol=1e-5)
    assert torch.equal(clf.log_proba(x), log_proba), "dropout was active"
    assert trace(module) == before


@pytest.mark.parametrize("output", ["logits", "one logit", "probabilities", "sigmoid"])
def test_gradients_of_log_probabilities_agree_with_finite_differences(output):
    functions = {
        "logits": lambda x: means(x.sin()),
        "one logit": lambda x: x.sin().mean((1, 2)),
        "probabilities": lambda x: means(x.sin()).softmax(1),
        "sigmoid": lambda x: x.sin().mean((1, 2)).sigmoid(),
    }
    clf = sp.wrap(Given(functions[output]).double(), output="logits" if output == "one logit" else output)
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(clf.log_proba, (x,))


@pytest.mark.parametrize("layout", ["btf", "bft", "flat"])
def test_gradients_come_back_in_our_axis_order(layout):
    weight = torch.arange(1.0, 11).reshape(5, 2)
    turned = {"btf": weight, "bft": weight.T, "flat": weight.ravel()}[layout]
    clf = sp.wrap(Given(lambda x: (x * turned).flatten(1).sum(1)), layout=layout)
    x = torch.zeros(1, 5, 2, requires_grad=True)
    clf.log_proba(x)[0, 1].backward()
    torch.testing.assert_close(x.grad[0], weight / 2)  # the sigmoid's slope at 0 is 1/4, its logarithm's 1/2


def test_a_saturated_probability_has_a_finite_logarithm_and_gradient():
    clf = sp.wrap(Given(lambda x: (1e4 * x.mean((1, 2))).sigmoid()), output="sigmoid")
    x = torch.ones(1, 5, 2, requires_grad=True)
    log_proba = clf.log_proba(x)
    log_proba[0, 0].backward()
    assert torch.isfinite(log_proba).all() and torch.isfinite(x.grad).all()


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (means, {"output": "probabilities"}, r"output='probabilities' promises probabilities. If these are logits"),
        (means, {"output": "sigmoid"}, r"means one probability per series, but Given returned 2 columns"),
        (lambda x: x.mean((1, 2)).sigmoid(), {"output": "probabilities"}, r"with output='sigmoid'"),
        (lambda x: means(x).sigmoid(), {"output": "probabilities"}, r"one probability for each of several labels\?"),
        (means, {"n_classes": 3}, r"Given returned 2 columns for 3 classes \(0, 1, 2\)"),
        (lambda x: x, {}, r"must return \(batch, classes\), got \(6, 5, 2\) for 6 series"),
        (lambda x: means(x)[:4], {}, r"got \(4, 2\) for 6 series"),
        (lambda x: x.sum(), {}, r"got \(\) for 6 series"),
        (lambda x: means(x) * torch.nan, {}, r"Given returned NaN or infinity"),
    ],
)
def test_what_a_module_returns_is_checked(function, options, message):
    with pytest.raises(ModelOutputError, match=message):
        sp.wrap(Given(function), **options).predict_proba(X)


def test_labels_and_tuples_are_no_output():
    class Returns(nn.Module):
        def forward(self, x):
            return x.mean((1, 2)).long() if self.labels else (means(x), x)

    module = Returns()
    module.labels = True
    with pytest.raises(ModelOutputError, match=r"returned torch.int64; wrap a model that returns logits"):
        sp.wrap(module).predict_proba(X)
    module.labels = False
    with pytest.raises(ModelOutputError, match=r"returned a tuple of 2 \(indices 0 to 1\). Say which part"):
        sp.wrap(module).predict_proba(X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"output": "logit"}, ConfigError, r"no output 'logit'. Did you mean 'logits'\? Known: logits, prob"),
        ({"layout": "tbf"}, ConfigError, r"no layout 'tbf'. Did you mean 'btf'\?"),
        ({"n_classes": 1}, ConfigError, r"at least 2 classes apart, but n_classes says 1"),
        ({"n_classes": 2.0}, ConfigError, r"n_classes must be a whole number, got 2.0"),
        ({"class_names": ["a"]}, ConfigError, r"at least 2 classes apart, but class_names says 1"),
        ({"class_names": "ab"}, DataError, r"class_names must be a list of names, got 'ab'"),
        ({"class_names": ["a", "a"]}, DataError, "class_names must be distinct, but 'a' appears 2 times"),
        ({"class_names": ["a", "b"], "n_classes": 3}, ConfigError, r"n_classes says 3, class_names says 2"),
        ({"output": "sigmoid", "n_classes": 3}, ConfigError, r"n_classes says 3, output='sigmoid' says 2"),
    ],
)
def test_options_that_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        sp.wrap(Given(means), **options)


def test_what_was_assumed_is_in_the_repr_and_in_the_summary():
    clf = sp.wrap(Given(means), n_classes=2)  # as well a forecast of two numbers, which nobody can know
    assumed = "Given (classification, output 'logits' (assumed), layout 'btf' (assumed))"
    assert repr(clf) == f"WrappedModule({assumed}: 0, 1)"
    assert assumed in sp.Nearest(clf).fit(X, np.arange(6) % 2).summary()
    given = sp.wrap(Given(means), output="logits", layout="btf", batch=(2, 64))
    expected = "Given (classification, output 'logits', layout 'btf', batches of 2 to 64): classes not known yet"
    assert repr(given) == f"WrappedModule({expected})"


def test_class_names_travel_and_are_known_before_the_first_prediction():
    clf = sp.wrap(Given(means), class_names=(name for name in ("left", "right")))
    assert clf.class_names == ("left", "right") and clf.named and clf.n_classes == 2
    assert sp.wrap(Given(means), n_classes=2).class_names == ("0", "1")
    assert sp.wrap(Given(means), output="sigmoid").n_classes == 2


def test_a_class_and_a_classifier_of_ours():
    with pytest.raises(CapabilityError, match=r"Lstm is a class. Wrap a trained model of it: sp.wrap\(Lstm\("):
        sp.wrap(Lstm, output="logits")
    clf = sp.wrap(Given(means))
    assert sp.wrap(clf) is clf
    with pytest.raises(ConfigError, match="Given is a classifier of sparcets already"):
        sp.wrap(clf, n_classes=2)


def test_probabilities_passed_as_logits_are_refused() -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 3), torch.nn.Softmax(-1))
    with pytest.raises(ModelOutputError, match=r"probabilities already.*output='probabilities'"):
        sp.wrap(module).predict_proba(np.arange(30.0).reshape(5, 3, 2))


def test_logits_of_a_few_series_may_sum_to_1_by_chance() -> None:
    votes = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    clf = sp.wrap(lambda x: votes[x[:, 0, 0].astype(int)], output="logits", n_classes=2)
    series = np.zeros((30, 2, 1))
    series[:, 0, 0] = np.arange(30) % 3
    expected = np.exp(votes) / np.exp(votes).sum(1, keepdims=True)
    for rows in (slice(0, 1), slice(0, 3), slice(None)):
        np.testing.assert_allclose(clf.predict_proba(series[rows]), np.tile(expected, (10, 1))[rows])
