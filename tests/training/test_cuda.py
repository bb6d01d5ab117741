"""A captured step computes what the plain step does."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.methods import adversarial as gan_training
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.cuda import CapturedStep

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


class Counting:
    names = ("loss",)

    def __init__(self):
        self.calls = 0

    def update(self, batch):
        self.calls += 1
        return torch.zeros(1)


def test_on_a_cpu_the_step_is_passed_through():
    step = Counting()
    captured = CapturedStep(step, torch.device("cpu"))
    for _ in range(7):
        captured.update({"rows": torch.arange(3)})
    assert step.calls == 7 and captured.names == ("loss",)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("method", ["Sparce", "Gan", "CounterGan"])
@pytest.mark.parametrize("backbone", ["lstm", "gru", "tcn"])
def test_graph_equals_eager(method, backbone, monkeypatch):
    X, y = make_series(120)
    classifier = sp.TorchClassifier("bilstm", sp.ClassifierConfig(epochs=5, device="cuda")).fit(X, y)
    # Eight steps: rounding errors grow from step to step in any such training.
    config = getattr(sp, f"{method}Config").tiny().override("train.epochs=1", f"generator.backbone={backbone}")
    config = config.override("device=cuda", "train.batch_size=15", "train.lr=1e-3")
    captured = []

    def capture(step, device):
        captured.append(CapturedStep(step, device))
        return captured[-1]

    monkeypatch.setattr(gan_training, "CapturedStep", capture)
    by_graph = getattr(sp, method)(classifier, config).fit(X, y)
    assert [step._graph is not None for step in captured] == [True], "a step was not captured"
    monkeypatch.setattr(gan_training, "CapturedStep", lambda step, device: step)
    plainly = getattr(sp, method)(classifier, config).fit(X, y)
    for name, values in plainly.history_.items():
        np.testing.assert_allclose(by_graph.history_[name], values, rtol=2e-3, atol=2e-3, err_msg=name)


CONSTRAINTS = {
    "none": sp.Constraints(),
    "ranges": sp.Constraints(ranges={"f1": (-1.0, 2.5)}, direction={"f0": "down"}),
    "steps": sp.Constraints(max_step={"f0": 0.3, "f2": 0.5}),
    "groups": sp.Constraints(groups={"pair": ["f0", "f2"]}, frozen=[(0, 4)], immutable=["f3"]),
}


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_training_under_constraints_is_captured_too(name, caplog):
    X, y = make_series(120)
    classifier = sp.wrap(MeanModule().cuda(), n_classes=3)
    config = sp.SparceConfig.tiny().override("train.epochs=4", "device=cuda")
    fitted = sp.Sparce(classifier, config).fit(X, y, constraints=CONSTRAINTS[name])
    assert "without a CUDA graph" not in caplog.text and len(fitted.history_["valid"]) == 4


@pytest.mark.gpu
@needs_gpu
def test_a_step_that_cannot_be_captured_goes_on_plainly(caplog):
    class Waiting(Counting):
        def update(self, batch):
            super().update(batch)
            torch.rand(2, device="cuda")  # a failed capture must not keep the random generator, either
            return torch.full((1,), float(batch["rows"].sum().item()), device="cuda")  # waits for the device

    step = Waiting()
    captured = CapturedStep(step, torch.device("cuda"))
    for _ in range(6):
        value = captured.update({"rows": torch.arange(3, device="cuda")})
    assert float(value) == 3.0 and sum("without a CUDA graph" in r.message for r in caplog.records) == 1
    torch.cuda.set_rng_state(torch.cuda.get_rng_state())  # still usable
