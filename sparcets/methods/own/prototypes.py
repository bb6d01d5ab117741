"""Prototypes: real training series of each class, whose courses answers may follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray, Scaler, Series
from sparcets.methods.own.ensemble import standardised
from sparcets.methods.request import FitJob
from sparcets.models.base import Classifier

PER_CLASS = 200  # prototypes kept per class, at least
MAX_ENTRIES = 2**23  # of all prototypes together: the more there are, the nearer is the nearest
NEAREST = 6  # prototypes of a number that there are at least, if training series have any
PROTOTYPE_SEED = "guides"  # name in the seeds; an older word, kept so that the same seed gives the same prototypes


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Training series that are labelled and predicted as their class.

    Attributes
    ----------
    series, classes
        Series in the data's own units, and their classes (n,).
    rows
        Which training series they are (n,).
    scaler
        To standardised units, in which distances are taken.
    """

    series: Series
    classes: IntArray
    rows: IntArray
    scaler: Scaler

    @classmethod
    def choose(cls, job: FitJob, classifier: Classifier, seed: int) -> Prototypes:
        """Return some series of each class, at random."""
        rng = generator(seed, PROTOTYPE_SEED)
        right = rng.permutation(np.flatnonzero(classifier.outputs_unchecked(job.series).argmax(1) == job.y))
        K = job.info.n_classes
        kept = max(PER_CLASS, MAX_ENTRIES // (K * job.X[0].size))
        rows = np.sort(np.concatenate([right[job.y[right] == k][:kept] for k in range(K)]))
        return cls(job.series[rows], job.y[rows], rows, job.info.scaler)

    @cached_property
    def standardised(self) -> FloatArray:
        """The series in standardised units, without gaps (n, time, features)."""
        return standardised(self.series, self.scaler, gaps=True).values

    def select(self, rows: IntArray, classes: IntArray | None = None) -> Prototypes:
        """Return some of the prototypes, with other classes if these are given."""
        own = self.classes[rows] if classes is None else classes
        return Prototypes(self.series[rows], own, self.rows[rows], self.scaler)

    def at_length(self, n_steps: int) -> Prototypes:
        """Return the prototypes for queries of ``n_steps`` steps, each resampled to that length.

        A series of the same class that is slower or faster is a series of the class still, from beginning to end.
        """
        if (self.series.steps == n_steps).all():
            return self
        return replace(self, series=Series(self.series.resampled(n_steps)))

    def __len__(self) -> int:
        return len(self.series)

    def nearest(self, x: Tensor, target: IntArray, n: int) -> IntArray:
        """Return the rows of the ``n`` nearest prototypes of each query's target (batch, n); -1 if there are no more.

        The queries ``x`` are standardised.
        """
        rows = np.full((len(x), n), -1, dtype=np.int64)
        series = x.reshape(len(x), -1)
        for k in np.unique(target):
            of_class = np.flatnonzero(self.classes == k)
            queries = np.flatnonzero(target == k)
            if not len(of_class):
                continue
            prototypes = torch.as_tensor(self.standardised[of_class], device=x.device).reshape(len(of_class), -1)
            # By differences: by products, the last bits and with them the order of equal ones depend on the number of
            # queries.
            distance = torch.cdist(
                series[torch.as_tensor(queries, device=x.device)].double(),
                prototypes.double(),
                compute_mode="donot_use_mm_for_euclid_dist",
            )
            order = distance.argsort(dim=1, stable=True)[:, :n].cpu().numpy()
            rows[queries[:, None], np.arange(order.shape[1])[None]] = of_class[order]
        return rows
