"""Settings of the explainers, one class per method."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.config.base import Config


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainerConfig(Config):
    """What every method has."""

    seed: int = 0
    batch_size: int = 256  # queries explained at a time; bounds the memory, never the result
    device: str = "auto"

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        return [] if self.batch_size >= 1 else [f"'batch_size' must be >= 1, got {self.batch_size}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestConfig(ExplainerConfig):
    """Settings of :class:`~sparcets.Nearest`."""

    candidates: int = 100  # neighbours tried per query, nearest first, before it gives up

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        found = ExplainerConfig.problems(self)
        return found if self.candidates >= 1 else [*found, f"'candidates' must be >= 1, got {self.candidates}"]

    @classmethod
    def tiny(cls) -> NearestConfig:
        """Return settings for tests."""
        return cls(candidates=20)
