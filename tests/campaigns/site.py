"""What the campaigns of processes share: data, a classifier and fits, made once per process."""

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sparcets.testing.data import make_series
from tests.archive import ARCHIVE, small_archive

from .processes import Task, run


@dataclass(frozen=True)
class Site:
    """Files that trials read and never change.

    Attributes
    ----------
    data
        A small file of series with three classes.
    model
        A fit of ``nearest``; its classifier is that of every trial.
    other
        Another fit, of the same method with another seed.
    """

    data: Path
    model: Path
    other: Path

    @property
    def classifier(self) -> Path:
        """Folder of the classifier."""
        return self.model / "classifier"

    def fit(self, out: Path, *options: str) -> Task:
        """Return a quick fit with the classifier of the site."""
        where = ["-d", str(self.data), "-c", str(self.classifier), "--out", str(out), "--device", "cpu"]
        return Task(["fit", *where, "--preset", "tiny", *(options or ("-m", "nearest"))])


@cache
def site() -> Site:
    """Make the files of this process."""
    folder = Path(tempfile.mkdtemp(prefix="sparcets-campaign-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    X, y = make_series(45, n_steps=10)
    made = Site(folder / "own.npz", folder / "model", folder / "other")
    np.savez(made.data, X=X, y=np.array(["calm", "brisk", "wild"])[y])
    for out, seed in ((made.model, "0"), (made.other, "1")):
        settings = ["-c", "fcn", "--set-classifier", "epochs=8", "--preset", "tiny", "--device", "cpu", "--seed", seed]
        ended = run(Task(["fit", "-d", str(made.data), "-m", "nearest", *settings, "--out", str(out)]), folder)
        assert ended.code == 0, ended.err
    return made


def expect_small_archive() -> None:
    """Make ``fetch`` of this process expect the small archive, in small pieces."""
    from sparcets.data import fetch

    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder, ARCHIVE)).write_bytes(small_archive())
        fetch.DIGEST = fetch.content_digest(file)
    fetch.CHUNK = 4096
