"""How an explainer presents itself: in a few lines, in one, and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparcets.notebooks import html_card

if TYPE_CHECKING:
    from sparcets.classifiers.base import Classifier
    from sparcets.explainers.request import CallOptions
    from sparcets.explanation.series_info import SeriesInfo


class Presentation:
    """The part of every explainer that describes it."""

    classifier: Classifier
    info_: SeriesInfo | None
    _defaults: CallOptions

    def _fitted(self) -> SeriesInfo:
        raise NotImplementedError

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features it was fitted on."""
        return self._fitted().of_series.feature_names

    def summary(self) -> str:
        """Say in a few lines what was fitted."""
        if self.info_ is None:
            return f"{type(self).__name__}: not fitted yet."
        info, mutable = self.info_.of_series, self._defaults.constraints.mutable
        steps = f"{'up to ' * info.unequal}{info.n_steps} steps"
        return (
            f"{type(self).__name__} for {self.classifier.description}: series of {steps} and {info.n_features} "
            f"features ({int(mutable.sum())} mutable), {info.predicts}."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.classifier!r}{'' if self.info_ is not None else ', not fitted'})"

    def _repr_html_(self) -> str:
        return html_card(type(self).__name__, self.summary().splitlines())
