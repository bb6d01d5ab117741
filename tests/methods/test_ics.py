"""The search: each query has a descent, a start and a λ of its own."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.methods import ics
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(36, n_steps=9)
QUERIES = make_series(30, n_steps=9, seed=1)[0]
QUERIES = QUERIES[sp.wrap(MeanModule(), n_classes=3).predict(QUERIES) != 1]


def fitted(config=None, *, sharpness=10.0):
    model = sp.wrap(MeanModule(sharpness=sharpness), n_classes=3)
    return sp.Ics(model, config or sp.IcsConfig.tiny()).fit(X, Y)


@pytest.fixture
def descents(monkeypatch):
    """Keep rows, λ, start and end of every descent, with the search it belongs to; all rows descend in one block."""
    monkeypatch.setattr(ics, "ROWS", 64)
    kept = []
    plain = ics._Search._descend

    def descend(self, start, rows, trade_off):
        end = plain(self, start, rows, trade_off)
        n = len(dict.fromkeys(rows.tolist()))  # the last row is repeated to fill the block
        kept.append((self, rows[:n].tolist(), trade_off[:n].clone(), start[:n].clone(), end[:n]))
        return end

    monkeypatch.setattr(ics._Search, "_descend", descend)
    return kept


def test_the_loss_by_hand(descents):
    fitted().explain(QUERIES, target=1)
    search, _, _, start, _ = descents[0]
    rows = torch.tensor([0, 2])
    x, trade_off = start[rows], torch.tensor([1.0, 4.0])
    value = search.loss(x, rows, trade_off).numpy()
    info = fitted().info_
    raw = x.numpy() * info.scaler.scale + info.scaler.center
    proba = sp.wrap(MeanModule(), n_classes=3).predict_proba(raw.astype(np.float32))
    standard = (QUERIES[[0, 2]] - info.scaler.center) / info.scaler.scale
    expected = [1.0, 4.0] * np.linalg.norm(proba - [0, 1, 0], axis=1) + np.abs(x.numpy() - standard).mean((1, 2))
    np.testing.assert_allclose(value, expected, rtol=1e-4)


def test_the_start_is_noise_within_the_query_s_own_range(descents):
    fitted().explain(QUERIES, target=1)
    search, _, _, start, _ = descents[0]
    low, high = search.query.amin((1, 2)), search.query.amax((1, 2))
    assert (start.amin((1, 2)) >= low).all() and (start.amax((1, 2)) <= high).all()
    assert ((start.amax((1, 2)) - start.amin((1, 2))) > 0.8 * (high - low)).all()


def test_only_open_queries_go_on_and_their_trade_off_doubles(descents):
    # A model so flat, and a first λ so small, that some queries need several rounds.
    config = sp.IcsConfig(steps=15, lr=0.1, prediction_weight=0.05, max_lambdas=6)
    e = fitted(config, sharpness=3.0).explain(QUERIES, target=1)
    assert 1 < len(descents) <= 6
    sizes = [len(rows) for _, rows, *_ in descents]
    assert sizes[0] == len(QUERIES) and sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0]
    for i, (_, rows, trade_off, _, _) in enumerate(descents):
        torch.testing.assert_close(trade_off, torch.full((len(rows),), 0.05 * 2**i))
        if i:
            assert set(rows) <= set(descents[i - 1][1])
    left_early = set(range(len(QUERIES))) - set(descents[-1][1])
    assert e.valid[sorted(left_early)].all()


def test_the_trade_off_grows_by_a_step_if_there_is_one(descents):
    fitted(sp.IcsConfig.tiny().override("steps=1", "max_lambdas=3", "lambda_step=0.25")).explain(QUERIES, target=1)
    assert [sorted(set(trade_off.tolist())) for _, _, trade_off, _, _ in descents] == [[1.0], [1.25], [1.5]]
