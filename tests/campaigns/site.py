"""What the campaigns of processes share: data, a classifier and fits, made once per process; and a slow web site."""

import atexit
import io
import shutil
import tempfile
import threading
import time
import zipfile
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.testing.data import make_series

from .processes import Task, run

ARCHIVE = "A_DeviceMotion_data.zip"


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


def small_archive() -> bytes:
    """Return an archive in the form of MotionSense; its content cannot be compressed."""
    rng, buffer = np.random.default_rng(0), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("dws_1/sub_1.csv", "ups_3/sub_2.csv"):
            archive.writestr(f"A_DeviceMotion_data/{name}", rng.bytes(50_000))
    return buffer.getvalue()


def expect_small_archive() -> None:
    """Make ``fetch`` of this process expect the small archive, in small pieces."""
    from sparcets.data import fetch

    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder, ARCHIVE)).write_bytes(small_archive())
        fetch.DIGEST = fetch.content_digest(file)
    fetch.CHUNK = 4096


class Server(ThreadingHTTPServer):
    """Serves the small archive, in pieces and with pauses; understands ranges."""

    daemon_threads = True

    def __init__(self, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.seconds = small_archive(), seconds
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        """Address of the archive."""
        return f"http://127.0.0.1:{self.server_port}/{ARCHIVE}"

    def handle_error(self, *_: Any) -> None:
        """Say nothing: clients are killed while they read."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    PIECES = 20

    def do_GET(self) -> None:
        content, requested = self.server.content, self.headers.get("Range")
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested else 0
        whole = start >= len(content)
        self.send_response(416 if whole else 206 if start else 200)
        self.send_header(
            "Content-Range", f"bytes */{len(content)}" if whole else f"bytes {start}-{len(content) - 1}/{len(content)}"
        )
        self.send_header("Content-Length", str(0 if whole else len(content) - start))
        self.end_headers()
        size = len(content) // self.PIECES + 1
        for first in range(start, len(content), size):
            self.wfile.write(content[first : first + size])
            time.sleep(self.server.seconds / self.PIECES)

    def log_message(self, *_: Any) -> None:
        pass


def no_judges() -> None:
    """Leave out the judges of benchmarks in this process: training them takes seconds."""
    from sparcets_paper.benchmark import cell

    cell.find_judges = lambda *_, **__: {}  # type: ignore[assignment]
