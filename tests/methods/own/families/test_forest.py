"""Forest: the trees of scikit-learn as tensors; smooth splits are their limit, bounded and with gradients."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier

from sparcets.methods.own.forest import FLOOR, Forest

N, D = 90, 12
RNG = np.random.default_rng(0)
Y = np.arange(N) % 3
INPUTS = torch.tensor(RNG.standard_normal((N, D)), dtype=torch.float32)
INPUTS[:, 0] += torch.tensor(1.5 * Y)
NEW = torch.tensor(RNG.standard_normal((200, D)) * 2, dtype=torch.float32)
SIZES = {"smooth": (30, 9), "sharp": (15, None)}


def fit(kind="smooth", *, seed=0, y=Y, n_classes=3):
    n_trees, max_depth = SIZES[kind]
    return Forest.fit(INPUTS, y, n_classes, n_trees=n_trees, max_depth=max_depth, seed=seed)[0]


@pytest.fixture
def grown(monkeypatch):
    """Return the forests of scikit-learn that are grown from now on."""
    made = []

    class Recorded(ExtraTreesClassifier):
        def fit(self, X, y):
            made.append(super().fit(X, y))
            return made[-1]

    monkeypatch.setattr("sklearn.ensemble.ExtraTreesClassifier", Recorded)
    return made


@pytest.mark.parametrize("kind", SIZES)
def test_every_tree_votes_as_in_scikit_learn(grown, kind):
    forest = fit(kind)
    votes = forest.votes(NEW)
    assert votes.shape == (200, SIZES[kind][0], 3)
    for i, tree in enumerate(grown[0].estimators_):
        np.testing.assert_allclose(votes[:, i], tree.predict_proba(NEW.numpy()), atol=1e-6)
    out_of_bag = grown[0].oob_score_ if kind == "smooth" else 1.0  # sharp trees have learnt from all series
    assert forest.accuracy.item() == pytest.approx(out_of_bag)


@pytest.mark.parametrize("kind", SIZES)
def test_smooth_splits_become_the_votes_as_they_narrow(kind):
    tensors = fit(kind).state_dict()
    forest = Forest(**tensors | {"width": torch.full_like(tensors["width"], 1e-7)})
    mean = forest.votes(NEW).mean(1)
    torch.testing.assert_close(forest.log_proba(NEW), mean.clamp_min(FLOOR).log(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("max_paths", [0, 10**7])
def test_gradients_are_those_of_finite_differences(monkeypatch, max_paths):
    monkeypatch.setattr("sparcets.methods.own.forest.MAX_PATHS", max_paths)
    forest = fit().double()
    inputs = NEW[:3].double().requires_grad_(True)
    assert torch.autograd.gradcheck(forest.log_proba, inputs)
    (gradient,) = torch.autograd.grad(forest.log_proba(inputs)[:, 1].sum(), inputs)
    assert (gradient != 0).any(1).all()


@pytest.mark.parametrize("kind", SIZES)
def test_walking_and_following_paths_give_the_same(monkeypatch, kind):
    results = []
    for max_paths in (0, 10**7):
        monkeypatch.setattr("sparcets.methods.own.forest.MAX_PATHS", max_paths)
        inputs = NEW.clone().requires_grad_(True)
        log_proba = fit(kind).log_proba(inputs)
        log_proba[:, 1].sum().backward()
        results.append((log_proba.detach(), inputs.grad))
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [1e2, 1e30])
def test_log_probabilities_are_bounded(size):
    log_proba = fit().log_proba(size * NEW)
    assert torch.isfinite(log_proba).all() and (log_proba >= np.log(FLOOR) - 1e-6).all() and (log_proba <= 1e-5).all()


def test_trees_without_a_split_are_leaves():
    forest = fit(y=np.zeros(N, dtype=np.int64))
    assert forest.n_levels == 1 and (forest.votes(NEW)[..., 0] == 1).all()
    assert (forest.log_proba(NEW)[:, 0].abs() < 1e-6).all()


def test_a_first_import_of_scikit_learn_leaves_python_s_generator_alone():
    script = """
import random
import numpy as np
import torch
from sparcets.methods.own.forest import Forest
before = random.getstate()
Forest.fit(torch.arange(9.0)[:, None], np.arange(9) % 2, 2, n_trees=5, max_depth=2, seed=0)
assert random.getstate() == before
"""
    subprocess.run([sys.executable, "-c", script], check=True)
