"""Family: members and judges of each family, of classes and of numbers; their accuracy, votes and arrays."""

import numpy as np
import pytest
import torch

from sparcets.core.series import Series
from sparcets.methods.own import family as module
from sparcets.methods.own.convolutions import SETS, SHARP_SETS
from sparcets.methods.own.family import FEATURES, Family, FamilyWithin, Stumps, choose_series
from sparcets.models.views import Goal
from sparcets.testing.data import make_series

X, Y = make_series(60, n_steps=14)
NEW, TRUTH = make_series(48, n_steps=14, seed=1)
SERIES, NEW = Series(X), torch.tensor(NEW)
SCALE = np.array([1.0, 50.0, 1.0, 1.0], dtype=np.float32)


def fit(role, family, *, y=Y, seed=0, n_classes=3, series=SERIES, **options):
    return Family.fit(family, series, y, n_classes, seed, judges=role == "judge", **options)


@pytest.fixture(scope="module", params=[(r, f) for r in ("member", "judge") for f in FEATURES], ids="-".join)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind):
    return fit(*kind)


def test_separable_classes_are_separated_by_probabilities_that_add_up(fitted):
    assert fitted.accuracy > 0.85
    log_proba, votes = fitted(NEW), fitted.votes(NEW)
    for head in log_proba:
        assert (head.argmax(1).numpy() == TRUTH).mean() > 0.85
    assert (votes.mean(0).argmax(1).numpy() == TRUTH).mean() > 0.9
    assert log_proba.shape[1:] == votes.shape[1:] == (48, 3)
    torch.testing.assert_close(log_proba.exp().sum(2), torch.ones(log_proba.shape[:2]), atol=1e-3, rtol=0)
    torch.testing.assert_close(votes.sum(2), torch.ones(votes.shape[:2]), atol=1e-4, rtol=0)
    assert torch.isfinite(fitted(1e4 * NEW)).all()


@pytest.mark.parametrize("family", FEATURES)
def test_on_random_labels_the_accuracy_of_a_member_is_that_of_chance(family):
    y = np.random.default_rng(0).permutation(Y)
    assert fit("member", family, y=y).accuracy < 0.65  # the best of several heads on sixty series of three classes


def test_convolutions_have_linear_heads_and_the_other_families_trees(fitted, kind):
    role, family = kind
    several = SHARP_SETS if role == "judge" else SETS
    n_heads = several if family == "convolutions" else 2 if role == "member" else 1
    assert len(fitted(NEW)) == fitted.n_heads == n_heads and (fitted.forest is None) == (family == "convolutions")
    if role == "judge":  # linear heads, of which half are no majority, or an odd number of small forests
        assert len(fitted.votes(NEW)) == (SHARP_SETS if family == "convolutions" else 5)


def test_gradients_reach_the_series_except_through_sharp_counts(fitted, kind):
    x = NEW[:4].clone().requires_grad_(True)
    assert not fitted.votes(x).requires_grad
    log_proba = fitted(x)
    assert log_proba.requires_grad == (kind != ("judge", "convolutions"))
    for head in log_proba if log_proba.requires_grad else ():
        (gradient,) = torch.autograd.grad(head[:, 1].sum(), x, retain_graph=True)
        assert torch.isfinite(gradient).all() and (gradient != 0).flatten(1).any(1).all()


def test_arrays_and_back_bit_for_bit_and_the_seed_decides(fitted, kind):
    again = Family.from_arrays(fitted.family, fitted.to_arrays())
    assert again.family == fitted.family and again.accuracy == fitted.accuracy
    assert torch.equal(again(NEW), fitted(NEW)) and torch.equal(again.votes(NEW), fitted.votes(NEW))
    assert torch.equal(fit(*kind)(NEW), fitted(NEW)) and not torch.equal(fit(*kind, seed=1)(NEW), fitted(NEW))


def test_the_units_of_the_features_change_every_other_head_of_convolutions_alone(fitted, kind):
    same = [torch.equal(a, b) for a, b in zip(fitted(NEW), fit(*kind, scale=SCALE)(NEW), strict=True)]
    assert same == [kind[1] != "convolutions" or i % 2 == 0 for i in range(len(same))]


