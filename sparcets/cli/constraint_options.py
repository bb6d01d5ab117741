"""Constraints as options of the command line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sparcets.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.constraints.spec import Constraints

Many = list[str] | None


def parse_constraints(
    *,
    immutable: Many,
    frozen: Many,
    ranges: Many,
    max_step: Many,
    direction: Many,
    groups: Many,
    max_features: int | None,
    integer: Many,
    monotone: Many,
    fixed_sum: Many,
) -> Constraints:
    """Return the constraints of ``sparcets explain``, each as the text of its options."""
    from sparcets.constraints.spec import Constraints

    try:
        return Constraints(
            immutable=[_feature(f) for f in immutable or []],
            frozen=_frozen(frozen or []),
            ranges={_feature(k): _interval(v) for k, v in _pairs(ranges)},
            max_step={_feature(k): float(v) for k, v in _pairs(max_step)},
            direction={_feature(k): v for k, v in _pairs(direction)},
            groups={k: [_feature(f) for f in v.split(",")] for k, v in _pairs(groups)},
            max_features=max_features,
            integer=[_feature(f) for f in integer or []],
            monotone={_feature(k): v for k, v in _pairs(monotone)},
            fixed_sum=[tuple(_feature(f) for f in members.split(",")) for members in fixed_sum or []],
        )
    except ValueError as error:
        raise ConfigError(f"invalid constraint: {error}. See sparcets explain --help.") from error


def _pairs(settings: Many) -> list[tuple[str, str]]:
    pairs = []
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"{setting!r} is not FEATURE=VALUE")
        pairs.append((key, value))
    return pairs


def _frozen(texts: list[str]) -> Any:
    of_features = [text for text in texts if "=" in text]
    if of_features and len(of_features) < len(texts):
        raise ValueError("--frozen is START:STOP for all features or FEATURE=START:STOP, not both")
    if not of_features:
        return [_window(text) for text in texts]
    windows: dict[int | str, list[tuple[int | None, int | None]]] = {}
    for feature, text in _pairs(texts):
        windows.setdefault(_feature(feature), []).append(_window(text))
    return windows


def _window(text: str) -> tuple[int | None, int | None]:
    start, colon, stop = text.partition(":")
    if not colon:
        raise ValueError(f"--frozen {text!r} is not START:STOP")
    return int(start) if start else None, int(stop) if stop else None


def _interval(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(f"--range {text!r} is not LOW:HIGH")
    return float(low) if low else -math.inf, float(high) if high else math.inf


def _feature(text: str) -> int | str:
    return int(text) if text.isdigit() else text
