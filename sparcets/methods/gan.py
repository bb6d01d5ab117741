"""GAN: a whole counterfactual series at once (the paper's section 4)."""

from __future__ import annotations

from sparcets.core.settings import GanConfig
from sparcets.methods.adversarial import AdversarialExplainer


class Gan(AdversarialExplainer[GanConfig]):
    """A generator that emits whole series through tanh, scaled to the data's range, regularised by their distance.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> ex = sp.Gan(clf, sp.GanConfig.tiny()).fit(X, y, progress=False)
    >>> ex.explain(X[:4], target=1, progress=False).counterfactual.shape
    (4, 20, 4)
    """

    config_class = GanConfig
    head = "series"
