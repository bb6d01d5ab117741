"""Moving Box: synthetic series of 50 steps × 50 features whose class is the level, or the position, of one box.

After the saliency benchmark of Ismail et al. (2020): 10 kinds of box × 7 generating processes. The entries that
determine the class are known, and so is the optimal counterfactual: shift the box and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sparcets.core.errors import ConfigError, quoted
from sparcets.core.registry import unknown_name
from sparcets.core.seeding import generator, spawn
from sparcets.core.series import BoolArray, FloatArray, IntArray, is_integer
from sparcets.data.dataset import Dataset
from sparcets.data.splits import check_changed, stratified_split

DURATION = 20.0  # sampling times cover [0, DURATION]
NOISE = 0.3  # standard deviation of the noise added to every process except Gaussian, which is noise already

FREQUENCY, FREQUENCY_SD, AMPLITUDE_SD = 2.0, 0.01, 0.5
MATERN_LENGTH = 1.0
AR_COEFFICIENT, AR_SD = 0.9, 0.5
CAR_COEFFICIENT, CAR_SD, CAR_START = 0.9, 0.01, 0.01
NARMA_ORDER, NARMA_COEFFICIENTS, NARMA_INPUT, NARMA_SEED = 10, (0.3, 1.5, 0.1), 0.5, 42


def sampling_times(rng: np.random.Generator, *, n_samples: int, n_steps: int) -> FloatArray:
    """Draw irregular times (batch, time): a random half of an even grid, with noise of one grid step, sorted."""
    n_grid = 2 * n_steps
    order = rng.random((n_samples, n_grid)).argsort(axis=1)
    times = np.linspace(0.0, DURATION, n_grid)[order[:, :n_steps]]
    return np.sort(times + rng.normal(0.0, DURATION / n_grid, times.shape), axis=1)


def _normal(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    return rng.standard_normal((*times.shape, n_features))


def harmonic(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    """Return a sine of frequency 2, the same in all features."""
    wave = np.sin(2 * np.pi * FREQUENCY * times)
    return np.broadcast_to(wave[:, :, None], (*times.shape, n_features))


def gaussian_process(times: FloatArray, innovations: FloatArray) -> FloatArray:
    """Correlate standard normal innovations (batch, time, features), each feature separately.

    The covariance between the times of a series is that of Matérn, with ν = 3/2 and unit variance.
    """
    distance = np.sqrt(3.0) / MATERN_LENGTH * np.abs(times[:, :, None] - times[:, None, :])
    # Two nearly equal times make the matrix numerically singular; adding 1e-9 to the variance keeps it definite.
    covariance = (1.0 + distance) * np.exp(-distance) + 1e-9 * np.eye(times.shape[1])
    return np.asarray(np.linalg.cholesky(covariance) @ innovations)


def pseudo_periodic(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    """Return a sin(f t), with an amplitude a and a frequency f of its own at every entry.

    There is no 2π: with f near 2 this is a slow wave, about eight samples to a period.
    """
    amplitude = 1.0 + AMPLITUDE_SD * _normal(rng, times, n_features)
    frequency = FREQUENCY + FREQUENCY_SD * _normal(rng, times, n_features)
    return np.asarray(amplitude * np.sin(frequency * times[:, :, None]))


def autoregressive(innovations: FloatArray) -> FloatArray:
    """Return x_t = 0.9 x_{t-1} + 0.5 e_t, with t the index, and 0 before the first step."""
    series = AR_SD * innovations
    for t in range(1, innovations.shape[1]):
        series[:, t] += AR_COEFFICIENT * series[:, t - 1]
    return series


def car(times: FloatArray, innovations: FloatArray) -> FloatArray:
    """Return the continuous autoregression x_k = a^Δ x_{k-1} + σ √(1 - a^Δ) e_k, with Δ the time since the last sample.

    It starts at 0.01; the innovation of step 0 is not used.
    """
    # The stationary process of textbooks has a^{2Δ} under the root; the benchmark uses the form above.
    decay = CAR_COEFFICIENT ** np.diff(times, axis=1)[:, :, None]
    series = np.full_like(innovations, CAR_START)
    for k in range(1, innovations.shape[1]):
        kept = decay[:, k - 1]
        series[:, k] = kept * series[:, k - 1] + CAR_SD * np.sqrt(1.0 - kept) * innovations[:, k]
    return series


def narma(rng: np.random.Generator, times: FloatArray, n_features: int) -> FloatArray:
    """Return y_k = 0.3 y_{k-1} + 1.5 u_{k-10} u_k + 0.1, with 0 before the first step.

    The inputs u of the benchmark have a fixed seed, so that all series and features are the same. NARMA of order 10
    also has a product of y_{k-1} with the sum of the last ten values; in the package of the benchmark that sum runs
    over the zeros before the start, so the term is always 0.
    """
    linear, drive, constant = NARMA_COEFFICIENTS
    inputs = np.random.RandomState(NARMA_SEED).uniform(0.0, NARMA_INPUT, NARMA_ORDER + times.shape[1])
    series = drive * inputs[:-NARMA_ORDER] * inputs[NARMA_ORDER:] + constant
    for k in range(1, len(series)):
        series[k] += linear * series[k - 1]
    return np.broadcast_to(series[None, :, None], (*times.shape, n_features))


Draw: TypeAlias = Callable[[np.random.Generator, FloatArray, int], FloatArray]

PROCESSES: Mapping[str, Draw] = MappingProxyType(
    {
        "Gaussian": _normal,
        "Harmonic": harmonic,
        "GaussianProcess": lambda rng, times, n_features: gaussian_process(times, _normal(rng, times, n_features)),
        "PseudoPeriodic": pseudo_periodic,
        "AutoRegressive": lambda rng, times, n_features: autoregressive(_normal(rng, times, n_features)),
        "CAR": lambda rng, times, n_features: car(times, _normal(rng, times, n_features)),
        "NARMA": narma,
    }
)


def draw_series(process: str, rng: np.random.Generator, *, n_samples: int, n_steps: int, n_features: int) -> FloatArray:
    """Draw float32 series (batch, time, features) of one process; noise is added unless they are Gaussian noise.

    >>> draw_series("CAR", np.random.default_rng(0), n_samples=2, n_steps=50, n_features=3).shape
    (2, 50, 3)
    """
    times = sampling_times(rng, n_samples=n_samples, n_steps=n_steps)
    series = PROCESSES[process](rng, times, n_features).astype(np.float32)
    if process != "Gaussian":
        series += np.float32(NOISE) * rng.standard_normal(series.shape, dtype=np.float32)
    return series


N_STEPS = 50
N_FEATURES = 50


@dataclass(frozen=True)
class BoxKind:
    """Size and start of a box: one start for class 0 and one for class 1, or None for a random start.

    If the two starts differ, the position determines the class and the box is shifted up in both; otherwise it is
    shifted up in class 1 and down in class 0.
    """

    n_steps: int
    n_features: int
    step: tuple[int, int] | None = None
    feature: tuple[int, int] | None = None

    @property
    def positional(self) -> bool:
        """Whether the position of the box determines the class."""
        return any(start is not None and start[0] != start[1] for start in (self.step, self.feature))


KINDS: Mapping[str, BoxKind] = MappingProxyType(
    {
        "Middle": BoxKind(30, 30, step=(10, 10), feature=(10, 10)),
        "SmallMiddle": BoxKind(14, 14, step=(18, 18), feature=(18, 18)),
        "Moving_Middle": BoxKind(30, 30),
        "Moving_SmallMiddle": BoxKind(15, 15),
        "RareTime": BoxKind(6, 40, step=(22, 22), feature=(5, 5)),
        "Moving_RareTime": BoxKind(6, 40),
        "RareFeature": BoxKind(40, 6, step=(5, 5), feature=(22, 22)),
        "Moving_RareFeature": BoxKind(40, 6),
        "PositionalTime": BoxKind(20, 20, feature=(29, 1)),
        "PositionalFeature": BoxKind(20, 20, step=(29, 1)),
    }
)
DEFAULT_KINDS = ("Moving_Middle", "Moving_SmallMiddle", "Moving_RareTime", "Moving_RareFeature")
DEFAULT_PROCESSES = ("Gaussian", "Harmonic", "PseudoPeriodic", "AutoRegressive")


class Boxes(NamedTuple):
    """Steps (batch, 2, time) and features (batch, 2, features) within the box of each series, for class 0 and 1."""

    steps: BoolArray
    features: BoolArray

    @classmethod
    def draw(cls, kind: BoxKind, n_samples: int, rng: np.random.Generator) -> Boxes:
        """Draw the position of one box in each of ``n_samples`` series."""
        steps = _spans(kind.step, kind.n_steps, N_STEPS, n_samples, rng)
        return cls(steps, _spans(kind.feature, kind.n_features, N_FEATURES, n_samples, rng))

    def take(self, rows: IntArray) -> Boxes:
        """Return the boxes of the given series."""
        return Boxes(self.steps[rows], self.features[rows])

    @property
    def positional(self) -> BoolArray:
        """Whether the position of the box determines the class, as the two are not equal (batch,)."""
        return np.asarray(np.logical_or(*((mask[:, 0] != mask[:, 1]).any(1) for mask in self)))

    def mask(self, labels: IntArray) -> BoolArray:
        """Return a mask of the box of each series at its position for the given class: (batch, time, features)."""
        rows = np.arange(len(labels))
        return np.asarray(self.steps[rows, labels][:, :, None] & self.features[rows, labels][:, None, :])

    def shift(self, labels: IntArray) -> FloatArray:
        """Return the shift of the box of each series in the given class, +1 or -1: (batch,)."""
        return np.where(self.positional | (labels == 1), 1.0, -1.0).astype(np.float32)

    def means(self, X: FloatArray) -> FloatArray:
        """Return the mean of each series over its class-0 position and over its class-1 position: (batch, 2)."""
        over_steps = self.steps.astype(np.float64) @ X  # (batch, 2, features)
        entries = self.steps.sum(axis=2) * self.features.sum(axis=2)
        return np.asarray((over_steps * self.features).sum(axis=2) / entries)


@dataclass(frozen=True, eq=False)
class BoxOracle:
    """Class 1 if the mean of the box is positive or, for a positional box, if its class-1 position is higher."""

    boxes: Boxes  # of the test series, in their order

    def __call__(self, X: FloatArray, rows: IntArray) -> IntArray:
        """Return the class of each series (batch, 50, 50), changed versions of the test series ``rows`` (batch,)."""
        shape, n_test = (N_STEPS, N_FEATURES), len(self.boxes.steps)
        X, rows = check_changed(X, rows, shape=shape, what="series of moving_box", n_test=n_test)
        boxes = self.boxes.take(rows)
        means = boxes.means(X)
        threshold = np.where(boxes.positional, means[:, 0], 0.0)
        return (means[:, 1] > threshold).astype(np.int64)


def load_moving_box(
    *,
    kinds: Sequence[str] | None = None,
    processes: Sequence[str] | None = None,
    n_per_combination: int = 1100,
    test_size: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Generate the Moving Box series: every selected kind of box in every selected process.

    The series of a combination depend only on the seed, their number and the combination, not on the other ones.

    Parameters
    ----------
    kinds
        Kinds of box, from ``KINDS``, or ``"all"`` ten; the four moving ones by default.
    processes
        Generating processes, from ``PROCESSES``, or ``"all"`` seven; by default Gaussian, Harmonic, PseudoPeriodic and
        AutoRegressive.
    n_per_combination
        Number of series of each kind in each process.
    test_size
        Share held out, at random.
    seed
        Seed of series and split.

    Returns
    -------
    Dataset
        With ``salient_train``, ``salient_test`` and ``oracle``.

    Examples
    --------
    >>> ds = load_moving_box(kinds=["Moving_Middle"], processes=["Gaussian"], n_per_combination=50)
    >>> ds
    Dataset('moving_box': 40 training + 10 test series, 50 steps, 50 features, 2 classes)
    >>> bool((ds.oracle(ds.X_test, np.arange(10)) == ds.y_test).all())
    True
    """
    kind_names = _selected(kinds, KINDS, default=DEFAULT_KINDS, option="kinds", what="kind of box")
    process_names = _selected(processes, PROCESSES, default=DEFAULT_PROCESSES, option="processes", what="process")
    combinations = list(product(kind_names, process_names))
    if not is_integer(n_per_combination) or n_per_combination < 1:
        raise ConfigError(f"n_per_combination must be a whole number of at least 1, got {quoted(n_per_combination)}.")
    n = int(n_per_combination)

    # Labels and split come first, so that invalid settings raise before the series are drawn.
    y = np.concatenate(
        [generator(seed, f"{kind}/{process}/labels").integers(0, 2, n) for kind, process in combinations]
    )
    counts = np.bincount(y, minlength=2)
    if counts.min() < 2:
        raise ConfigError(
            f"n_per_combination={n} is too small: of the {len(y)} series drawn, {counts[0]} are of class 0 and "
            f"{counts[1]} of class 1, and training and test need one of each. Pass 20 or more."
        )
    train, test = stratified_split(y, test_size=test_size, seed=spawn(seed, "split"))

    X = np.empty((len(y), N_STEPS, N_FEATURES), dtype=np.float32)
    salient = np.empty(X.shape, dtype=bool)
    parts = []
    for i, (kind, process) in enumerate(combinations):
        rows = slice(i * n, (i + 1) * n)
        boxes = Boxes.draw(KINDS[kind], n, generator(seed, f"{kind}/{process}/boxes"))
        rng = generator(seed, f"{kind}/{process}/series")
        X[rows] = draw_series(process, rng, n_samples=n, n_steps=N_STEPS, n_features=N_FEATURES)
        salient[rows] = boxes.mask(y[rows])
        # The benchmark redraws the box of the Gaussian process from N(shift, 1). The entries there are independent
        # N(0, 1), so adding the shift, as for the other processes, gives the same distribution.
        X[rows] += boxes.shift(y[rows])[:, None, None] * salient[rows]
        parts.append(boxes)

    data = Dataset.from_arrays(
        X,
        y,
        split=(train, test),
        class_names=("0", "1"),
        salient=salient,
        oracle=BoxOracle(Boxes(*map(np.concatenate, zip(*parts, strict=True))).take(test)),
        name="moving_box",
        description=_description(kind_names, process_names, n),
    )
    return replace(data, split="random")


