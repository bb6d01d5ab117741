"""The oracle of the simulated catching trials: the group whose signs a changed trial carries.

The simulator knows what every trial would have looked like in another group: the same throw, the same build and the
same noise, with the signs of that group instead (:func:`~.catching_simulator.simulate_trials`). Three signs are
measured in a series and in these versions of its original; its group is the one whose version is nearest. So an
unchanged trial is of its own group, and a trial of a patient becomes a Control trial once more than half of its signs
are gone.

==========  =======  ==========================================================================================
sign        unit     measure
==========  =======  ==========================================================================================
delay       s        when the hands have covered a quarter and a half of the way to the ball, after its contact
lean        degrees  how much further the trunk leans forward after the contact than at first
tremor      log      amplitude of the wrists' angle at 3 to 5 Hz around the contact
==========  =======  ==========================================================================================

None of them depends on the phase of a tremor, or on any other number that is drawn anew in every trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sparcets.core.errors import ShapeError
from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray, check_series
from sparcets.data.splits import check_test_rows
from sparcets.motion.simulator import N_STEPS, POINTS, SAMPLING_RATE, Trials, simulate_trials

SPREAD = np.array([0.04, 1.0, 0.3])  # of each sign within the patients' groups, about; distances are in these units
N_FEATURES = 2 * len(POINTS)
_SHARES = (0.25, 0.5)  # of the way of the hands
_AT_REST = 4  # steps at the beginning in which nothing moves
_AFTER = 0.2  # seconds after the contact over which the lean is averaged
_WINDOW = 0.3  # seconds before and after the contact in which the tremor is measured
_TREND = 9  # steps before and after one whose mean is the movement without the tremor
_FREQUENCIES = np.arange(3.0, 5.5, 0.5)  # Hz
_NO_TREMOR = 0.05  # degrees; the logarithm must not tell apart what is below


class Known(NamedTuple):
    """What the simulator knows about trials."""

    hip: FloatArray  # (trials, x and y)
    contact: FloatArray  # seconds (trials,)
    signs: FloatArray  # of each trial in every group (trials, groups, signs)


@dataclass(frozen=True, eq=False)
class CatchingOracle:
    """The group whose signs a changed trial carries.

    >>> from sparcets.motion.catching import load_catching
    >>> ds = load_catching(seed=0)
    >>> bool((ds.oracle(ds.X_test, np.arange(395)) == ds.y_test).all())
    True
    """

    counts: tuple[int, ...]
    seed: int  # both as given to the simulator
    test: IntArray  # which of its trials are the test series, in their order

    def __call__(self, X: FloatArray, rows: IntArray) -> IntArray:
        """Return the group of each series (batch,): a changed version (60, 20), in metres, of the test series in
        ``rows``.
        """
        X = check_series(X)
        if X.shape[1:] != (N_STEPS, N_FEATURES):
            raise ShapeError(
                f"X must be (batch, {N_STEPS}, {N_FEATURES}), as all catching trials are, got shape {X.shape}."
            )
        trials = self.test[check_test_rows(rows, n_samples=len(X), n_test=len(self.test))]
        known = Known(*(values[trials] for values in _known(self.counts, self.seed)))
        points = X.astype(np.float64).reshape(len(X), N_STEPS, len(POINTS), 2)
        measured = measure_signs(points, known.hip, known.contact)
        distance = np.square((measured[:, None] - known.signs) / SPREAD).sum(2)  # (batch, groups)
        return np.asarray(distance.argmin(1), dtype=np.int64)


@lru_cache(maxsize=2)
def _known(counts: tuple[int, ...], seed: int) -> Known:
    """Simulate the trials again as they are, and in every group, and measure their signs."""

    def simulated(group: int | None) -> Trials:
        return simulate_trials(counts, generator(seed, "catching"), group=group)

    own = simulated(None)
    signs = [measure_signs(simulated(k).points, own.hip, own.contact) for k in range(len(counts))]
    in_groups = np.stack(signs, axis=1)  # (trials, groups, signs)
    in_groups[np.arange(len(own.label)), own.label] = measure_signs(own.points, own.hip, own.contact)
    return Known(own.hip, own.contact, in_groups)


def measure_signs(points: FloatArray, hip: FloatArray, contact: FloatArray) -> FloatArray:
    """Return the signs (trials, signs) of positions in metres (trials, steps, points, x and y).

    The position of the hip is (trials, x and y), the time of the contact in seconds.
    """
    t = np.arange(N_STEPS) / SAMPLING_RATE
    since = t - contact[:, None]  # (trials, steps)
    body = {name: points[:, :, i] for i, name in enumerate(POINTS)}

    hands = (body["LeftHand"] + body["RightHand"]) / 2
    way = np.linalg.norm(hands - hands[:, :_AT_REST].mean(1, keepdims=True), axis=2)
    whole = way[np.arange(len(way)), np.abs(since).argmin(1)]
    delay = np.mean([_crossing(way, share * whole, since) for share in _SHARES], axis=0)

    trunk = (body["LeftShoulder"] + body["RightShoulder"]) / 2 - hip[:, None]
    lean = np.degrees(np.arctan2(trunk[..., 0], trunk[..., 1]))
    after = (since >= 0) & (since <= _AFTER)
    lean = (lean * after).sum(1) / after.sum(1) - lean[:, :_AT_REST].mean(1)

    wrists = np.stack([_wrist_angle(body, side) for side in ("Left", "Right")], axis=2)  # (trials, steps, side)
    shaking = wrists - _moving_mean(wrists, _TREND)
    window = np.where(np.abs(since) < _WINDOW, np.cos(since / _WINDOW * np.pi / 2), 0.0)
    waves = np.exp(2j * np.pi * _FREQUENCIES * since[..., None])  # (trials, steps, frequencies)
    amplitude = np.abs(np.einsum("ntf,nts,nt->nfs", waves, shaking, window)).max(1) / window.sum(1)[:, None]
    tremor = np.log(amplitude.mean(1) + _NO_TREMOR)
    return np.stack([delay, lean, tremor], axis=1)


def _crossing(way: FloatArray, level: FloatArray, since: FloatArray) -> FloatArray:
    """Return the time (trials,) at which a way (trials, steps) first reaches a level, between two steps."""
    after = np.maximum((way >= level[:, None]).argmax(1), 1)
    rows = np.arange(len(way))
    low, high = way[rows, after - 1], way[rows, after]
    share = np.clip((level - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    return np.asarray(since[rows, after - 1] + share / SAMPLING_RATE)


def _wrist_angle(body: dict[str, FloatArray], side: str) -> FloatArray:
    """Return the angle between hand and forearm in degrees (trials, steps)."""
    forearm = body[f"{side}Wrist"] - body[f"{side}Elbow"]
    hand = body[f"{side}Hand"] - body[f"{side}Wrist"]
    angles = [np.arctan2(v[..., 0], -v[..., 1]) for v in (forearm, hand)]
    return np.degrees(np.unwrap(angles[1] - angles[0], axis=1))


def _moving_mean(x: FloatArray, reach: int) -> FloatArray:
    """Return the mean over ``reach`` steps on both sides of each step (trials, steps, …), continued at the ends."""
    padded = np.concatenate([np.repeat(x[:, :1], reach + 1, 1), x, np.repeat(x[:, -1:], reach, 1)], axis=1)
    total = np.cumsum(padded, axis=1)
    width = 2 * reach + 1
    return np.asarray((total[:, width:] - total[:, :-width]) / width)
