"""What is known of a user's model: what it takes and what it returns, given by the user or assumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sparcets.classifiers.batching import Batch
from sparcets.classifiers.wrapped.lengths import PADDED, LengthsForm
from sparcets.gaps import Missing, rule_name
from sparcets.side_inputs import SideInputs

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
