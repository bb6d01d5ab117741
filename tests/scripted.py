"""A method whose answers the test says."""

import numpy as np

from sparcets.core.settings import NearestConfig
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers


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

    def __init__(self, classifier, config=None, *, script=None):
        super().__init__(classifier, config)
        self.script = script
        self.requests = []

    def _explain(self, request):
        self.requests.append(request)
        answers = np.repeat(request.X, request.n, axis=0) if self.script is None else self.script(request)
        if isinstance(answers, Answers):
            return answers
        n = len(answers)
        return Answers(counterfactual=answers, status=np.full(n, "generated"), reason=np.full(n, ""))

    def _state(self):
        return {}

    def _restore(self, state, info):
        pass
