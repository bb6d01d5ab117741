"""Choice of the device, seeding that restores torch's global random state, and networks in single precision."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from sparcets.core.errors import CapabilityError
from sparcets.core.seeding import RANDOM_STATE_LOCK
from sparcets.core.series import IntArray
from sparcets.core.settings import MethodConfig

log = logging.getLogger(__name__)
C = TypeVar("C", bound=MethodConfig)
DEVICES = "'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'"
# Functions that make a tensor of torch's default type, which a user may have changed.
_OF_DEFAULT_TYPE = (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn, torch.linspace, torch.eye)
_OF_GIVEN_VALUES = (torch.tensor, torch.full)  # of that type only if they are floats


def resolve_device(name: str) -> torch.device:
    """Return the torch device of a name; ``"auto"`` is the first CUDA device if there is one, and otherwise the CPU.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise CapabilityError(f"no device {name!r}. Use {DEVICES}.") from error
    if device.type not in ("cpu", "cuda", "mps"):
        raise CapabilityError(f"device {name!r} is not supported. Use {DEVICES}.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise CapabilityError(
            f"device {name!r} is not available: torch sees no GPU of Apple here. Use device='cpu', or 'auto'."
        )
    if device.type == "cuda" and not torch.cuda.is_available():
        raise CapabilityError(f"device {name!r} is not available: torch sees no CUDA device here. Use device='cpu'.")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise CapabilityError(f"device {name!r} is not available: there are {torch.cuda.device_count()} CUDA devices.")
    return device


def with_double_precision(config: C) -> C:
    """Return settings with a device that computes in double precision: the same, or the CPU instead of ``"mps"``."""
    if resolve_device(config.device).type != "mps":
        return config
    log.warning("sp.Explainer needs double precision, which GPUs of Apple do not have; it runs on the CPU.")
    return replace(config, device="cpu")


def lengths_on(device: torch.device, lengths: IntArray | Tensor | None) -> Tensor | None:
    """Return lengths as a tensor on a device, or None if nothing is padded."""
    return None if lengths is None else torch.as_tensor(lengths, device=device)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block under its own torch seed; afterwards the global random state is as it was.

    One block runs at a time: another thread waits for it, since both would draw from the one global generator.
    """
    # Not torch.manual_seed: it seeds every GPU, and only the state of this one is restored.
    cuda, mps = device.type == "cuda", device.type == "mps"
    on_gpu = torch.cuda.device(device) if cuda else nullcontext()
    with RANDOM_STATE_LOCK, torch.random.fork_rng(devices=[device] if cuda else []), on_gpu:
        before = torch.mps.get_rng_state() if mps else None
        torch.default_generator.manual_seed(seed)
        if cuda:
            torch.cuda.manual_seed(seed)
        elif mps:
            torch.mps.manual_seed(seed)
        try:
            yield
        finally:
            if before is not None:
                torch.mps.set_rng_state(before)


@contextmanager
def single_precision() -> Iterator[None]:
    """Make tensors, and so the weights of networks, in float32; also as a decorator.

    ``torch.set_default_dtype`` would do the same, but for all threads of the user's program.

    >>> torch.set_default_dtype(torch.float64)
    >>> with single_precision():
    ...     print(torch.nn.Linear(2, 2).weight.dtype)
    torch.float32
    >>> torch.set_default_dtype(torch.float32)
    """
    if torch.get_default_dtype() == torch.float32:
        yield
        return
    with _SinglePrecision():
        yield


class _SinglePrecision(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _OF_DEFAULT_TYPE and kwargs.get("dtype") is None:
            kwargs["dtype"] = torch.float32
        made = func(*args, **kwargs)
        if func in _OF_GIVEN_VALUES and kwargs.get("dtype") is None and made.is_floating_point():
            # NumPy's arrays have a type of their own.
            return made if hasattr(args[0], "dtype") else made.float()
        return made


SMALL = 2**17  # entries of a batch (series * time * features) below which more than one thread gains nothing

_lock = threading.RLock()  # held while numbers are read and set
_open: set[object] = set()  # the blocks that run on one thread now, in all threads
_usual = 1  # number of threads outside of such blocks, when the last one began
_known = threading.local()  # the number of each thread, once it was read


@contextmanager
def threads_for(n_entries: int) -> Iterator[None]:
    """Run a block on one thread if its batches are small; afterwards the number of threads is as it was.

    Several threads of a small network wait for each other after every operation, and beside other work on the same
    cores they wait for the slowest. The number of threads can change the last bits of a result, so that it must not
    depend on how busy the machine is. The entries of a batch are series times steps times features.

    >>> before = torch.get_num_threads()
    >>> with threads_for(32 * 50 * 4):
    ...     print(torch.get_num_threads())
    1
    >>> torch.get_num_threads() == before
    True
    """
    if n_entries >= SMALL:
        number_of_threads()
        yield
        return
    with _on_one_thread():
        yield


@contextmanager
def one_thread_each(n_workers: int) -> Iterator[Executor]:
    """Run a block on one thread, beside workers with one thread each; afterwards the number of threads is as it was.

    Small independent parts of a work gain more from running side by side than each from several threads.

    >>> with one_thread_each(n_workers=1) as worker:
    ...     part = worker.submit(torch.get_num_threads)
    ...     print(torch.get_num_threads(), part.result())
    1 1
    """
    with _on_one_thread(), ThreadPoolExecutor(n_workers, initializer=_use_one_thread) as workers:
        yield workers


def _use_one_thread() -> None:
    with _lock:
        torch.set_num_threads(1)


@contextmanager
def _on_one_thread() -> Iterator[None]:
    global _usual
    number, block = number_of_threads(), object()
    if number == 1:  # also within another such block
        yield
        return
    try:
        with _lock:
            if not _open:
                _usual = number
            _open.add(block)
            torch.set_num_threads(1)
        yield
    finally:
        with _lock:
            torch.set_num_threads(number)
            _open.discard(block)


def number_of_threads() -> int:
    """Return the number of threads of this thread; corrected if it was taken over from a block of another one."""
    with _lock:
        number = torch.get_num_threads()
        if number == 1 < _usual and not hasattr(_known, "number"):
            number = _usual if _open else _number_of_a_new_thread()
            torch.set_num_threads(number)
        _known.number = number
        return number


def _number_of_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as new:
        return new.submit(torch.get_num_threads).result()
