"""Batches: series of many requests are explained together, and nobody notices; the queue has an end."""

import asyncio
import json
import threading
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from sparcets.server.answers import Failure, Query
from sparcets.web.errors import ApiError

from .conftest import Thread, make_batcher


def queries(X):
    return [Query(X=x, index=i, text=False) for i, x in enumerate(X)]


def answers(outcomes):
    """Return what was answered, parsed."""
    assert not any(isinstance(outcome, Failure) for outcome in outcomes), outcomes
    return [json.loads(outcome) for outcome in outcomes]


def test_what_a_series_is_batched_with_does_not_change_its_answer(fit):
    worker = Thread(fit.explainer)
    requests = [(k, 3 * k, 3 * k + 1 + k % 3) for k in range(12)]  # of one to three series

    async def ask_all():
        batcher = make_batcher([worker], batch_seconds=0.2)
        asked = [
            batcher.explain(json.dumps({"target": ["calm", "wild"][k % 2]}), queries(fit.X[first:last]))
            for k, first, last in requests
        ]
        return await asyncio.gather(*asked)

    together = asyncio.run(ask_all())
    worker.close()
    assert len(worker.batches) == 2 and sum(worker.batches) == sum(last - first for _, first, last in requests)
    for (k, first, last), outcomes in zip(requests, together, strict=True):
        for x, answer in zip(fit.X[first:last], answers(outcomes), strict=True):
            alone = fit.explainer.explain(x[None], ["calm", "wild"][k % 2], progress=False)
            np.testing.assert_allclose(answer["counterfactual"], alone.counterfactual[0], atol=1e-6, rtol=0)
            assert answer["probability"] == pytest.approx(alone.probability[0], abs=1e-6)
            assert (answer["status"], answer["valid"]) == (alone.status[0], alone.valid[0])


def test_several_workers_explain_at_the_same_time(fit):
    both = threading.Barrier(2, timeout=30)  # neither goes on before the other has begun
    workers = [Thread(fit.explainer, lambda _: both.wait()) for _ in range(2)]

    async def ask_all():
        batcher = make_batcher(workers, batch_series=1)
        return await asyncio.gather(*(batcher.explain("{}", queries(fit.X[k : k + 1])) for k in range(6)))

    assert len(answers([outcome for (outcome,) in asyncio.run(ask_all())])) == 6
    for worker in workers:
        worker.close()
    assert [worker.batches for worker in workers] == [[1, 1, 1]] * 2


def test_one_bad_series_fails_alone(fit):
    worker = Thread(fit.explainer)
    bad = fit.X[1].copy()
    bad[2, 1] = np.inf

    async def ask_all():
        batcher = make_batcher([worker], batch_seconds=0.2)
        return await asyncio.gather(*(batcher.explain("{}", queries([x])) for x in (fit.X[0], bad, fit.X[2])))

    first, second, third = asyncio.run(ask_all())
    worker.close()
    assert worker.batches == [3] and len(answers([*first, *third])) == 2
    assert isinstance(second[0], Failure) and second[0].status == 422 and "[2]" in second[0].message.replace(", ", "][")


def test_a_full_queue_refuses_and_says_when_to_come_back(fit):
    go = threading.Event()
    worker = Thread(fit.explainer, lambda _: go.wait(10))

    async def fill():
        batcher = make_batcher([worker], queued_series=4, batch_series=2)
        asked = [asyncio.ensure_future(batcher.explain("{}", queries(fit.X[k : k + 1]))) for k in range(6)]
        await asyncio.sleep(0.1)
        assert batcher.queued == 4
        go.set()
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert batcher.queued == 0
        return done

    done = asyncio.run(fill())
    worker.close()
    refused = [one for one in done if isinstance(one, ApiError)]
    assert [one.status_code for one in refused] == [429, 429] and sum(worker.batches) == 4
    assert all(int((one.headers or {})["Retry-After"]) >= 1 for one in refused)
    assert len(answers([one[0] for one in done if not isinstance(one, ApiError)])) == 4


def test_what_nobody_waits_for_any_more_is_not_explained(fit):
    go = threading.Event()
    worker = Thread(fit.explainer, lambda _: go.wait(10))

    async def ask():
        batcher = make_batcher([worker], seconds=0.2, batch_series=1)
        done = await asyncio.gather(
            *(batcher.explain("{}", queries(fit.X[k : k + 1])) for k in range(3)), return_exceptions=True
        )
        go.set()
        await asyncio.sleep(0.1)
        return done

    late = asyncio.run(ask())
    worker.close()
    assert [(one.status_code, one.code) for one in late] == [(503, "too_slow")] * 3
    assert worker.batches == [1]


def test_a_worker_that_dies_takes_nothing_with_it_but_the_cause(fit):
    cause = fit.X[1]

    def die(batch):
        if any(query.X is cause for query in batch):
            raise BrokenProcessPool("killed")

    worker = Thread(fit.explainer, die)

    async def ask_all():
        batcher = make_batcher([worker], batch_seconds=0.1)
        found = await asyncio.gather(*(batcher.explain("{}", queries([x])) for x in (fit.X[0], cause, fit.X[2])))
        await asyncio.sleep(0.1)
        return found, batcher.ready

    (first, second, third), ready = asyncio.run(ask_all())
    worker.close()
    assert sorted(worker.batches) == [1, 1, 1, 3] and ready == 1
    assert len(answers([*first, *third])) == 2
    assert isinstance(second[0], Failure) and second[0].code == "worker_died"


def test_a_server_that_stops_refuses_what_it_cannot_finish(fit):
    go = threading.Event()
    worker = Thread(fit.explainer, lambda _: go.wait(10))

    async def stop():
        batcher = make_batcher([worker])
        asked = asyncio.ensure_future(batcher.explain("{}", queries(fit.X[:1])))
        await asyncio.sleep(0.05)
        batcher.abandon()
        return await asked

    (outcome,) = asyncio.run(stop())
    go.set()
    worker.close()
    assert isinstance(outcome, Failure) and (outcome.status, outcome.code) == (503, "stopping")
