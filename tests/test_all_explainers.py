"""Every registered method keeps every guarantee; a new method is found here by itself."""

from functools import cache, cached_property

import pytest

from sparcets.methods import EXPLAINERS
from sparcets.testing import CHECKS, Subject
from sparcets.testing.data import make_series

# (method, check) -> why it does not apply. Empty is best.
EXCEPTIONS = {}


class Small(Subject):
    """With fewer series and queries: a search takes its time for each."""

    data = make_series(60, seed=0)

    @cached_property
    def queries(self):
        X, y = make_series(36, seed=1)
        return X[y != 1][:5]


@cache
def subject(method):
    return Small(EXPLAINERS.load(method))


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_method(method, check):
    if (method, check.__name__) in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[method, check.__name__])
    check(subject(method))


@pytest.mark.parametrize("method", list(EXPLAINERS))
def test_names_agree(method):
    kind = EXPLAINERS.load(method)
    assert subject(method).build().method == method
    assert kind.__name__.lower() == ("explainer" if method == "sparcets" else method)
    assert kind.config_class.__name__ == f"{kind.__name__}Config"
