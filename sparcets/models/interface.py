"""A user's model as a Classifier or a Regressor: its call, its inputs and its outputs.

This is one of the three places where axes are transposed (the others are :mod:`sparcets.data.uea` and
:mod:`sparcets.evaluation.families`): inside sparcets series are always (batch, time, features).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from sparcets.core.errors import CapabilityError, ModelOutputError, SparcetsError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import FloatArray, IntArray, Series, missing_entries
from sparcets.core.side_inputs import Side, SideInputs
from sparcets.io.files import digest_of_json
from sparcets.models.base import PREDICT_BATCH, Classifier, Missing, Model, Regressor, frozen, with_prediction
from sparcets.training.networks import blank_padding, fill_gaps, lengths_of

Kind = Literal["logits", "probabilities", "sigmoid"]
Layout = Literal["btf", "bft", "flat"]
Lengths = Literal["argument", "packed", "list", "padding"]
Part = str | int | Callable[[Any], Any]
Batch = tuple[int, int]
KINDS: tuple[Kind, ...] = get_args(Kind)
NUMBERS: Any = "numbers"  # the kind of a regressor's output
EXAMPLE = 'output=("logits", 0) or output=("logits", "name")'
_DIFFERENT_ROWS = 5  # so many different outputs that sum to 1 are no coincidence
LAYOUTS = "'btf' (batch, time, features), 'bft' (batch, features, time), or 'flat' for models of tables"
# Parts of messages about wrong shapes from torch, NumPy, scikit-learn, Keras, onnxruntime and the boosters.
_SHAPE = re.compile(
    r"shape|\bdim|\bsize|channel|\bfeatures\b|\baxis\b|\baxes\b|broadcast|\brank\b|out of (bounds|range)", re.IGNORECASE
)
_COLOUR = re.compile(r"\x1b\[\d*m")  # of terminals, in messages from Keras


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The call of a user's model, its inputs and its outputs."""

    call: Any  # an ``nn.Module``, or a function from an array of series to the model's output
    name: str  # in messages
    kind: Kind
    kind_is_certain: bool = False  # whether the model itself defines it, so that the user cannot choose another
    part: Part | None = None  # of a tuple or dict: a key, an index, or a function; None for the whole
    layout: Layout = "btf"
    batch: Batch | None = None  # smallest and largest number of series in a call; None for any
    lengths: Lengths = "padding"  # how it gets the lengths of padded series, see :func:`sparcets.wrap`
    lengths_name: str | None = None  # name of the argument for them; None for the second argument
    missing: Missing = "refuse"  # its input for missing values: a rule, or a function
    n_classes: int | None = None  # if the model defines it
    class_names: tuple[str, ...] | None = None
    named: bool = False  # whether the names are more than numbers
    assumed: tuple[str, ...] = ()  # names of the arguments of ``sp.wrap`` that were not given
    note: str = ""  # how its values become probabilities, if that is not obvious
    digest: str | None = None  # digest of everything that determines the predictions, if known

    def describe(self, side: SideInputs | None = None) -> str:
        """Describe the known and the assumed properties, and the side inputs.

        >>> Interface(call=len, name="f", kind="logits", layout="bft", assumed=("output",)).describe()
        "classification, output 'logits' (assumed), layout 'bft'"
        """
        part = "" if self.part is None else f" in part {getattr(self.part, '__name__', repr(self.part))}"
        numbers = self.kind == NUMBERS
        rule = self.missing if isinstance(self.missing, str) else name_of(self.missing)
        known = {
            "output": part.removeprefix(" in ") if numbers else f"output {self.note or repr(self.kind)}{part}",
            "layout": f"layout {self.layout!r}",
            "lengths": "" if self.lengths == "padding" else f"lengths {self.lengths!r}",
            "batch": "" if self.batch is None else f"batches of {self.batch[0]} to {self.batch[1]}",
            "missing": "" if rule == "refuse" else f"missing values: {rule}",
        }
        said = [f"{text} (assumed)" if name in self.assumed else text for name, text in known.items() if text]
        beside = "" if side is None else f", side input{'s' * (len(side.names) > 1)} {' and '.join(side.names)}"
        return ", ".join(["regression" if numbers else "classification", *said]) + beside

    def arranged(self, x: Any) -> Any:
        """Return series (batch, time, features) in the layout of the model; for arrays and tensors."""
        if self.layout == "bft":
            x = x.swapaxes(1, 2)
        elif self.layout == "flat":
            x = x.reshape(len(x), -1)
        return x.contiguous() if isinstance(x, Tensor) else x

    def ask(self, function: Callable[..., Any], x: Any, lengths: Any, side: Mapping[str, Any]) -> Any:
        """Call the model, or another function of it, with series, their lengths and side inputs by name.

        Series are in the model's layout, with zeros as padding; lengths are None if nothing is padded. PyTorch's number
        of threads is restored: models that use numba, such as those of aeon, change it in their first call.
        """
        x = x if isinstance(x, Tensor) else np.array(x, order="C")  # a copy: the model may write into it
        n_threads = torch.get_num_threads()
        try:
            given, named = self._given(x, lengths)
            return function(*given, **named, **side)
        finally:
            if torch.get_num_threads() != n_threads:
                torch.set_num_threads(n_threads)

    def _given(self, x: Any, lengths: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments for series and lengths."""
        if self.lengths == "padding":
            return [x], {}
        time = 2 if self.layout == "bft" else 1
        if lengths is None:
            steps = (len(x),), x.shape[time]
            lengths = torch.full(*steps, device=x.device) if isinstance(x, Tensor) else np.full(*steps)
        if self.lengths == "argument":
            return ([x, lengths], {}) if self.lengths_name is None else ([x], {self.lengths_name: lengths})
        if self.lengths == "packed":
            return [pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)], {}
        cut = [one[:n] if time == 1 else one[:, :n] for one, n in zip(x, lengths.tolist(), strict=True)]
        # Contiguous, since compiled code does not take arrays of mixed layouts.
        return [[one.contiguous() if isinstance(one, Tensor) else np.ascontiguousarray(one) for one in cut]], {}


def name_of(model: Any) -> str:
    """Return the name of a function, or of the class of a model.

    >>> name_of(np.nan_to_num), name_of(3)
    ('nan_to_num', 'int')
    """
    return str(getattr(model, "__name__", type(model).__name__))


def call_in_batches(call: Callable[[IntArray], Any], n: int, batch: Batch) -> Any:
    """Return the outputs of a model for ``n`` series, one row per series, in batches that it accepts.

    A batch that is too small has its last series several times, whose further outputs are dropped.

    >>> call_in_batches(lambda rows: print(rows) or 10 * rows, 5, (2, 4))
    [0 1 2 3]
    [4 4]
    array([ 0, 10, 20, 30, 40])
    """
    outputs = []
    for start in range(0, n, batch[1]):
        size = min(batch[1], n - start)
        rows = start + np.minimum(np.arange(max(size, batch[0])), size - 1)
        outputs.append(call(rows)[:size])
    return torch.cat(outputs) if isinstance(outputs[0], Tensor) else np.concatenate(outputs)


def parameters_of(call: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a model by name, of which the first is the series; empty if unknown."""
    try:
        return signature(call.forward if isinstance(call, nn.Module) else call).parameters
    except (TypeError, ValueError):  # built-in functions have no signature
        return {}


def split_side(x: Any, known: SideInputs | None, dtype: torch.dtype | None) -> tuple[Any, Any]:
    """Return series (batch, time, features) alone, and their side inputs.

    Arrays have their original types. Tensors of whole numbers are int64, flags bool, others have the model's type; no
    gradients flow to side inputs, which never change.
    """
    if known is None:
        return x, {}
    series, parts = known.split(x)
    if not isinstance(x, Tensor):
        return series, known.typed(parts)
    kinds = {"b": torch.bool, "i": torch.int64, "u": torch.int64}
    side = {}
    for name, stored in zip(known.names, known.dtypes, strict=True):
        kind = kinds.get(np.dtype(stored).kind)
        part = parts[name].detach()
        side[name] = part.to(dtype or x.dtype) if kind is None else part.round().to(kind)
    return series, side


def filled(x: Any, missing: Missing, lengths: Any = None) -> Any:
    """Return series (batch, time, features), an array or a tensor, with gaps filled by the rule or the
    function.

    The values of a function are used for missing entries only. In a tensor they are constants: gradients flow to
    measured entries.
    """
    if missing == "keep":
        return x
    if isinstance(x, Tensor):
        if isinstance(missing, str):
            return fill_gaps(x, missing, lengths)
        values = filled(x.detach().cpu().numpy(), missing)
        return torch.where(x.isnan(), torch.as_tensor(values, dtype=x.dtype, device=x.device), x)
    if isinstance(missing, str):
        return Series(x, lengths).filled(missing).values
    gaps = missing_entries(x)
    if gaps is None:
        return x
    try:
        values = np.asarray(missing(x.copy()), dtype=x.dtype)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ModelOutputError(
            f"the function given as missing= failed on series of shape {x.shape}: {type(error).__name__}: {error}."
        ) from error
    if values.shape != x.shape:
        raise ModelOutputError(f"the function given as missing= must return shape {x.shape}, got {values.shape}.")
    return np.where(gaps, values, x)


def pick(returned: Any, kind: Kind, part: Part | None, name: str) -> Any:
    """Return the part of a model's return value that is its output: as the user specified, by its kind or by its name.

    Without a part, it is the only element of a tuple, or the entry of a dict that has the name of the kind.
    """
    if callable(part):
        return part(returned)
    whole = isinstance(returned, (Tensor, np.ndarray, np.generic, int, float)) or returned is None
    if whole:
        if part is None:
            return returned
        raise ModelOutputError(
            f"output={quoted(part)} names a part of what {name} returns, but it returned one "
            f"{type(returned).__name__}. Leave it out."
        )
    if part is None:
        if isinstance(returned, Mapping) and kind in returned:
            return returned[kind]
        if isinstance(returned, (tuple, list)) and len(returned) == 1:
            return returned[0]
        # A list may hold several outputs, or rows of numbers.
        tables = isinstance(returned, list) and any(getattr(one, "ndim", 0) > 1 for one in returned)
        if isinstance(returned, (tuple, Mapping)) or tables:
            raise ModelOutputError(f"{name} returned {_parts(returned)}. Say which part is its output: {EXAMPLE}.")
        return returned
    if isinstance(returned, Mapping) and isinstance(part, int) and part not in returned:
        returned = list(returned.values())
    if isinstance(part, str) and hasattr(returned, part):
        return getattr(returned, part)  # a named tuple, or an object
    try:
        return returned[part]
    except (LookupError, TypeError) as error:
        raise ModelOutputError(f"{name} returned {_parts(returned)}, which has no part {quoted(part)}.") from error


def _parts(returned: Any) -> str:
    kind = f"a {type(returned).__name__}"
    if isinstance(returned, Mapping):
        return f"{kind} of {', '.join(map(str, returned))}"
    return f"{kind} of {len(returned)} (indices 0 to {len(returned) - 1})" if hasattr(returned, "__len__") else kind


def as_rows(raw: Any, n: int, kind: Kind, name: str) -> Any:
    """Return the output for ``n`` series as (batch, columns); raise if it cannot be the output of that kind."""
    shape, numbers = tuple(raw.shape), kind == NUMBERS
    if n == 1 and raw.ndim < 2:
        raw = raw.reshape(1, -1)  # a model that ends in squeeze() drops the batch of one
    elif raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or len(raw) != n:
        wanted = "numbers (batch,) or (batch, outputs)" if numbers else "(batch, classes)"
        hint = " For a model of classes, leave task='regression' out." if numbers else ""
        raise ModelOutputError(f"{name} must return {wanted}, got {shape} for {n} series.{hint}")
    if not (raw.is_floating_point() if isinstance(raw, Tensor) else raw.dtype.kind in "fiub"):
        wanted = "a tensor of numbers" if numbers else "logits or probabilities, not labels"
        raise ModelOutputError(f"{name} returned {raw.dtype}; wrap a model that returns {wanted}.")
    if kind == "sigmoid" and raw.shape[1] != 1:
        raise ModelOutputError(
            f"output='sigmoid' means one probability per series, but {name} returned {raw.shape[1]} columns."
        )
    if kind == "probabilities" and raw.shape[1] == 1:
        raise ModelOutputError(
            f"{name} returned one {'column' if len(shape) == 2 else 'number per series'}; wrap what returns "
            "probabilities (batch, classes), or with output='sigmoid' where it is the probability of class 1."
        )
    return raw


def log_probabilities(raw: Tensor, kind: Kind, name: str) -> Tensor:
    """Return log-probabilities (batch, classes) of the output (batch, columns) of a model.

    A single column of logits or of probabilities is that of class 1.
    """
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))  # half precision is too coarse for a softmax
    if not torch.is_grad_enabled():  # with gradients, a check would synchronise with the GPU
        _check_kind(raw, kind, name)
    if kind == "logits" and raw.shape[1] > 1:
        return with_prediction(raw.log_softmax(1), raw.argmax(1))
    if kind == "logits":
        both = torch.cat([nn.functional.logsigmoid(-raw), nn.functional.logsigmoid(raw)], dim=1)
        return with_prediction(both, (raw[:, 0] > 0).long())
    proba = torch.cat([1 - raw, raw], dim=1) if kind == "sigmoid" else raw
    # A saturated probability of 0 would give infinite losses and gradients.
    return with_prediction(proba.clamp_min(torch.finfo(proba.dtype).tiny).log(), proba.argmax(1))


