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
from pathlib import Path
from typing import Any, TypeVar

from sparcets.core.errors import CapabilityError, ConfigError, preserve_warning_filters
from sparcets.core.registry import require_extra
from sparcets.io.engines import THREADS, Engine, attempt

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
        gpus = int(self._has_gpus())
        kind = self._ray.remote(num_cpus=1 - gpus, num_gpus=gpus, max_restarts=0)(_Actor)
        # What a process that is started here would have too.
        variables = {name: text for name, text in os.environ.items() if name.startswith("SPARCETS_")}
        here = (str(Path.cwd()), variables, self._ray.cloudpickle.dumps(function))
        lost: deque[tuple[T, int]] = deque()  # items whose workers died, and how many did
        busy: dict[Any, tuple[Any, T, int]] = {}  # actor, item and deaths by the reference of the result
        idle: list[Any] = []
        avoided: set[str] = set()  # nodes whose disk is full, or the like
        any_answered = False
        patience: float | None = PATIENCE
        try:
            while queue or lost or busy:
                while (queue or lost) and (idle or len(busy) < workers):
                    item, deaths = lost.popleft() if lost else (queue.popleft(), 0)
                    actor = idle.pop() if idle else self._new_actor(kind, avoided).remote(*here)
                    busy[actor.run.remote(item)] = (actor, item, deaths)
                while idle:  # what they occupy may be what others wait for
                    self._end(idle.pop())
                done, _ = self._ray.wait([*busy], timeout=None if any_answered else patience)
                if not done and patience:
                    log.warning("no worker of the Ray cluster has answered yet; waiting")
                    patience = None
                for reference in done:
                    actor, item, deaths = busy.pop(reference)
                    node, how, value = self._result(reference)
                    if how == "result":
                        idle.append(actor)
                    else:
                        self._end(actor)
                    if how == "died" and deaths + 1 < ATTEMPTS:
                        lost.append((item, deaths + 1))
                        continue
                    if how == "unstarted":
                        workers -= 1
                        if not any_answered or not workers:
                            raise value
                        lost.append((item, deaths))
                        continue
                    if how == "raised" and isinstance(value, OSError):
                        avoided.add(node)
                    any_answered = True
                    yield item, value
        finally:
            for actor in [*idle, *(actor for actor, *_ in busy.values())]:
                self._end(actor)

    def _new_actor(self, kind: Any, avoided: set[str]) -> Any:
        """Return the class of a new worker, on none of the nodes to be avoided if there are others."""
        others = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]} - avoided
        if not avoided or not others:
            return kind
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        other = {"ray.io/node-id": strategies.NotIn(*sorted(avoided))}
        return kind.options(scheduling_strategy=strategies.NodeLabelSchedulingStrategy(hard=other))

    def _result(self, reference: Any) -> tuple[str, str, Any]:
        """Return the node, what became of an item there, and its result or the error."""
        errors = self._ray.exceptions
        try:
            found: tuple[str, str, Any] = self._ray.get(reference)
        except (errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError) as error:
            log.info("ray: %s", _one_line(error))
            if getattr(error, "actor_init_failed", False):
                why = _one_line(str(error).strip().rpartition("\n")[2])
                why = f"no worker could be started on the Ray cluster: {why}. Every node needs the same version"
                return "", "unstarted", CapabilityError(f"{why} of sparcets.")
            died = f"{ATTEMPTS} workers of the Ray cluster died with it; if nodes ran out of memory, use fewer workers."
            return "", "died", ChildProcessError(died)
        except errors.RayError as error:
            return "", "raised", RuntimeError(f"the worker on the Ray cluster failed: {_one_line(error)}.")
        return found

    def _end(self, actor: Any) -> None:
        with suppress(Exception):  # it may be dead, or the cluster may
            self._ray.kill(actor)

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
            with preserve_warning_filters(ignore=Warning):
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


class _Actor:
    """What runs on the cluster: a worker's process."""

    def __init__(self, folder: str, variables: dict[str, str], function: bytes) -> None:
        import ray

        # Before anything is imported that reads them. Ray's own number of threads is that of the node, if it has one.
        os.environ.update({**variables, **dict.fromkeys(THREADS, "1")})
        with suppress(OSError):  # a folder of another machine
            os.chdir(folder)  # so that relative paths mean the same
        self.function = ray.cloudpickle.loads(function)
        self.node = str(ray.get_runtime_context().get_node_id())

    def run(self, item: Any) -> tuple[str, str, Any]:
        """Return the node, whether the function returned or raised, and what."""
        return self.node, *attempt(self.function, item, importlib.import_module("ray.cloudpickle"))
