"""SPARCE: residuals through a sparsity layer (Lang, Giese, Ilg, Otte 2022)."""

from __future__ import annotations

from sparcets.config.explainers import SparceConfig
from sparcets.explainers.adversarial import AdversarialExplainer


class Sparce(AdversarialExplainer[SparceConfig]):
    """A generator that emits sparse residuals, trained against a discriminator under five losses.

    ``Sparce(clf, SparceConfig.paper(target="ups"))`` is the paper to the letter; the default trains one generator for
    every target class, with a sparsity term that has a gradient.
    """

    config_class = SparceConfig
    head = "sparse"
