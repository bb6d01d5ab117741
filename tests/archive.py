"""A small archive in the form of MotionSense, and a web site that serves it: slowly, in parts, or not at all."""

import io
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

ARCHIVE = "A_DeviceMotion_data.zip"
NAMES = ("dws_1/sub_1.csv", "ups_3/sub_2.csv")
PIECES = 20


def small_archive(names=NAMES, compression=zipfile.ZIP_STORED):
    """Return an archive of recordings whose content cannot be compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            content = np.random.default_rng(NAMES.index(name)).bytes(50_000)
            archive.writestr(zipfile.ZipInfo(f"A_DeviceMotion_data/{name}"), content, compression)  # of no date
    return buffer.getvalue()


class Server(ThreadingHTTPServer):
    """Serves the archive in so many seconds; counts the bytes it sends, and fails as it is told to."""

    daemon_threads = True

    def __init__(self, seconds=0.0):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.seconds = small_archive(), seconds
        self.supports_ranges = True
        self.cut_after = []  # bytes after which the first, second, … response breaks off
        self.statuses = []  # status of the first, second, … response, instead of the file
        self.stalls = False  # sends headers, then nothing
        self.ranges, self.sent = [], 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/{ARCHIVE}"

    def handle_error(self, *_):
        """Say nothing: clients are killed while they read."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        site, requested = self.server, self.headers.get("Range")
        site.ranges.append(requested)
        if site.statuses:
            self.send_error(site.statuses.pop(0))
            return
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested and site.supports_ranges else 0
        rest, size = site.content[start:], len(site.content)
        self.send_response(200 if not start else 206 if rest else 416)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}" if rest else f"bytes */{size}")
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if site.stalls:
            self.wfile.flush()
            time.sleep(1.0)
            return
        rest = rest[: site.cut_after.pop(0)] if site.cut_after else rest
        site.sent += len(rest)  # before writing, so that the count is right when the client has received them
        piece = size // PIECES + 1 if site.seconds else len(rest) or 1
        for first in range(0, len(rest), piece):
            self.wfile.write(rest[first : first + piece])
            time.sleep(site.seconds / PIECES)

    def log_message(self, *_):
        pass
