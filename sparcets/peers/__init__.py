"""Peers: methods of other packages as explainers, so that they can be evaluated in the same way as ours."""

from sparcets.peers.algorithms import ALGORITHMS
from sparcets.registry import Registry

PEERS = Registry(
    "peer",
    {f"cfts:{name}": f"sparcets.peers.cfts:{name}" for name in ALGORITHMS},
    about={f"cfts:{name}": algorithm.about for name, algorithm in ALGORITHMS.items()},
)
