"""Proposals of a generator: its training, which can be resumed; what it proposes; and the searches that start there."""

import copy
from dataclasses import replace
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.series import Series
from sparcets.methods.own import proposals
from sparcets.methods.own.explainer import wants_generator
from sparcets.methods.own.proposals import LOG_WEIGHTS, WEIGHTS, ProposalStep, propose
from sparcets.methods.own.search import QuerySearch
from sparcets.methods.request import Request
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.checkpoint import FILE

X, Y = make_series(96, n_steps=12)
QUERIES, LABELS = make_series(9, n_steps=12, seed=1)
BATCH = {"query": torch.arange(6), "target": torch.tensor([0, 1, 2, 0, 1, 2]), "real": torch.arange(6, 12)}
CONFIG = sp.ExplainerConfig.tiny().override('families=["quantiles"]', "proposals=generator")


@pytest.fixture
def build_step(fit_job, build_ensemble, monkeypatch):
    """Return a function that builds a step of a training of two epochs, whose loss has given weights."""

    def build(n_steps=10, **weights):
        monkeypatch.setattr(proposals, "WEIGHTS", dict.fromkeys(WEIGHTS, 0.0) | weights)
        monkeypatch.setattr(proposals, "MAX_STEPS", n_steps)
        job = fit_job(X, Y)
        ensemble = build_ensemble(job.info, [MeanModule(), MeanModule(sharpness=3.0)])
        return ProposalStep(job, np.arange(len(X)), ensemble, epoch_steps=n_steps // 2, seed=0)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield build


def changed(network, before):
    return {name for name, value in network.named_parameters() if not torch.equal(value, before[name])}


# One step.


@pytest.mark.parametrize("term", WEIGHTS)
def test_every_term_trains_the_generator(build_step, term):
    step = build_step(**{term: 1.0})
    step.begin(1)
    before, critic = copy.deepcopy(step.generator.state_dict()), copy.deepcopy(step.critic.state_dict())
    values = dict(zip(step.names, step.update(BATCH).tolist(), strict=True))
    assert {"target_embedding.weight", "feature_gate.2.weight"} <= changed(step.generator, before)
    assert changed(step.critic, critic) and np.isfinite(list(values.values())).all()
    if term != "sparsity":  # which costs its weight of each query
        assert values["generator"] == pytest.approx(values[term])


def test_the_sparsity_term_costs_its_weight_times_the_ramp(build_step, monkeypatch):
    step, given = build_step(sparsity=1.0), []
    step.begin(0)
    before = copy.deepcopy(step.generator.state_dict())
    assert step.update(BATCH)[step.names.index("generator")] == 0 and not changed(step.generator, before)
    step.begin(1)
    step.generator.forward = lambda x, target, log_weight: given.append(log_weight) or torch.ones_like(x)
    monkeypatch.setattr(step, "_descend", lambda name, loss: None)
    low, high = LOG_WEIGHTS
    for _ in range(60):
        values = dict(zip(step.names, step.update(BATCH).tolist(), strict=True))
        assert values["sparsity"] == 1 and values["generator"] == pytest.approx(given[-1].exp().mean().item())
    weights = torch.cat(given)  # log-uniform between the limits, one for each query
    assert low <= weights.min() < low + 0.2 and high - 0.2 < weights.max() <= high
    assert weights.mean().item() == pytest.approx((low + high) / 2, abs=0.2)


def test_members_are_asked_in_turn_with_a_shift_and_a_noise_of_their_own(build_step, monkeypatch):
    asked = []
    step = build_step(classification=1.0)
    step.members = [lambda raw, k=k: asked.append((k, raw)) or torch.zeros(1, len(raw), 3) for k in range(6)]
    spread = torch.tensor([0.1, 1.0, 5.0, 0.0])  # of the features; one is constant
    raw = torch.tensor([-1.0, 1.0]).repeat(20)[None, :, None] * spread
    for step.n_updates in range(5):
        step._log_proba(raw.expand(400, 40, 4))
    names, inputs = [name for name, _ in asked], [x for _, x in asked]
    assert names[::3] == [0] * 5 and sorted(names[1::3] + names[2::3]) == sorted([1, 2, 3, 4, 5] * 2)
    assert not torch.equal(inputs[0], inputs[1]) and all((x[..., 3] == 0).all() for x in inputs)
    noise = torch.stack(inputs)[..., :3] / spread[:3]
    noise = (noise - noise.sign())[:, :, 5:-5].std((2, 3)).flatten().sort().values  # one size for a whole series
    torch.testing.assert_close(noise, torch.linspace(0, proposals.NOISE, len(noise)), rtol=0, atol=0.08)
    monkeypatch.setattr(proposals, "NOISE", 0.0)
    # Shifted by up to a twentieth of forty steps.
    shift = step._augmented(torch.arange(40.0)[None, :, None].expand(300, 40, 4))[:, 20, 0] - 20
    assert shift.unique().tolist() == [-2, -1, 0, 1, 2]
    # The explained classifier has a quarter of the loss.
    step.members = [lambda raw, p=p: torch.full((3 if p == 0.5 else 1, 6, 3), p).log() for p in (0.25, 0.5)]
    value = step.update(BATCH)[step.names.index("classification")].item()
    assert value == pytest.approx(0.25 * np.log(4) + 0.75 * np.log(2), rel=1e-5)


# Fits.


@pytest.fixture
def fit(monkeypatch):
    """Return a function that fits an explainer with a short training of its generator."""
    monkeypatch.setattr(proposals, "MAX_STEPS", 12)  # in four epochs

    def fit(config=CONFIG, y=Y, **options):
        return sp.Explainer(sp.wrap(MeanModule(), n_classes=3), config).fit(X, y, progress=False, **options)

    return fit


def explain(explainer, rows=slice(None)):
    return explainer.explain(QUERIES[rows], 1, progress=False)


def test_a_generator_is_trained_for_many_series_of_one_length(fit_job, monkeypatch):
    job, auto = fit_job(X, Y), sp.ExplainerConfig()
    assert wants_generator(CONFIG, job) and not wants_generator(auto, job) and auto.proposals == "auto"
    monkeypatch.setattr("sparcets.methods.own.explainer.MANY_SERIES", len(X))
    assert wants_generator(auto, job) and not wants_generator(auto.override("proposals=search"), job)
    unequal = replace(job, series=replace(job.series, lengths=np.full(len(X), 11)))
    assert not wants_generator(auto, unequal) and not wants_generator(CONFIG, unequal)


def test_saved_resumed_and_repeated_fits_give_the_same_answers(fit, monkeypatch, tmp_path):
    whole = fit()
    e = explain(whole)
    assert len(whole.history_["classification"]) == 4
    assert "also from what a generator proposes" in whole.summary()
    killed = Mock(side_effect=[*[DEFAULT] * 7, KeyboardInterrupt])  # in the third epoch
    plain = ProposalStep.update
    with monkeypatch.context() as patch:
        patch.setattr(ProposalStep, "update", lambda *args: killed() and plain(*args))
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=tmp_path / "training")
    assert (tmp_path / "training" / FILE).exists()
    resumed = fit(checkpoint=tmp_path / "training")
    whole.save(tmp_path / "fitted")
    again = sp.load(tmp_path / "fitted", classifier=whole.classifier)
    for other in (resumed, again, fit()):
        assert other.history_ == whole.history_ and other.summary() == whole.summary()
        weights = other._model.generator.state_dict()
        assert all(torch.equal(value, weights[name]) for name, value in whole._model.generator.state_dict().items())
        assert explain(other).counterfactual.tobytes() == e.counterfactual.tobytes()
    one_by_one = [explain(whole, slice(i, i + 1)).counterfactual for i in range(3)]
    assert np.concatenate(one_by_one).tobytes() == e.counterfactual[:3].tobytes()


