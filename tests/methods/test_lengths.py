"""Series of unequal length, where a method's parts see padding: they compute what they do without it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.series import Scaler, Series
from sparcets.core.settings import TrainConfig
from sparcets.methods.own.family import FEATURES, Family
from sparcets.methods.own.prototypes import Prototypes
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MaskedMeanModule
from sparcets.training import losses
from sparcets.training.generator import Discriminator, Generator

STEPS, WIDTH = 20, 4
NO_SCALE = Scaler(np.zeros(4), np.ones(4))
LENGTHS = torch.tensor([20, 13, 7, 5, 2, 1])
X, Y = make_series(90, n_steps=STEPS)
N = STEPS - np.arange(90) % 8
PADDED = np.where((np.arange(STEPS) < N[:, None])[..., None], X, np.float32(0))
SIZES = {"n_features": WIDTH, "n_targets": 3, "hidden": 8, "layers": 2}


def series():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(len(LENGTHS), STEPS, WIDTH, generator=rng)
    return torch.where(torch.arange(STEPS)[:, None] < LENGTHS[:, None, None], x, 0.0), torch.arange(len(LENGTHS)) % 3


@pytest.mark.parametrize("backbone", ["lstm", "gru", "tcn"])
@torch.no_grad()
def test_the_networks_of_the_paper_compute_the_same_with_and_without_padding(backbone):
    torch.manual_seed(0)
    reach = {"low": torch.zeros(4), "high": torch.ones(4)}
    generator = Generator(**SIZES, mutable=[0, 1, 2], backbone=backbone, dropout=0.0, head="series", **reach).eval()
    discriminator = Discriminator(**SIZES, backbone=backbone).eval()
    x, target = series()
    whole, logits = generator(x, target, LENGTHS), discriminator(x, target, LENGTHS)
    for i, n in enumerate(LENGTHS):
        one = x[i : i + 1, :n], target[i : i + 1]
        torch.testing.assert_close(whole[i : i + 1, :n], generator(*one), atol=1e-5, rtol=0)
        torch.testing.assert_close(logits[i : i + 1], discriminator(*one), atol=1e-5, rtol=0)


@pytest.mark.parametrize("term", [losses.similarity, losses.smoothness])
def test_loss_terms_count_true_steps_only(term):
    x, _ = series()
    for i, n in enumerate(LENGTHS):
        torch.testing.assert_close(term(x, LENGTHS)[i : i + 1], term(x[i : i + 1, :n]))


@pytest.mark.parametrize("family", list(FEATURES))
def test_families_learn_and_predict_series_of_any_length(family):
    x, noisy = torch.tensor(PADDED), np.where(PADDED == 0, np.float32(50), PADDED)
    judge, again = (Family.fit(family, Series(given, N), Y, 3, 0, judges=True) for given in (PADDED, noisy))
    assert judge.accuracy > 0.8
    for n in (20, 13):
        some = np.flatnonzero(n == N)
        votes = judge.at_length(n, STEPS).votes(x[some, :n])
        assert torch.equal(votes, again.at_length(n, STEPS).votes(x[some, :n]))
        assert (votes.mean(0).argmax(1).numpy() == Y[some]).mean() > 0.8
    for n in (1, 2, 3):  # too short to learn from, but no reason to fail
        assert torch.isfinite(judge.at_length(n, STEPS).votes(x[:4, :n])).all()


def test_prototypes_are_resampled_to_the_length_of_the_query():
    prototypes = Prototypes(Series(PADDED, N), Y, np.arange(90), NO_SCALE).at_length(10)
    assert prototypes.series.values.shape == (90, 10, 4) and prototypes.series.lengths is None
    np.testing.assert_array_equal(prototypes.series.values[:, 0], PADDED[:, 0])
    np.testing.assert_allclose(prototypes.series.values[:, -1], PADDED[np.arange(90), N - 1], atol=1e-6)
    alone = Prototypes(Series(X), Y, np.arange(90), NO_SCALE)
    assert alone.at_length(STEPS) is alone


def test_lengths_are_asked_for_whatever_the_queries_come_in(tmp_path):
    ex = sp.Nearest(sp.wrap(MaskedMeanModule(), n_classes=3)).fit(PADDED, Y, lengths=N)
    np.save(tmp_path / "X.npy", X[:9])
    for queries in (np.load(tmp_path / "X.npy", mmap_mode="r"), iter([X[:9]])):
        with pytest.raises(sp.SparcetsError, match="fitted on series of unequal length"):
            ex.explain(queries, target=1, out=tmp_path / "other")


def test_the_users_projection_is_given_series_without_padding():
    seen = set()

    def flat(made, query):
        seen.add(made.shape[1])
        return query + (made - query).mean(1, keepdims=True)

    rows = np.flatnonzero(Y != 1)[:16]
    for method in (sp.Nearest, sp.Sparce):
        ex = method(sp.wrap(MaskedMeanModule(), n_classes=3), method.config_class.tiny()).fit(PADDED, Y, lengths=N)
        seen.clear()
        e = ex.explain(PADDED[rows], target=1, lengths=N[rows], constraints=sp.Constraints(project=flat))
        assert seen <= set(N[rows].tolist()) and len(seen) > 3
        assert e.changed[N[rows] < STEPS].any()
        for delta, n in zip(e.delta, N[rows], strict=True):
            assert np.ptp(delta[:n], axis=0).max() < 1e-5 and not delta[n:].any()


LONGER = [make_series(6, n_steps=n, seed=1)[0][1] for n in (12, 20, 31)]  # of class 0; the fit has 20 steps at most
FEW = {"Explainer": {"families": ("intervals",)}, "Sparce": {"train": TrainConfig(epochs=2)}, "Ics": {}, "Nearest": {}}


@pytest.mark.parametrize("method", FEW)
def test_queries_longer_than_all_training_series(method):
    """They are answered as the shorter ones, which do not notice; constraints reach to the end of the longest."""
    config = replace(getattr(sp, f"{method}Config").tiny(), **FEW[method])
    ex = getattr(sp, method)(sp.wrap(MaskedMeanModule(), n_classes=3), config).fit(PADDED, Y, lengths=N)
    limits = sp.Constraints(frozen=[(28, 31)], immutable=[3])
    e = ex.explain(LONGER, target=1, constraints=limits)
    assert e.counterfactual.shape == (3, 31, WIDTH) and e.info.n_steps == 31 and e.lengths.tolist() == [12, 20, 31]
    assert not e.changed[:, 28:].any() and not e.changed[0, 12:].any()
    # The neighbour of the longest query has ended after 20 steps, and changes nothing there.
    assert e.changed[2, :20].any() and e.changed[2, 20:28].any() == (method != "Nearest")
    shorter = ex.explain(LONGER[:2], target=1, constraints=sp.Constraints(immutable=[3]))
    assert np.array_equal(shorter.counterfactual, e.counterfactual[:2, :STEPS]) and ex.info_.n_steps == STEPS
    if method in ("Explainer", "Ics"):
        assert e.valid.all() and np.array_equal(ex.classifier.predict(e.counterfactual, e.lengths), [1, 1, 1])
