"""A fitted model as arrays and back: the same answers, whatever the classifier is."""

import json

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import CapabilityError
from sparcets.methods.own.state import HEADER, model_from_arrays, model_to_arrays
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(36, n_steps=9)
QUERIES = make_series(6, n_steps=9, seed=1)[0]
SMALL = ('families=["intervals"]',)


def module():
    return sp.wrap(MeanModule(), n_classes=3)


def black_box():
    return sp.wrap(mean_proba, n_classes=3)


KINDS = {
    "one family": (module, ()),
    "all families": (module, ('families=["neural", "convolutions", "quantiles", "intervals"]',)),
    "no families": (module, ("believed_by=model",)),
    "black box": (black_box, ()),
    "TorchClassifier": (lambda: sp.TorchClassifier("fcn", sp.ClassifierConfig(hidden=4, epochs=8)).fit(X, Y), ()),
}


def build(classifier, *settings):
    return sp.Explainer(classifier, sp.ExplainerConfig.tiny().override(*SMALL, *settings))


def arrays_of(explainer):
    return model_to_arrays(explainer._model, explainer.classifier)


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tmp_path_factory):
    """Return a fitted explainer, and the same one loaded from a folder."""
    build_classifier, settings = KINDS[request.param]
    explainer = build(build_classifier(), *settings).fit(X, Y)
    folder = tmp_path_factory.mktemp("saved")
    explainer.save(folder)
    return explainer, sp.load(folder, classifier=explainer.classifier)


def test_the_same_answers_and_evidence(pair):
    options = {"n": 2, "sparsity": 0.3, "constraints": sp.Constraints(immutable=["f3"])}
    e, f = (explainer.explain(QUERIES, target=1, **options) for explainer in pair)
    assert e.counterfactual.tobytes() == f.counterfactual.tobytes() and e.changed.any()
    assert np.array_equal(e.status, f.status) and np.array_equal(e.reason, f.reason)
    np.testing.assert_array_equal(e.support, f.support)
    for name, values in e.evidence.plausibility.items():
        np.testing.assert_array_equal(values, f.evidence.plausibility[name])
    assert pair[0].summary() == pair[1].summary() and pair[0].history_ == pair[1].history_


def test_the_user_s_classifier_is_not_stored_and_the_others_are(pair):
    explainer, again = pair
    before, after = explainer._model.ensemble, again._model.ensemble
    header = json.loads(arrays_of(explainer)[HEADER].tobytes())
    surrogate = [] if before.explained is explainer.classifier else [before.explained]
    assert len(header["networks"]) == len([*surrogate, *before.networks, *before.selector.networks])
    assert (after.explained is explainer.classifier) == (before.explained is explainer.classifier)


def test_arrays_of_a_loaded_model_are_the_same_bit_for_bit(pair):
    one, other = (arrays_of(explainer) for explainer in pair)
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert other[name].dtype == array.dtype and other[name].tobytes() == array.tobytes(), name


def test_immutable_features_and_float64_are_restored(tmp_path):
    explainer = build(sp.wrap(MeanModule().double(), n_classes=3))
    explainer.fit(X.astype(np.float64), Y, constraints=sp.Constraints(immutable=["f0", "f3"])).save(tmp_path)
    again = sp.load(tmp_path, classifier=explainer.classifier)
    assert again._model.ensemble.double
    e, f = explainer.explain(QUERIES, target=1), again.explain(QUERIES, target=1)
    assert np.array_equal(e.counterfactual, f.counterfactual) and not f.changed[..., [0, 3]].any()


def test_arrays_that_are_missing_are_an_error():
    explainer = build(module()).fit(X, Y)
    arrays = arrays_of(explainer)
    for missing in (HEADER, "prototypes/classes", "levels", "family 0/features.start"):
        damaged = {name: array for name, array in arrays.items() if name != missing}
        with pytest.raises((KeyError, TypeError)):
            model_from_arrays(damaged, explainer.classifier, explainer.info_, explainer.config)


def test_fitted_with_gradients_it_is_refused_to_a_black_box(tmp_path):
    build(module()).fit(X, Y).save(tmp_path)
    sp.load(tmp_path, classifier=module())
    with pytest.raises(CapabilityError, match=r"fitted with the gradients of its model.* is a black box"):
        sp.load(tmp_path, classifier=black_box())
