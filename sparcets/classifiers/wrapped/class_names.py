"""Names and number of the classes of a user's model, from all that say something about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparcets.classifiers.wrapped.interface import Kind
from sparcets.errors import ConfigError
from sparcets.validation import check_names


def find_class_names(
    model: Any,
    *,
    n_classes: int | None,
    class_names: Sequence[str] | None,
    kind: Kind,
    declared: int | None = None,
) -> tuple[str, ...] | None:
    """Return the class names, or None if unknown; raise unless all sources of them agree.

    Parameters
    ----------
    model
        The user's model; its ``classes_`` count, if it has them.
    n_classes, class_names
        What the user said.
    kind
        What the model returns; ``"sigmoid"`` means two classes.
    declared
        Number of classes that the model declares in another way.
    """
    if n_classes is not None and (isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer))):
        raise ConfigError(f"n_classes must be a whole number, got {n_classes!r}.")
    own, given = own_names(model), check_names(class_names, what="class_names")
    sources = {
        "n_classes": None if n_classes is None else int(n_classes),
        "class_names": None if given is None else len(given),
        f"{type(model).__name__}.classes_": None if own is None else len(own),
        "the model itself": declared,
        "output='sigmoid'": 2 if kind == "sigmoid" else None,
    }
    counts = {what: n for what, n in sources.items() if n is not None}
    if not counts:
        return None
    if len(set(counts.values())) > 1:
        raise ConfigError(
            f"the number of classes is not clear: {', '.join(f'{what} says {n}' for what, n in counts.items())}."
        )
    n = next(iter(counts.values()))
    if n < 2:
        raise ConfigError(f"a classifier tells at least 2 classes apart, but {next(iter(counts))} says {n}.")
    if given is not None and own is not None and given != own and sorted(given) == sorted(own):
        raise ConfigError(
            f"class_names ({', '.join(given)}) are in another order than the model's classes ({', '.join(own)}). "
            "Leave class_names out: the model knows its own."
        )
    return given or own or tuple(str(k) for k in range(n))


def own_names(model: Any) -> tuple[str, ...] | None:
    """Return the names that an estimator gives its classes; whole numbers are written without a point."""
    classes = getattr(model, "classes_", None)
    if classes is None or any(np.ndim(c) for c in classes):  # the classes of several outputs
        return None
    whole = [isinstance(c, (float, np.floating)) and float(c).is_integer() for c in classes]
    return tuple(str(int(c)) if is_whole else str(c) for c, is_whole in zip(classes, whole, strict=True))


def has_names(model: Any) -> bool:
    """Whether the model's classes are more than the numbers 0..K-1."""
    own = own_names(model)
    return own is not None and own != tuple(str(k) for k in range(len(own)))
