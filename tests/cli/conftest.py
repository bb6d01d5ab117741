"""What the tests of the commands share: how a command is typed, and data of three classes."""

import numpy as np

from sparcets.__main__ import main
from sparcets.testing.data import make_series

CLASSES = np.array(["calm", "brisk", "wild"])


def run(capsys, *arguments):
    """Run a command; return its exit code, stdout and stderr."""
    capsys.readouterr()
    code = main(list(arguments))
    return (code, *capsys.readouterr())


def output(capsys, *arguments):
    """Run a command that succeeds; return what it prints."""
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    return out


def user_error(capsys, *arguments):
    """Run a command that a mistake of the user stops; return what it says, in one line."""
    code, out, err = run(capsys, *arguments)
    err = err.replace("loading\n", "")  # what the Python file of a model itself prints
    assert (code, out) == (2, "") and len(err.strip().splitlines()) == 1, (code, out, err)
    return err


def save_series(path, n=90, **more):
    """Write series of three classes to a .npz file; return its name."""
    series = {name: more.pop(name) for name in ("n_steps", "seed") if name in more}
    X, y = make_series(n, **series)
    np.savez(str(path), X=X, y=CLASSES[y], **more)
    return str(path)
