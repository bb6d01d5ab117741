"""Who is trained with whom."""

import numpy as np
import pytest
import torch

from sparcets.core.errors import DataError
from sparcets.training.loop import Pairing

LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2])


def pairing(y=LABELS, *, target=None, batch_size=4, balance=False, seed=0):
    cpu = torch.device("cpu")
    return Pairing(y, target=target, batch_size=batch_size, balance=balance, seed=seed, device=cpu)


def columns(pairs, epoch=0):
    batches = list(pairs(epoch))
    assert len(batches) == len(pairs)
    return {name: np.stack([b[name].numpy() for b in batches]) for name in ("query", "target", "real")}


@pytest.mark.parametrize("batch_size", [1, 3, 4, 11, 100])
def test_every_query_comes_in_an_epoch_and_none_twice_in_a_batch(batch_size):
    pairs = pairing(batch_size=batch_size)
    rows = columns(pairs)["query"]
    assert rows.shape == (len(pairs), min(batch_size, 11))
    assert sorted(rows.ravel()[:11].tolist()) == list(range(11))  # what fills the last batch stands behind
    assert all(len(set(batch)) == len(batch) for batch in rows.tolist())


@pytest.mark.parametrize("epoch", range(8))
def test_targets_are_other_classes_and_real_rows_are_of_the_target(epoch):
    c = columns(pairing(), epoch)
    assert (c["target"] != LABELS[c["query"]]).all() and (LABELS[c["real"]] == c["target"]).all()


def test_a_single_target_leaves_its_own_class_out_and_takes_all_real_series_first():
    c = columns(pairing(target=1))
    assert set(c["query"].ravel()) == {0, 1, 2, 3, 4, 8, 9, 10}
    assert (c["target"] == 1).all() and (LABELS[c["real"]] == 1).all()
    real = columns(pairing(target=0, batch_size=6))["real"].ravel()
    assert len(set(real[:5])) == 5
    with pytest.raises(DataError, match="every training series is in the target class"):
        pairing(np.zeros(4, dtype=int), target=0)


def test_balance_is_of_equal_numbers_and_an_epoch_the_same_whenever_it_is_drawn():
    few_targets = pairing(target=1, balance=True)
    assert len(few_targets.queries) == len(few_targets.members[1]) == 3
    few_queries = pairing(np.array([0] * 9 + [1] * 2), target=0, balance=True)
    assert len(few_queries.queries) == len(few_queries.members[0]) == 2
    seen = {int(r) for e in range(30) for r in columns(few_queries, e)["real"].ravel()}
    assert seen == set(few_queries.members[0].tolist())  # the same ones in every epoch
    assert len(pairing(target=1).queries) == 8
    pairs = pairing()
    later = columns(pairs, 5)
    again = columns(pairing(), 5)
    assert all((later[name] == again[name]).all() for name in later)
    assert (columns(pairs, 6)["query"] != later["query"]).any()
    assert (columns(pairing(seed=1), 5)["query"] != later["query"]).any()
