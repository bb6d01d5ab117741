"""One training step: every term trains, all members are used, the average is updated, and there is a schedule."""

import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.settings import LossWeights
from sparcets.methods.own.generator import Critic, GatedGenerator
from sparcets.methods.own.step import AVERAGED, MIN_LR, ExplainerStep, Schedule
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.losses import EXPLAINED_WEIGHT, Objective, count_changed
from sparcets.training.projection import Projection

NONE = {"adversarial": 0, "classification": 0, "similarity": 0, "sparsity": 0, "smoothness": 0}
BATCH = {"query": torch.arange(6), "target": torch.tensor([0, 1, 2, 0, 1, 2]), "real": torch.arange(6, 12)}


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


class RecordingObjective(Objective):
    """Keeps the last candidate and the weighted sum."""

    def __call__(self, candidate):
        self.candidate = candidate
        self.total, values = super().__call__(candidate)
        return self.total, values


def member(sharpness=10.0):
    classifier = sp.wrap(MeanModule(sharpness=sharpness), n_classes=3)
    return lambda raw, _=None: classifier.log_proba(raw)[None]


def build(weights, *, members=None, noise=0.0, sparsity_weights=(0.3, 3.0), ramp=0.5, n_steps=1, lr=0.01):
    X, _ = make_series(12, n_steps=6)
    info = SeriesInfo.from_series(X, ("a", "b", "c"))
    generator = GatedGenerator(
        n_features=4,
        mutable=[0, 1, 2, 3],
        n_targets=3,
        backbone="mixer",
        hidden=5,
        layers=2,
        gate="window",
    )
    return ExplainerStep(
        generator,
        Critic(n_features=4, n_targets=3, hidden=5, layers=2),
        Projection(sp.Constraints().bind(info), info.scaler),
        RecordingObjective(LossWeights(**(NONE | weights)), n_mutable=4, trains_sparsity=True, hinge=True),
        members or [member(), member(3.0)],
        x=torch.tensor(info.scaler.transform(X)),
        center=torch.tensor(info.scaler.center, dtype=torch.float32),
        scale=torch.tensor(info.scaler.scale, dtype=torch.float32),
        lr=lr,
        betas=(0.5, 0.999),
        noise=noise,
        sparsity_weights=sparsity_weights,
        ramp=ramp,
        n_steps=n_steps,
    )


def weights_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def changed(network, before):
    return {name for name, value in network.named_parameters() if not torch.equal(value, before[name])}


@pytest.mark.parametrize("term", list(NONE))
def test_every_term_trains_the_generator(term):
    step = build({term: 1.0})
    before, critic = weights_of(step.generator), weights_of(step.discriminator)
    values = step.update(BATCH)
    assert {"target_embedding.weight", "feature_gate.2.weight"} <= changed(step.generator, before)
    assert bool(changed(step.discriminator, critic)) == (term == "adversarial")
    assert len(values) == len(step.names) and torch.isfinite(values).all()


# The ensemble.


def test_all_members_enter_the_loss_and_none_is_trained():
    modules = [MeanModule(), MeanModule(sharpness=1.0)]
    inputs = []

    def recorded(module):
        def log_proba(raw, _=None):
            inputs.append((module, raw))
            return sp.wrap(module, n_classes=3).log_proba(raw)[None]

        return log_proba

    step = build({"classification": 1.0}, members=[recorded(m) for m in modules])
    values = dict(zip(step.names, step.update(BATCH).tolist(), strict=True))
    assert [m for m, _ in inputs] == modules and torch.equal(inputs[0][1], inputs[1][1])
    log_proba = torch.stack([sp.wrap(m, n_classes=3).log_proba(raw) for m, raw in inputs])
    explained, other = -log_proba[:, torch.arange(6), BATCH["target"]].mean(1)
    expected = EXPLAINED_WEIGHT * explained + (1 - EXPLAINED_WEIGHT) * other
    assert values["classification"] == pytest.approx(expected.item(), rel=1e-5)
    # "valid" is by the explained classifier, the first member.
    assert values["valid"] == pytest.approx((log_proba[0].argmax(1) == BATCH["target"]).float().mean().item())
    assert [m.sharpness.item() for m in modules] == [10.0, 1.0] and all(m.sharpness.grad is None for m in modules)


