"""What a call must leave alone: global state, and that of the user's modules."""

import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch


def global_state(*modules):
    """Return all of it by name, as values that can be compared."""
    with ThreadPoolExecutor(1) as new:
        threads = torch.get_num_threads(), new.submit(torch.get_num_threads).result()
    found = {
        "default type": torch.get_default_dtype(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "threads, also of a new one": threads,
        "torch's random state": torch.get_rng_state().tolist(),
        "NumPy's random state": str(np.random.get_state(legacy=False)),  # noqa: NPY002
        "Python's random state": random.getstate(),
        # Python's own in all modules, and ours; the first import of a package may add one of its own.
        "filters of warnings": [
            f
            for f in warnings.filters
            if "sparcets" in str(f[1]) or (not (f[1] or f[3]) and f[2].__module__ == "builtins")
        ],
        "output": (sys.stdout, sys.stderr),
    }
    for i, module in enumerate(modules):
        found[f"modes {i}"] = [(name, m.training) for name, m in module.named_modules()]
        found[f"requires_grad {i}"] = [(name, p.requires_grad) for name, p in module.named_parameters()]
        found[f"gradients {i}"] = [name for name, p in module.named_parameters() if p.grad is not None]
        found[f"values {i}"] = {k: v.cpu().numpy().tobytes() for k, v in module.state_dict().items()}
    return found


@contextmanager
def compared(*modules):
    """Raise unless global state, and that of modules, are the same before and after, bit for bit."""
    before = global_state(*modules)
    yield
    after = global_state(*modules)
    different = {name: (value, after[name]) for name, value in before.items() if value != after[name]}
    assert not different, f"not as before: {', '.join(f'{k} {str(v)[:500]}' for k, v in different.items())}"
