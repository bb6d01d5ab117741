"""A method whose answers the test says."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sparcets.core.info import SeriesInfo
from sparcets.core.series import FloatArray
from sparcets.core.settings import NearestConfig
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers, Request
from sparcets.models.base import Classifier


class Scripted(BaseExplainer[NearestConfig]):
    """A method with scripted answers, for tests of the base class; it keeps every request.

    Parameters
    ----------
    classifier, config
        As for any method.
    script
        From a request to the counterfactuals (status ``generated``) or to whole answers; None gives the queries back.
    """

    config_class = NearestConfig
    supports_lengths = True

    def __init__(
        self,
        classifier: Classifier,
        config: NearestConfig | None = None,
        *,
        script: Callable[[Request], FloatArray | Answers] | None = None,
    ) -> None:
        super().__init__(classifier, config)
        self.script = script
        self.requests: list[Request] = []

    def _explain(self, request: Request) -> Answers:
        self.requests.append(request)
        answers = np.repeat(request.X, request.n, axis=0) if self.script is None else self.script(request)
        if isinstance(answers, Answers):
            return answers
        n = len(answers)
        return Answers(counterfactual=answers, status=np.full(n, "generated"), reason=np.full(n, ""))

    def _state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        pass
