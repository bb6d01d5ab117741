"""Peers: methods of other packages behind the same interface as ours, to be measured in the same way."""

from sparcets.peers.algorithms import ALGORITHMS
from sparcets.registry import Registry

PEERS = Registry(
    "peer",
    {f"cfts:{name}": f"sparcets.peers.cfts:{name}" for name in ALGORITHMS},
    about={f"cfts:{name}": algorithm.about for name, algorithm in ALGORITHMS.items()},
)
