"""Simulation of a standing person, seen from the side, who catches a thrown ball with both hands.

The recordings behind the catching data of Lang et al. (2022, arXiv:2206.00931) are private, so this model replaces
them: the numbers of steps, points and classes are the same, but every trial is **simulated** and no patient was
measured. It is separate from the loader because it is a model with assumptions of its own, written as pure functions of
NumPy arrays.

Coordinates are in the sagittal plane, x towards the thrower, y up, in metres; step 0 is the release of the ball.

* **Ball.** A parabola under gravity from a random release (distance, height, flight time) to a random point in reach.
  Once caught, it follows the planned movement of the hands towards the body, without their tremor, so that the ball
  carries no information about the class.
* **Body.** Hip, leaning trunk, head, and two arms of three rigid segments moved by their joint angles: the distances
  shoulder–elbow, elbow–wrist and wrist–hand are constant for a person. Noise is added to the angles, not to the points.
  Segment lengths are shares of body height (Drillis & Contini 1966, *Body segment parameters*). Persons come in
  triplets with the same build and resting posture, one per class (matched groups), so that build carries no information
  about the class.
* **Control.** The joint angles move from rest to the posture in which the hands meet the ball, computed by inverse
  kinematics, along a minimum-jerk profile (Flash & Hogan 1985, J Neurosci 5). The reach starts well before contact, and
  the trunk leans forward.
* **Ataxia.** Intention tremor of 3–5 Hz that grows towards the target (Deuschl, Bain & Brin 1998, Mov Disord 13 S3);
  joints that move one after the other, overshoot, at times undershoot (Bastian et al. 1996, J Neurophysiol 76), with a
  corrective movement; variable timing; postural adjustment of a wrong, here too large, gain (Timmann & Horak 1997,
  Brain 120); more sway.
* **Autism.** A later, more reactive start (in catching: Whyatt & Craig 2013, Res Autism Spectr Disord 7; in infants at
  risk: Ekberg et al. 2016, Clin Psychol Sci 4), hence a faster reach, and less anticipatory lean.

Every trial is a Control trial plus *severity* times the signs of its class. Severity varies between persons and trials,
so the mildest trials of a patient resemble Control trials. The directions of the signs are from the literature, their
sizes are our choice: small networks classify about 90 to 95 % of new trials correctly (fewer of new persons), and the
mean of a single feature does not separate the classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparcets.core.series import FloatArray, IntArray

N_STEPS = 60
SAMPLING_RATE = 60.0
GRAVITY = 9.81
DRAW_IN = 0.3  # seconds until the caught ball is at rest
PERSONS_PER_CLASS = 20
USUAL = 0.8  # severity, on average
CLASS_NAMES = ("Ataxia", "Autism", "Control")
POINTS = (
    *("Head", "LeftShoulder", "RightShoulder", "LeftElbow", "RightElbow"),
    *("LeftWrist", "RightWrist", "LeftHand", "RightHand", "Center"),  # Center: the ball
)


class Signs(NamedTuple):
    """Deviations from a Control trial, per class or per trial."""

    delay: FloatArray  # delay of the start of the reach, seconds
    lean: FloatArray  # additional forward lean, relative to a Control
    tremor: FloatArray  # amplitude in the elbow at contact, degrees
    overshoot: FloatArray  # of each joint, relative to its movement
    joint_delay: FloatArray  # delay of elbow and wrist after the shoulder, seconds
    timing: FloatArray  # standard deviation of the start, seconds
    sway: FloatArray  # additional sway of the trunk, relative to a Control


# At severity 1, in the order of CLASS_NAMES.
SIGNS = Signs(
    delay=np.array([0.0, 0.22, 0.0]),
    lean=np.array([0.25, -0.6, 0.0]),
    tremor=np.array([4.0, 0.0, 0.0]),
    overshoot=np.array([0.2, 0.0, 0.0]),
    joint_delay=np.array([0.24, 0.0, 0.0]),
    timing=np.array([0.04, 0.0, 0.0]),
    sway=np.array([1.0, 0.0, 0.0]),
)


class Builds(NamedTuple):
    """Segment lengths in metres and resting posture in radians, one entry per person or trial."""

    hip: FloatArray
    trunk: FloatArray
    neck: FloatArray
    shoulder: FloatArray
    upper_arm: FloatArray
    forearm: FloatArray
    hand: FloatArray
    rest_lean: FloatArray
    rest_shoulder: FloatArray
    rest_elbow: FloatArray


class Throws(NamedTuple):
    """The catcher's hip and the path of the ball: positions (trials, x and y) and flight times in seconds (trials,)."""

    hip: FloatArray
    release: FloatArray
    catch: FloatArray
    give: FloatArray
    contact: FloatArray


