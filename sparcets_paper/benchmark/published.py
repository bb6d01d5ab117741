"""The numbers that the paper (Lang et al. 2022) reports: its data, tables and running times.

Keys are the names this package uses: data sets and methods as registered, classes as in the data, measures as in
:data:`MEASURES`. Means and standard deviations are over five repetitions, on the held-out fifth of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

MEASURES = ("precision", "similarity", "sparsity", "smoothness")
METHODS = {"ics": "ICS", "gan": "GAN", "countergan": "CounteRGAN", "sparce": "SPARCE"}
TERMS = ("none", "+λ4", "+λ5", "both")  # of the ablation; λ1, λ2 and λ3 are always on


class Reported(NamedTuple):
    """A number of the paper; ``std`` is None where it gives none."""

    mean: float
    std: float | None = None


@dataclass(frozen=True, kw_only=True)
class PaperDataset:
    """A data set as described in section 5 of the paper; classes in the order of their indices."""

    title: str
    n_samples: int
    n_steps: int
    n_features: int
    n_mutable: int
    classes: Mapping[str, int]
    target: str
    left_out: tuple[str, ...] = ()  # classes that the experiments do not use

    @property
    def n_used(self) -> int:
        """Number of samples that the experiments use."""
        return sum(n for name, n in self.classes.items() if name not in self.left_out)


DATASETS: Mapping[str, PaperDataset] = {
    "catching": PaperDataset(
        title="Catching",
        n_samples=1975,
        n_steps=60,
        n_features=20,
        n_mutable=18,
        classes={"Ataxia": 522, "Autism": 789, "Control": 664},
        target="Control",
    ),
    "motionsense": PaperDataset(
        title="MotionSense",
        n_samples=13950,
        n_steps=100,
        n_features=12,
        n_mutable=12,
        classes={"dws": 1283, "jog": 1317, "sit": 3364, "std": 3042, "ups": 1536, "wlk": 3408},
        target="ups",
        left_out=("sit", "std"),
    ),
    "moving_box": PaperDataset(
        title="Moving Box",
        n_samples=17600,
        n_steps=50,
        n_features=50,
        n_mutable=50,
        classes={"0": 8806, "1": 8794},
        target="1",
    ),
}

Measurements = Mapping[str, Reported]  # measure -> number


def _four(*numbers: tuple[float, float] | float) -> Measurements:
    """Return the four numbers of a row by name: precision, similarity, sparsity, smoothness."""
    reported = [Reported(*n) if isinstance(n, tuple) else Reported(n) for n in numbers]
    return dict(zip(MEASURES, reported, strict=True))


# Table 1: data set -> method -> measure.
TABLE1: Mapping[str, Mapping[str, Measurements]] = {
    "catching": {
        "ics": _four((0.24, 0.05), (1.66, 0.04), (1.00, 0.00), (0.55, 0.01)),
        "gan": _four((0.00, 0.00), (0.22, 0.02), (1.00, 0.00), (0.07, 0.01)),
        "countergan": _four((0.00, 0.00), (0.12, 0.01), (1.00, 0.00), (0.01, 0.01)),
        "sparce": _four((0.01, 0.01), (0.09, 0.04), (0.27, 0.10), (0.01, 0.01)),
    },
    "motionsense": {
        "ics": _four((0.37, 0.07), (1.32, 0.01), (1.00, 0.00), (0.58, 0.00)),
        "gan": _four((0.00, 0.00), (0.71, 0.21), (1.00, 0.00), (0.09, 0.01)),
        "countergan": _four((0.00, 0.01), (0.33, 0.09), (1.00, 0.00), (0.03, 0.02)),
        "sparce": _four((0.04, 0.06), (0.22, 0.13), (0.22, 0.14), (0.04, 0.03)),
    },
    "moving_box": {
        "ics": _four((0.99, 0.00), (1.32, 0.00), (1.00, 0.00), (0.29, 0.00)),
        "gan": _four((0.00, 0.00), (0.87, 0.17), (1.00, 0.00), (0.12, 0.01)),
        "countergan": _four((0.01, 0.01), (0.59, 0.05), (1.00, 0.00), (0.03, 0.00)),
        "sparce": _four((0.00, 0.00), (0.40, 0.06), (0.30, 0.05), (0.02, 0.00)),
    },
}

# SPARCE towards every target class: data set -> class -> measure. The main target's row is Table 1's.
TARGETS: Mapping[str, Mapping[str, Measurements]] = {
    "catching": {
        "Ataxia": _four(0.11, 0.15, 0.47, 0.01),
        "Autism": _four(0.04, 0.13, 0.42, 0.01),
        "Control": TABLE1["catching"]["sparce"],
    },
    "motionsense": {
        "dws": _four((0.04, 0.04), (0.21, 0.10), (0.35, 0.15), (0.02, 0.01)),
        "jog": _four((0.04, 0.07), (0.24, 0.09), (0.45, 0.15), (0.03, 0.01)),
        "ups": TABLE1["motionsense"]["sparce"],
        "wlk": _four((0.19, 0.08), (0.21, 0.09), (0.42, 0.17), (0.03, 0.01)),
    },
    "moving_box": {
        "0": _four(0.00, 0.52, 0.33, 0.02),
        "1": TABLE1["moving_box"]["sparce"],
    },
}

# SPARCE with loss terms switched on: data set -> terms (of TERMS) -> measure. Moving Box: one repetition, so no std.
ABLATION: Mapping[str, Mapping[str, Measurements]] = {
    "catching": {
        "none": _four((0.01, 0.01), (0.08, 0.02), (0.32, 0.06), (0.01, 0.00)),
        "+λ4": _four((0.01, 0.01), (0.14, 0.04), (0.33, 0.13), (0.02, 0.01)),
        "+λ5": _four((0.02, 0.03), (0.10, 0.03), (0.28, 0.14), (0.01, 0.01)),
        "both": TABLE1["catching"]["sparce"],
    },
    "motionsense": {
        "none": _four((0.01, 0.01), (0.25, 0.15), (0.22, 0.11), (0.06, 0.04)),
        "+λ4": _four((0.03, 0.04), (0.23, 0.11), (0.22, 0.08), (0.03, 0.03)),
        "+λ5": _four((0.03, 0.04), (0.29, 0.13), (0.32, 0.16), (0.03, 0.03)),
        "both": TABLE1["motionsense"]["sparce"],
    },
    "moving_box": {
        "none": _four(0.00, 0.39, 0.26, 0.02),
        "+λ4": _four(0.00, 0.38, 0.35, 0.02),
        "+λ5": _four(0.00, 0.42, 0.29, 0.02),
        "both": TABLE1["moving_box"]["sparce"],
    },
}

# Seconds for one training and all test counterfactuals: data set -> method.
SECONDS_ON = "Quadro RTX 5000"
SECONDS: Mapping[str, Mapping[str, Reported]] = {
    data: {method: Reported(*pair) for method, pair in zip(METHODS, pairs, strict=True)}
    for data, pairs in {
        "catching": [(693, 34), (432, 5), (435, 7), (398, 4)],
        "motionsense": [(2678, 13), (1483, 21), (1660, 23), (1669, 32)],
        "moving_box": [(1755, 5), (22789, 1071), (22290, 1198), (21138, 914)],
    }.items()
}
