"""Our step against the authors': their update written down from the paper's equations and what is known of their code.

Known: the generator steps first, then the discriminator on the same counterfactuals; real are series of the target
class, both halves of the discriminator's loss count ½, norms are divided by steps × features, the residual before the
first step is 0, and the count of changes has no gradient.
"""

import copy

import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.settings import LossWeights
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.generator import Discriminator, Generator
from sparcets.training.losses import Objective
from sparcets.training.projection import Projection
from sparcets.training.steps import GanStep

TERMS = ("adversarial", "classification", "similarity", "sparsity", "smoothness")
LR, BETAS = 2e-4, (0.5, 0.999)
TARGET, T, N_FEATURES = 1, 6, 4
BATCHES = [torch.tensor([0, 1, 2, 3]), torch.tensor([4, 5, 0, 1]), torch.tensor([2, 3, 4, 5])]
REAL = [rows + 6 for rows in BATCHES]


def networks():
    sizes = {"backbone": "lstm", "hidden": 5}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        generator = Generator(
            n_features=N_FEATURES, mutable=list(range(N_FEATURES)), n_targets=1, layers=2, dropout=0.0, head="sparse",
            low=torch.zeros(N_FEATURES), high=torch.ones(N_FEATURES), **sizes,
        )  # fmt: skip
        return generator, Discriminator(n_features=N_FEATURES, n_targets=1, layers=1, **sizes)


def data():
    X, _ = make_series(12, n_steps=T)
    info = SeriesInfo.from_series(X, ("a", "b", "c"))
    return info, torch.tensor(info.scaler.transform(X), dtype=torch.float32)


def our_updates(weights):
    info, x = data()
    generator, discriminator = networks()
    step = GanStep(
        generator,
        discriminator,
        Projection(sp.Constraints().bind(info), info.scaler),
        Objective(LossWeights(**weights), n_mutable=N_FEATURES, trains_sparsity=False),
        sp.wrap(MeanModule(), n_classes=3).log_proba,
        x=x,
        center=torch.tensor(info.scaler.center, dtype=torch.float32),
        scale=torch.tensor(info.scaler.scale, dtype=torch.float32),
        lr=LR,
        betas=BETAS,
        conditional=False,
    )
    for query, real in zip(BATCHES, REAL, strict=True):
        step.update({"query": query, "real": real, "target": torch.full_like(query, TARGET)})
    return generator, discriminator


def authors_updates(weights):
    info, x = data()
    generator, discriminator = networks()
    classifier = copy.deepcopy(MeanModule()).eval()
    center, scale = (torch.tensor(v, dtype=torch.float32) for v in (info.scaler.center, info.scaler.scale))
    adam_g = torch.optim.Adam(generator.parameters(), lr=LR, betas=BETAS)
    adam_d = torch.optim.Adam(discriminator.parameters(), lr=LR, betas=BETAS)
    bce, cross_entropy = nn.BCELoss(), nn.CrossEntropyLoss()
    for rows, real_rows in zip(BATCHES, REAL, strict=True):
        query, real = x[rows], x[real_rows]
        n = len(rows)
        none, ones, zeros = torch.zeros(n, dtype=torch.long), torch.ones(n), torch.zeros(n)
        residuals = generator(query, none)
        counterfactual = query + residuals
        before = torch.cat([torch.zeros(n, 1, N_FEATURES), residuals[:, :-1]], dim=1)
        losses = {
            "adversarial": bce(torch.sigmoid(discriminator(counterfactual, none)), ones),
            "classification": cross_entropy(classifier(counterfactual * scale + center), torch.full((n,), TARGET)),
            "similarity": torch.norm(query - counterfactual, p=1) / (n * T * N_FEATURES),
            "sparsity": torch.norm(residuals, p=0) / (n * T * N_FEATURES),
            "smoothness": torch.norm(residuals - before, p=2, dim=2).sum() / (n * T * N_FEATURES),
        }
        adam_g.zero_grad()
        sum(weight * losses[name] for name, weight in weights.items()).backward()
        adam_g.step()
        if weights["adversarial"]:
            adam_d.zero_grad()
            true = bce(torch.sigmoid(discriminator(real, none)), ones)
            false = bce(torch.sigmoid(discriminator(counterfactual.detach(), none)), zeros)
            ((true + false) / 2).backward()
            adam_d.step()
    return generator, discriminator


@pytest.mark.parametrize("on", [*((term,) for term in TERMS if term != "sparsity"), ("similarity", "sparsity"), TERMS])
def test_three_updates_equal_the_authors(on):
    weights = {term: float(term in on) for term in TERMS}
    start = networks()
    for ours, theirs in zip(our_updates(weights), authors_updates(weights), strict=True):
        for name, value in ours.named_parameters():
            other = dict(theirs.named_parameters())[name]
            assert torch.allclose(value, other, rtol=0, atol=1e-6), name
    moved = dict(our_updates(weights)[0].named_parameters())["head.positive.weight"]
    began = dict(start[0].named_parameters())["head.positive.weight"]
    assert (moved - began).abs().max() > 1e-4  # not by standing still
