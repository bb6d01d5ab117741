"""Work on a cluster of Ray: an actor per core or GPU, one item at a time each.

Not by Ray Data: its pipelines pass blocks of data through the object store of the cluster, and begin again when the
driver does. Here a piece of work is a few words (a cell of a benchmark, a range of rows of a file), what it makes is
written to a file by the worker itself, and what is written is finished, whoever is killed afterwards. What remains for
Ray to do is to place workers, and to tell which of them died.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sparcets.core.errors import CapabilityError, ConfigError, filters_kept
from sparcets.core.registry import require_extra
from sparcets.io.engines import THREADS, Engine, attempt, unsendable

T = TypeVar("T")
R = TypeVar("R")
ATTEMPTS = 4  # workers that may die with one item, before it is given up
PATIENCE = 30.0  # seconds without a worker, after which a message says so
REACHED = 5.0  # seconds in which a cluster must answer
log = logging.getLogger(__name__)


class RayEngine(Engine):
    """Workers on the nodes of a Ray cluster, which must all reach the same files.

    An item whose worker or node died is given to another worker, so that functions must bear to be begun twice; after
    ``ATTEMPTS`` deaths the item is yielded with a ``ChildProcessError``. Nodes on which a file could not be read or
    written get no new worker as long as there are others.
    """

    retries = True
    _opened = False  # whether this object has connected, and so disconnects

    def __enter__(self) -> RayEngine:
        self._ray = require_extra("ray", "the engine ray", "ray")
        if not self._ray.is_initialized():
            self._connect()
            self._opened = True
        return self

    def __exit__(self, *_: Any) -> None:
        if self._opened:
            self._ray.shutdown()
            self._opened = False

    def _own_number(self) -> int:
        """Return one worker per GPU or core of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("GPU" if self._has_gpus() else "CPU", 1)))

    def _map(self, function: Callable[[T], R], queue: deque[T], workers: int) -> Iterator[tuple[T, R | Exception]]:
        pool = _Pool(self._ray, function, workers, gpus=self._has_gpus())
        lost: deque[_Task] = deque()  # whose workers died
        try:
            while queue or lost or pool.busy:
                while idle := pool.idle(len(queue) + len(lost)):
                    idle.submit(lost.popleft() if lost else _Task(queue.popleft()))
                for task, outcome in pool.wait():
                    task.deaths += isinstance(outcome, ChildProcessError)
                    if isinstance(outcome, ChildProcessError) and task.deaths < ATTEMPTS:
                        lost.append(task)
                    else:
                        yield task.item, outcome
        finally:
            pool.close()

    def _has_gpus(self) -> bool:
        return self.device != "cpu" and self._ray.cluster_resources().get("GPU", 0) >= 1

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or a warning about it
        address = self.address or os.environ.get("RAY_ADDRESS") or None
        if address is not None:
            _check_answers(address)
        # Messages of the cluster are shown as ours are, and never on stdout, where results are.
        worker: Any = getattr(getattr(self._ray, "_private", None), "worker", None)
        if hasattr(worker, "print_to_stdstream"):
            worker.print_to_stdstream = _log_messages
        new = {} if address is not None else {"include_dashboard": False}
        try:
            with filters_kept(ignore=Warning):
                self._ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **new)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = "started" if address is None else f"reached at {address}"
            raise CapabilityError(f"no Ray cluster can be {where}: {_one_line(error)}") from error


def _check_answers(address: str) -> None:
    """Raise if nothing answers at an address, which Ray itself would try for a long time."""
    if address in ("auto", "local"):
        return
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"the address of a Ray cluster has the form host:port, as 10.0.0.1:6379, got {address!r}.")
    try:
        socket.create_connection((host, int(port)), timeout=REACHED).close()
    except (OSError, OverflowError) as error:
        raise CapabilityError(
            f"no Ray cluster answers at {address}: {_one_line(error)}. Start one with: ray start --head"
        ) from error


def _log_messages(data: dict[str, Any], *_: Any, **__: Any) -> None:
    log.info("ray: %s", " ".join(" ".join(str(line) for line in data.get("lines", ())).split())[:500])


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")


@dataclass
class _Task:
    """An item, and how many workers died with it."""

    item: Any
    deaths: int = 0


class _Actor:
    """What runs on the cluster: a worker's process."""

    def __init__(self, folder: str, variables: dict[str, str]) -> None:
        # Before anything is imported that reads them. Ray's own number of threads is that of the node, if it has one.
        os.environ.update({**variables, **dict.fromkeys(THREADS, "1")})
        with suppress(OSError):  # a folder of another machine
            os.chdir(folder)  # so that relative paths mean the same
        self.function: Any = None

    def prepare(self, function: bytes) -> str:
        """Load the function; return the node."""
        import ray

        self.function = ray.cloudpickle.loads(function)
        return str(ray.get_runtime_context().get_node_id())

    def run(self, item: Any) -> tuple[str, Any]:
        """Return the function's result, or what it raised."""
        cloudpickle: Any = importlib.import_module("ray.cloudpickle")
        outcome = attempt(self.function, item)
        try:
            cloudpickle.loads(cloudpickle.dumps(outcome[1]))
        except Exception as error:
            return unsendable(outcome[1], error)
        return outcome


