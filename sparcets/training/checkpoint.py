"""Checkpoints: networks and optimisers in one safetensors file, written whole or not at all.

Every epoch draws its batches and its dropout from a seed of its own, so weights, optimisers and the number of the epoch
are all that is needed to continue exactly where a training was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from sparcets.core.errors import FileFormatError
from sparcets.io.folders import inside
from sparcets.io.tensors import DAMAGE, SavedModel
from sparcets.training.loop import Callback, History

FILE = "checkpoint.safetensors"
FILES = SavedModel(file=FILE, what="checkpoint", format=1)


class Checkpoint(Callback):
    """Writes the state of networks and optimisers, by name, after every epoch; the history is kept along.

    A checkpoint of a training with another ``identity`` (a digest of settings and data) is refused, and so is one for
    another classifier, by its predictions for some training series.
    """

    def __init__(
        self,
        folder: Path,
        networks: Mapping[str, nn.Module],
        optimisers: Mapping[str, torch.optim.Optimizer],
        history: History,
        *,
        identity: str,
        reference_proba: Tensor,
    ) -> None:
        inside(folder, FILE)
        self.folder, self.file = folder, folder / FILE
        self.networks, self.optimisers = networks, optimisers
        self.history, self.identity, self.reference_proba = history, identity, reference_proba

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Write the state."""
        header = {"identity": self.identity, "epoch": epoch, "history": self.history.values}
        FILES.save(self.folder, header, {name: tensor.numpy() for name, tensor in self._tensors().items()})

    def resume(self) -> int:
        """Restore the state of the file, if there is one; return the epoch to go on with."""
        if not self.file.exists():
            return 0
        try:
            header, arrays = FILES.load(self.folder)
            tensors = {name: torch.tensor(array) for name, array in arrays.items()}
            identity, epoch, history = header["identity"], int(header["epoch"]), dict(header["history"])
            reference_proba = tensors.pop("reference_proba")
            if identity == self.identity:
                for name, network in self.networks.items():
                    network.load_state_dict(_part(tensors, f"network/{name}/"))
                for name, optimiser in self.optimisers.items():
                    _restore_optimiser(optimiser, _part(tensors, f"optimiser/{name}/"))
        except DAMAGE as error:
            raise FileFormatError(f"{self.file} is no checkpoint, or it is damaged: {error}. Remove it.") from error
        if identity != self.identity:
            raise FileFormatError(
                f"{self.file} belongs to a training with other settings or data. Choose another folder, or remove it."
            )
        if not agree(reference_proba, self.reference_proba):
            raise FileFormatError(
                f"{self.file} belongs to a training for another classifier. Choose another folder, or remove it."
            )
        self.history.values = history
        return epoch + 1

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {"reference_proba": self.reference_proba}
        for name, network in self.networks.items():
            for key, value in network.state_dict().items():
                tensors[f"network/{name}/{key}"] = value
        for name, optimiser in self.optimisers.items():
            for index, state in optimiser.state_dict()["state"].items():
                for key, value in state.items():
                    tensors[f"optimiser/{name}/{index}/{key}"] = torch.as_tensor(value)
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def has_identity(folder: Path, identity: str) -> bool:
    """Return whether the folder holds a checkpoint of the training of that name."""
    inside(folder, FILE)
    try:
        return bool(FILES.load(folder)[0]["identity"] == identity)
    except DAMAGE:
        return False  # none, or a damaged one, about which its own training will raise


def delete_checkpoint(folder: Path, identity: str) -> None:
    """Remove the checkpoint of the training of that name; any other file is left alone."""
    if has_identity(folder, identity):
        (folder / FILE).resolve().unlink()  # a link by which somebody named it stays


def agree(a: Tensor, b: Tensor) -> bool:
    """Return whether two judgements are those of one classifier, up to the rounding of another device."""
    return a.shape == b.shape and torch.allclose(a.cpu().double(), b.cpu().double(), rtol=0, atol=1e-4)


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split("/")
        state.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
