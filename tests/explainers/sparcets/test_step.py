"""One step of the default recipe: every term trains, the average follows, and the training has a course."""

import math

import pytest
import torch

import sparcets as sp
from sparcets.config.explainers import LossWeights
from sparcets.config.runs import TrainConfig
from sparcets.explainers.sparcets.critic import Critic
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.losses import EXPLAINED, Objective
from sparcets.training.projection import Projection
from sparcets.explainers.sparcets.step import AVERAGED, SLOWEST, RecipeStep, Schedule

NONE = {"adversarial": 0, "classification": 0, "similarity": 0, "sparsity": 0, "smoothness": 0}
BATCH = {"query": torch.arange(6), "target": torch.tensor([0, 1, 2, 0, 1, 2]), "real": torch.arange(6, 12)}


def mean_voice(sharpness=10.0):
    return sp.wrap(MeanModule(sharpness=sharpness), n_classes=3).log_proba


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def step(
    weights, *, voices=None, noise=0.0, strengths=(0.3, 3.0), ramp=0.5, n_steps=1, gate="stretch", guided=False, lr=0.01
):
    X, _ = make_series(12, n_steps=6)
    info = SeriesInfo.measure(X, ("a", "b", "c"))
    generator = GatedGenerator(
        n_features=4, mutable=[0, 1, 2, 3], n_targets=3, backbone="mixer", hidden=5, layers=2, gate=gate, guided=guided
    )
    return RecipeStep(
        generator,
        Critic(n_features=4, n_targets=3, hidden=5, layers=2),
        Projection(sp.Constraints().bind(info), info.scaler),
        Objective(LossWeights(**(NONE | weights)), n_mutable=4, trains_sparsity=True, hinge=True),
        voices or [mean_voice(), mean_voice(3.0)],
        x=torch.tensor(info.scaler.transform(X)),
        center=torch.tensor(info.scaler.center, dtype=torch.float32),
        scale=torch.tensor(info.scaler.scale, dtype=torch.float32),
        config=TrainConfig(lr=lr),
        noise=noise,
        strengths=strengths,
        ramp=ramp,
        n_steps=n_steps,
    )


def weights_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def moved(network, before):
    return {name for name, value in network.named_parameters() if not torch.equal(value, before[name])}


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("term", list(NONE))
def test_every_term_moves_the_generator(term, guided):
    s = step({term: 1.0}, guided=guided)
    before, judge = weights_of(s.generator), weights_of(s.discriminator)
    values = s.update(BATCH)
    assert {"wanted.weight", "features.2.weight"} <= moved(s.generator, before)
    assert bool(moved(s.discriminator, judge)) == (term == "adversarial")
    assert len(values) == len(s.names) and torch.isfinite(values).all()


def test_the_voices_take_no_step_and_all_of_them_are_heard():
    modules = [MeanModule(), MeanModule(sharpness=1.0)]
    heard = []

    def voice(module):
        def listen(raw):
            heard.append((module, raw))
            return sp.wrap(module, n_classes=3).log_proba(raw)

        return listen

    s = step({"classification": 1.0}, voices=[voice(m) for m in modules])
    values = dict(zip(s.names, s.update(BATCH).tolist(), strict=True))
    assert [m for m, _ in heard] == modules and torch.equal(heard[0][1], heard[1][1])
    said = [sp.wrap(m, n_classes=3).log_proba(raw) for m, raw in heard]
    explained, witness = -torch.stack(said)[:, torch.arange(6), BATCH["target"]].mean(1)
    heard_both = EXPLAINED * explained + (1 - EXPLAINED) * witness
    assert values["classification"] == pytest.approx(heard_both.item(), rel=1e-5)
    # What is reported as valid is the explained classifier's word, the first voice.
    assert values["valid"] == pytest.approx((said[0].argmax(1) == BATCH["target"]).float().mean().item())
    assert [m.sharpness.item() for m in modules] == [10.0, 1.0] and all(m.sharpness.grad is None for m in modules)


def test_noise_reaches_the_voices_in_the_size_asked_for_and_none_draws_nothing():
    s = step({"classification": 1.0}, noise=0.5)
    spread = torch.tensor([0.1, 1.0, 5.0, 0.0])  # of the features; one does not move
    raw, heard = torch.tensor([-1.0, 1.0]).repeat(25)[None, :, None] * spread.expand(2000, 1, 4), []
    s.voices = [lambda x: heard.append(x) or torch.zeros(len(x), 3)]
    s._hear(raw)
    assert (heard[0][..., 3] == 0).all()
    noise = heard[0][..., :3] / spread[:3]
    noise = noise - noise.sign()  # it came a step or two earlier or later, and so perhaps with the other sign
    # A loudness for each series, from 0 to what was asked for, each as likely: it is the same for all its entries.
    by_series = noise[:, 5:-5].std((1, 2)).sort().values
    most = slice(20, -20)  # the very loudest is measured loudest, too
    torch.testing.assert_close(by_series[most], torch.linspace(0, 0.5, 2000)[most], rtol=0, atol=0.04)
    s.noise = 0.0
    state = torch.get_rng_state()
    s._hear(raw)
    assert heard[1] is raw and torch.equal(state, torch.get_rng_state())


def test_every_voice_hears_a_noise_and_a_shift_of_its_own():
    s = step({"classification": 1.0}, noise=1e-6)
    raw, heard = torch.arange(40.0)[None, :, None].expand(300, 40, 4), []
    s.voices = [lambda x: heard.append(x.round().long()) or torch.zeros(len(x), 3)] * 2
    s._hear(raw)
    assert len(heard) == 2
    for series in heard:
        by = series[:, 20, 0] - 20
        assert by.unique().tolist() == [-2, -1, 0, 1, 2]  # a twentieth of forty steps
        steps = (torch.arange(40) + by[:, None]).clamp(0, 39)  # the ends fill the gap
        assert torch.equal(series, steps[:, :, None].expand(-1, -1, 4))
    assert not torch.equal(heard[0], heard[1])


