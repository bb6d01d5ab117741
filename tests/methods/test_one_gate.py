"""Input is checked once, at the public methods; nothing below checks it again."""

import sys
from collections import Counter

import pytest

import sparcets as sp
from sparcets.core import series, target, validation
from sparcets.methods import EXPLAINERS
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba

X, Y = make_series(30, n_steps=10)
QUERIES = X[Y != 1][:4]
CHECKS = {"check_series": series, "check_labels": validation, "check_target": target, "check_lengths": series}


def build(method, model=None):
    kind = EXPLAINERS.load(method)
    config = kind.config_class.tiny()
    config = config.override("train.epochs=1") if hasattr(config, "train") else config
    return kind(sp.wrap(model or MeanModule(), n_classes=3), config)


@pytest.fixture
def checked(monkeypatch):
    """Count the calls of each check, in every module that uses it, and keep the number of series that were checked."""
    calls = Counter()

    def counting(name, plain):
        def check(values, *args, **kwargs):
            calls[name] += 1
            calls["series"] += len(values) if name == "check_series" else 0
            return plain(values, *args, **kwargs)

        return check

    for name, home in CHECKS.items():
        plain = getattr(home, name)
        loaded = [module for path, module in sys.modules.items() if path.startswith("sparcets")]
        users = [module for module in loaded if getattr(module, name, None) is plain]
        assert users
        for module in users:
            monkeypatch.setattr(module, name, counting(name, plain))
    return calls


MODELS = [(method, None) for method in EXPLAINERS]
MODELS += [(method, mean_proba) for method in EXPLAINERS if not EXPLAINERS.load(method).needs_gradients]


@pytest.mark.parametrize(("method", "model"), MODELS)
def test_fit_and_explain_check_once(method, model, checked):
    explainer = build(method, model)
    explainer.fit(X, Y)
    assert all(checked[name] <= 1 for name in CHECKS), checked
    assert (checked["check_series"], checked["check_labels"], checked["series"]) == (1, 1, len(X))
    checked.clear()
    explainer.explain(QUERIES, target=1)
    assert all(checked[name] <= 1 for name in CHECKS), checked
    assert (checked["check_series"], checked["check_target"], checked["series"]) == (1, 1, len(QUERIES))
