"""Training speed of the methods, for the speed benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sparcets.experiments.benchmark.plain_step import plain_step
from sparcets.experiments.benchmark.speed_setting import Bench

if TYPE_CHECKING:
    from sparcets.explainers.gan_training import GanTraining


def training(bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield training steps per second by method and batch size; the reference is :func:`plain_step`, batch size 32."""
    from sparcets.config.explainers import CounterGanConfig, ExplainerConfig, GanConfig, SparceConfig

    plain = plain_step(bench.X, bench.fit_classifier(bench.X, bench.y), 1, bench.device)
    reference = bench.rate(plain, bench.sizes.steps)
    unit = "steps/s"
    yield {"name": "the paper's step, plain", "batch": 32, "value": reference, "unit": unit}
    methods = (
        ("sparcets", "sparcets", ExplainerConfig(proposals="generator")),
        ("sparce, paper", "sparce", SparceConfig.paper(target=1)),
        ("countergan, paper", "countergan", CounterGanConfig.paper(target=1)),
        ("gan, paper", "gan", GanConfig.paper(target=1)),
    )
    for name, method, config in methods:
        config = config.override("train.epochs=1", f"device={bench.device}", f"seed={bench.seed}")
        for batch in bench.sizes.batches:
            rate = _training_rate(bench, method, config.override(f"train.batch_size={batch}"))
            yield {
                "name": name,
                "batch": batch,
                "value": rate,
                "unit": unit,
                "ratio": rate * batch / (reference * 32),  # in series per second, since larger batches do more per step
                "reference": "the paper's step, plain",
            }


def _training_rate(bench: Bench, method: str, config: Any) -> float:
    """Return the training steps per second of a method.

    Measured in a fit whose training loop is replaced by timed steps. The checks that follow are left out, since a
    generator may fail them after so few steps.
    """
    from sparcets.explainers import EXPLAINERS
    from sparcets.training.cuda import CapturedStep

    kind = EXPLAINERS.load(method)
    rates = []

    def run_timed_steps(self: Any, training: GanTraining, progress: bool | None) -> None:
        step = CapturedStep(training.step, training.step.x.device)
        batches = [batch for epoch in range(bench.sizes.steps) for batch in training.pairing(epoch)]
        next_batch = iter(batches * (2 + 10 // len(batches)))
        rates.append(bench.rate(lambda: step.update(next(next_batch)), min(bench.sizes.steps, len(batches))))

    def no_check(self: Any, *_: Any) -> None: ...

    checks = dict.fromkeys(("_check_generator", "_check_model"), no_check)
    timed = type(kind.__name__, (kind,), {"_run_training": run_timed_steps, **checks})
    timed(bench.classifier(), config).fit(bench.X, bench.y, progress=False)
    return rates[0]
