"""The ensemble: agreement of its members, and the training of auxiliary classifiers, selector and surrogate."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.errors import ConfigError
from sparcets.evaluation.judges import judge_config
from sparcets.explainers.sparcets.ensemble import (
    ARCHITECTURES,
    Ensemble,
    target_log_proba,
    train_auxiliary,
    train_ensemble,
)
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets.training.cuda import WARM_UP, CapturedStep

X, Y = make_series(60)
NEW, TRUTH = make_series(60, seed=1)
NAMES = ("calm", "brisk", "wild")
RAW = 3 * X + 5  # units of its own, so that nothing is standardised by chance
SCALER = SeriesInfo.from_series(RAW, NAMES).scaler


# Series in, probabilities out.


def ensemble(*sharpness, **kwargs):
    members = [sp.wrap(MeanModule(sharpness=s), n_classes=3) for s in sharpness]
    selector = sp.wrap(MeanModule(sharpness=0.1), n_classes=3)
    return Ensemble(members=members, selector=selector, scaler=SCALER, device=torch.device("cpu"), **kwargs)


def standardised(n):
    return torch.tensor(SCALER.transform(RAW[:n]), dtype=torch.float32)


def test_members_receive_the_data_s_own_units_with_gradients():
    x, both = standardised(5).requires_grad_(True), ensemble(10.0, 1.0)
    log_proba = both.log_proba(x)
    assert log_proba.shape == (2, 5, 3)
    np.testing.assert_allclose(log_proba.exp().detach(), [m.predict_proba(RAW[:5]) for m in both.members], atol=1e-4)
    log_proba[:, :, 0].sum().backward()
    assert (x.grad != 0).any()
    with_selector = both.log_proba(x, with_selector=True)
    torch.testing.assert_close(with_selector[:2], log_proba)
    np.testing.assert_allclose(with_selector[2].exp().detach(), both.selector.predict_proba(RAW[:5]), atol=1e-4)


def recorder(received):
    """Return a member that appends its inputs to a list."""
    return SimpleNamespace(
        device=torch.device("cpu"), log_proba=lambda raw: received.append(raw) or torch.zeros(len(raw), 3)
    )


@pytest.mark.parametrize("double", [False, True])
def test_members_receive_the_type_of_the_data(double):
    received = []
    built = replace(ensemble(double=double), members=[recorder(received)])
    assert built.log_proba(standardised(2)).dtype == torch.float32
    assert received[0].dtype == (torch.float64 if double else torch.float32)


def test_agreement_is_the_least_probability_of_all_members():
    x, target = standardised(8), torch.tensor(Y[:8])
    one_by_one = [ensemble(s).agreement(x, target) for s in (10.0, 0.5, 2.0)]
    together = ensemble(10.0, 0.5, 2.0).agreement(x, target)
    torch.testing.assert_close(together, torch.stack(one_by_one).amin(0))
    assert together.shape == (8,) and not together.requires_grad
    assert (ensemble(10.0, 0.5).agreement(x, (target + 1) % 3) < together).all()


def test_with_a_required_agreement_members_are_skipped_and_comparisons_stay_the_same():
    x, target = standardised(8), torch.as_tensor((Y[:8] + 1) % 3)
    both = ensemble(10.0, 0.5, 2.0)
    exact = both.agreement(x, target)
    for required in (0.0, 0.1, float(exact.median()), 0.9, 1.1):
        agreement = both.agreement(x, target, torch.full((8,), required))
        assert torch.equal(agreement >= required, exact >= required)
        enough = exact >= required
        assert torch.allclose(agreement[enough], exact[enough]) and (agreement >= exact - 1e-7).all()
    received = []
    replace(both, members=[recorder(received), *both.members]).agreement(x, target, torch.full((8,), 1.1))
    assert not received  # the last member gives less already


def test_log_probabilities_of_the_targets():
    log_proba = torch.arange(12.0).reshape(2, 2, 3)
    assert target_log_proba(log_proba, torch.tensor([2, 0])).tolist() == [[2.0, 3.0], [8.0, 9.0]]


# Auxiliary classifiers.


def train(number=0, *, series=X, labels=Y, names=NAMES, noise=0.0, steps=1, seed=0, device="cpu"):
    return train_auxiliary(
        series, labels, names, number=number, noise=noise, steps=steps, seed=seed, device=device, progress=False
    )


def same(a, b):
    weights = b.weights()
    return all(torch.equal(value, weights[name]) for name, value in a.weights().items())


def test_an_auxiliary_classifier_learns_with_noise():
    auxiliary = train(noise=0.3, steps=1500)
    assert (auxiliary.predict(NEW) == TRUTH).mean() > 0.95
    assert (auxiliary.config.noise, auxiliary.config.label_smoothing) == (0.3, 0.05)


def test_number_and_seed_decide_the_classifier():
    five = [train(number, seed=3) for number in range(5)]
    assert [a.architecture for a in five] == [*ARCHITECTURES, "fcn"]
    assert len({a.config.seed for a in five}) == 5
    assert not same(five[0], five[4])
    torch.manual_seed(9)
    assert same(train(1, seed=3), five[1])
    assert not same(train(0, seed=4), five[0])


def test_no_auxiliary_classifier_is_a_judge():
    judge = judge_config(len(X))
    assert all(train(series=X[:6], labels=Y[:6], seed=seed).config.seed != judge.seed for seed in range(20))


def test_the_noise_is_used_in_training():
    assert not same(train(noise=2.0), train(noise=0.0))
    with pytest.raises(ConfigError, match=r"'noise' must be >= 0, got -0.1"):
        train(noise=-0.1)


def test_a_class_may_have_no_series():
    auxiliary = train(series=X[Y != 1], labels=Y[Y != 1])
    assert auxiliary.class_names == NAMES and auxiliary.predict_proba(X[:2]).shape == (2, 3)


@pytest.mark.parametrize("number", range(4))
def test_gradients_reach_the_series_and_no_weights(number):
    auxiliary = train(number)
    x = torch.tensor(X[:4], requires_grad=True)
    auxiliary.log_proba(x)[:, 0].sum().backward()
    assert x.grad.abs().sum() > 0
    assert all(p.grad is None for p in auxiliary._network.parameters())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
def test_they_can_be_captured_in_a_cuda_graph():
    auxiliaries = [train(number, device="cuda") for number in range(4)]
    device = auxiliaries[0].device

    class Step:
        names = ("loss",)

        def update(self, batch):
            x = batch["x"].clone().requires_grad_()
            loss = sum(a.log_proba(x)[:, 0].mean() for a in auxiliaries)
            (gradient,) = torch.autograd.grad(loss, x)
            return torch.stack([loss.detach() + gradient.abs().sum()])

        def validate(self):
            return {}

    plain, captured = Step(), CapturedStep(Step(), device)
    for k in range(WARM_UP + 3):
        batch = {"x": torch.tensor(X[10 * k : 10 * k + 10], device=device)}
        torch.testing.assert_close(captured.update(batch), plain.update(batch), rtol=1e-3, atol=1e-4)
    assert captured._graph is not None


# The whole ensemble.

CONFIG = sp.ExplainerConfig.tiny().override("noise=0.2", "train.epochs=1", "device=cpu")
ROWS = np.arange(40)


def test_every_other_auxiliary_classifier_and_the_selector_are_trained_without_noise(fit_job):
    classifier = sp.wrap(MeanModule(), n_classes=3)
    config = CONFIG.override("auxiliaries=5")
    built = train_ensemble(fit_job(X, Y, NAMES), ROWS, classifier, config, seed=7)
    assert built.members[0] is classifier and not built.double
    trained = [*built.members[1:], built.selector]
    assert [a.architecture for a in trained] == ["fcn", "resnet", "tcn", "bilstm", "fcn", "resnet"]
    assert [a.config.noise for a in trained] == [0.2, 0.0, 0.2, 0.0, 0.0, 0.0]
    assert len({a.config.seed for a in trained}) == 6  # the selector is none of the auxiliary classifiers
    own = train(0, series=X[ROWS], labels=Y[ROWS], noise=0.2, steps=25, seed=7)
    assert same(own, trained[0])  # trained on the given rows only, with as many steps as sizing says


def test_without_auxiliary_classifiers_there_is_still_a_selector(fit_job):
    classifier = sp.wrap(MeanModule().double(), n_classes=3)
    job = fit_job(X.astype(np.float64), Y, NAMES)
    built = train_ensemble(job, ROWS, classifier, CONFIG.override("auxiliaries=0"), seed=0)
    assert list(built.members) == [classifier] and built.double
    assert (built.selector.architecture, built.selector.config.noise) == ("resnet", 0.0)


def test_a_black_box_is_replaced_by_a_surrogate(fit_job):
    black_box = sp.wrap(mean_proba, n_classes=3)
    built = train_ensemble(fit_job(X, Y, NAMES), ROWS, black_box, CONFIG.override("auxiliaries=0"), seed=0)
    (surrogate,) = built.members
    assert isinstance(surrogate, sp.TorchClassifier) and surrogate.class_names == NAMES
    assert (surrogate.predict(NEW) == black_box.predict(NEW)).mean() > 0.9
