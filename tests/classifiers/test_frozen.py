"""Using somebody's module without leaving a trace in it."""

import pytest
import torch
from torch import nn

from sparcets.classifiers.base import frozen


def mixed():
    """A module with some parts in training and some in evaluation mode, some weights fixed, one with a gradient."""
    module = nn.ModuleDict(
        {
            "lstm": nn.LSTM(2, 3, num_layers=2, dropout=0.4),
            "norm": nn.BatchNorm1d(3),
            "drop": nn.Dropout(0.5),
            "inner": nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1)),
        }
    )
    module.train()
    module["norm"].eval()
    module["inner"][1].eval()
    module["norm"].weight.requires_grad_(False)
    module["inner"][0].weight.grad = torch.ones(3, 3)
    return module


def trace(module):
    return (
        [(name, m.training, getattr(m, "dropout", None), getattr(m, "p", None)) for name, m in module.named_modules()],
        [(n, p.requires_grad, None if p.grad is None else p.grad.tolist()) for n, p in module.named_parameters()],
        {name: value.clone().tolist() for name, value in module.state_dict().items()},
    )


def test_inside_everything_is_in_evaluation_mode_and_takes_no_gradients():
    module = mixed()
    with frozen(module):
        assert not any(m.training for m in module.modules())
        assert not any(p.requires_grad for p in module.parameters())


def test_afterwards_everything_is_as_it_was():
    module = mixed()
    before = trace(module)
    with frozen(module):
        module["norm"](torch.randn(4, 3))
    assert trace(module) == before


def test_afterwards_everything_is_as_it_was_also_after_an_exception():
    module = mixed()
    before = trace(module)
    with pytest.raises(RuntimeError, match=r"size|shape"), frozen(module):
        module["inner"](torch.randn(4, 17))
    assert trace(module) == before


def test_a_class_that_overrides_eval_and_train_is_not_asked():
    class Stubborn(nn.Linear):
        def train(self, mode=True):
            raise AssertionError("train was called")

        def eval(self):
            raise AssertionError("eval was called")

    module = Stubborn(2, 2)
    with frozen(module):
        assert not module.training
    assert module.training


@pytest.mark.parametrize("gradients", [True, False])
def test_recurrent_layers_on_a_gpu_stay_in_training_without_dropout_where_gradients_are_wanted(gradients, monkeypatch):
    # Pretend: what the code looks at is is_cuda. The real thing is tested under the marker gpu in test_wrap.py.
    monkeypatch.setattr(nn.Parameter, "is_cuda", True, raising=False)
    module = mixed()
    before = trace(module)
    with torch.set_grad_enabled(gradients), frozen(module):
        assert module["lstm"].training == gradients
        assert module["lstm"].dropout == (0.0 if gradients else 0.4)
        assert not module["drop"].training
    assert trace(module) == before
