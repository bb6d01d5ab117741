"""CounteRGAN: residuals without a sparsity layer (after Nemirovsky et al.; the paper's section 4)."""

from __future__ import annotations

from sparcets.core.settings import CounterGanConfig
from sparcets.methods.adversarial import AdversarialExplainer


class CounterGan(AdversarialExplainer[CounterGanConfig]):
    """A generator that emits dense residuals, regularised by their size.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> ex = sp.CounterGan(clf, sp.CounterGanConfig.tiny()).fit(X, y, progress=False)
    >>> ex.explain(X[:4], target=1, progress=False).counterfactual.shape
    (4, 20, 4)
    """

    config_class = CounterGanConfig
    head = "residual"
