"""Peers: methods of other packages as explainers, so that they can be evaluated in the same way as ours."""

from sparcets.core.registry import Registry
from sparcets_paper.peers.algorithms import ALGORITHMS

PEERS = Registry(
    "peer",
    {f"cfts:{name}": f"sparcets_paper.peers.cfts:{name}" for name in ALGORITHMS},
    about={f"cfts:{name}": algorithm.about for name, algorithm in ALGORITHMS.items()},
)
