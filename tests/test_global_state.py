"""Whatever the user set globally, calls work and give the same results; and they leave it alone, also if they fail."""

from contextlib import contextmanager, nullcontext
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.errors import ModelOutputError
from sparcets.evaluation.families import FAMILIES, FamilyJudge
from sparcets.methods import EXPLAINERS
from sparcets.methods.own import ensemble
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from tests.campaigns.material import quick

X, Y = make_series(36, n_steps=10, seed=0)
QUERIES = make_series(3, n_steps=10, seed=1)[0]
FEW_FAMILIES = {"sparcets": {"families": ["neural", "intervals"], "believed_by": "families"}}
ARCHITECTURES = ("bilstm", "fcn", "transformer")


@pytest.fixture(scope="module", autouse=True)
def _short_trainings():
    """Train the networks of the neural family for a moment only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "NETWORK_STEPS", 10)
        yield


@contextmanager
def double():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


SETTINGS = {"float64": double, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
settings = pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)


@cache
def module():
    return MeanModule()


def fit_and_explain(method, setting):
    classifier = sp.wrap(module(), n_classes=3)
    with setting():
        explainer = quick(method, classifier, **FEW_FAMILIES.get(method, {})).fit(X, Y)
        answers = explainer.explain(QUERIES, target=1, curve=method == "sparcets")
    return explainer._state(), answers


@cache
def usual(method):
    return fit_and_explain(method, nullcontext)


def assert_same(found, expected):
    (state, answers), (state_before, answers_before) = found, expected
    assert state.keys() == state_before.keys()
    assert [k for k in state if state[k].dtype != state_before[k].dtype] == []
    assert [k for k in state if not np.array_equal(state[k], state_before[k])] == []
    assert np.array_equal(answers.counterfactual, answers_before.counterfactual)
    assert np.array_equal(answers.proba_after, answers_before.proba_after)
    for name, column in answers_before.curve.items() if answers.method == "sparcets" else ():
        assert np.array_equal(answers.curve[name], column, equal_nan=True)


@settings
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_fit_and_explain_give_the_same_under_any_setting(method, setting, left_alone):
    with left_alone(module()):
        assert_same(fit_and_explain(method, setting), usual(method))


@cache
def fitted(method):
    return quick(method, sp.wrap(module(), n_classes=3)).fit(X, Y)


@settings
def test_an_explainer_that_was_loaded_under_a_setting_answers_without_it(setting, tmp_path):
    for method in ("sparce", "sparcets"):
        explainer = fitted(method)
        explainer.save(tmp_path / method)
        with setting():
            loaded = sp.load(tmp_path / method, explainer.classifier)
        answers = [one.explain(QUERIES, target=1).counterfactual for one in (explainer, loaded)]
        assert np.array_equal(*answers)


@cache
def trained_as_usual(architecture):
    return train(architecture)


def train(architecture):
    classifier = sp.TorchClassifier(architecture, sp.ClassifierConfig.tiny().override("epochs=4")).fit(X, Y)
    return classifier, classifier.predict_proba(QUERIES)


@settings
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_classifiers_are_trained_and_predict_the_same_under_any_setting(architecture, setting, left_alone, tmp_path):
    classifier, expected = trained_as_usual(architecture)
    classifier.save(tmp_path)
    with left_alone(), setting():
        trained, found = train(architecture)
        loaded = sp.load_classifier(tmp_path)
        assert np.array_equal(loaded.predict_proba(QUERIES), expected)
    assert np.array_equal(found, expected) and trained.history_ == classifier.history_
    x = torch.tensor(QUERIES, requires_grad=True)  # gradients flow through what was made under the setting
    for one in (trained, loaded):
        assert torch.autograd.grad(one.log_proba(x)[:, 0].sum(), x)[0].abs().sum() > 0


def test_a_module_of_weights_made_in_inference_mode_still_predicts():
    with torch.inference_mode():
        made = MeanModule()
    assert sp.wrap(made, n_classes=3).predict(QUERIES).shape == (3,)


@cache
def evaluated_as_usual():
    dataset = sp.Dataset.from_arrays(X, Y)
    e = sp.Nearest(sp.wrap(mean_proba)).fit(dataset).explain(dataset.X_test, target=1)
    return e, dataset, evaluate(e, dataset)


def evaluate(e, dataset):
    """Evaluate with judges that are fitted anew; the network is trained by the tests of classifiers."""
    judges = {family: FamilyJudge(family).fit(dataset) for family in FAMILIES if family != "neural"}
    return sp.evaluate(e, dataset, judges=judges)


@pytest.mark.parametrize("setting", [nullcontext, *SETTINGS.values()], ids=["usual", *SETTINGS])
def test_evaluate_gives_the_same_under_any_setting(setting, left_alone):
    e, dataset, expected = evaluated_as_usual()
    with left_alone(), setting():
        found = evaluate(e, dataset)
    assert found.per_query.equals(expected.per_query) and found.judges == expected.judges


class Failing(nn.Module):
    """Raises at one of its calls."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop, self.scale = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Parameter(torch.tensor(10.0))
        self.calls, self.fails_at, self.error = 0, 0, KeyboardInterrupt

    def forward(self, x):
        self.calls += 1
        h = self.drop(self.norm(x.mean(1)))
        if self.calls == self.fails_at:
            raise self.error
        return self.scale * h[:, :3]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_after_a_failure_at_any_call_of_the_model_all_is_as_before(method, error, left_alone):
    model = Failing().train()
    classifier = sp.wrap(model, n_classes=3)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fitted = quick(method, classifier).fit(X, Y)
        in_fit, model.calls = model.calls, 0
        fitted.explain(QUERIES, target=1)
        model.error = error
        other = quick(method, classifier)
        calls = [(in_fit, lambda: other.fit(X, Y)), (model.calls, lambda: fitted.explain(QUERIES, target=1))]
        for n, call in calls:
            for k in np.unique(np.random.default_rng(0).integers(1, n + 1, 3)):
                model.calls, model.fails_at = 0, int(k)
                # An error of the user's model is raised as one of ours, with its own behind it.
                with left_alone(model), pytest.raises((error, ModelOutputError)) as raised:
                    call()
                assert isinstance(raised.value.__cause__ or raised.value, error)
                model.fails_at = 0
    finally:
        torch.set_num_threads(threads)
