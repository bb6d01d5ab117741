"""A recipe as arrays and back: the same answers, whoever the classifier is and whatever the generator follows."""

import json

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.errors import CapabilityError, FileFormatError
from sparcets.explainers import sparce
from sparcets.explainers.sparcets.files import ABOUT, recipe_from_arrays
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(36, n_steps=9)
QUERIES = make_series(6, n_steps=9, seed=1)[0]
SMALL = ("generator.hidden=6", "discriminator.hidden=6", "train.epochs=1", "train.batch_size=16")


def module():
    return sp.wrap(MeanModule(), n_classes=3)


def black_box():
    return sp.wrap(mean_proba, n_classes=3)


def trained():
    return sp.TorchClassifier("fcn", sp.ClassifierConfig(hidden=4, epochs=8)).fit(X, Y)


KINDS = {
    "free": (module, ()),
    "no gates": (module, ("gate=none",)),
    "guided": (module, ("guide=always",)),
    "black box": (black_box, ("guide=always",)),
    "a network of ours": (trained, ("gate=stretch",)),
    "features alone": (module, ("gate=feature",)),
    "recurrent": (module, ("generator.backbone=gru", "guide=always")),
    "size by the data": (module, ("generator.hidden=null", "generator.layers=null", "train.batch_size=null")),
}


@pytest.fixture(scope="module", params=KINDS, ids=str)
def pair(request, tmp_path_factory):
    """Return a fitted explainer, the same one read back, and where it lies."""
    build, settings = KINDS[request.param]
    classifier = build()
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparce, "BATCHES", 8)
        explainer = sp.Sparce(classifier, sp.SparceConfig.tiny().override(*SMALL, *settings)).fit(X, Y)
    explainer.save(folder)
    return explainer, sp.load(folder, classifier=classifier), folder


def test_the_same_answers(pair):
    explainer, again, _ = pair
    for asked in ({"n": 2}, {"sparsity": 0.1, "constraints": sp.Constraints(immutable=["f3"])}):
        e, f = explainer.explain(QUERIES, target=1, **asked), again.explain(QUERIES, target=1, **asked)
        assert e.counterfactual.tobytes() == f.counterfactual.tobytes()
        assert np.array_equal(e.status, f.status) and np.array_equal(e.reason, f.reason)


def test_everything_that_is_said_comes_back(pair):
    explainer, again, _ = pair
    assert again.summary() == explainer.summary()
    assert again.trade_off_ == explainer.trade_off_ and again.silent_features_ == explainer.silent_features_
    assert again.history_ == explainer.history_


def test_the_user_s_classifier_is_not_stored_and_the_others_are(pair):
    explainer, again, _ = pair
    before, after = explainer._recipe.voices, again._recipe.voices
    own = [voice for voice in before if voice is not explainer.classifier]
    stored = json.loads(explainer._state()[ABOUT].tobytes())["voices"]
    assert len(stored) == len(own) + 1 and len(after) == len(before)
    assert (after[0] is explainer.classifier) == (before[0] is explainer.classifier)
    referees = explainer._recipe.referee, again._recipe.referee
    for one, other in [*zip(before, after, strict=True), referees]:
        assert np.array_equal(one.predict_proba(QUERIES), other.predict_proba(QUERIES))


def test_the_networks_come_back_ready_to_answer(pair):
    _, again, _ = pair
    generator = again._recipe.generator
    assert not generator.training and not any(p.requires_grad for p in generator.parameters())


def test_the_recipe_is_the_same(pair):
    explainer, again, _ = pair
    one, other = explainer._recipe, again._recipe
    assert (
        one.strengths == other.strengths
        and one.louder == other.louder
        and one.level == other.level
        and one.double == other.double
    )
    assert np.array_equal(one.guides, other.guides) and np.array_equal(one.guide_class, other.guide_class)
    for what in ("guided", "hidden", "layers"):
        assert getattr(one.generator, what) == getattr(other.generator, what)
    for name, value in one.generator.state_dict().items():
        assert torch.equal(value, other.generator.state_dict()[name])


def test_immutable_features_come_back(tmp_path):
    explainer = sp.Sparce(module(), sp.SparceConfig.tiny().override(*SMALL))
    explainer.fit(X, Y, constraints=sp.Constraints(immutable=["f0", "f3"])).save(tmp_path)
    again = sp.load(tmp_path, classifier=explainer.classifier)
    assert again._recipe.generator.mutable.tolist() == [0, 1, 1, 0]
    e, f = explainer.explain(QUERIES, target=1), again.explain(QUERIES, target=1)
    assert np.array_equal(e.counterfactual, f.counterfactual) and not f.changed[..., [0, 3]].any()


def test_a_damaged_file_is_told(tmp_path):
    explainer = sp.Sparce(module(), sp.SparceConfig.tiny().override(*SMALL)).fit(X, Y)
    arrays = explainer._state()
    for gone in (ABOUT, "generator/mutable", "guides"):
        broken = {name: a for name, a in arrays.items() if name != gone}
        with pytest.raises(KeyError):
            recipe_from_arrays(broken, explainer.classifier, explainer.info_, explainer.config)
    explainer.save(tmp_path)
    (tmp_path / "arrays.safetensors").write_bytes(b"damaged")
    with pytest.raises(FileFormatError, match="damaged explainer"):
        sp.load(tmp_path, classifier=explainer.classifier)


def test_without_gradients_and_witnesses_there_is_nobody_to_listen_to(tmp_path):
    config = sp.SparceConfig.tiny().override(*SMALL, "witnesses=0")
    sp.Sparce(module(), config).fit(X, Y).save(tmp_path)
    assert len(sp.load(tmp_path, classifier=module())._recipe.voices) == 1
    with pytest.raises(CapabilityError, match=r"fitted without witnesses.* is a black box"):
        sp.load(tmp_path, classifier=black_box())
