"""Parameters of explainers, as scikit-learn has them."""

import numpy as np
import pytest
from sklearn.base import clone

import sparcets as sp
from sparcets.core.errors import ConfigError, NotFittedError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba

X, y = make_series(60)


def test_a_clone_of_a_fitted_explainer_is_unfitted_and_answers_alike_after_its_own_fit():
    ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    again = clone(ex)
    with pytest.raises(NotFittedError):
        again.explain(X[:2], target=1)
    with pytest.raises(NotFittedError):
        sp.Nearest(sp.wrap(mean_proba)).fit(X, y).set_params(config__candidates=3).explain(X[:2], target=1)
    one, two = ex.explain(X[:4], target=1), again.fit(X, y).explain(X[:4], target=1)
    assert np.array_equal(one.counterfactual, two.counterfactual)


def test_fields_of_the_config_are_parameters_by_their_path():
    ex = sp.Sparce(sp.wrap(mean_proba), sp.SparceConfig.tiny())
    assert set(ex.get_params(deep=False)) == {"classifier", "config", "domain_losses"}
    assert ex.get_params()["config__train__lr"] == ex.config.train.lr
    before = ex.config
    assert ex.set_params(config__seed=90, config__train__lr=0.5) is ex
    assert (ex.config.seed, ex.config.train.lr, ex.config.train.epochs) == (90, 0.5, before.train.epochs)
    assert before == sp.SparceConfig.tiny()  # a config is never changed itself
    ex.set_params(config=before, config__seed=80)
    assert (ex.config.seed, ex.config.train.lr) == (80, before.train.lr)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"config__max_serie": 1}, r"no parameter 'config__max_serie'\. Did you mean 'config__max_series'\?"),
        ({"config__noise": -1.0}, "'noise' must be"),
        ({"config": sp.NearestConfig()}, r"Explainer takes an ExplainerConfig, got NearestConfig. Use sp.Nearest"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        sp.Explainer(sp.wrap(mean_proba)).set_params(**params)
