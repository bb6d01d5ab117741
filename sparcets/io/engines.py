"""Engines: where independent pieces of work run. All have the interface of :class:`~sparcets.io.engines.Engine`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sparcets.core.registry import Registry

if TYPE_CHECKING:
    from typing_extensions import Self


T = TypeVar("T")
R = TypeVar("R")


class Engine(ABC):
    """Runs independent pieces of work; a context manager, open while it works.

    Parameters
    ----------
    address
        Of a cluster, or None.
    device
        Device of the networks, for engines that assign GPUs.
    """

    retries: ClassVar[bool] = False  # whether an item whose worker died is given to another one

    def __init__(self, *, address: str | None = None, device: str = "auto") -> None:
        self.address, self.device = address, device

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:  # noqa: B027, engines that open nothing have nothing to close
        pass

    @abstractmethod
    def n_workers(self, workers: int | None) -> int:
        """Return the number of workers that the engine would use if ``workers`` are asked for."""

    @abstractmethod
    def map_unordered(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        workers: int | None = None,
        on_start: Callable[[T], None] | None = None,
    ) -> Iterator[tuple[T, R | Exception]]:
        """Apply a function to items, and yield each item with its result, or with the exception raised, on completion.

        Every worker handles one item at a time, and takes the next when it has finished: only as many items are being
        worked on as there are workers. A worker whose function raised is replaced, because the state it left behind is
        unknown. An item whose worker died, for good, is yielded with a ``ChildProcessError``.

        Parameters
        ----------
        function
            Defined at module level, so that other processes can import it.
        items
            Arguments of the function; they and the results must be picklable. A deque is emptied from the left, and
            items appended to it between two results are processed too.
        workers
            Number of workers; None is the engine's own choice.
        on_start
            Called with each item when its processing starts.
        """


ENGINES = Registry(
    "engine",
    {"local": "sparcets.io.local:LocalEngine", "ray": "sparcets.io.ray:RayEngine"},
    about={"local": "processes on this machine", "ray": "a cluster of Ray (sparcets[ray])"},
)


def make_engine(name: str = "local", *, address: str | None = None, device: str = "auto") -> Engine:
    """Return an engine by its name, to be used in a ``with`` block.

    Parameters
    ----------
    name
        ``"local"`` or ``"ray"``.
    address
        Of a Ray cluster, as host:port; None is the one that this machine belongs to, or else one of its own.
    device
        Device of the networks: unless it is ``"cpu"``, a worker of a cluster with GPUs has one for itself.

    Examples
    --------
    >>> import math
    >>> with make_engine("local") as engine:
    ...     sorted(engine.map_unordered(math.sqrt, [4, 9]))
    [(4, 2.0), (9, 3.0)]
    """
    engine: Engine = ENGINES.load(name)(address=address, device=device)
    return engine
