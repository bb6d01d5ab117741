"""Every method on float64 series near 1e9, of which float32 could not hold a single change; and still larger ones."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import DataError, LabelError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba


@pytest.mark.parametrize("size", [1e37, 1e39, 1e154, 1e300])
def test_what_can_be_fitted_can_be_loaded(size, tmp_path):
    X, y = make_series(60)
    series = X.astype(np.float64) * size
    explainer = sp.Nearest(sp.wrap(lambda Z: mean_proba(Z / size)))
    if np.abs(series).max() > np.finfo(np.float32).max:
        classifier = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny())
        for refuse in (explainer.fit, classifier.fit, sp.Dataset.from_arrays):
            with pytest.raises(DataError, match=r"beyond float32's 3.4e.38. Use larger units"):
                refuse(series, y)
        with pytest.raises(DataError, match="beyond float32's"):
            explainer.fit(series / size, y).explain(series[:2], target=1)
        return
    e = explainer.fit(series, y).explain(series[:4], target=1, progress=False)
    explainer.save(tmp_path / "explainer")
    e.save(tmp_path / "e.npz")
    loaded = sp.load(tmp_path / "explainer", classifier=explainer.classifier)
    again = loaded.explain(series[:4], target=1, progress=False)
    for other in (again, sp.load_explanation(tmp_path / "e.npz")):
        np.testing.assert_array_equal(other.counterfactual, e.counterfactual)


def test_labels_and_side_inputs_have_the_same_range():
    X, _ = make_series(20)
    with pytest.raises(LabelError, match=r"y holds 1.9e.301, beyond float32's 3.4e.38. Use larger units"):
        sp.Dataset.from_arrays(X, np.arange(20.0) * 1e300, task="regression")
    with pytest.raises(DataError, match=r"side\['age'\] holds 1.9e.301, beyond float32's"):
        sp.Dataset.from_arrays(X, [0, 1] * 10, side={"age": np.arange(20.0) * 1e300})
