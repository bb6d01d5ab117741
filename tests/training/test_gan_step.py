"""One step: every term moves the generator, and what weighs nothing is not computed."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.settings import LossWeights
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.generator import Discriminator, Generator
from sparcets.training.losses import Objective
from sparcets.training.projection import Projection
from sparcets.training.steps import GanStep

NONE = {"adversarial": 0, "classification": 0, "similarity": 0, "sparsity": 0, "smoothness": 0}
TERMS = list(NONE)


def step(weights, *, trains_sparsity=True, log_proba=None, domain_losses=None, lr=0.01, **constraints):
    X, _ = make_series(12, n_steps=6)
    info = SeriesInfo.from_series(X, ("a", "b", "c"))
    bound = sp.Constraints(**constraints).bind(info)
    sizes = {"backbone": "lstm", "hidden": 5, "layers": 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        generator = Generator(
            n_features=4, mutable=[0, 1, 2, 3], n_targets=3, dropout=0.0, head="sparse", **sizes,
            low=torch.zeros(4), high=torch.ones(4),
        )  # fmt: skip
        discriminator = Discriminator(n_features=4, n_targets=3, **sizes)
    classifier = sp.wrap(MeanModule(), n_classes=3)
    return GanStep(
        generator,
        discriminator,
        Projection(bound, info.scaler),
        Objective(
            LossWeights(**(NONE | weights)), n_mutable=4, trains_sparsity=trains_sparsity, domain_losses=domain_losses
        ),
        log_proba or classifier.log_proba,
        x=torch.tensor(info.scaler.transform(X)),
        center=torch.tensor(info.scaler.center, dtype=torch.float32),
        scale=torch.tensor(info.scaler.scale, dtype=torch.float32),
        lr=lr,
        betas=(0.4, 0.9),
        conditional=True,
    )


BATCH = {"query": torch.arange(6), "target": torch.tensor([0, 1, 2, 0, 1, 2]), "real": torch.arange(6, 12)}


def weights_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def moved(network, before):
    return {name for name, value in network.named_parameters() if not torch.equal(value, before[name])}


@pytest.mark.parametrize("term", TERMS)
def test_every_term_moves_the_generator(term):
    s = step({term: 1.0})
    before, judge = weights_of(s.generator), weights_of(s.discriminator)
    s.update(BATCH)
    assert {"head.positive.weight", "head.negative.weight", "target_embedding.weight"} <= moved(s.generator, before)
    assert bool(moved(s.discriminator, judge)) == (term == "adversarial")


@pytest.mark.parametrize("trains", [True, False])
def test_sparsity_trains_or_is_reported_only(trains):
    with_it, without = step({"similarity": 1, "sparsity": 1}, trains_sparsity=trains), step({"similarity": 1})
    values = with_it.update(BATCH)
    without.update(BATCH)
    assert values[1] > 0 and values[1] == values[-1]  # the share of changed entries, both times
    pairs = zip(with_it.generator.parameters(), without.generator.parameters(), strict=True)
    same = all(torch.equal(a, b) for a, b in pairs)
    assert same is not trains


def test_what_weighs_nothing_is_not_called():
    def never(x):
        raise AssertionError("called")

    s = step({"adversarial": 1, "similarity": 1}, log_proba=never)
    s.update(BATCH)
    assert s.names == ("adversarial", "similarity", "generator", "discriminator", "changed")
    s = step({"classification": 1})
    s.discriminator.register_forward_pre_hook(lambda *_: pytest.fail("called"))
    assert len(s.update(BATCH)) == len(s.names)
    assert s.names == ("classification", "generator", "valid", "changed")


def test_values_are_those_of_the_batch_before_the_step():
    s = step({"similarity": 2.0, "classification": 1.0})
    query = s.x[BATCH["query"]]
    with torch.no_grad():
        delta = s.generator(query, BATCH["target"])
        log_proba = s.log_proba((query + delta) * s.scale + s.center)
    values = dict(zip(s.names, s.update(BATCH).tolist(), strict=True))
    similarity = delta.abs().mean().item()
    cross_entropy = -log_proba[torch.arange(6), BATCH["target"]].mean().item()
    assert values["similarity"] == pytest.approx(similarity, rel=1e-4)
    assert values["classification"] == pytest.approx(cross_entropy, rel=1e-4)
    assert values["generator"] == pytest.approx(2 * similarity + cross_entropy, rel=1e-4)
    assert values["valid"] == pytest.approx((log_proba.argmax(1) == BATCH["target"]).float().mean().item())
    assert values["changed"] == pytest.approx((delta != 0).float().mean().item())


class Ops(TorchDispatchMode):
    """Keep the names of all operations."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_nothing_in_a_step_waits_for_the_device():
    # On a GPU these copy from or to the host, and a step that does cannot be captured as a graph.
    waits = {"lift_fresh", "_to_copy", "_local_scalar_dense", "nonzero", "masked_select", "is_nonzero"}
    limits = {"max_step": {0: 0.3}, "groups": {"pair": [1, 2]}, "ranges": {3: (-1.0, 1.0)}, "direction": {3: "up"}}
    s = step({"similarity": 1, "sparsity": 1, "smoothness": 1, "adversarial": 1}, frozen=[(0, 2)], **limits)
    s.optimisers = {name: _Still() for name in s.optimisers}  # on a CPU, Adam's counters are on the host
    with Ops() as ops:
        s.update(BATCH)
    assert {"index_copy", "cummin", "linalg_vector_norm"} <= ops.names and not ops.names & waits


class _Still:
    def zero_grad(self, set_to_none):
        pass

    def step(self):
        pass