class Trials(NamedTuple):
    """Simulated trials."""

    points: FloatArray  # positions in metres (trials, steps, points, x and y), in the order of POINTS
    label: IntArray  # class index, per trial
    person: IntArray  # 0..59, 20 of each class in turn, per trial
    contact: FloatArray  # time of contact in seconds, per trial
    hip: FloatArray  # position in metres (trials, x and y)


def minimum_jerk(t: FloatArray, start: FloatArray | float, duration: FloatArray | float) -> FloatArray:
    """Return the completed share of a movement at time ``t``: the minimum-jerk profile from rest to rest.

    >>> minimum_jerk(np.array([0.0, 0.5, 1.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    s = np.clip((t - start) / duration, 0.0, 1.0)
    return np.asarray(s**3 * (10 - 15 * s + 6 * s**2))


def direction(angle: FloatArray) -> FloatArray:
    """Return unit vectors (..., x and y) for angles measured from straight down, positive forwards."""
    return np.stack([np.sin(angle), -np.cos(angle)], axis=-1)


def reach_angles(reach: FloatArray, wrist: FloatArray, body: Builds) -> FloatArray:
    """Return the joint angles (trials, side, shoulder and elbow and wrist) that bring the hands to a position.

    ``reach`` is the vector from shoulder to hand (trials, side, x and y), ``wrist`` the angle between hand and forearm
    (trials, side). The elbow points down; for a position out of reach, the arm is stretched towards it.
    """
    upper_arm, forearm, hand = body.upper_arm[:, None], body.forearm[:, None], body.hand[:, None]
    along, across = forearm + hand * np.cos(wrist), hand * np.sin(wrist)
    lower = np.hypot(along, across)
    distance = np.hypot(reach[..., 0], reach[..., 1])
    cosine = (distance**2 - upper_arm**2 - lower**2) / (2 * upper_arm * lower)
    flexion = np.arccos(np.clip(cosine, -1.0, 1.0))
    towards = np.arctan2(reach[..., 0], -reach[..., 1])
    shoulder = towards - np.arctan2(lower * np.sin(flexion), upper_arm + lower * np.cos(flexion))
    return np.stack([shoulder, flexion - np.arctan2(across, along), wrist], axis=-1)


def arm_points(shoulders: FloatArray, angles: FloatArray, body: Builds) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return elbows, wrists and hands (trials, steps, side, x and y) of rigid arms with these joint angles."""
    absolute = np.cumsum(angles, axis=-1)  # every joint rotates all segments after it
    lengths = (body.upper_arm, body.forearm, body.hand)
    segments = [v[:, None, None, None] * direction(absolute[..., joint]) for joint, v in enumerate(lengths)]
    elbows = shoulders + segments[0]
    wrists = elbows + segments[1]
    return elbows, wrists, wrists + segments[2]


def ball_path(t: FloatArray, throws: Throws) -> FloatArray:
    """Return the ball (trials, steps, x and y): a parabola from release to catch, then moved with the hands."""
    _, release, catch, give, contact = throws
    fall = np.array([0.0, -GRAVITY / 2])
    launch = (catch - release) / contact[:, None] - fall * contact[:, None]
    time = t[None, :, None]
    flight = release[:, None] + launch[:, None] * time + fall * time**2
    drawn = minimum_jerk(t, contact[:, None], DRAW_IN)[..., None]
    return np.asarray(np.where(time < contact[:, None, None], flight, catch[:, None] + give[:, None] * drawn))


def draw_builds(n: int, rng: np.random.Generator) -> Builds:
    """Draw ``n`` persons with body heights spread evenly from 1.58 to 1.82 m."""
    height = 1.58 + 0.24 * _spread(n, rng)

    def length(share: float) -> FloatArray:
        return np.asarray(height * share * rng.normal(1, 0.02, n))

    return Builds(
        hip=length(0.530),
        trunk=length(0.288),
        neck=length(0.118),
        shoulder=length(0.129),
        upper_arm=length(0.186),
        forearm=length(0.146),
        hand=length(0.060),  # to the knuckles
        rest_lean=np.deg2rad(rng.normal(2, 2, n)),
        rest_shoulder=np.deg2rad(rng.normal(2, 4, n)),
        rest_elbow=np.deg2rad(40 + 35 * _spread(n, rng)),
    )


