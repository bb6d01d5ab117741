"""ROC of the size of changes against the salient entries: by hand, invariants, and compared with scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparcets.evaluation.measures import pooled_auc, roc, salient_auc

WHOLE = st.integers(-3, 3)  # few values, hence many ties


@pytest.mark.parametrize("flag", [True, False])
def test_all_or_no_entries_salient(make_explanation, flag):
    e = make_explanation(np.ones((2, 3, 2)))
    salient = np.full((2, 3, 2), flag)
    assert np.isnan(salient_auc(e, salient)).all() and np.isnan(pooled_auc(e, salient))
    assert np.isnan(roc(e, salient)[1]).all()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_equals_scikit_learn(make_explanation, data):
    from sklearn.metrics import roc_auc_score, roc_curve

    n, n_steps = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 5))
    delta = data.draw(arrays(np.float64, (n, n_steps, 2), elements=WHOLE))
    salient = data.draw(arrays(bool, (n, n_steps, 2)))
    salient[:, 0] = [True, False]
    lengths = data.draw(arrays(np.int64, (n,), elements=st.integers(1, n_steps)))
    e = make_explanation(delta, lengths=lengths)

    size = [np.abs(d[:length]).ravel() for d, length in zip(delta, lengths, strict=True)]
    flags = [s[:length].ravel() for s, length in zip(salient, lengths, strict=True)]
    single = [roc_auc_score(f, s) for f, s in zip(flags, size, strict=True)]
    np.testing.assert_allclose(salient_auc(e, salient), single)

    together = np.concatenate(flags), np.concatenate(size)
    assert pooled_auc(e, salient) == pytest.approx(roc_auc_score(*together))
    fpr, tpr = roc(e, salient, grid=13)
    x, y, _ = roc_curve(*together, drop_intermediate=False)
    # Just beyond a corner, the curve is at the upper end of a vertical part.
    np.testing.assert_allclose(tpr, np.interp(np.minimum(fpr + 1e-9, 1), x, y), atol=1e-6)
