"""The paper's training step written plainly: the reference that training speeds are given against.

Eager, generator and discriminator on the device, the explained classifier on the CPU, every loss read back at once:
what one writes on the first day.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sparcets.arrays import FloatArray

if TYPE_CHECKING:
    import torch

    from sparcets.classifiers.torch_classifier import TorchClassifier


def plain_step(
    X: FloatArray, classifier: TorchClassifier, target: int, device: torch.device, *, batch: int = 32, hidden: int = 256
) -> Callable[[], float]:
    """Return a function that takes one step of the paper's SPARCE and returns the generator's loss.

    Parameters
    ----------
    X
        Training series (batch, time, features), standardised; queries and targets are drawn from them alike.
    classifier
        The explained one; it is used on the CPU.
    target
        The wanted class.
    device
        Where generator and discriminator live.
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
    verdict = nn.Linear(32, 1).to(device)
    generator = nn.ModuleList([recurrent, up, down])
    discriminator = nn.ModuleList([reader, verdict])
    adam = {"lr": 2e-4, "betas": (0.5, 0.999)}
    make = torch.optim.Adam(generator.parameters(), **adam)  # type: ignore[arg-type]
    judge = torch.optim.Adam(discriminator.parameters(), **adam)  # type: ignore[arg-type]
    draw = torch.Generator().manual_seed(0)

    def real(x: torch.Tensor) -> torch.Tensor:
        return verdict(reader(x)[0][:, -1])[:, 0]  # type: ignore[no-any-return]

    def step() -> float:
        rows = torch.randint(len(series), (2, batch), generator=draw)
        query, genuine = series[rows[0]].to(device), series[rows[1]].to(device)
        h = recurrent(query)[0]
        delta = torch.relu(up(h)) - torch.relu(down(h))
        made = query + delta
        adversarial = F.softplus(-real(made)).mean()
        said = explained(made.cpu()).log_softmax(1)
        reached = F.nll_loss(said, torch.full((batch,), target)).to(device)
        similarity = delta.abs().mean()
        sparsity = (delta != 0).float().mean()
        smoothness = torch.linalg.vector_norm(torch.diff(delta, dim=1), dim=2).mean() / n_features
        loss = adversarial + reached + similarity + sparsity + smoothness
        make.zero_grad()
        loss.backward()
        make.step()
        wrong = (F.softplus(-real(genuine)) + F.softplus(real(made.detach()))).mean() / 2
        judge.zero_grad()
        wrong.backward()  # type: ignore[no-untyped-call]
        judge.step()
        terms = (adversarial, reached, similarity, sparsity, smoothness, wrong)
        return sum(term.item() for term in terms)

    return step
