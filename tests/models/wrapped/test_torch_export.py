"""Programs of torch.export: modules with gradients, whose batches may be fixed."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export

import sparcets as sp
from sparcets.core.errors import CapabilityError

X = np.random.default_rng(0).normal(size=(6, 5, 2)).astype(np.float32)
SHAPES = {"fixed": (None, (6, 6)), "any": ({"x": {0: Dim("batch")}}, None)}
SHAPES["at most 4"] = ({"x": {0: Dim("batch", min=2, max=4)}}, (2, 4))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layers = nn.Linear(10, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)
            self.head = nn.Sequential(nn.Flatten(), *layers)

    def forward(self, x):
        return self.head(x)


def program(module, shapes=None, n=6):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        return export(module, (torch.from_numpy(X[:n] if n <= 6 else X),), dynamic_shapes=shapes)


@pytest.mark.parametrize(("shapes", "batch"), SHAPES.values(), ids=list(SHAPES))
def test_a_program_is_a_module_with_gradients_and_batches_it_takes(shapes, batch):
    module = Net().eval()
    clf = sp.wrap(program(module, shapes, n=4 if batch == (2, 4) else 6))
    assert clf.interface.batch == batch and clf.name == "ExportedProgram"
    for n in (1, 6):
        np.testing.assert_allclose(clf.predict_proba(X[:n]), sp.wrap(module).predict_proba(X[:n]), atol=1e-5)
    x = torch.tensor(X, requires_grad=True)
    clf.log_proba(x)[:, 0].sum().backward()
    assert (x.grad.abs() > 0).any(dim=2).all()


def test_a_program_in_training_mode_is_refused():
    with pytest.raises(CapabilityError, match=r"exported in training mode.* Call model.eval\(\) before"):
        sp.wrap(program(Net().train()))