def _check_kind(raw: Tensor, kind: Kind, name: str) -> None:
    """Raise for invalid probabilities, and for logits that can only be probabilities.

    A second softmax would flatten probabilities silently. Logits of a few series can sum to 1 by chance (rounded
    numbers, votes), so fewer than ``_DIFFERENT_ROWS`` prove nothing: a fit predicts the training series, which are
    more.
    """
    if kind != "logits":
        if bool(((raw < -1e-4) | (raw > 1 + 1e-4)).any()):
            raise ModelOutputError(
                f"{name} returned {float(raw.min()):.3g} to {float(raw.max()):.3g} where output={kind!r} "
                "promises probabilities. If these are logits, wrap with output='logits'."
            )
        return
    distributions = raw.shape[1] > 1 and bool((raw >= 0).all() & ((raw.sum(1) - 1).abs() < 1e-5).all())
    if distributions and len(set(map(tuple, raw.tolist()))) >= _DIFFERENT_ROWS:
        raise ModelOutputError(
            f"{name} returned rows that are probabilities already, where output='logits' promises logits. "
            "Wrap it with output='probabilities'."
        )


def model_failed(form: Interface, shape: tuple[int, ...], error: BaseException) -> ModelOutputError:
    """Return the error for a model that failed on series of a shape, with advice if the shape is the reason."""
    text = " ".join(_COLOUR.sub("", str(error)).split()).rstrip(".")
    missing = [one for one in list(parameters_of(form.call))[1:] if re.search(rf"missing .* required .*'{one}'", text)]
    hint = ""
    if missing:
        hint = (
            f" What it takes besides the series is passed by name, a row per series: side={{{missing[0]!r}: …}}; on "
            f"the command line, columns of a file: --option side={','.join(missing)}."
        )
    elif (
        _SHAPE.search(text) and "required positional argument" not in text and type(error).__name__ != "NotFittedError"
    ):
        hint = (
            f" It may want another layout: layout={LAYOUTS}; or other batches: batch=(2, 64). Or the array itself is "
            "transposed: sparcets takes (batch, time, features); make one of (batch, features, time) so by "
            "X.swapaxes(1, 2), and leave layout as it is."
        )
    return ModelOutputError(
        f"your model {form.name} failed on an input of shape {shape} (layout {form.layout!r}): {type(error).__name__}: "
        f"{text}.{hint}"
    )


