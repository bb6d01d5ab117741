"""Engines: where independent pieces of work run. All have the interface of :class:`~sparcets.engines.base.Engine`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparcets.registry import Registry

if TYPE_CHECKING:
    from sparcets.engines.base import Engine

ENGINES = Registry(
    "engine",
    {"local": "sparcets.engines.local:LocalEngine", "ray": "sparcets.engines.ray:RayEngine"},
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
