"""FamilyClassifier: members and judges of each family, their accuracy, their votes, and their arrays."""

import numpy as np
import pytest
import torch

from sparcets.methods.own import family as module
from sparcets.methods.own.convolutions import SETS, SHARP_SETS
from sparcets.methods.own.family import FEATURES, FamilyClassifier, Stumps, choose_series
from sparcets.testing.data import make_series

X, Y = make_series(60, n_steps=14)
NEW, TRUTH = make_series(48, n_steps=14, seed=1)
X, NEW = torch.tensor(X), torch.tensor(NEW)
ROLES = {"member": FamilyClassifier.fit_member, "judge": FamilyClassifier.fit_judge}


def fit(role, family, *, y=Y, seed=0, n_classes=3):
    return ROLES[role](family, X, y, n_classes, seed)


@pytest.fixture(scope="module", params=[(role, family) for role in ROLES for family in FEATURES], ids="-".join)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind):
    return fit(*kind)


def test_separable_classes_are_separated(fitted):
    assert fitted.accuracy > 0.85
    for head in fitted(NEW):
        assert (head.argmax(1).numpy() == TRUTH).mean() > 0.85
    assert (fitted.votes(NEW).mean(0).argmax(1).numpy() == TRUTH).mean() > 0.9


@pytest.mark.parametrize("family", FEATURES)
def test_on_random_labels_the_accuracy_of_a_member_is_that_of_chance(family):
    y = np.random.default_rng(0).permutation(Y)
    assert fit("member", family, y=y).accuracy < 0.65  # the best of several heads on sixty series of three classes


def test_log_probabilities_and_votes_of_a_class_add_up(fitted):
    log_proba, votes = fitted(NEW), fitted.votes(NEW)
    assert log_proba.shape[1:] == votes.shape[1:] == (48, 3)
    torch.testing.assert_close(log_proba.exp().sum(2), torch.ones(log_proba.shape[:2]), atol=1e-3, rtol=0)
    torch.testing.assert_close(votes.sum(2), torch.ones(votes.shape[:2]), atol=1e-4, rtol=0)
    assert torch.isfinite(fitted(1e4 * NEW)).all()


def test_convolutions_have_linear_heads_and_the_other_families_trees(fitted, kind):
    role, family = kind
    n_heads, n_voters = len(fitted(NEW)), len(fitted.votes(NEW))
    several = SHARP_SETS if role == "judge" else SETS
    assert n_heads == fitted.n_heads == (several if family == "convolutions" else 2 if role == "member" else 1)
    assert (fitted.forest is None) == (family == "convolutions")
    if role == "judge":
        # Linear heads, of which half are no majority, or an odd number of small forests.
        assert n_voters == (SHARP_SETS if family == "convolutions" else 5)


def test_gradients_reach_the_series_except_through_sharp_counts(fitted, kind):
    x = NEW[:4].clone().requires_grad_(True)
    assert not fitted.votes(x).requires_grad
    log_proba = fitted(x)
    if kind == ("judge", "convolutions"):
        assert not log_proba.requires_grad
        return
    for head in log_proba:
        (gradient,) = torch.autograd.grad(head[:, 1].sum(), x, retain_graph=True)
        assert torch.isfinite(gradient).all() and (gradient != 0).flatten(1).any(1).all()


def test_arrays_and_back_bit_for_bit(fitted):
    arrays = fitted.to_arrays()
    again = FamilyClassifier.from_arrays(fitted.family, arrays)
    assert again.family == fitted.family and again.accuracy == fitted.accuracy
    assert torch.equal(again(NEW), fitted(NEW)) and torch.equal(again.votes(NEW), fitted.votes(NEW))
    restored = again.to_arrays()
    assert restored.keys() == arrays.keys()
    for name, array in arrays.items():
        assert restored[name].dtype == array.dtype and np.array_equal(restored[name], array), name


def test_one_seed_gives_the_same_classifier_and_another_does_not(fitted, kind):
    assert torch.equal(fit(*kind)(NEW), fitted(NEW))
    assert not torch.equal(fit(*kind, seed=1)(NEW), fitted(NEW))


@pytest.mark.parametrize("role", ROLES)
def test_the_units_of_the_features_change_every_other_head_of_convolutions(role):
    scale = np.array([1.0, 50.0, 1.0, 1.0], dtype=np.float32)
    plain, scaled = (ROLES[role]("convolutions", X, Y, 3, 0, scale=s) for s in (None, scale))
    same = [torch.equal(one, other) for one, other in zip(plain(NEW), scaled(NEW), strict=True)]
    assert same == [i % 2 == 0 for i in range(len(same))]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("family", [name for name in FEATURES if name != "convolutions"])
def test_trees_do_not_depend_on_the_units_of_the_features(role, family):
    scale = np.array([1.0, 50.0, 1.0, 1.0], dtype=np.float32)
    assert torch.equal(ROLES[role](family, X, Y, 3, 0, scale=scale)(NEW), fit(role, family)(NEW))


def test_a_class_without_series_is_never_predicted(kind):
    made = fit(*kind, y=np.where(Y == 2, 0, Y), n_classes=4)
    assert made(NEW).shape[2] == 4
    assert set(made.votes(NEW).mean(0).argmax(1).tolist()) == {0, 1}


@pytest.mark.parametrize("family", FEATURES)
def test_features_are_computed_in_batches(family, monkeypatch):
    whole = fit("member", family)
    monkeypatch.setattr(module, "BATCH", 7)
    torch.testing.assert_close(fit("member", family)(NEW), whole(NEW), atol=1e-4, rtol=0)


def test_the_accuracy_is_that_of_the_best_head():
    made = fit("member", "intervals")
    made.forest.accuracy.fill_(0.25)
    made.ridges[0].accuracy.fill_(0.75)
    assert made.accuracy == 0.75
    made.forest.accuracy.fill_(1.0)
    assert made.accuracy == 1.0


def test_stumps_are_thresholds_drawn_from_the_features():
    features = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    stumps = Stumps.draw(features, seed=0)
    values = stumps(features)
    assert values.shape == (30, len(stumps.feature)) and (values >= 0).all() and (values <= 1).all()
    assert all(t in features[:, f] for f, t in zip(stumps.feature[:50], stumps.threshold[:50], strict=True))
    above = features[:, stumps.feature] > stumps.threshold
    assert torch.equal(values > 0.5, above)


def test_no_more_series_than_a_limit_are_chosen():
    assert sorted(choose_series(Y, seed=0, most=60)) == list(range(60))
    one, same, other = (choose_series(np.zeros(60), seed=seed, most=20) for seed in (0, 0, 1))
    assert len(set(one.tolist())) == 20 and np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_rare_class_is_not_left_out():
    y = np.repeat([0, 1, 2], [180, 15, 5])
    for seed in range(20):
        chosen = choose_series(y, seed=seed, most=40)
        assert len(set(chosen.tolist())) == len(chosen) and np.array_equal(y[chosen[40:]], np.sort(y[chosen[40:]]))
        assert (np.bincount(y[chosen])[1:] == [max(10, (y[chosen[:40]] == 1).sum()), 5]).all()
