"""GAN: a whole counterfactual series at once (the paper's section 4)."""

from __future__ import annotations

from sparcets.config.explainers import GanConfig
from sparcets.explainers.adversarial import AdversarialExplainer


class Gan(AdversarialExplainer[GanConfig]):
    """A generator that emits whole series through tanh, scaled to the data's range, regularised by their distance."""

    config_class = GanConfig
    head = "series"