class _Wrapped(Model):
    """A user's model: a module, which every call leaves unchanged, or a black box of arrays."""

    takes_side = True

    def __init__(self, model: Any, interface: Interface) -> None:
        self.model, self.interface = model, interface
        self.missing, self.takes_longer = interface.missing, interface.lengths != "padding"
        if isinstance(interface.call, nn.Module):
            self.differentiable, self.module = True, interface.call

    def __repr__(self) -> str:
        kind = "WrappedModule" if self.differentiable else "BlackBox"
        return f"{kind}{super().__repr__().removeprefix(type(self).__name__)}"

    @property
    def name(self) -> str:
        """The model's class or file, or the function's name."""
        return self.interface.name

    @property
    def description(self) -> str:
        """The model's name, and its specified or assumed inputs and outputs."""
        return f"{self.name} ({self.interface.describe(self.side)})"

    @property
    def device(self) -> torch.device:
        """Device of the weights of a module; the CPU if it has none."""
        first = next(self._tensors(), None)
        return torch.device("cpu") if first is None else first.device

    @property
    def dtype(self) -> torch.dtype | None:
        """The type of a module's weights, and so of its input; None if it has no weights and takes any type."""
        return next((p.dtype for p in self._tensors() if p.is_floating_point()), None)

    def _tensors(self) -> Iterator[Tensor]:
        return chain(self.module.parameters(), self.module.buffers()) if self.differentiable else iter(())

    def digest(self) -> str | None:
        """Return a digest of the model's file and its interface, or None without a file."""
        form, rule = self.interface, [self.missing] if self.takes_gaps else []
        if self.interface.digest is None or callable(form.part) or callable(self.missing):
            return None
        return digest_of_json([self.interface.digest, form.kind, form.part, form.layout, *rule])

    def _check_side(self, side: SideInputs) -> None:
        """Raise unless the model has an argument for each side input, as far as its signature is known."""
        form, parameters = self.interface, parameters_of(self.interface.call)
        if not parameters or Parameter.VAR_KEYWORD in {parameter.kind for parameter in parameters.values()}:
            return
        further = [one for one in list(parameters)[1:] if one != form.lengths_name]
        takes = f"beside the series it takes {', '.join(further)}" if further else "it takes the series alone"
        for one in (name for name in side.names if name not in further):
            raise CapabilityError(
                f"{form.name} has no argument {one!r} for a side input.{did_you_mean(one, further)} Side inputs are "
                f"passed by name, and {takes}. Rename it in side=, or wrap a function of the series and {one}."
            )

    def _ask(self, x: Any, lengths: Any, call: Callable[[Any, Any, Any], Any] | None = None) -> Any:
        """Call the model, or another function, with checked series in its layout, as arrays or tensors."""
        function, form = call or self._call, self.interface
        x, side = split_side(x, self.side, self.dtype)
        x = filled(x, self.missing, lengths) if self.takes_gaps else x
        x = x.to(self.dtype or x.dtype) if isinstance(x, Tensor) else x
        if lengths is not None:
            x = blank_padding(x, lengths) if isinstance(x, Tensor) else Series(x, lengths).blank().values
        x = form.arranged(x)
        if form.batch is None:
            return function(x, lengths, side)

        def call_some(rows: IntArray) -> Any:
            beside = {name: values[rows] for name, values in side.items()}
            return function(x[rows], lengths_of(lengths, rows), beside)

        return call_in_batches(call_some, len(x), form.batch)

    def _ask_module(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if not self.differentiable:
            raise self._no_gradients()
        with frozen(self.module):
            raw: Tensor = self._ask(x, lengths)
        return raw

    def _call(self, x: Any, lengths: Any, side: Side) -> Any:
        form = self.interface
        try:
            raw = pick(form.ask(form.call, x, lengths, side), form.kind, form.part, self.name)
            if not isinstance(x, Tensor):
                raw = raw.detach().cpu().numpy() if isinstance(raw, Tensor) else np.asarray(raw)
        except SparcetsError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise model_failed(form, tuple(x.shape), error) from error
        if not isinstance(raw, (Tensor, np.ndarray)):
            raise ModelOutputError(
                f"{self.name} returned {type(raw).__name__}; wrap a module that returns a tensor (batch, outputs), "
                "or say where it is: output=('logits', function of what it returns)."
            )
        return as_rows(raw, len(x), form.kind, self.name)


class WrappedClassifier(_Wrapped, Classifier):
    """A user's model of classes."""

    def __init__(self, model: Any, interface: Interface) -> None:
        super().__init__(model, interface)
        self._class_names, self.named = interface.class_names, interface.named
        self.may_be_logits = not interface.kind_is_certain

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series in the data's own units, with gradients to ``x``."""
        return log_probabilities(self._ask_module(x, lengths), self.interface.kind, self.name)

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        if self.differentiable:
            return super()._outputs(X, lengths)
        raw, kind = self._ask(X, lengths), self.interface.kind
        if kind == "probabilities":
            return raw  # bit for bit
        with torch.no_grad():
            return log_probabilities(torch.from_numpy(raw.astype(np.float64)), kind, self.name).exp().numpy()

    def own_predictions(self, series: Series) -> IntArray | None:
        """Return the result of the estimator's ``predict`` (batch,); None if it has only ``predict_proba``."""
        predict = getattr(self.model, "predict", None)
        if not callable(predict) or not callable(getattr(self.model, "predict_proba", None)):
            return None

        def call(x: Any, lengths: Any, side: Side) -> Any:
            return np.asarray(self.interface.ask(predict, x, lengths, side))

        try:
            index = {label: k for k, label in enumerate(np.asarray(self.model.classes_).tolist())}
            parts = [self._ask(part.values, part.lengths, call) for part in series.batches(PREDICT_BATCH)]
            said = np.array([index[label] for part in parts for label in part.tolist()], dtype=np.int64)
        except (Exception, SystemExit):  # the probabilities count: a predict that fails is ignored
            return None
        return said if len(said) == len(series) else None


class WrappedRegressor(_Wrapped, Regressor):
    """A user's model of numbers (batch,) or (batch, outputs)."""

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``."""
        raw = self._ask_module(x, lengths)
        return raw.to(torch.promote_types(raw.dtype, torch.float32))

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        return super()._outputs(X, lengths) if self.differentiable else self._ask(X, lengths)