class _Worker:
    """An actor and its current task, as seen by the driver."""

    def __init__(self, actor: Any, function: bytes) -> None:
        self.actor, self.node = actor, ""
        self.task: _Task | None = None
        self.reference: Any = actor.prepare.remote(function)

    def submit(self, task: _Task) -> None:
        self.task = task
        self.reference = self.actor.run.remote(task.item)


class _Pool:
    """The workers of one call."""

    def __init__(self, ray: Any, function: Callable[[Any], Any], size: int, *, gpus: bool) -> None:
        self.ray, self.size = ray, size
        self.function = ray.cloudpickle.dumps(function)
        self.kind = ray.remote(num_cpus=0 if gpus else 1, num_gpus=1 if gpus else 0, max_restarts=0)(_Actor)
        # What a process that is started here would have too.
        self.here = (str(Path.cwd()), {name: text for name, text in os.environ.items() if name.startswith("SPARCETS_")})
        self.workers: list[_Worker] = []
        self.avoided: set[str] = set()  # nodes whose disk is full, or the like
        self.any_ready, self.failed_starts, self.warned = False, 0, False

    @property
    def busy(self) -> bool:
        return any(worker.task is not None for worker in self.workers)

    def idle(self, needed: int) -> _Worker | None:
        """Return a worker that can take a task, if tasks are ``needed`` to be done; start those that are missing."""
        if not needed:
            return None
        free = [worker for worker in self.workers if worker.reference is None]
        starting = sum(worker.reference is not None and worker.task is None for worker in self.workers)
        for _ in range(min(self.size - len(self.workers), needed - len(free) - starting)):
            self.workers.append(_Worker(self._new_actor(), self.function))
        return free[0] if free else None

    def wait(self) -> Iterator[tuple[_Task, Any]]:
        """Wait until something happens; yield the tasks that are finished, with their outcomes."""
        by_reference = {worker.reference: worker for worker in self.workers if worker.reference is not None}
        done, _ = self.ray.wait([*by_reference], timeout=None if self.busy else PATIENCE)
        if not done and not self.warned:
            self.warned = True
            log.warning("no worker of the Ray cluster is free yet; waiting")
        for reference in done:
            worker = by_reference[reference]
            kind, value = self._result(reference)
            task, worker.task, worker.reference = worker.task, None, None
            if task is None:
                self._started(worker, kind, value)
                continue
            if kind == "raised":
                if isinstance(value, OSError) and not isinstance(value, ChildProcessError):
                    self.avoided.add(worker.node)
                self._retire(worker)
            yield task, value

    def close(self) -> None:
        """End all workers."""
        for worker in [*self.workers]:
            self._retire(worker)

    def _new_actor(self) -> Any:
        others = {node["NodeID"] for node in self.ray.nodes() if node["Alive"]} - self.avoided
        if not self.avoided or not others:
            return self.kind.remote(*self.here)
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        other = {"ray.io/node-id": strategies.NotIn(*sorted(self.avoided))}
        elsewhere = strategies.NodeLabelSchedulingStrategy(hard=other)
        return self.kind.options(scheduling_strategy=elsewhere).remote(*self.here)

    def _result(self, reference: Any) -> tuple[str, Any]:
        errors = self.ray.exceptions
        try:
            value = self.ray.get(reference)
        except (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError) as error:
            log.info("ray: %s", _one_line(error))
            return "raised", ChildProcessError(
                f"{ATTEMPTS} workers of the Ray cluster died with it; if nodes ran out of memory, use fewer workers."
            )
        except errors.RayError as error:
            return "raised", RuntimeError(f"the worker on the Ray cluster failed: {_one_line(error)}.")
        return value if isinstance(value, tuple) else ("ready", value)

    def _started(self, worker: _Worker, kind: str, value: Any) -> None:
        if kind == "ready":
            worker.node = value
            self.any_ready, self.failed_starts = True, 0
            return
        self._retire(worker)
        self.failed_starts += 1
        hopeless = self.failed_starts >= ATTEMPTS and not self.workers
        if hopeless or (not self.any_ready and not isinstance(value, ChildProcessError)):
            raise CapabilityError(
                f"no worker could be started on the Ray cluster: {_one_line(value)}. Every node needs the same version "
                "of sparcets."
            )

    def _retire(self, worker: _Worker) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
        with suppress(Exception):  # it may be dead, or the cluster may
            self.ray.kill(worker.actor)
