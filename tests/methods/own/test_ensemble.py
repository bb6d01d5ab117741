"""The ensemble: log-probabilities of all members, the levels they aim at, and the training of all families."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.core.settings import FAMILIES
from sparcets.evaluation.judges import judge_config
from sparcets.methods.own import ensemble as module
from sparcets.methods.own.ensemble import train_ensemble
from sparcets.methods.own.family import Family
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.cuda import WARM_UP, CapturedStep

X, Y = make_series(60, n_steps=14)
NEW, TRUTH = make_series(60, n_steps=14, seed=1)
NAMES = ("calm", "brisk", "wild")
RAW = 3 * X + 5  # units of its own, so that nothing is standardised by chance
INFO = SeriesInfo.from_series(RAW, NAMES)
Z = torch.tensor(INFO.scaler.transform(RAW), dtype=torch.float32)
OTHERS = tuple(name for name in FAMILIES if name != "neural")


# Series in, probabilities out.


@pytest.fixture(scope="module")
def families():
    return [Family.fit(name, Series(Z.numpy()), Y, 3, seed=0) for name in OTHERS]


@pytest.fixture
def ensemble(build_ensemble):
    def build(*sharpness, **kwargs):
        return build_ensemble(INFO, [MeanModule(sharpness=s) for s in sharpness], **kwargs)

    return build


def test_networks_receive_the_data_s_own_units_and_families_standardised_series(ensemble, families):
    x, both = Z[:5].clone().requires_grad_(True), ensemble(10.0, 1.0, families=families)
    log_proba = both.log_proba(x)
    networks = [net.predict_proba(RAW[:5]) for net in (both.explained, *both.networks)]
    np.testing.assert_allclose(log_proba[:2].exp().detach(), networks, atol=1e-4)
    torch.testing.assert_close(log_proba[2:], torch.cat([family(x) for family in families]), atol=1e-4, rtol=0)
    for head in log_proba:
        (gradient,) = torch.autograd.grad(head[:, 0].sum(), x, retain_graph=True)
        assert (gradient != 0).any()


def test_members_are_functions_of_raw_series_and_the_explained_classifier_comes_first(ensemble, families):
    built = ensemble(10.0, 1.0, families=families)
    members = built.members()
    each = [member(torch.tensor(RAW[:5])) for member in members]
    assert len(members) == 2 + len(families)
    torch.testing.assert_close(torch.cat(each), built.log_proba(Z[:5]), atol=1e-4, rtol=0)
    np.testing.assert_allclose(each[0][0].exp(), built.explained.predict_proba(RAW[:5]), atol=1e-5)
    for heads, one in zip(built.heads(), each, strict=True):
        assert heads.stop - heads.start == len(one)
    assert built.heads()[0] == slice(0, 1) and built.heads()[-1].stop == len(built.log_proba(Z[:2]))


@pytest.mark.parametrize("double", [False, True])
def test_networks_receive_the_type_of_the_data(ensemble, double):
    received = []
    recorder = SimpleNamespace(device=torch.device("cpu"))
    recorder.log_proba = lambda raw, _: received.append(raw) or torch.zeros(len(raw), 3)
    built = replace(ensemble(1.0, double=double), explained=recorder)
    assert built.log_proba(Z[:2]).dtype == torch.float32
    assert received[0].dtype == (torch.float64 if double else torch.float32)


# Networks.


@pytest.fixture
def short(monkeypatch):
    """Train networks for a few steps."""
    monkeypatch.setattr(module, "NETWORK_STEPS", 3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
def test_members_can_be_captured_in_a_cuda_graph(fit_job):
    config = CONFIG.override("device=cuda")
    job = fit_job(X, Y, NAMES)
    explained = sp.TorchClassifier("fcn", sp.ClassifierConfig(epochs=1, device="cuda")).fit(X, Y)
    members = train_ensemble(job, ROWS, explained, config, seed=0).members()

    class Step:
        names = ("loss",)

        def update(self, batch):
            x = batch["x"].clone().requires_grad_()
            loss = sum(member(x)[:, :, 0].mean() for member in members)
            (gradient,) = torch.autograd.grad(loss, x)
            return torch.stack([loss.detach() + gradient.abs().sum()])

    plain, captured = Step(), CapturedStep(Step(), torch.device("cuda"))
    for k in range(WARM_UP + 2):
        batch = {"x": torch.tensor(X[10 * k : 10 * k + 10], device="cuda")}
        torch.testing.assert_close(captured.update(batch), plain.update(batch), rtol=1e-3, atol=1e-4)
    assert captured._graph is not None


# The whole ensemble.

CONFIG = sp.ExplainerConfig(noise=0.2, device="cpu")
ROWS = np.arange(40)
EXPLAINED = sp.wrap(MeanModule(), n_classes=3)


@pytest.fixture
def built(fit_job, short):
    return train_ensemble(fit_job(X, Y, NAMES), ROWS, EXPLAINED, CONFIG, seed=7)


def test_members_and_selector_are_of_all_families_and_nothing_alike(built):
    assert built.explained is EXPLAINED and not built.double and built.explained_accuracy == 1.0
    members, judges = built.families, built.selector.judges
    assert tuple(dict.fromkeys(one.family for one in members)) == tuple(dict.fromkeys(one.family for one in judges))
    assert tuple(dict.fromkeys(one.family for one in members)) == OTHERS
    assert [name for name in built.selector.families if name != "neural"] == list(OTHERS)
    assert [net.architecture for net in built.networks] in ([], [module.MEMBER])  # three steps may teach it nothing
    for a, b in combinations([*members, *judges], 2):
        if a.family == b.family and a.family != "quantiles":  # whose intervals are no matter of chance
            one, other = a.to_arrays(), b.to_arrays()
            drawn = {"convolutions": "features.mixing", "intervals": "features.start"}[a.family]
            assert not np.array_equal(one[drawn], other[drawn])


def test_networks_are_of_two_architectures_one_trained_with_noise(fit_job):
    config = CONFIG.override('families=["neural"]')
    built = train_ensemble(fit_job(X, Y, NAMES), ROWS, EXPLAINED, config, seed=7)
    (member,), (judge,) = built.networks, built.selector.networks
    assert (member.architecture, member.config.noise) == (module.MEMBER, 0.2)
    assert (judge.architecture, judge.config.noise) == (module.JUDGE, 0.0)
    assert len({member.config.seed, judge.config.seed, judge_config(len(X)).seed}) == 3  # nor one for evaluation
    assert not built.families and built.selector.families == ("neural",)
    assert (member.predict(NEW) == TRUTH).mean() > 0.9


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("setting", ["believed_by=model", "families=[]"])
def test_without_families_the_explained_classifier_is_alone(fit_job, setting):
    built = train_ensemble(fit_job(X, Y, NAMES), ROWS, EXPLAINED, CONFIG.override(setting), seed=0)
    assert not built.networks and not built.families and built.selector.families == ()
    assert built.levels.shape == (1, 3)


def test_families_that_are_no_better_than_chance_are_left_out(fit_job, monkeypatch):
    config = CONFIG.override('families=["intervals", "convolutions"]')
    plain = Family.accuracy
    chance = np.bincount(Y[ROWS]).max() / len(ROWS)
    monkeypatch.setattr(Family, "accuracy", property(lambda s: chance if s.family == "intervals" else plain.fget(s)))
    built = train_ensemble(fit_job(X, Y, NAMES), ROWS, EXPLAINED, config, seed=0)
    assert {family.family for family in built.families} == {"convolutions"}
    assert built.selector.families == ("convolutions",) and len(built.levels) == 1 + built.families[0].n_heads


def test_levels_are_the_median_probabilities_of_real_series_within_bounds(built):
    log_proba = built.log_proba(torch.tensor(built.scaler.transform(X[ROWS]), dtype=torch.float32))
    assert built.levels.shape == (len(log_proba), 3)
    for k in range(3):
        median = log_proba[:, torch.tensor(Y[ROWS] == k), k].exp().median(1).values
        torch.testing.assert_close(built.levels[:, k], median.clamp(1 / 3, module.MAX_LEVEL), atol=1e-4, rtol=0)
