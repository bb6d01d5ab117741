"""Kernels of our own compute what plain PyTorch does: in Triton's interpreter where it is installed, and on a GPU."""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from sparcets.networks import fused, recurrent
from sparcets.explainers.sparcets.mixer import Mixer

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")

# (batch, series of a query, steps, features, channels, blocks)
SHAPES = [(3, 1, 11, 3, 16, 3), (2, 2, 20, 4, 32, 5), (5, 1, 70, 2, 16, 2), (1, 1, 1, 1, 16, 1)]
INTERPRETED = f"""
import torch
from tests.networks.test_fused import apart, gradients, lively
from sparcets.networks.fused.lstm import lstm
from sparcets.networks.fused.mixer import mix
from sparcets.networks.fused.probe import probe

assert probe(torch.device("cpu")) == 1
torch.manual_seed(0)
for shape in {SHAPES}:
    mixer, series, told = lively(*shape)
    with torch.no_grad():
        assert apart(mix(mixer, series, told, torch.float32), mixer(series, told)) < 1e-5, shape
for batch, steps, inputs, hidden in ((3, 5, 4, 20), (35, 4, 6, 16), (1, 1, 2, 3)):
    layer = torch.nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)
    x = torch.randn(batch, steps, inputs)
    for ours, theirs in zip(gradients(lstm, layer, x), gradients(lambda of, x: of(x)[0], layer, x), strict=True):
        assert apart(ours, theirs) < 1e-5, (batch, steps, inputs, hidden)
"""


def lively(batch: int, n_series: int, steps: int, n_features: int, channels: int, blocks: int, device: str = "cpu"):
    """Return a mixer whose blocks do more than the small corrections that they start as, and what it is asked."""
    mixer = Mixer(n_series=n_series, n_features=n_features, told=9, channels=channels, blocks=blocks).to(device)
    for block in mixer.blocks:
        nn.init.normal_(block.out.weight, std=channels**-0.5)
    series = torch.randn(batch, n_series, steps, n_features, device=device)
    return mixer, series, torch.randn(batch, 9, device=device)


def gradients(states, layer: nn.LSTM, x: Tensor) -> list[Tensor]:
    """Return the states, and the gradients of a weighted sum of them to the series and all weights."""
    x = x.detach().requires_grad_()
    made = states(layer, x)
    weights = torch.linspace(-1, 1, made.numel(), device=x.device).reshape(made.shape)
    return [made, *torch.autograd.grad((made * weights).sum(), [x, *layer.parameters()])]


def apart(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm().clamp(min=1e-9))


@needs_triton
@pytest.mark.slow
def test_kernels_equal_plain_pytorch_in_the_interpreter() -> None:
    # In a process of its own: Triton decides when it is imported whether kernels are interpreted.
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    run = subprocess.run([sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@needs_triton
@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [*SHAPES, (7, 1, 50, 50, 16, 4), (125, 1, 160, 20, 32, 6), (125, 1, 500, 20, 32, 6), (9, 1, 64, 3, 64, 2)]
)
def test_the_mixers_kernels_are_as_close_to_the_truth_as_plain_bfloat16(shape, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    mixer, series, told = lively(*shape, device="cuda")
    with torch.no_grad():
        truth = mixer.double()(series.double(), told.double())
        mixer.float()
        with torch.autocast("cuda", torch.bfloat16):
            assert mixer._in_one_go(series)
            ours = mixer(series, told)
            monkeypatch.setattr(fused, "available", lambda device: False)
            plain = mixer(series, told)
    assert ours.dtype == plain.dtype
    assert apart(ours, truth) <= 1.1 * apart(plain, truth) + 1e-6


@needs_triton
@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize(("batch", "steps", "hidden"), [(32, 50, 256), (3, 7, 300), (64, 5, 512), (33, 1, 256)])
def test_the_lstms_kernels_are_as_close_to_the_truth_as_cudnn(batch: int, steps: int, hidden: int) -> None:
    from sparcets.networks.fused.lstm import lstm

    torch.manual_seed(0)
    layer = nn.LSTM(50, hidden, batch_first=True, bidirectional=True).cuda()
    x = torch.randn(batch, steps, 50, device="cuda")
    library = gradients(lambda of, x: of(x)[0], layer, x)
    ours = gradients(lstm, layer, x)
    truth = gradients(lambda of, x: of(x)[0], layer.cpu().double(), x.cpu().double())
    for mine, theirs, true in zip(ours, library, truth, strict=True):
        assert apart(mine.cpu(), true) <= 1.5 * apart(theirs.cpu(), true) + 1e-4  # both multiply in TF32


def test_where_kernels_cannot_be_compiled_plain_pytorch_does_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_compiler(device: torch.device) -> Tensor:
        raise RuntimeError("Failed to find C compiler.\nPlease specify one.")

    monkeypatch.setattr(fused, "find_spec", lambda name: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setitem(sys.modules, "sparcets.networks.fused.probe", SimpleNamespace(probe=no_compiler))
    fused.available.cache_clear()
    for _ in range(3):
        assert not fused.available(torch.device("cuda", 7))
    assert [r.getMessage() for r in caplog.records] == [
        "without kernels of our own, which is slower: Failed to find C compiler."
    ]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setitem(sys.modules, "sparcets.networks.fused.probe", SimpleNamespace(probe=torch.zeros))
    fused.available.cache_clear()
    assert not fused.available(torch.device("cuda", 7)), "an old GPU cannot multiply bfloat16"
    fused.available.cache_clear()


@pytest.mark.parametrize(("training", "hidden"), [(True, 256), (False, 256), (True, 8)])
def test_only_wide_layers_in_training_take_the_kernels(
    training: bool, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(fused, "available", lambda device: asked.append(device))
    network = recurrent.Recurrent(3, hidden, 1, 0.0, nn.LSTM).train(training)
    network(torch.zeros(2, 4, 3))
    assert bool(asked) == (training and hidden == 256)


def test_without_a_gpu_or_bfloat16_the_mixer_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    mixer, series, _ = lively(*SHAPES[0])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert not mixer._in_one_go(series)
    monkeypatch.setattr(fused, "available", lambda device: True)
    with torch.no_grad():
        assert not mixer._in_one_go(series)  # nobody allowed bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert not mixer._in_one_go(series)  # gradients are wanted
