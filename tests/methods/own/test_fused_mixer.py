"""The mixer's Triton kernels equal plain PyTorch: in Triton's interpreter where it is installed, and on a GPU."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor, nn

from sparcets.methods.own import generator
from sparcets.methods.own.generator import Mixer

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")

# (batch, series of a query, steps, features, channels, blocks)
SHAPES = [(3, 1, 11, 3, 16, 3), (2, 2, 20, 4, 32, 5), (5, 1, 70, 2, 16, 2), (1, 1, 1, 1, 16, 1)]
INTERPRETED = f"""
import torch
from tests.methods.own.test_fused_mixer import build, relative_error
from sparcets.methods.own.fused_mixer import mix

torch.manual_seed(0)
for shape in {SHAPES}:
    mixer, series, condition = build(*shape)
    with torch.no_grad():
        error = relative_error(mix(mixer, series, condition, torch.float32), mixer(series, condition))
    assert error < 1e-5, (shape, error)
"""


def build(batch: int, n_series: int, steps: int, n_features: int, channels: int, blocks: int, device: str = "cpu"):
    """Return a mixer whose blocks are more than the small corrections that they start as, series and conditions."""
    mixer = Mixer(n_series=n_series, n_features=n_features, condition_size=9, channels=channels, blocks=blocks)
    for block in mixer.blocks:
        nn.init.normal_(block.out.weight, std=channels**-0.5)
    series = torch.randn(batch, n_series, steps, n_features, device=device)
    return mixer.to(device), series, torch.randn(batch, 9, device=device)


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
@pytest.mark.parametrize(
    "shape", [*SHAPES, (7, 1, 50, 50, 16, 4), (125, 1, 160, 20, 32, 6), (125, 1, 500, 20, 32, 6), (9, 1, 64, 3, 64, 2)]
)
def test_the_kernels_are_as_exact_as_plain_bfloat16(shape, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    mixer, series, condition = build(*shape, device="cuda")
    calls = []
    with torch.no_grad():
        truth = mixer.double()(series.double(), condition.double())
        mixer.float()
        with torch.autocast("cuda", torch.bfloat16):
            mixer.first.register_forward_hook(lambda *args: calls.append(args))  # the kernels do not call the layers
            ours = mixer(series, condition)
            assert not calls
            monkeypatch.setattr(generator, "has_triton", lambda device: False)
            plain = mixer(series, condition)
    assert calls and ours.dtype == plain.dtype
    assert relative_error(ours, truth) <= 1.1 * relative_error(plain, truth) + 1e-6


@pytest.mark.parametrize(
    ("available", "bfloat16", "gradients", "fuses"),
    [(True, True, False, True), (False, True, False, False), (True, False, False, False), (True, True, True, False)],
    ids=["all conditions", "no GPU", "no bfloat16", "with gradients"],
)
def test_the_kernels_apply_on_a_gpu_in_bfloat16_without_gradients(
    available, bfloat16, gradients, fuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The layers are not run: some virtual machines announce bfloat16 instructions that they do not have, and the
    # process ends there. The library computes in bfloat16 on a GPU only.
    mixer, series, _ = build(*SHAPES[0])
    monkeypatch.setattr(generator, "has_triton", lambda device: available)
    with torch.set_grad_enabled(gradients), torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        assert mixer._can_fuse(series) == fuses


def test_elsewhere_the_mixer_is_plain() -> None:
    mixer, series, condition = build(*SHAPES[0])
    calls = []
    mixer.first.register_forward_hook(lambda *args: calls.append(args))
    mixer(series, condition)
    assert calls