def test_strengths_are_drawn_anew_between_the_smallest_and_the_largest_factor():
    s = step({"sparsity": 1.0}, strengths=(0.25, 4.0))
    drawn = []
    for _ in range(60):
        s.update(BATCH)
        drawn.append(s._strength.clone())
    factors = torch.cat(drawn).exp()
    assert factors.min() >= 0.25 and factors.max() <= 4.0
    assert factors.min() < 0.3 and factors.max() > 3.5
    assert torch.cat(drawn).mean().item() == pytest.approx(0, abs=0.15)  # as much below 1 as above


def test_a_changed_entry_costs_its_strength_times_the_ramp():
    s = step({"sparsity": 2.0})
    s.ramp.fill_(0.25)
    s._strength = torch.tensor([math.log(0.5)] * 3 + [math.log(2.0)] * 3)
    delta = torch.ones(6, 6, 4)
    judged = s._judge(s.x[:6], s.x[:6] + delta, delta, BATCH["target"], BATCH["target"])
    torch.testing.assert_close(judged.sparsity_weight, torch.tensor([0.125] * 3 + [0.5] * 3))
    total, values = s.objective(judged)
    torch.testing.assert_close((total, values), (torch.tensor(2 * (0.125 + 0.5) / 2), torch.tensor([1.0])))


def test_without_ramp_nothing_is_paid_and_nothing_learnt_from_sparsity():
    s = step({"sparsity": 1.0})
    s.set_progress(0.0)
    before = weights_of(s.generator)
    s.update(BATCH)
    assert moved(s.generator, before) == set()
    s.set_progress(0.5)
    s.update(BATCH)
    assert moved(s.generator, before)


@pytest.mark.parametrize("tensor", [False, True], ids=["lr a number", "lr a tensor"])
def test_the_course_of_a_training(tensor):
    s = step({"similarity": 1.0}, ramp=0.5, lr=0.01)
    groups = [g for o in s.optimisers.values() for g in o.param_groups]
    if tensor:
        for group in groups:
            group["lr"] = torch.tensor(0.01)
    held, ramp = [g["lr"] for g in groups], s.ramp
    course = [(0.0, 0.0, 1.0), (0.25, 0.5, 1.0), (0.5, 1.0, 1.0), (0.75, 1.0, 0.5), (0.9, 1.0, 0.2), (1, 1.0, SLOWEST)]
    for share, paid, pace in course:
        s.set_progress(share)
        assert s.ramp.item() == pytest.approx(paid)
        assert [float(g["lr"]) for g in groups] == pytest.approx([0.01 * pace] * 2)
    assert s.ramp is ramp  # in place, since a captured graph holds it
    if tensor:
        assert all(g["lr"] is lr for g, lr in zip(groups, held, strict=True))


def test_a_ramp_of_0_pays_from_the_start():
    s = step({"similarity": 1.0}, ramp=0.0)
    s.set_progress(0.0)
    assert s.ramp.item() == 1.0


def test_the_schedule_knows_where_a_training_starts_and_what_is_done():
    s = step({"similarity": 1.0}, ramp=1.0)
    schedule = Schedule(s, epochs=8, start=4)
    assert s.ramp.item() == 0.5
    schedule.on_epoch_end(4, {})
    assert s.ramp.item() == 5 / 8
    schedule.on_epoch_end(7, {})
    assert s.ramp.item() == 1.0


def test_the_average_follows_the_generator():
    s = step({"similarity": 1.0}, n_steps=200)
    assert s.weight_of_new == pytest.approx(1 / (AVERAGED * 200))  # 1/4
    before = weights_of(s.average)
    s.update(BATCH)
    for name, kept in s.average.named_parameters():
        new = dict(s.generator.named_parameters())[name]
        torch.testing.assert_close(kept, before[name] + 0.25 * (new - before[name]))
    assert moved(s.average, before) and not s.average.training
    assert not any(p.requires_grad for p in s.average.parameters())
    assert s.networks["average"] is s.average  # so that checkpoints hold it


def test_the_average_of_a_short_training_is_the_generator_itself():
    s = step({"similarity": 1.0}, n_steps=10)
    s.update(BATCH)
    for kept, new in zip(s.average.parameters(), s.generator.parameters(), strict=True):
        torch.testing.assert_close(kept, new)


def test_a_guided_generator_is_led_by_the_real_series_of_the_batch():
    s = step({"classification": 1.0}, guided=True)
    at_home = {**BATCH, "real": BATCH["query"]}
    assert s.update(at_home)[-1] == 0  # guided to where it stands, nothing changes
    assert s.update(BATCH)[-1] > 0


def test_it_learns_to_convince_all_voices():
    s = step({"classification": 1.0}, gate="stretch", lr=0.03, noise=0.1, n_steps=120)
    said = [s.update(BATCH)[s.names.index("classification")].item() for _ in range(120)]
    assert sum(said[-20:]) < 0.5 * sum(said[:20])


def test_a_guided_generator_is_made_sparse_by_its_gates_a_free_one_by_its_changes():
    for guided in (False, True):
        s = step({"sparsity": 1.0}, guided=guided)
        s.update(BATCH)
        assert (s._openness is not None) == guided
    shut = step({"sparsity": 1.0}, guided=True, lr=0.05)
    changed = [float(shut.update(BATCH)[-1]) for _ in range(60)]
    assert changed[0] > 0.8 and changed[-1] < 0.1, "with nothing else to gain, all gates shut"
