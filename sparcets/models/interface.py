"""What is known of a user's model: what it takes and what it returns, given by the user or assumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sparcets.core.arrays import is_integer
from sparcets.core.errors import ConfigError, quoted
from sparcets.core.side_inputs import SideInputs
from sparcets.core.validation import check_names
from sparcets.models.inputs import PADDED, Batch, LengthsForm, Missing, rule_name

Kind = Literal["logits", "probabilities", "sigmoid"]
Layout = Literal["btf", "bft", "flat"]
Part = str | int | Callable[[Any], Any]
NUMBERS: Any = "numbers"  # what a regressor returns, in place of a kind


@dataclass(frozen=True, kw_only=True)
class Interface:
    """How a user's model is called, what it takes and what it returns.

    Attributes
    ----------
    call
        An ``nn.Module``, or a function from an array of series to what the model returns.
    name
        Name of the model in messages.
    kind, kind_is_certain
        What it returns, and whether the model itself says so, so that the user cannot say otherwise.
    part
        Which part of a tuple or dict it is: a key, an index, or a function; None for the whole.
    layout
        How it wants its series.
    batch
        Smallest and largest number of series in a call; None for any.
    lengths
        How it is told the lengths of padded series.
    missing
        What it gets for missing values: a rule, or a function.
    n_classes, class_names, named
        Number of classes where the model says it, their names, and whether these are more than numbers.
    assumed
        Names of the arguments of ``sp.wrap`` that were not given but assumed.
    note
        How its values become probabilities, where that is not a matter of course.
    digest
        Of all that determines the predictions, where it is known.
    """

    call: Any
    name: str
    kind: Kind
    kind_is_certain: bool = False
    part: Part | None = None
    layout: Layout = "btf"
    batch: Batch | None = None
    lengths: LengthsForm = PADDED
    missing: Missing = "refuse"
    n_classes: int | None = None
    class_names: tuple[str, ...] | None = None
    named: bool = False
    assumed: tuple[str, ...] = ()
    note: str = ""
    digest: str | None = None

    def describe(self, side: SideInputs | None = None) -> str:
        """Return what is known and what is assumed, and the side inputs, in words.

        >>> Interface(call=len, name="f", kind="logits", layout="bft", assumed=("output",)).describe()
        "classification, output 'logits' (assumed), layout 'bft'"
        """
        part = "" if self.part is None else f" in part {getattr(self.part, '__name__', repr(self.part))}"
        output = f"output {self.note or repr(self.kind)}{part}"
        if self.kind == NUMBERS:
            output = part.removeprefix(" in ")
        known = {
            **({"output": output} if output else {}),
            "layout": f"layout {self.layout!r}",
            **({} if self.lengths.kind == "padding" else {"lengths": f"lengths {self.lengths.kind!r}"}),
            **({} if self.batch is None else {"batch": f"batches of {self.batch[0]} to {self.batch[1]}"}),
            **({} if self.missing == "refuse" else {"missing": f"missing values: {rule_name(self.missing)}"}),
        }
        said = [f"{text} (assumed)" if name in self.assumed else text for name, text in known.items()]
        task = "regression" if self.kind == NUMBERS else "classification"
        beside = "" if side is None else f", side input{'s' * (len(side.names) > 1)} {' and '.join(side.names)}"
        return ", ".join([task, *said]) + beside


MOST_CLASSES = 1_000_000


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
    if n_classes is not None and not is_integer(n_classes):
        raise ConfigError(f"n_classes must be a whole number, got {quoted(n_classes)}.")
    if n_classes is not None and n_classes > MOST_CLASSES:
        raise ConfigError(f"n_classes must be at most {MOST_CLASSES:,}, got {quoted(n_classes)}.")
    own = check_names(own_names(model), what=f"{type(model).__name__}.classes_")
    given = check_names(class_names, what="class_names")
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
