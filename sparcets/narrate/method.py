"""The name of the method that made an explanation, as it is shown to readers."""

from __future__ import annotations

from sparcets.explanation.result import Explanation

OWN = "sparcets"  # registry name of the package's own method


def method_name(explanation: Explanation) -> str:
    """Return the registry name of the method; explanations saved by earlier versions get its present name.

    ``sparce`` used to be the name of both the package's own method (``recipe`` "true" in its config) and the paper's.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[:2], target=1)
    >>> method_name(e), method_name(replace(e, method="sparce", config={"recipe": "true"}))
    ('nearest', 'sparcets')
    """
    earlier = explanation.method == "sparce" and explanation.config.get("recipe") == "true"
    return OWN if earlier else explanation.method