def recording_members(n, inputs):
    """Return members that append their inputs to a list."""
    return [lambda x, _=None: inputs.append(x) or torch.zeros(1, len(x), 3)] * n


def test_the_size_of_the_noise_is_uniform_up_to_the_largest_and_relative_to_the_series():
    inputs = []
    step = build({"classification": 1.0}, members=recording_members(1, inputs), noise=0.5)
    spread = torch.tensor([0.1, 1.0, 5.0, 0.0])  # of the features; one is constant
    step.log_proba(torch.tensor([-1.0, 1.0]).repeat(25)[None, :, None] * spread.expand(2000, 1, 4))
    assert (inputs[0][..., 3] == 0).all()
    noise = inputs[0][..., :3] / spread[:3]
    noise = noise - noise.sign()  # it is shifted by a step or two, and so perhaps of the other sign
    by_series = noise[:, 5:-5].std((1, 2)).sort().values  # one size for all entries of a series
    most = slice(20, -20)  # not the extremes, whose estimates are off
    torch.testing.assert_close(by_series[most], torch.linspace(0, 0.5, 2000)[most], rtol=0, atol=0.04)


def test_without_noise_members_get_the_series_themselves_and_nothing_is_drawn():
    inputs = []
    step = build({"classification": 1.0}, members=recording_members(1, inputs))
    raw, state = torch.ones(2, 9, 4), torch.get_rng_state()
    step.log_proba(raw)
    assert inputs[0] is raw and torch.equal(state, torch.get_rng_state())


def test_every_member_gets_a_noise_and_a_shift_of_its_own():
    inputs = []
    step = build({"classification": 1.0}, members=recording_members(2, inputs), noise=1e-6)
    step.log_proba(torch.arange(40.0)[None, :, None].expand(300, 40, 4))
    first, second = (x.round().long() for x in inputs)
    for series in (first, second):
        shift = series[:, 20, 0] - 20
        assert shift.unique().tolist() == [-2, -1, 0, 1, 2]  # a twentieth of forty steps
        steps = (torch.arange(40) + shift[:, None]).clamp(0, 39)  # the ends fill the gap
        assert torch.equal(series, steps[:, :, None].expand(-1, -1, 4))
    assert not torch.equal(first, second)


def test_on_a_cpu_the_explained_classifier_and_two_others_in_turn_are_asked():
    asked = []

    def named(name, heads=1):
        return lambda raw, _=None: asked.append(name) or torch.zeros(heads, len(raw), 3)

    step = build({"classification": 1.0}, members=[named("explained"), *(named(k, 2) for k in range(5))])
    shapes = set()
    for step.n_updates in range(5):
        shapes.add(tuple(step.log_proba(torch.zeros(4, 6, 4)).shape))
    assert shapes == {(1 + 2 * 2, 4, 3)}
    first, second, third = asked[::3], asked[1::3], asked[2::3]
    assert first == ["explained"] * 5 and sorted(second + third) == sorted([0, 1, 2, 3, 4] * 2)
    asked.clear()
    build({"classification": 1.0}, members=[named("explained"), named(0), named(1)]).log_proba(torch.zeros(4, 6, 4))
    assert asked == ["explained", 0, 1]


def test_training_convinces_the_ensemble():
    step = build({"classification": 1.0}, lr=0.03, noise=0.1, n_steps=120)
    values = [step.update(BATCH)[step.names.index("classification")].item() for _ in range(120)]
    assert sum(values[-20:]) < 0.5 * sum(values[:20])


# Sparsity.


def test_the_sparsity_weight_is_log_uniform_between_its_limits():
    step = build({"sparsity": 1.0}, sparsity_weights=(0.25, 4.0))
    weights = []
    for _ in range(60):
        step.update(BATCH)
        weights.append(step.objective.candidate.sparsity_weight)
    weights = torch.cat(weights)
    assert 0.25 <= weights.min() < 0.3 and 3.5 < weights.max() <= 4.0
    assert weights.log().mean().item() == pytest.approx(0, abs=0.15)  # as much below 1 as above


