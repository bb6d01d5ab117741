"""SPARCE: sparse residuals by a generator with a sparsity layer (Lang, Giese, Ilg, Otte 2022)."""

from __future__ import annotations

from sparcets.core.settings import SparceConfig
from sparcets.methods.adversarial import AdversarialExplainer


class Sparce(AdversarialExplainer[SparceConfig]):
    """The paper's method: a generator whose residuals pass the sparsity layer, trained with all five loss terms.

    ``Sparce(clf)`` serves every target class, and its sparsity term has a gradient.
    ``Sparce(clf, SparceConfig.paper(target="ups"))`` has the settings of the paper, as far as it states them; what it
    leaves open is listed in ``docs/deviations.md``.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> ex = sp.Sparce(clf, sp.SparceConfig.tiny()).fit(X, y, progress=False)
    >>> ex.explain(X[:4], target=1, progress=False).counterfactual.shape
    (4, 20, 4)
    """

    config_class = SparceConfig
    head = "sparse"
