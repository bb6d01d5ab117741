"""Settings of the peers."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparcets.config.explainers import ExplainerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerConfig(ExplainerConfig):
    """What every peer has; the peer's own settings go through ``options``."""

    # A peer takes one query at a time; a batch is what is judged together: one that crashes throughout is an error.
    batch_size: int = 10_000
    seconds_per_query: float = 60.0  # after that, the query is given up
    references: int = 1000  # training series handed over, evenly from all classes: peers go through all, every time
    options: dict = field(default_factory=dict)  # type: ignore[type-arg]  # the peer's own arguments, by name

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.seconds_per_query > 0, f"'seconds_per_query' must be > 0, got {self.seconds_per_query}"),
            (self.references >= 1, f"'references' must be >= 1, got {self.references}"),
        ]
        return ExplainerConfig.problems(self) + [message for fine, message in checks if not fine]

    @classmethod
    def tiny(cls) -> PeerConfig:
        """Return settings for tests."""
        return cls(seconds_per_query=20.0, references=60)