def test_the_sparsity_term_costs_its_weight_times_the_ramp():
    weights = []
    for ramp in (1.0, 0.25):
        torch.manual_seed(0)
        step = build({"sparsity": 2.0})
        step.sparsity_factor.fill_(ramp)
        step.update(BATCH)
        candidate = step.objective.candidate
        changes = count_changed(candidate.delta, 4)
        torch.testing.assert_close(step.objective.total, 2 * (candidate.sparsity_weight * changes).mean())
        weights.append(candidate.sparsity_weight)
    torch.testing.assert_close(weights[1], 0.25 * weights[0])
    assert len(weights[0].unique()) == 6  # one per query


def test_at_the_start_of_the_ramp_sparsity_trains_nothing():
    step = build({"sparsity": 1.0})
    step.update_schedule(0.0)
    before = weights_of(step.generator)
    step.update(BATCH)
    assert changed(step.generator, before) == set()
    step.update_schedule(0.5)
    step.update(BATCH)
    assert changed(step.generator, before)


# Schedule and average.


@pytest.mark.parametrize("is_tensor", [False, True], ids=["lr a number", "lr a tensor"])
def test_ramp_and_learning_rate_by_progress(is_tensor):
    step = build({"similarity": 1.0}, ramp=0.5, lr=0.01)
    groups = [group for optimiser in step.optimisers.values() for group in optimiser.param_groups]
    if is_tensor:
        for group in groups:
            group["lr"] = torch.tensor(0.01)
    rates, ramp = [group["lr"] for group in groups], step.sparsity_factor
    schedule = [(0, 0.0, 1.0), (0.25, 0.5, 1.0), (0.5, 1.0, 1.0), (0.75, 1.0, 0.5), (0.9, 1.0, 0.2), (1, 1.0, MIN_LR)]
    for share, expected_ramp, factor in schedule:
        step.update_schedule(share)
        assert step.sparsity_factor.item() == pytest.approx(expected_ramp)
        assert [float(group["lr"]) for group in groups] == pytest.approx([0.01 * factor] * 2)
    assert step.sparsity_factor is ramp  # in place, since a captured graph refers to it
    if is_tensor:
        assert all(group["lr"] is rate for group, rate in zip(groups, rates, strict=True))


def test_the_schedule_starts_where_a_training_is_resumed():
    step = build({"similarity": 1.0}, ramp=1.0)
    schedule = Schedule(step, epochs=8, start=4, n_batches=3)
    assert step.sparsity_factor.item() == 0.5
    schedule.on_epoch_end(4, {})
    assert step.sparsity_factor.item() == 5 / 8
    schedule.on_epoch_end(7, {})
    assert step.sparsity_factor.item() == 1.0


def test_a_resumed_training_asks_the_members_that_an_uninterrupted_one_asks():
    step = build({"classification": 1.0})
    step.members = tuple(str(i) for i in range(6))  # of 5 others, 2 are asked at a time
    asked = []
    for _ in range(9):
        asked.append(step._asked(torch.device("cpu")))
        step._after_step()
    Schedule(step, epochs=3, start=2, n_batches=3)
    assert step._asked(torch.device("cpu")) == asked[6] != asked[0]


def test_the_average_is_an_exponential_moving_average():
    step = build({"similarity": 1.0}, n_steps=200)
    assert step.ema_weight == pytest.approx(1 / (AVERAGED * 200))  # 1/4
    before = weights_of(step.ema_generator)
    step.update(BATCH)
    new = dict(step.generator.named_parameters())
    for name, value in step.ema_generator.named_parameters():
        torch.testing.assert_close(value, before[name] + 0.25 * (new[name] - before[name]))
    assert changed(step.ema_generator, before) and not step.ema_generator.training
    assert not any(p.requires_grad for p in step.ema_generator.parameters())
    assert step.networks["average"] is step.ema_generator  # so that checkpoints hold it
