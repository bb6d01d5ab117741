"""A fitted model as arrays and back: the same answers, whatever the classifier and the generator are."""

import json

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.errors import CapabilityError, FileFormatError
from sparcets.explainers.sparcets.state import HEADER, model_from_arrays, model_to_arrays
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(36, n_steps=9)
QUERIES = make_series(6, n_steps=9, seed=1)[0]
SMALL = ("generator.hidden=6", "critic.hidden=6", "train.epochs=1", "train.batch_size=16")


def module():
    return sp.wrap(MeanModule(), n_classes=3)


def black_box():
    return sp.wrap(mean_proba, n_classes=3)


def trained():
    return sp.TorchClassifier("fcn", sp.ClassifierConfig(hidden=4, epochs=8)).fit(X, Y)


KINDS = {
    "residuals": (module, ()),
    "no gates": (module, ("gate=none",)),
    "gates per feature": (module, ("gate=feature",)),
    "prototypes": (module, ("prototypes=always",)),
    "black box": (black_box, ("prototypes=always",)),
    "TorchClassifier": (trained, ()),
    "recurrent": (module, ("generator.backbone=gru", "prototypes=always")),
    "size by the data": (module, ("generator.hidden=null", "generator.layers=null", "train.batch_size=null")),
}


def build(classifier, *settings):
    return sp.Explainer(classifier, sp.ExplainerConfig.tiny().override(*SMALL, *settings))


def arrays_of(explainer):
    return model_to_arrays(explainer._model, explainer.classifier, explainer.trade_off_, explainer.silent_features_)


@pytest.fixture(scope="module", params=KINDS)
def pair(request, tmp_path_factory):
    """Return a fitted explainer, and the same one loaded from a folder."""
    build_classifier, settings = KINDS[request.param]
    explainer = build(build_classifier(), *settings).fit(X, Y)
    folder = tmp_path_factory.mktemp("saved")
    explainer.save(folder)
    return explainer, sp.load(folder, classifier=explainer.classifier)


@pytest.mark.parametrize("options", [{"n": 2}, {"sparsity": 0.1, "constraints": sp.Constraints(immutable=["f3"])}])
def test_the_same_answers(pair, options):
    e, f = (explainer.explain(QUERIES, target=1, **options) for explainer in pair)
    assert e.counterfactual.tobytes() == f.counterfactual.tobytes()
    assert np.array_equal(e.status, f.status) and np.array_equal(e.reason, f.reason)


def test_the_same_summary_trade_off_and_history(pair):
    explainer, again = pair
    assert again.summary() == explainer.summary()
    assert again.trade_off_ == explainer.trade_off_ and again.silent_features_ == explainer.silent_features_
    assert again.history_ == explainer.history_


def test_the_user_s_classifier_is_not_stored_and_the_others_are(pair):
    explainer, again = pair
    before, after = explainer._model.ensemble, again._model.ensemble
    own = [member for member in before.members if member is not explainer.classifier]
    stored = json.loads(arrays_of(explainer)[HEADER].tobytes())["ensemble"]
    assert len(stored) == len(own) + 1 and len(after.members) == len(before.members)
    assert (after.members[0] is explainer.classifier) == (before.members[0] is explainer.classifier)
    for one, other in zip((*before.members, before.selector), (*after.members, after.selector), strict=True):
        assert np.array_equal(one.predict_proba(QUERIES), other.predict_proba(QUERIES))


def test_the_same_model(pair):
    one, other = (explainer._model for explainer in pair)
    for name in ("log_sparsity_weights", "residual_scales", "min_agreement"):
        assert getattr(one, name) == getattr(other, name)
    assert one.ensemble.double == other.ensemble.double
    for name in ("series", "classes"):
        assert np.array_equal(getattr(one.prototypes, name), getattr(other.prototypes, name))
    for name in ("uses_prototype", "hidden", "layers", "training"):
        assert getattr(one.generator, name) == getattr(other.generator, name)
    for name, value in one.generator.state_dict().items():
        assert torch.equal(value, other.generator.state_dict()[name])
    assert not other.generator.training and not any(p.requires_grad for p in other.generator.parameters())


def test_immutable_features_and_float64_are_restored(tmp_path):
    explainer = build(sp.wrap(MeanModule().double(), n_classes=3), "auxiliaries=0")
    explainer.fit(X.astype(np.float64), Y, constraints=sp.Constraints(immutable=["f0", "f3"])).save(tmp_path)
    again = sp.load(tmp_path, classifier=explainer.classifier)
    assert again._model.generator.mutable.tolist() == [0, 1, 1, 0] and again._model.ensemble.double
    e, f = explainer.explain(QUERIES, target=1), again.explain(QUERIES, target=1)
    assert np.array_equal(e.counterfactual, f.counterfactual) and not f.changed[..., [0, 3]].any()


def test_a_damaged_file_is_refused(tmp_path):
    explainer = build(module(), "auxiliaries=0").fit(X, Y)
    arrays = arrays_of(explainer)
    for missing in (HEADER, "generator/mutable", "prototypes"):
        damaged = {name: array for name, array in arrays.items() if name != missing}
        with pytest.raises(KeyError):
            model_from_arrays(damaged, explainer.classifier, explainer.info_, explainer.config)
    explainer.save(tmp_path)
    (tmp_path / "arrays.safetensors").write_bytes(b"damaged")
    with pytest.raises(FileFormatError):
        sp.load(tmp_path, classifier=explainer.classifier)


def test_without_auxiliary_classifiers_it_is_refused_to_a_black_box(tmp_path):
    build(module(), "auxiliaries=0").fit(X, Y).save(tmp_path)
    assert len(sp.load(tmp_path, classifier=module())._model.ensemble.members) == 1
    with pytest.raises(CapabilityError, match=r"fitted without auxiliary classifiers.* is a black box"):
        sp.load(tmp_path, classifier=black_box())
