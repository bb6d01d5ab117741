"""The settings to start from, by name: a method's defaults, quicker ones, the paper's, or those for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparcets.errors import ConfigError

PRESETS = ("default", "quick", "paper", "tiny")


def from_preset(config_class: Any, preset: str, target: str | None = None) -> Any:
    """Return the settings of a method, for every class or for one target alone; the paper's need a target.

    Parameters
    ----------
    config_class
        The method's class of settings.
    preset
        ``default``, ``tiny``, for our own method ``quick``, or, for the paper's four, ``paper``.
    target
        Class the method is to be made for alone, by name or index (as digits).

    Examples
    --------
    >>> from sparcets.config.explainers import SparceConfig
    >>> from_preset(SparceConfig, "paper", "1").target
    1
    """
    target_class: Any = int(target) if target is not None and target.isdigit() else target
    known = [p for p in PRESETS if p == "default" or hasattr(config_class, p)]
    if preset not in known:
        raise ConfigError(f"{config_class.__name__} has no preset {preset!r}. Known: {', '.join(known)}.")
    if preset == "paper":
        if target_class is None:
            raise ConfigError("the paper trains for one target class: give it with --target (target= in Python).")
        return config_class.paper(target=target_class)
    config = config_class() if preset == "default" else getattr(config_class, preset)()
    return config if target_class is None else replace(config, target=target_class)
