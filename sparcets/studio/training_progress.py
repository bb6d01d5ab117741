"""Progress of a whole training from the bars of its stages: one share, the time left, and the learning curves."""

from __future__ import annotations

import math

# Expected share of the time of each stage, where a training has several; measured with the default settings. A stage
# that is not listed counts as much as all others together, as the training of a generator does.
EXPECTED = {
    "fitting sparcets": {"training fcn": 0.27, "training resnet": 0.55, "fitting models of other kinds": 0.18},
}
MAX_POINTS = 200  # of a learning curve; longer ones are thinned out


class TrainingProgress:
    """Collects what the stages of a training report.

    Parameters
    ----------
    title
        Title of the job.

    Examples
    --------
    >>> progress = TrainingProgress("training fcn")
    >>> progress.update("training fcn", 2.0, 8.0, "loss 0.5  validation_loss 0.7")
    >>> progress.share, progress.left(10.0), progress.curves
    (0.25, 30.0, {'loss': [0.5], 'validation_loss': [0.7]})
    """

    def __init__(self, title: str) -> None:
        self.title, self.share = title, 0.0
        self.curves: dict[str, list[float | None]] = {}
        self._weights = dict(EXPECTED.get(title, {}))
        self._done = dict.fromkeys(self._weights, 0.0)
        self._steps: dict[str, float] = {}

    def update(self, stage: str, done: float, total: float | None, note: str) -> None:
        """Take in a report of one stage: ``done`` of ``total`` steps, and its values as a text."""
        self._weights.setdefault(stage, sum(self._weights.values()) or 1.0)
        if total:
            self._done[stage] = min(1.0, done / total)
        whole = sum(self._weights.values())
        reached = sum(self._weights[name] * self._done.get(name, 0.0) for name in self._weights) / whole
        self.share = max(self.share, reached)  # another stage may come up; the bar does not go back
        if done > self._steps.get(stage, -1.0):
            self._steps[stage] = done
            self._add(stage, note)

    def left(self, seconds: float) -> float | None:
        """Return the time left in seconds, if so many have passed; None as long as nothing is known."""
        return None if self.share < 0.01 else seconds * (1 - self.share) / self.share

    def _add(self, stage: str, note: str) -> None:
        prefix = "" if stage == self.title else f"{stage.removeprefix('training ')} "
        for part in note.split("  "):
            name, _, text = part.rpartition(" ")
            try:
                value = float(text)
            except ValueError:  # a note in words
                continue
            if name:
                points = self.curves.setdefault(prefix + name, [])
                points.append(value if math.isfinite(value) else None)
                if len(points) > MAX_POINTS:
                    del points[1:-1:2]
