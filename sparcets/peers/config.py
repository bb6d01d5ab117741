"""Settings of the peers."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparcets.config.explainers import MethodConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerConfig(MethodConfig):
    """Settings of every peer; arguments of the algorithm itself go to ``options``.

    Examples
    --------
    >>> PeerConfig(seconds_per_query=60.0, options={"num_distractors": 3}).options
    {'num_distractors': 3}
    """

    # A peer explains one query at a time; if all queries of a batch crash, an error is raised.
    batch_size: int = 10_000
    seconds_per_query: float = 60.0  # time limit; the query is not_found after that
    references: int = 1000  # training series passed to the peer, evenly from all classes; it scans them for every query
    options: dict = field(default_factory=dict)  # type: ignore[type-arg]  # arguments of the algorithm by name

    def problems(self) -> list[str]:
        """Return a description of every invalid value."""
        checks = [
            (self.seconds_per_query > 0, f"'seconds_per_query' must be > 0, got {self.seconds_per_query}"),
            (self.references >= 1, f"'references' must be >= 1, got {self.references}"),
        ]
        return MethodConfig.problems(self) + [message for ok, message in checks if not ok]

    @classmethod
    def tiny(cls) -> PeerConfig:
        """Return settings for tests."""
        return cls(seconds_per_query=20.0, references=60)