def test_searches_start_from_proposals_which_keep_what_must_not_change(fit, monkeypatch):
    explainer = fit(constraints=sp.Constraints(immutable=["f3"]))
    query = np.flatnonzero(LABELS != 1)[:1]
    constraints = sp.Constraints(immutable=["f3"]).bind(explainer.info_)
    target = np.ones(1, dtype=np.int64)
    series, info = Series(QUERIES[query]), explainer.info_
    job = Request(series=series, target=target, classifier=explainer.classifier, info=info, constraints=constraints)
    search, own = QuerySearch(job, explainer._model), job.X[0]
    courses = search.proposed()
    assert [(course.kind, course.row) for course in courses] == [("follow", None)] * 3
    for course in courses:
        assert np.array_equal(course.values[:, 3], own[:, 3]) and not np.array_equal(course.values, own)
    # A perfect proposal is found, and told as one.
    perfect = torch.zeros(3, 12, 4)
    perfect[:, :, 1] = 5.0
    monkeypatch.setattr("sparcets.methods.own.search.propose", lambda *asked: perfect)
    monkeypatch.setattr(QuerySearch, "donors", [])
    monkeypatch.setattr(QuerySearch, "made_of_query", lambda self: [])
    e = explain(explainer, query)
    assert e.valid.all() and all("what the generator proposes" in edit.text for edit in e.edits(0))
    assert QuerySearch(job, replace(search.model, generator=None)).proposed() == []


def test_proposals_have_the_smallest_the_middle_and_the_largest_sparsity_weight():
    given = []
    residuals = propose(lambda *inputs: given.append(inputs) or inputs[0], torch.ones(12, 4), 2)
    ((series, target, weight),) = given
    assert torch.equal(residuals, series) and series.shape == (3, 12, 4) and target.tolist() == [2, 2, 2]
    assert weight.tolist() == pytest.approx([LOG_WEIGHTS[0], sum(LOG_WEIGHTS) / 2, LOG_WEIGHTS[1]])
