"""Planted operations: how many are named right, and how often one is named where there is none.

    python benchmarks/operations.py [repeats]

Series of a body (two arms with elbow, wrist and hand, each x and y) and two other signals are changed by one operation
of known kind and size: of one feature, a joint, an arm or both arms, over a random part of the series, faded in and
out, with noise of up to a tenth of the change's energy. Named right is the largest operation that ``e.operations``
returns if its kind and its name are the planted ones. Random changes, which are no operation, are planted in one to six
features. Rows go to ``results/operations.jsonl``: one for each kind and size, and one for each kind of random change;
then both again with a twentieth of the values missing.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo

RESULTS = Path(__file__).parent.parent / "results" / "operations.jsonl"
POINTS = tuple(f"{side}{point}" for side in ("Left", "Right") for point in ("Elbow", "Wrist", "Hand"))
NAMES = (*(f"{point}_{axis}" for point in POINTS for axis in "xy"), "force", "pulse")
LENGTHS = (60, 100, 200)
NOISES = (0.0, 0.05, 0.1)  # of the change's energy
REPEATS = 4  # of every size, noise and who
MISSING = 0.05  # share of the values, in the second half of the rows
N_RANDOM = 400  # answers with random changes
# Who changes: its name, and its features.
WHO: dict[str, tuple[str, ...]] = {
    "force": ("force",),
    "LeftWrist": ("LeftWrist_x", "LeftWrist_y"),
    "the right arm": tuple(name for name in NAMES if name.startswith("Right")),
    "both arms": NAMES[:12],
}
# Sizes: share of the series, factor of the tempo and of the size, standard deviations, share of the tremor.
SIZES: dict[str, tuple[float, ...]] = {
    "shift": (0.03, 0.06, 0.12),
    "tempo": (1.15, 1.3, 1.6),
    "larger": (1.25, 1.5, 2.0),
    "smaller": (0.75, 0.5, 0.25),
    "level": (0.3, 0.7, 1.5),
    "shakier": (0.3, 0.6, 1.2),
    "smoother": (0.6, 0.8, 0.95),
    "peak added": (0.7, 1.3, 2.5),
    "peak removed": (0.7, 1.3, 2.5),
}
RANDOM = ("smooth", "bumps", "walk")
LEAST = 0.15  # standard deviations, root mean square: less is no change that could be named


@dataclass(frozen=True)
class Planted:
    """An answer, and what was planted: the kind, who, and the amount in the words of ``Operation``."""

    answer: Explanation
    kind: str
    what: str
    amount: float


def smooth_noise(rng: np.random.Generator, n: int, length: float) -> Any:
    """Return smooth noise of mean 0 and variance 1 that changes over about ``length`` steps."""
    frequency = np.fft.rfftfreq(3 * n)
    spectrum = rng.normal(size=(2, len(frequency))) * np.exp(-0.5 * (2 * np.pi * frequency * length) ** 2)
    x = np.fft.irfft(spectrum[0] + 1j * spectrum[1], 3 * n)[n : 2 * n]
    return (x - x.mean()) / x.std()


def course(rng: np.random.Generator, n: int) -> Any:
    """Return one signal of variance 1: three sines, smooth noise, or rises and falls from one level to another."""
    t = np.arange(n)
    which = rng.integers(3)
    if which == 0:
        x = sum(rng.uniform(0.5, 1) * np.sin(2 * np.pi * (rng.uniform(1, 5) * t / n + rng.random())) for _ in range(3))
    elif which == 1:
        x = smooth_noise(rng, n, rng.uniform(0.04, 0.12) * n)
    else:
        x = sum(
            rng.choice([-1, 1]) * rng.uniform(0.5, 1.5)
            / (1 + np.exp(-(t - rng.uniform(0.1, 0.9) * n) / (rng.uniform(0.02, 0.06) * n)))
            for _ in range(rng.integers(2, 5))
        )  # fmt: skip
    return (x - np.mean(x)) / np.std(x)


def tremor(rng: np.random.Generator, n: int, frequency: float) -> Any:
    """Return an oscillation of variance 1 around a frequency (per step)."""
    frequencies = np.fft.rfftfreq(3 * n)
    spectrum = rng.normal(size=(2, len(frequencies))) * np.exp(-0.5 * ((frequencies - frequency) / 0.05) ** 2)
    x = np.fft.irfft(spectrum[0] + 1j * spectrum[1], 3 * n)[n : 2 * n]
    return x / x.std()


def bump(n: int, centre: float, width: float) -> Any:
    return np.exp(-0.5 * ((np.arange(n) - centre) / width) ** 2)


def fade(n: int) -> Any:
    """Return factors that rise to 1 and fall again, each over a tenth of the steps."""
    steps = np.arange(1, n + 1)
    return np.minimum(1.0, np.minimum(steps, steps[::-1]) / (n // 10 + 1))


def window(rng: np.random.Generator, n: int) -> tuple[int, int]:
    """Return a random part of the series: at least 0.3 of it."""
    size = int(rng.uniform(0.3, 1) * n)
    start = int(rng.integers(0, n - size + 1))
    return start, start + size


def plant(rng: np.random.Generator, what: str, size: float, who: str, noise: float) -> Planted:
    """Return an answer with one operation."""
    while True:
        n = int(rng.choice(LENGTHS))
        query = np.stack([course(rng, n) for _ in NAMES], axis=1)
        sign, (start, end), t = int(rng.choice([-1, 1])), window(rng, n), np.arange(n)
        features = [NAMES.index(name) for name in WHO[who]]
        if what == "level" and len(features) > 1:
            features = [f for f in features if NAMES[f].endswith("_y")]  # one number is of one coordinate
        frequency, anchor = rng.uniform(0.15, 0.35), rng.choice([0.0, 0.5])
        if what.startswith("peak"):
            width = rng.uniform(0.03, 0.07) * n
            start = int(rng.integers(0, max(1, n - int(6 * width) - 2)))
            end = min(n, start + int(6 * width) + 2)
        made, amount, kind, calm = query.copy(), size, what, True
        for f in features:
            x = query[:, f]
            if what == "shift":
                y, kind, amount = np.interp(t + sign * size * n, t, x), "earlier" if sign > 0 else "later", size * n
            elif what == "tempo":
                factor, centre = size**sign, start + anchor * (end - 1 - start)
                y, kind = np.interp(centre + factor * (t - centre), t, x), "faster" if sign > 0 else "slower"
                amount = 100 * abs(factor - 1)
            elif what in ("larger", "smaller"):
                middle = x[start:end].mean()
                y, amount = middle + size * (x - middle), 100 * abs(size - 1)
            elif what == "level":
                y, kind = x + sign * size, "higher" if sign > 0 else "lower"
            elif what == "shakier":
                y, amount = x + size * tremor(rng, n, frequency), np.nan  # depends on the query's own fast part
            elif what == "smoother":
                shaking = rng.uniform(0.3, 1) * tremor(rng, n, frequency)
                query[:, f] = x = x + shaking
                y, amount = x - size * shaking, 100 * size
            else:
                calm &= np.ptp(x[start:end]) < size / 4  # a peak is one where little else happens
                peak = sign * size * bump(n, (start + end - 1) / 2, width)
                kind = f"{'peak' if sign > 0 else 'dip'} {what.split()[1]}"
                if what == "peak removed":
                    query[:, f] = x = x + peak
                y = x + (peak if what == "peak added" else -peak)
            made[:, f] = x
            made[start:end, f] += fade(end - start) * (y - x)[start:end]
        change = np.sqrt(((made - query)[start:end][:, features] ** 2).mean(0))
        if not calm or change.min() < LEAST:
            continue
        made[start:end, features] += np.sqrt(noise) * change * rng.normal(size=(end - start, len(features)))
        name = who if len(features) == len(WHO[who]) or len(features) > 1 else NAMES[features[0]]
        return Planted(as_answer(query, made), kind, name, float(amount))


def plant_random(rng: np.random.Generator, kind: str) -> Explanation:
    """Return an answer with random changes of one to six features, each of mean 0 and independent of the series."""
    n = int(rng.choice(LENGTHS))
    query = np.stack([course(rng, n) for _ in NAMES], axis=1)
    made, (start, end) = query.copy(), window(rng, n)
    size = end - start
    for f in rng.choice(len(NAMES), rng.integers(1, 7), replace=False):
        if kind == "smooth":
            change = smooth_noise(rng, size, rng.uniform(0.05, 0.1) * size)
        elif kind == "bumps":
            signs = rng.permutation([-1, 1] * int(rng.integers(2, 4)))
            places = (np.arange(len(signs)) + 0.5 + rng.uniform(-0.2, 0.2, len(signs))) * size / len(signs)
            widths = rng.uniform(0.1, 0.25, len(signs)) * size / len(signs)
            change = sum(s * bump(size, p, w) for s, p, w in zip(signs, places, widths, strict=True))
        else:
            change = rng.normal(size=size).cumsum()
        change = (change - np.mean(change)) * fade(size)
        made[start:end, f] += rng.uniform(0.3, 1.5) * change / np.std(change)
    return as_answer(query, made)


def as_answer(query: Any, made: Any) -> Explanation:
    """Return one valid answer; the standard deviation of every feature is 1."""
    spread = np.array([[[-1.0], [1.0]]]).repeat(len(NAMES), axis=2)
    info = SeriesInfo.from_series(spread, ("one", "other"))
    return Explanation(
        query=query[None],
        counterfactual=made[None],
        target=np.array([1]),
        status=np.array(["refined"]),
        reason=np.array([""]),
        query_index=np.array([0]),
        proba_before=np.array([[0.9, 0.1]]),
        proba_after=np.array([[0.1, 0.9]]),
        info=SeriesInfo(**{**info.__dict__, "feature_names": NAMES, "n_steps": len(query)}),
        mutable=np.ones(len(NAMES), dtype=bool),
    )


def judge(planted: Planted) -> dict[str, bool]:
    """Return whether the largest operation found has the right kind, the right name, and about the right amount."""
    found = planted.answer.operations(0)
    if not found:
        return {"right": False, "named": False, "amount": False}
    first = found[0]
    right = first.kind == planted.kind and first.what == planted.what
    off = abs(first.amount - planted.amount)
    return {"right": right, "named": True, "amount": right and not off > max(0.25 * planted.amount, 1e-9)}


def who_of(what: str) -> tuple[str, ...]:
    """Return who may do it: a peak is of one feature."""
    return ("force",) if what.startswith("peak") else tuple(WHO)


def with_gaps(answer: Explanation, rng: np.random.Generator, share: float) -> Explanation:
    """Return the answer with a share of its values missing."""
    missing = rng.random(answer.query.shape) < share
    query, made = (np.where(missing, np.nan, x) for x in (answer.query, answer.counterfactual))
    return replace(answer, query=query, counterfactual=made)


def measure(repeats: int, seed: int, missing: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield a row of counts for every operation and size, then for every kind of random change."""
    rng = np.random.default_rng(seed)
    head = {"missing": missing}
    for what, sizes in SIZES.items():
        for size in sizes:
            who = who_of(what)
            cases = [(w, noise) for w in who for noise in NOISES for _ in range(repeats * len(WHO) // len(who))]
            planted = [plant(rng, what, size, who, noise) for who, noise in cases]
            if missing:
                planted = [replace(one, answer=with_gaps(one.answer, rng, missing)) for one in planted]
            seen = [judge(one) for one in planted]
            yield {
                **head,
                "planted": what,
                "size": size,
                "n": len(seen),
                **{k: sum(s[k] for s in seen) for k in seen[0]},
            }
    for kind in RANDOM:
        answers = [plant_random(rng, kind) for _ in range(max(1, N_RANDOM * repeats // REPEATS))]
        if missing:
            answers = [with_gaps(answer, rng, missing) for answer in answers]
        named = [bool(answer.operations(0)) for answer in answers]
        yield {**head, "planted": f"random: {kind}", "size": None, "n": len(named), "named": sum(named)}


def main() -> None:
    from stored import COMMIT

    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    rows: list[dict[str, Any]] = []
    for missing in (0.0, MISSING):
        some = [{"commit": COMMIT, **row} for row in measure(repeats, 2026, missing)]
        rows += some
        for row in some:
            print(json.dumps(row), flush=True)
        planted, others = [r for r in some if "right" in r], [r for r in some if "right" not in r]
        n, right = (sum(row[k] for row in planted) for k in ("n", "right"))
        print(f"{missing:.0%} missing: {right} of {n} planted operations are named right ({100 * right / n:.1f} %)")
        print(f"{sum(row['named'] for row in others)} of {sum(row['n'] for row in others)} random changes are named")
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
