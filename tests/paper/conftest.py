"""What the tests of benchmark and reproduction share."""

import pytest


@pytest.fixture
def no_judges(monkeypatch):
    """Leave out the judges: training them takes seconds, and test_cell.py tests them."""
    monkeypatch.setattr("sparcets_paper.benchmark.cell.find_judges", lambda *_, **__: {})
