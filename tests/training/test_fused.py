"""Triton kernels of the LSTM equal plain PyTorch: in Triton's interpreter where it is installed, and on a GPU."""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from sparcets.training import architectures as recurrent
from sparcets.training import device as fused

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")

INTERPRETED = """
import torch
from tests.training.test_fused import gradients, relative_error
from sparcets.training.fused_lstm import lstm
from sparcets.training.fused_lstm import probe

assert probe(torch.device("cpu")) == 1
torch.manual_seed(0)
for batch, steps, inputs, hidden in ((3, 5, 4, 20), (35, 4, 6, 16), (1, 1, 2, 3)):
    layer = torch.nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)
    x = torch.randn(batch, steps, inputs)
    for ours, theirs in zip(gradients(lstm, layer, x), gradients(lambda of, x: of(x)[0], layer, x), strict=True):
        assert relative_error(ours, theirs) < 1e-5, (batch, steps, inputs, hidden)
"""


def gradients(states, layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    """Return the states, and the gradients of a weighted sum of them to the series and all weights."""
    x = x.detach().requires_grad_()
    h = states(layer, x)
    weights = torch.linspace(-1, 1, h.numel(), device=x.device).reshape(h.shape)
    return [h.detach(), *torch.autograd.grad((h * weights).sum(), [x, *layer.parameters()])]


def relative_error(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm().clamp(min=1e-9))


@needs_triton
@pytest.mark.slow
def test_the_kernels_equal_plain_pytorch_in_the_interpreter() -> None:
    # In a process of its own: Triton decides when it is imported whether kernels are interpreted.
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    run = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@needs_triton
@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize(("batch", "steps", "hidden"), [(32, 50, 256), (3, 7, 300), (64, 5, 512), (33, 1, 256)])
def test_the_kernels_are_as_exact_as_cudnn(batch: int, steps: int, hidden: int) -> None:
    from sparcets.training.fused_lstm import lstm

    torch.manual_seed(0)
    layer = nn.LSTM(50, hidden, batch_first=True, bidirectional=True).cuda()
    x = torch.randn(batch, steps, 50, device="cuda")
    library = gradients(lambda of, x: of(x)[0], layer, x)
    ours = gradients(lstm, layer, x)
    truth = gradients(lambda of, x: of(x)[0], layer.cpu().double(), x.cpu().double())
    for mine, theirs, true in zip(ours, library, truth, strict=True):
        # Both multiply in TF32.
        assert relative_error(mine.cpu(), true) <= 1.5 * relative_error(theirs.cpu(), true) + 1e-4


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch):
    """Return a function that gives this machine a GPU of some capability, and a result of the probe kernel."""

    def pretend(capability: tuple[int, int], probe) -> None:
        monkeypatch.setattr(fused, "find_spec", lambda name: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setitem(sys.modules, "sparcets.training.fused_lstm", SimpleNamespace(probe=probe))
        fused.has_triton.cache_clear()

    yield pretend
    fused.has_triton.cache_clear()


def test_kernels_that_cannot_be_compiled_are_not_used(fake_gpu, caplog: pytest.LogCaptureFixture) -> None:
    def no_compiler(device: torch.device) -> Tensor:
        raise RuntimeError("Failed to find C compiler.\nPlease specify one.")

    fake_gpu((9, 0), no_compiler)
    for _ in range(3):
        assert not fused.has_triton(torch.device("cuda", 7))
    (record,) = caplog.records  # logged once
    assert record.getMessage().endswith(": Failed to find C compiler.")


def test_an_old_gpu_cannot_multiply_bfloat16(fake_gpu) -> None:
    fake_gpu((7, 5), lambda device: None)
    assert not fused.has_triton(torch.device("cuda", 7))
    fake_gpu((8, 0), lambda device: None)
    assert fused.has_triton(torch.device("cuda", 7))


@pytest.mark.parametrize(("training", "hidden"), [(True, 256), (False, 256), (True, 8)])
def test_only_wide_layers_in_training_use_the_kernels(
    training: bool, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = []
    monkeypatch.setattr(recurrent, "has_triton", lambda device: devices.append(device))
    network = recurrent.Recurrent(3, hidden, 1, 0.0, nn.LSTM).train(training)
    network(torch.zeros(2, 4, 3))
    assert bool(devices) == (training and hidden == 256)
