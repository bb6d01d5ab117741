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
class Adapted:
    """A user's model, ready to be called, with the defaults of its kind.

    Attributes
    ----------
    call
        An ``nn.Module``, or a function from an array of series to what the model returns.
    name
        Name of the model in messages.
    kind
        What it returns, unless the user says otherwise.
    kind_is_certain
        Whether the model itself says what it returns, so that the user cannot say otherwise.
    layout
        How it wants its series, unless the user says otherwise.
    batch
        Smallest and largest number of series in a call; None for any.
    n_classes
        Number of classes, where the model says it.
    note
        How its values become probabilities, where that is not a matter of course.
    digest
        Of all that determines the predictions, where it is known.
    """

    call: Any
    name: str
    kind: Kind
    kind_is_certain: bool = False
    layout: Layout = "btf"
    batch: Batch | None = None
    n_classes: int | None = None
    note: str = ""
    digest: str | None = None


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What a wrapped model takes and returns.

    Attributes
    ----------
    kind
        What the model returns.
    part
        Which part of a tuple or dict it is: a key, an index, or a function; None for the whole.
    layout
        How the model wants its series.
    batch
        Smallest and largest number of series in a call; None for any.
    missing
        What the model gets for missing values: a rule, or a function.
    class_names, named
        Names of the classes, and whether they are more than numbers.
    assumed
        Names of the arguments of ``sp.wrap`` that were not given but assumed.
    note
        How its values become probabilities, where that is not a matter of course.
    lengths
        How it is told the lengths of padded series.
    """

    kind: Kind
    layout: Layout
    part: Part | None = None
    batch: Batch | None = None
    missing: Missing = "refuse"
    class_names: tuple[str, ...] | None = None
    named: bool = False
    assumed: tuple[str, ...] = ()
    note: str = ""
    lengths: LengthsForm = PADDED

    def describe(self, side: SideInputs | None = None) -> str:
        """Return what is known and what is assumed, and the side inputs, in words.

        >>> Interface(kind="logits", layout="bft", assumed=("output",)).describe()
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
        return ", ".join([task, *said]) + describe_side(side)


def describe_side(side: SideInputs | None) -> str:
    """Return the side inputs of a model as the end of a list of what is known of it.

    >>> describe_side(SideInputs.of({"age": [63], "ward": [2]})), describe_side(SideInputs.of({"age": [63]}))
    (', side inputs age and ward', ', side input age')
    """
    return "" if side is None else f", side input{'s' * (len(side.names) > 1)} {' and '.join(side.names)}"


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
