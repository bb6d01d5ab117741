"""What a model gets for missing values."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import DataError, ModelOutputError, NonFiniteError
from sparcets.core.series import Series
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(60)
G = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.float32(np.nan), X)


class Seen:
    """A black box that keeps what it was given."""

    def __call__(self, Z):
        self.given = Z
        return mean_proba(np.nan_to_num(Z))


def given_to(missing, Z=G):
    box = Seen()
    sp.wrap(box, n_classes=3, missing=missing).predict(Z)
    return box.given


def test_a_model_gets_what_its_rule_says():
    Z = G[:1]
    assert np.array_equal(given_to("keep", Z), Z, equal_nan=True)
    column, known = Z[0, :, 0], ~np.isnan(Z[0, :, 0])
    by_mean, by_last = given_to("mean", Z)[0, :, 0], given_to("forward", Z)[0, :, 0]
    np.testing.assert_allclose(by_mean[~known], column[known].mean(), rtol=1e-6)
    assert by_last.tolist() == [next((v for v in column[: t + 1][::-1] if v == v), column[known][0]) for t in range(20)]
    assert np.array_equal(by_mean[known], column[known])
    gaps, filled = np.isnan(G), given_to(np.zeros_like)
    assert not filled[gaps].any() and np.array_equal(filled[~gaps], G[~gaps])
    with pytest.raises(ModelOutputError, match=r"given as missing= must return shape \(60, 20, 4\), got \(60, 19, 4\)"):
        given_to(lambda Z: Z[:, 1:])
    with pytest.raises(ModelOutputError, match=r"function given as missing= .*ZeroDivisionError"):
        given_to(lambda Z: 1 / 0)


def test_by_default_a_missing_value_is_an_error_with_its_place_and_the_remedy():
    Z = X.copy()
    Z[3, 4, 1] = np.nan
    own = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(X, Y)
    for classifier in (sp.wrap(mean_proba, n_classes=3), own):
        with pytest.raises(NonFiniteError, match=r"NaN at \[3, 4, 1\].*missing='forward'"):
            classifier.predict(Z)
    with pytest.raises(NonFiniteError, match=r"NaN at \[3, 4, 1\].*ClassifierConfig\(missing='forward'\)"):
        sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(Z, Y)


@pytest.mark.parametrize("missing", ["keep", "forward", "mean", np.nan_to_num])
def test_infinity_is_never_missing_and_a_series_has_values(missing):
    classifier = sp.wrap(lambda Z: mean_proba(np.nan_to_num(Z)), n_classes=3, missing=missing)
    for place, value, lengths, message in (
        ((2, 1, 0), np.inf, None, r"infinity at \[2, 1, 0\]"),
        (5, np.nan, None, "nothing but NaN in series 5"),
        ((5, slice(9)), np.nan, np.full(60, 9), "nothing but NaN before the end of series 5"),
    ):
        Z = G.copy()
        Z[place] = value
        with pytest.raises(NonFiniteError, match=message):
            classifier.predict(Z, lengths)


@pytest.mark.parametrize("missing", ["forward", "mean"])
def test_a_rule_without_a_value_to_go_by_says_so(missing):
    Z = G.copy()
    Z[7, :, 2] = np.nan
    with pytest.raises(NonFiniteError, match=rf"series 7 has no value of feature 2 at all.*missing='{missing}'"):
        sp.wrap(mean_proba, n_classes=3, missing=missing).predict(Z)
    own = sp.TorchClassifier("fcn", sp.ClassifierConfig(**{**sp.ClassifierConfig.tiny().to_dict(), "missing": missing}))
    measured = Series(Z).filled(missing).values
    measured[7, :, 2] = np.nanmean(Z[..., 2])  # the mean of the training series
    np.testing.assert_allclose(own.fit(Z, Y).predict_proba(Z), own.predict_proba(measured), atol=1e-5)
    Z[..., 2] = np.nan
    with pytest.raises(DataError, match="no training series has a value of feature 2"):
        own.fit(Z, Y)


@pytest.mark.parametrize("missing", ["forward", "mean", np.nan_to_num])
def test_gradients_agree_with_what_the_black_box_computes(missing):
    """A module and the same model as a black box get the same values; gradients are those of finite differences."""
    module = MeanModule(sharpness=1.0).double()
    differentiable = sp.wrap(module, n_classes=3, missing=missing)
    Z = G[:4].astype(np.float64)
    box = sp.wrap(lambda Z: mean_proba(Z, sharpness=1.0), n_classes=3, missing=missing)
    np.testing.assert_allclose(differentiable.predict_proba(Z), box.predict_proba(Z), atol=1e-12)
    x = torch.tensor(Z, requires_grad=True)
    (gradient,) = torch.autograd.grad(differentiable.log_proba(x)[:, 1].sum(), x)
    assert gradient.isfinite().all() and not gradient[x.isnan()].any()
    places = np.argwhere(~np.isnan(Z))[::17]
    for place in map(tuple, places):
        up, down = Z.copy(), Z.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        change = np.log(box.predict_proba(up)[:, 1]).sum() - np.log(box.predict_proba(down)[:, 1]).sum()
        assert gradient[place] == pytest.approx(change / 2e-6, abs=1e-5)


def test_the_rule_is_saved_with_a_network(tmp_path):
    config = sp.ClassifierConfig.from_dict(sp.ClassifierConfig.tiny().to_dict() | {"missing": "mean"})
    classifier = sp.TorchClassifier("fcn", config).fit(G, Y)
    classifier.save(tmp_path)
    again = sp.load_classifier(tmp_path)
    assert again.missing == "mean" and np.array_equal(again.predict_proba(G), classifier.predict_proba(G))
    other = sp.ClassifierConfig.from_dict(config.to_dict() | {"missing": "forward"})
    again.config, again.missing = other, "forward"
    assert again.digest() != classifier.digest(), "an explainer names its classifier by the digest"
