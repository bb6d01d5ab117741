"""SPARCE: sparse residuals by a generator with a sparsity layer (Lang, Giese, Ilg, Otte 2022)."""

from __future__ import annotations

from sparcets.config.explainers import SparceConfig
from sparcets.explainers.adversarial import AdversarialExplainer


class Sparce(AdversarialExplainer[SparceConfig]):
    """The paper's method: a generator whose residuals pass the sparsity layer, trained with all five loss terms.

    ``Sparce(clf)`` serves every target class, and its sparsity term has a gradient.
    ``Sparce(clf, SparceConfig.paper(target="ups"))`` has the settings of the paper, as far as it states them; what it
    leaves open is listed in ``docs/deviations.md``.
    """

    config_class = SparceConfig
    head = "sparse"
