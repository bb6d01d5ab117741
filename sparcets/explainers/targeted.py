"""TargetedExplainer: methods that may be made for one target class alone, as the paper's are."""

from __future__ import annotations

from typing import Any, TypeVar

from sparcets.arrays import FloatArray, IntArray
from sparcets.config.explainers import TargetedConfig
from sparcets.errors import TargetError
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.request import FitJob
from sparcets.series_info import SeriesInfo
from sparcets.validation import check_target

T = TypeVar("T", bound=TargetedConfig)


class TargetedExplainer(BaseExplainer[T]):
    """Where its settings name a target, that is the target of every query, and any other is an error."""

    def _fit(self, job: FitJob) -> None:
        self._own_target(job.info)  # a class that is not there is told now

    def _own_target(self, info: SeriesInfo) -> int | None:
        if self.config.target is None:
            return None
        return int(check_target(self.config.target, n_queries=1, class_names=info.class_names)[0])

    def _targets(self, target: Any, before: FloatArray) -> IntArray:
        info = self._fitted()
        own = self._own_target(info)
        if own is None:
            return super()._targets(target, before)
        if target is not None:
            asked = check_target(target, n_queries=len(before), class_names=info.class_names)
            if (asked != own).any():
                raise TargetError(
                    f"this {type(self).__name__} was made for the target {info.class_names[own]!r} alone. "
                    "Ask for that, or fit one with target=None for every class."
                )
        return super()._targets(own, before)