def test_a_class_without_series_is_never_predicted(kind):
    made = fit(*kind, y=np.where(Y == 2, 0, Y), n_classes=4)
    assert made(NEW).shape[2] == 4 and set(made.votes(NEW).mean(0).argmax(1).tolist()) == {0, 1}


@pytest.mark.parametrize("family", FEATURES)
def test_features_are_computed_in_batches(family, monkeypatch):
    whole = fit("member", family)
    monkeypatch.setattr(module, "BATCH", 7)
    torch.testing.assert_close(fit("member", family)(NEW), whole(NEW), atol=1e-4, rtol=0)


def test_the_accuracy_is_that_of_the_best_head():
    made = fit("member", "intervals")
    made.ridges[0].accuracy.fill_(0.75)
    for of_forest, expected in ((0.25, 0.75), (1.0, 1.0)):
        made.forest.accuracy.fill_(of_forest)
        assert made.accuracy == expected


def test_stumps_are_thresholds_drawn_from_the_features():
    features = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    stumps = Stumps.draw(features, seed=0)
    values = stumps(features)
    assert values.shape == (30, len(stumps.feature)) and (values >= 0).all() and (values <= 1).all()
    assert all(t in features[:, f] for f, t in zip(stumps.feature[:50], stumps.threshold[:50], strict=True))
    assert torch.equal(values > 0.5, features[:, stumps.feature] > stumps.threshold)


def test_few_series_are_chosen_but_of_a_rare_class_enough():
    assert sorted(choose_series(Y, seed=0, most=60)) == list(range(60))
    one, same, other = (choose_series(np.zeros(60), seed=seed, most=20) for seed in (0, 0, 1))
    assert len(set(one.tolist())) == 20 and np.array_equal(one, same) and not np.array_equal(one, other)
    y = np.repeat([0, 1, 2], [180, 15, 5])
    for seed in range(20):
        chosen = choose_series(y, seed=seed, most=40)
        assert len(set(chosen.tolist())) == len(chosen) and np.array_equal(y[chosen[40:]], np.sort(y[chosen[40:]]))
        assert (np.bincount(y[chosen])[1:] == [max(10, (y[chosen[:40]] == 1).sum()), 5]).all()


LONG = make_series(120)[0]
NUMBERS = LONG[:, :, :2].mean(1).astype(np.float64)
NUMBERS = (NUMBERS - NUMBERS.mean(0)) / NUMBERS.std(0)


def test_numbers_are_learnt_and_restored(kind):
    role, family = kind
    made = fit(role, family, series=Series(LONG[:100]), y=NUMBERS[:100], n_classes=None)
    given = torch.tensor(LONG[100:])
    numbers = (made(given) if role == "member" else made.votes(given)).detach().numpy()
    assert numbers.shape[1:] == (20, 2)
    error = np.sqrt(((numbers.mean(0) - NUMBERS[100:]) ** 2).mean(0))
    assert (error < 0.5).all()  # of 1, by always predicting the mean
    # The spread is measured on series that were left out, so that it foretells the error on others.
    assert (error < 3 * made.spread.numpy()).all()
    again = Family.from_arrays(family, made.to_arrays())
    assert torch.equal(again(given), made(given)) and torch.equal(again.spread, made.spread)


def test_the_view_of_a_regressor_agrees_with_its_numbers():
    member, x = fit("member", "intervals", series=Series(LONG), y=NUMBERS, n_classes=None), torch.tensor(LONG)
    view = FamilyWithin(member, Goal(np.array([[0.5, np.inf], [-np.inf, np.inf]]), ("in", "out")))
    numbers, log_proba = member(x), view(x)
    assert log_proba.shape == (2, 120, 2)
    assert torch.equal(log_proba[..., 0] > log_proba[..., 1], numbers[..., 0] > 0.5)
    torch.testing.assert_close(log_proba.exp().sum(-1), torch.ones(2, 120))
    torch.testing.assert_close(view.votes(x).sum(-1), torch.ones(5 + 1, 120))
