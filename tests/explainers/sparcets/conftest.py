"""Parts of a fitted model whose answers can be worked out by hand."""

import pytest
import torch
from torch import nn

import sparcets as sp
from sparcets.classifiers.base import Classifier
from sparcets.explainers.request import FitJob
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explanation.series_info import SeriesInfo


class StubGenerator(nn.Module):
    """Changes one of four features, that of the target class or a fixed one, by ``size`` times the sparsity weight.

    With prototypes, it moves all the way to them. ``calls`` holds the number of queries and the logarithm of the
    sparsity weight of each call.
    """

    def __init__(self, *, size=1.0, feature=None, uses_weight=True, last_feature=0.0, uses_prototype=False):
        super().__init__()
        self.size, self.feature, self.uses_weight, self.last_feature = size, feature, uses_weight, last_feature
        self.uses_prototype, self.calls = uses_prototype, []

    def forward(self, x, target, log_weight, prototype=None):
        self.calls.append((len(x), float(log_weight[0])))
        if self.uses_prototype:
            return prototype - x
        feature = target if self.feature is None else torch.full_like(target, self.feature)
        size = self.size * (log_weight.exp() if self.uses_weight else torch.ones_like(log_weight))
        delta = (nn.functional.one_hot(feature, 4) * size[:, None])[:, None].expand_as(x).clone()
        delta[..., 3] += self.last_feature
        return delta


@pytest.fixture(scope="session")
def build_model():
    """Return a function that builds a fitted model around a stub generator; modules become classifiers."""

    def build(info, members, prototypes, *, selector, log_weights=(0.0,), scales=(1.0,), generator=None, **stub):
        *wrapped, selector = (
            m if isinstance(m, Classifier) else sp.wrap(m, n_classes=info.n_classes) for m in (*members, selector)
        )
        return FittedModel(
            generator=generator or StubGenerator(**stub),
            ensemble=Ensemble(members=wrapped, selector=selector, scaler=info.scaler, device=torch.device("cpu")),
            prototypes=prototypes,
            log_sparsity_weights=tuple(log_weights),
            residual_scales=tuple(scales),
            min_agreement=0.9,
        )

    return build


@pytest.fixture(scope="session")
def fit_job():
    """Return a function that builds the job of a fit on checked series."""

    def build(X, y, class_names=("a", "b", "c")):
        info = SeriesInfo.from_series(X, class_names)
        return FitJob(
            X=X,
            y=y,
            lengths=None,
            info=info,
            target=None,
            constraints=sp.Constraints().bind(info),
            constraints_given={},
            checkpoint=None,
            progress=False,
        )

    return build