def _description(kinds: Sequence[str], processes: Sequence[str], n: int) -> str:
    text = f"Synthetic series after Ismail et al. (2020): {', '.join(kinds)} in {', '.join(processes)}, {n} of each."
    positional = [kind for kind in kinds if KINDS[kind].positional]
    if len(positional) < len(kinds):
        text += " Class 1 has its box shifted up by 1, class 0 down by 1; the salient entries are the box."
    if positional:
        text += (
            f" In {' and '.join(positional)} the box is always shifted up by 1, and its position determines the class "
            "(class 1: from 1 on, class 0: from 29 on); salient is the current position of the box, not the one of the "
            "other class."
        )
    return text


def _spans(start: tuple[int, int] | None, size: int, length: int, n: int, rng: np.random.Generator) -> BoolArray:
    """Return masks of ``size`` indices from the start of each class, or from a random one: (batch, 2, length)."""
    # The end of the random range is exclusive, as in the benchmark: such a box never covers the last index.
    one = rng.integers(0, length - size, (n, 1)) if start is None else np.array([start])
    starts = np.broadcast_to(one, (n, 2))
    offset = np.arange(length) - starts[:, :, None]
    return np.asarray((offset >= 0) & (offset < size))


def _selected(
    names: Any, known: Mapping[str, Any], *, default: tuple[str, ...], option: str, what: str
) -> tuple[str, ...]:
    if names is None:
        return default
    if not isinstance(names, Iterable):
        raise ConfigError(f"{option} must be names or 'all', got {quoted(names)}. Known: {', '.join(known)}.")
    selected = (names,) if isinstance(names, str) else tuple(names)
    if len(selected) == 1 and isinstance(selected[0], str) and selected[0] == "all":
        return tuple(known)
    for name in selected:
        if not isinstance(name, str) or name not in known:
            raise unknown_name(what, name, known)
    if not selected:
        raise ConfigError(f"{option} is empty. Name at least one of {', '.join(known)}, or pass 'all'.")
    duplicates = [name for name in known if selected.count(name) > 1]
    if duplicates:
        # A repeated combination would give the same series twice, possibly in training and in test.
        raise ConfigError(
            f"{option} names {quoted(duplicates[0])} {selected.count(duplicates[0])} times. Name each once."
        )
    return selected
