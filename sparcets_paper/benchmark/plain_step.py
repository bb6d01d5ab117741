"""A straightforward implementation of the paper's training step, the reference for training speeds.

Nothing is optimised: eager execution, generator and discriminator on the device, the explained classifier on the CPU,
and every loss is copied to the CPU after each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sparcets.core.arrays import FloatArray

if TYPE_CHECKING:
    import torch

    from sparcets.models.network import TorchClassifier


def plain_step(
    X: FloatArray, classifier: TorchClassifier, target: int, device: torch.device, *, batch: int = 32, hidden: int = 256
) -> Callable[[], float]:
    """Return a function that performs one training step of the paper's SPARCE and returns the sum of all losses.

    Parameters
    ----------
    X
        Training series (batch, time, features), standardised; queries and real series are both drawn from them.
    classifier
        The classifier to explain; it runs on the CPU.
    target
        Target class.
    device
        Device of generator and discriminator.
    batch, hidden
        The paper's sizes.
    """
    import torch
    import torch.nn.functional as F
    from torch import nn

    n_features = X.shape[2]
    series = torch.tensor(X, dtype=torch.float32)
    explained = classifier._fitted().cpu()
    recurrent = nn.LSTM(n_features, hidden, 2, batch_first=True, bidirectional=True, dropout=0.4).to(device)
    up, down = (nn.Linear(2 * hidden, n_features).to(device) for _ in range(2))
    reader = nn.LSTM(n_features, 16, batch_first=True, bidirectional=True).to(device)
    output = nn.Linear(32, 1).to(device)
    generator = nn.ModuleList([recurrent, up, down])
    discriminator = nn.ModuleList([reader, output])
    adam = {"lr": 2e-4, "betas": (0.5, 0.999)}
    generator_adam = torch.optim.Adam(generator.parameters(), **adam)  # type: ignore[arg-type]
    discriminator_adam = torch.optim.Adam(discriminator.parameters(), **adam)  # type: ignore[arg-type]
    rng = torch.Generator().manual_seed(0)

    def real_logit(x: torch.Tensor) -> torch.Tensor:
        return output(reader(x)[0][:, -1])[:, 0]  # type: ignore[no-any-return]

    def step() -> float:
        rows = torch.randint(len(series), (2, batch), generator=rng)
        query, real = series[rows[0]].to(device), series[rows[1]].to(device)
        h = recurrent(query)[0]
        delta = torch.relu(up(h)) - torch.relu(down(h))
        counterfactual = query + delta
        adversarial = F.softplus(-real_logit(counterfactual)).mean()
        log_proba = explained(counterfactual.cpu()).log_softmax(1)
        classification = F.nll_loss(log_proba, torch.full((batch,), target)).to(device)
        similarity = delta.abs().mean()
        sparsity = (delta != 0).float().mean()
        smoothness = torch.linalg.vector_norm(torch.diff(delta, dim=1), dim=2).mean() / n_features
        loss = adversarial + classification + similarity + sparsity + smoothness
        generator_adam.zero_grad()
        loss.backward()
        generator_adam.step()
        fake_logit = real_logit(counterfactual.detach())
        discrimination = (F.softplus(-real_logit(real)) + F.softplus(fake_logit)).mean() / 2
        discriminator_adam.zero_grad()
        discrimination.backward()  # type: ignore[no-untyped-call]
        discriminator_adam.step()
        terms = (adversarial, classification, similarity, sparsity, smoothness, discrimination)
        return sum(term.item() for term in terms)

    return step