def draw_throws(body: Builds, rng: np.random.Generator) -> Throws:
    """Draw one throw per trial, to a position in front of the chest that the catcher can reach."""
    n = len(body.hip)
    hip = np.stack([rng.normal(0, 0.04, n), body.hip], axis=-1)
    neck = hip + body.trunk[:, None] * direction(np.pi - body.rest_lean - np.deg2rad(5))
    distance = rng.uniform(0.68, 0.80, n) * (body.upper_arm + body.forearm + body.hand)
    return Throws(
        hip=hip,
        release=np.stack([rng.uniform(2.5, 3.4, n), rng.normal(1.1, 0.1, n)], axis=-1),
        catch=neck + distance[:, None] * direction(np.deg2rad(rng.uniform(64, 90, n))),
        give=-np.abs(rng.normal([0.06, 0.05], 0.02, (n, 2))),
        contact=rng.uniform(0.62, 0.80, n),
    )


def move_trunk(
    t: FloatArray, start: FloatArray, throws: Throws, signs: Signs, body: Builds, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the head (trials, steps, x and y) and the shoulders (trials, steps, side, x and y)."""
    n = len(start)
    lean_in = np.deg2rad(rng.normal(7, 2, n)) * (1 + signs.lean)
    # The trunk starts before the arms.
    leaning = minimum_jerk(t, start[:, None] - 0.05, (throws.contact - start)[:, None] + 0.05)
    sway = np.deg2rad(0.5) * (1 + signs.sway)[:, None] * _wander(t, (n,), rng)
    lean = body.rest_lean[:, None] + lean_in[:, None] * leaning + sway
    nod = np.deg2rad(rng.normal(8, 3, n)[:, None] + _wander(t, (n,), rng))
    twist = np.deg2rad(rng.normal(0, 4, n)[:, None] + 0.5 * _wander(t, (n,), rng))
    neck = throws.hip[:, None] + body.trunk[:, None, None] * direction(np.pi - lean)
    head = neck + body.neck[:, None, None] * direction(np.pi - lean - nod)
    aside = np.stack([body.shoulder[:, None] * np.sin(twist), np.zeros_like(twist)], axis=-1)
    return head, np.stack([neck + aside, neck - aside], axis=2)


def move_arms(
    t: FloatArray,
    start: FloatArray,
    duration: FloatArray,
    shoulders: FloatArray,
    throws: Throws,
    signs: Signs,
    body: Builds,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the joint angles (trials, steps, side, shoulder and elbow and wrist) from rest to the held ball."""
    n = len(start)
    split = rng.normal(0, 0.01, (n, 1)) * np.array([1, -1])  # one hand a little above the other
    palms = throws.catch[:, None] + np.stack([np.full((n, 2), -0.03), split], axis=-1)
    wrist = np.deg2rad(rng.normal(12, 5, (n, 2)))
    reach = palms - shoulders[np.arange(n), np.argmin(np.abs(t - throws.contact[:, None]), axis=1)]
    caught = reach_angles(reach, wrist, body)[:, None]
    held = reach_angles(reach + throws.give[:, None], wrist, body)[:, None]
    posture = np.stack([body.rest_shoulder, body.rest_elbow, np.full(n, np.deg2rad(5))], axis=-1)
    rest = posture[:, None, None] + np.deg2rad(rng.normal(0, [1.5, 2.5, 2], (n, 1, 2, 3)))

    # From here on, values per trial broadcast over steps, sides and joints.
    time = t[:, None, None]
    start, duration, contact = (v[:, None, None, None] for v in (start, duration, throws.contact))
    joint_delay, overshoot, amplitude = (
        v[:, None, None, None] for v in (signs.joint_delay, signs.overshoot, signs.tremor)
    )
    begin = start + joint_delay * rng.normal([-0.5, 0.5, 0.5], 0.3, (n, 1, 2, 3))
    miss = overshoot * rng.normal(0.8, 0.5, (n, 1, 2, 3))
    first = minimum_jerk(time, begin, duration)
    correction = minimum_jerk(time, begin + 0.9 * duration, 0.25)
    drawn = minimum_jerk(time, contact, DRAW_IN)
    angles = rest + (caught - rest) * ((1 + miss) * first - miss * correction) + (held - caught) * drawn

    # Tremor is a series of overshooting corrections, so its phase is roughly locked to the contact with the ball.
    frequency = rng.uniform(3, 5, (n, 1, 1, 1))
    phase = rng.normal([0.0, 0.4, 0.8], 0.2, (n, 1, 2, 3)) + rng.normal(0, 0.6, (n, 1, 2, 1))
    size = (0.5 + amplitude) * rng.uniform(0.4, 1.6, (n, 1, 2, 1)) * np.array([0.5, 1.0, 0.8])
    envelope = first**2 * np.exp(-np.maximum(time - contact, 0))
    tremor = size * envelope * np.cos(2 * np.pi * frequency * (time - contact) - phase)
    noise = 0.8 * np.moveaxis(_wander(t, (n, 2, 3), rng), 3, 1) + rng.normal(0, 0.1, (n, len(t), 2, 3))
    return np.asarray(angles + np.deg2rad(tremor + noise))


def simulate_trials(counts: tuple[int, ...], rng: np.random.Generator, *, group: int | None = None) -> Trials:
    """Simulate ``counts`` trials per class, in the order of ``CLASS_NAMES``.

    With a ``group``, all trials have the signs of that class, at a usual severity, instead of those of their own.
    Nothing else differs, since all random numbers are the same: these are the trials as they would have been in that
    group.

    >>> simulate_trials((2, 2, 1), np.random.default_rng(0)).points.shape
    (5, 60, 10, 2)
    """
    n, n_classes = sum(counts), len(counts)
    t = np.arange(N_STEPS) / SAMPLING_RATE
    label = np.repeat(np.arange(n_classes), counts)
    triplet = np.concatenate([np.arange(count) % PERSONS_PER_CLASS for count in counts])
    person = label * PERSONS_PER_CLASS + triplet
    body = Builds(*(values[triplet] for values in draw_builds(PERSONS_PER_CLASS, rng)))

    # Persons are spread evenly from mild to severe, so that no seed draws a class of mild persons only.
    usual = 0.6 + 0.4 * np.concatenate([_spread(PERSONS_PER_CLASS, rng) for _ in counts])
    severity = np.clip(usual[person] + rng.normal(0, 0.17, n), 0, 1.2)
    shown = label if group is None else np.full(n, group)
    signs = Signs(*((severity if group is None else USUAL) * values[shown] for values in SIGNS))

    throws = draw_throws(body, rng)
    usual_lead = rng.normal(0.49, 0.025, n_classes * PERSONS_PER_CLASS)
    lead = usual_lead[person] + rng.normal(0, 0.03, n) - signs.delay + signs.timing * rng.standard_normal(n)
    lead = np.clip(lead, 0.26, throws.contact - 0.03)  # no reach is faster, none starts before the release
    early = rng.normal(0.02, 0.015, n) + 0.5 * signs.timing * rng.standard_normal(n)
    start, duration = throws.contact - lead, np.maximum(lead - early, 0.24)

    head, shoulders = move_trunk(t, start, throws, signs, body, rng)
    angles = move_arms(t, start, duration, shoulders, throws, signs, body, rng)
    limbs = (shoulders, *arm_points(shoulders, angles, body))
    points = np.concatenate([head[:, :, None], *limbs, ball_path(t, throws)[:, :, None]], axis=2)
    return Trials(points, label, person, throws.contact, throws.hip)


def _spread(n: int, rng: np.random.Generator) -> FloatArray:
    """Return ``n`` numbers in [0, 1), one from each of ``n`` equal intervals, in random order."""
    return np.asarray((rng.permutation(n) + rng.uniform(size=n)) / n)


def _wander(t: FloatArray, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return slow smooth noise of unit variance, shape (*shape, steps): three sines below 1.5 Hz."""
    frequency = rng.uniform(0.2, 1.5, (*shape, 3, 1))
    phase = rng.uniform(0, 2 * np.pi, (*shape, 3, 1))
    return np.asarray(np.sqrt(2 / 3) * np.sin(2 * np.pi * frequency * t + phase).sum(axis=-2))
