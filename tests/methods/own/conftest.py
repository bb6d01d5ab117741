"""Parts of a fitted model whose answers can be worked out by hand."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.edits import Coordinates
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own.ensemble import Ensemble, Selector
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.space import EditSpace, Group
from sparcets.methods.request import FitJob
from sparcets.models.base import Classifier


def groups_of_one(info):
    """Return every feature as a group of its own."""
    return tuple(Group(name, (i,)) for i, name in enumerate(info.feature_names))


@pytest.fixture(scope="session")
def build_ensemble():
    """Return a function that builds an ensemble of networks; modules become classifiers, and all judges one family."""

    def build(info, members, judges=(), *, families=(), level=0.8, **kwargs):
        def wrapped(models):
            return [m if isinstance(m, Classifier) else sp.wrap(m, n_classes=info.n_classes) for m in models]

        explained, *networks = wrapped(members)
        return Ensemble(
            explained=explained,
            networks=networks,
            families=families,
            levels=torch.full((len(members) + sum(f.n_heads for f in families), info.n_classes), level),
            explained_accuracy=1.0,
            selector=Selector(networks=wrapped(judges), judges=[]),
            scaler=info.scaler,
            device=torch.device("cpu"),
            **kwargs,
        )

    return build


@pytest.fixture(scope="session")
def build_model(build_ensemble):
    """Return a function that builds a fitted model."""

    def build(info, members, prototypes, *, judges=(), level=0.8):
        return FittedModel(
            ensemble=build_ensemble(info, members, judges, level=level),
            prototypes=prototypes,
            reference=None,
            space=EditSpace(
                Coordinates(tolerance=np.zeros(info.n_features)), groups_of_one(info), (), info.scaler.scale
            ),
            prices=(0.03, 1.0),
        )

    return build


@pytest.fixture(scope="session")
def fit_job():
    """Return a function that builds the job of a fit on checked series."""

    def build(X, y, class_names=("a", "b", "c")):
        info = SeriesInfo.from_series(X, class_names)
        bound = sp.Constraints().bind(info)
        known = {"constraints_given": {}, "checkpoint": None, "progress": False}
        return FitJob(series=Series(X), y=y, info=info, target=None, constraints=bound, **known)

    return build
