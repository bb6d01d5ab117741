"""CounteRGAN: residuals without a sparsity layer (after Nemirovsky et al.; the paper's section 4)."""

from __future__ import annotations

from sparcets.config.explainers import CounterGanConfig
from sparcets.explainers.adversarial import AdversarialExplainer


class CounterGan(AdversarialExplainer[CounterGanConfig]):
    """A generator that emits dense residuals, regularised by their size."""

    config_class = CounterGanConfig
    head = "residual"
