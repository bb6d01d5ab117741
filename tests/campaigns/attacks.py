"""Attacks on the studio: wrong tokens, sessions and hosts, unfinished requests, bombs in files, broken uploads."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import socket
import stat
import threading
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .registry import OK, Trial, UnavailableError, campaign

TOKEN, OTHER = "the-token-of-this-studio", "the-token-of-somebody-else"
STATUS, LOGIN, LOGOUT = "/api/v1/status", "/api/v1/login", "/api/v1/logout"
PATHS = (STATUS, "/api/v1/catalog", "/api/v1/datasets", "/api/v1/jobs", "/api/v1/openapi.json", "/api/v1/nowhere")
SOON = 20.0  # seconds; an answer that takes milliseconds, on a machine that does many other things
PATIENCE = 120.0  # seconds that a client waits for any answer
N_OPEN = 300  # unfinished requests at the same time
MIB = 2**20
HOSTS = ("localhost", "127.0.0.1", "[::1]")
ODD = "@/\\:[]()<>\"' \t;,%?#é\x7f\x01"


@dataclass(frozen=True)
class Response:
    """What a raw request got: status 0 if the connection was closed without an answer."""

    status: int
    head: str
    body: bytes

    @property
    def code(self) -> str:
        """Code of an error of the usual shape; empty if it is none."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            return str(json.loads(self.body)["error"]["code"])
        return ""


@dataclass(frozen=True)
class Studio:
    """A studio in a thread of this process."""

    folder: Path
    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, request: bytes) -> Response:
        """Send a request as it is, and return what comes back until the connection is closed."""
        with self.connect() as client, contextlib.suppress(ConnectionError):
            client.sendall(request)
            return received(client)
        return Response(0, "", b"")

    def ask(
        self, path: str = STATUS, headers: dict[str, str] | None = None, body: bytes = b"", method: str = ""
    ) -> Response:
        """Send a request with the token, or with other headers."""
        given = {"Authorization": f"Bearer {TOKEN}"} if headers is None else headers
        lines = [f"{method or ('POST' if body else 'GET')} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in given.items())]
        if not any(name.lower() == "host" for name in given):
            lines.append(f"Host: localhost:{self.port}")
        lines += ["Connection: close", *([f"Content-Length: {len(body)}"] if body else [])]
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def log_in(self, **given: str) -> str:
        """Return the secret of a new session, or "" if it was refused."""
        got = self.ask(LOGIN, {"Content-Type": "application/json"}, json.dumps(given).encode())
        assert got.status in (200, 401) and "set-cookie" not in got.head.lower(), got
        return str(json.loads(got.body)["secret"]) if got.status == 200 else ""

    def left(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "datasets").iterdir())

    def is_open_to_others(self) -> str:
        """Name a file or folder that others could read, if there is one."""
        for path in (self.folder, *self.folder.rglob("*")):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IMODE(path.lstat().st_mode) & 0o077:
                    return str(path)
        return ""


def received(client: socket.socket) -> Response:
    data = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        while piece := client.recv(65536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    return Response(int(text.split(" ")[1]) if text.startswith("HTTP/") else 0, text, body)


@contextlib.contextmanager
def studio(folder: Path, sessions: Any = None, **limits: Any) -> Iterator[Studio]:
    """Serve a studio on an empty workspace, with sessions of its own unless they are given."""
    try:
        import uvicorn

        from sparcets.studio.app import create_app
    except ImportError as error:
        raise UnavailableError("needs the extra sparcets[studio]") from error
    from sparcets.studio.app import BACKLOG
    from sparcets.studio.models import Limits
    from sparcets.web.access import TOKEN_FILE, find_token
    from sparcets.web.requests import bind, limited

    workspace = folder / "workspace"
    own = Limits(**limits)
    app = create_app(workspace, token=TOKEN, limits=own, device="cpu", sessions=sessions)
    find_token(workspace / TOKEN_FILE, TOKEN)
    config = uvicorn.Config(app, http=limited(own), ws="none", log_level="critical", backlog=BACKLOG)
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as opened:
        thread = threading.Thread(target=server.run, args=([opened],))
        thread.start()
        try:
            made = Studio(workspace, opened.getsockname()[1])
            assert made.ask().status == 200
            yield made
        finally:
            server.should_exit = True
            thread.join()


def damaged(rng: np.random.Generator, text: str) -> str:
    """Return a token that is nearly the right one."""
    k, letter = int(rng.integers(len(text))), chr(rng.integers(33, 127))
    ways = (text[:k], text + letter, text[:k] + letter + text[k + 1 :], text.swapcase(), text[::-1], text * 2, "",
            f"{text}\x00", f'"{text}"', f"%{text}", text[1:], OTHER)  # fmt: skip
    found = str(ways[rng.integers(len(ways))])
    return OTHER if found == text else found  # a letter that was replaced by itself


@campaign("studio: tokens", trials=6000, dose=60, parts=2)
def tokens(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Only the right token in the right place opens anything; files are for their owner alone."""
    with studio(folder) as here:
        own = here.log_in(token=TOKEN)
        for trial in range(trials):
            path, wrong = str(rng.choice(PATHS)), damaged(rng, TOKEN)
            bad: list[tuple[dict[str, str], str]] = [
                ({}, ""),
                ({"Authorization": f"Bearer {wrong}"}, ""),
                ({"Authorization": f"Bearer {damaged(rng, own)}"}, ""),
                ({"Authorization": f"Basic {TOKEN}"}, ""),
                ({"Authorization": TOKEN}, ""),
                ({"Cookie": f"sparcets-studio-{here.port}={TOKEN}"}, ""),  # no cookie counts
                ({"Cookie": f"sparcets-session={own}; Authorization=Bearer {own}"}, ""),
                ({"Authorization": f"Bearer {wrong}", "Cookie": f"sparcets-session={own}"}, ""),
                ({"X-Token": TOKEN, "Proxy-Authorization": f"Bearer {TOKEN}"}, ""),
                ({}, f"?token={urllib.parse.quote(TOKEN)}"),  # nor does the address
                ({}, f"?secret={urllib.parse.quote(own)}"),
            ]
            good = [{"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer {own}", "Cookie": "a=b"}]
            if trial % 8 == 0:
                got = here.ask(path, headers := good[int(rng.integers(len(good)))])
                expected = got.status == (404 if path.endswith("nowhere") else 200)
            else:
                headers, query = bad[int(rng.integers(len(bad)))]
                method = str(rng.choice(["GET", "POST", "DELETE", "PUT"]))
                got = here.ask(path + query, headers, method=method)
                expected = got.status == 401 and got.code in ("token_needed", "wrong_token")
                if any("\x00" in value for value in headers.values()):  # no header at all
                    expected = got.status == 400
                expected &= "set-cookie" not in got.head.lower() and TOKEN.encode() not in got.body
            readable = here.is_open_to_others() if trial % 50 == 0 else ""
            fault = f"{path} with {headers}: {got.status} {got.code} {readable}"
            yield OK if expected and not readable else Trial(fault)


@campaign("studio: sessions", trials=4000, dose=300)
def sessions(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """A code opens one session, and a session ends by log-out, idleness and age; nothing else opens anything."""
    try:
        from sparcets.web.access import Sessions
    except ImportError as error:
        raise UnavailableError("needs the extra sparcets[studio]") from error
    now, idle, longest, lasts = 0.0, 100.0, 300.0, 50.0
    known = Sessions(code_seconds=lasts, idle_seconds=idle, seconds=longest, most=10**6, clock=lambda: now)
    code, expires, codes = "", 0.0, ["never-a-code"]
    opened: dict[str, tuple[float, float]] = {}  # start and last use of those that should be open
    secrets = ["never-a-secret"]

    def alive(secret: str) -> bool:
        start, used = opened.get(secret, (-longest, 0.0))
        return now < min(start + longest, used + idle)

    with studio(folder, sessions=known) as here:
        for _ in range(trials):
            now += float(rng.choice([0, 1, 20, 60, 120], p=[0.5, 0.2, 0.2, 0.07, 0.03]))
            move = str(rng.choice(["new code", "code", "token", "use", "use", "replay", "out", "all out"]))
            secret = str(rng.choice(secrets[-6:]))
            fault = ""
            if move == "new code":
                code, expires = known.new_code(), now + lasts
                codes.append(code)
            elif move in ("code", "token"):
                tried = str(rng.choice(codes[-3:])) if move == "code" else str(rng.choice([TOKEN, damaged(rng, TOKEN)]))
                right = (tried == code and now < expires) if move == "code" else tried == TOKEN
                got = here.log_in(**{move: tried})
                fault = "" if bool(got) == right else f"{tried} at {now}: {got or 'refused'}"
                if move == "code" and tried == code:
                    code = ""
                if got:
                    secrets.append(got)
                    opened[got] = (now, now)
            elif move == "replay":  # whatever another port could be sent
                sent = {
                    "Cookie": f"sparcets-session={secret}; token={TOKEN}",
                    "Referer": f"http://localhost/#{codes[-1]}",
                }
                fault = "" if here.ask(STATUS, sent).status == 401 else f"opened by {sent}"
            elif move == "all out" and rng.random() < 0.2:
                fault = "" if here.ask(LOGOUT, method="POST").status == 204 else "the token ends no sessions"
                opened.clear()
            else:
                path, method = (LOGOUT, "POST") if move == "out" else (STATUS, "GET")
                got_status = here.ask(path, {"Authorization": f"Bearer {secret}"}, method=method).status
                expected = (204 if move == "out" else 200) if alive(secret) else 401
                fault = "" if got_status == expected else f"{move} at {now}: {got_status}, expected {expected}"
                if got_status == 200:
                    opened[secret] = (opened[secret][0], now)
                else:
                    opened.pop(secret, None)
            yield OK if not fault else Trial(fault)


@campaign("studio: hosts", trials=4000, dose=60)
def hosts(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """A malformed host is a bad request, another one is refused, and nothing else happens."""
    right = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)
    with studio(folder) as here:
        for _ in range(trials):
            host = str(rng.choice(HOSTS)) + str(rng.choice(["", f":{here.port}", ":80"]))
            for _ in range(int(rng.integers(0, 4))):
                k, piece = int(rng.integers(len(host) + 1)), str(rng.choice([*ODD, "evil.example", ":99999", ".", "a"]))
                host = host[:k] + piece + host[k + int(rng.integers(0, 2)) :]
            if rng.random() < 0.05:
                host = host * int(rng.integers(50, 3000))
            got = here.ask(headers={"Authorization": f"Bearer {TOKEN}", "Host": host})
            seen = host.strip(" \t")
            port = seen.rpartition(":")[2]
            if right.fullmatch(seen) and not (port.isdigit() and int(port) > 65535):
                expected = got.status == 200
            else:
                expected = got.status in (400, 403, 431) and bool(got.code)
            yield OK if expected else Trial(f"Host {host[:200]!r}: {got.status} {got.code}")


@campaign("studio: unfinished requests", trials=20, dose=1)
def unfinished_requests(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Hundreds of requests that never end keep nobody out."""
    begin = f"POST /api/v1/datasets/upload?filename=a.csv HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}"
    beginnings = ("", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", f"{begin}\r\n",
                  f"{begin}\r\nContent-Length: 9000\r\n\r\nseries")  # fmt: skip
    with studio(folder) as here:
        for _ in range(trials):
            with contextlib.ExitStack() as clients:
                opened = []
                for _ in range(N_OPEN):
                    client = clients.enter_context(here.connect())
                    with contextlib.suppress(ConnectionError):  # closed, to make room
                        client.sendall(str(rng.choice(beginnings)).encode())
                    opened.append(client)
                for client in opened[:: int(rng.integers(1, 9))]:
                    with contextlib.suppress(ConnectionError):
                        client.sendall(b"x")  # slowly, byte by byte
                started = time.monotonic()
                got = here.ask()
                took = time.monotonic() - started
            left = wait_until(lambda: not here.left())
            fault = f"{N_OPEN} unfinished requests: status {got.status} after {took:.1f} s, left {here.left()}"
            yield OK if got.status == 200 and took < SOON and left else Trial(fault)


def wait_until(done: Callable[[], bool]) -> bool:
    end = time.monotonic() + 2 * SOON
    while not done() and time.monotonic() < end:
        time.sleep(0.05)
    return done()


def _npz(**entries: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)
    return content.getvalue()


def _header(shape: tuple[int, ...]) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return content.getvalue()


def bomb(kind: str, size: int) -> tuple[str, bytes]:
    """Return name and content of a small file that unpacks to a large one; ``size`` is about that of its table."""
    if kind == "padding":  # many series of one step, and one of many
        rows = [f"{s},0,{s % 2},1" for s in range(size)] + [f"0,{t},0,1" for t in range(1, size)]
        return "a.csv", ("series,time,label,a\n" + "\n".join(rows)).encode()
    if kind == "columns":
        return (
            "a.csv",
            f"series,time,label,{','.join(map(str, range(250 * size)))}\n0,0,a,{'1,' * (250 * size)}".encode(),
        )
    if kind == "long line":
        return "a.csv", b"series,time,label,x\n0,0,a," + b"1" * (1000 * size)
    if kind == "zip":
        return "a.npz", _npz(
            X=_header((size, 2000, 10)) + bytes(size * 160_000 // 8), y=_header((size,)) + bytes(8 * size)
        )
    if kind == "claim":  # a header that promises more than there is
        return "a.npz", _npz(X=_header((10**6, 10**5, size)), y=_header((10**6,)))
    return "a.npz", _npz(**{f"x{i}": b"" for i in range(size)})  # many entries


BOMBS = ("padding", "columns", "long line", "zip", "claim", "entries")


@campaign("studio: bombs", trials=48, dose=2)
def bombs(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Files that grow are refused in words, leave nothing, and nobody waits for them."""
    with studio(folder, reader_bytes=600 * MIB, unpacked_bytes=64 * MIB, reader_seconds=40.0) as here:
        for trial in range(trials):
            kind, size = BOMBS[trial % len(BOMBS)], int(rng.integers(4200, 8000))  # the least is above the limit
            name, content = bomb(kind, size)
            got: list[Response] = []

            def send(name: str = name, content: bytes = content, got: list[Response] = got) -> None:
                got.append(here.ask(f"/api/v1/datasets/upload?filename={name}", body=content))

            upload = threading.Thread(target=send)
            before, longest = _memory(), 0.0
            upload.start()
            while upload.is_alive():
                started = time.monotonic()
                status = here.ask().status
                longest = max(longest, time.monotonic() - started)
                upload.join(0.2)
            refused = bool(got) and got[0].status in (408, 413, 422) and bool(got[0].code)
            grown = _memory() - before
            wait_until(lambda: not here.left())
            if refused and status == 200 and longest < SOON and not here.left() and grown < 300 * MIB:
                yield OK
            else:
                said = (got[0].status, got[0].code) if got else None
                yield Trial(
                    f"{kind} {size}: {said}, waited {longest:.1f} s, left {here.left()}, {grown >> 20} MiB more"
                )


def _memory() -> int:
    """Return the memory of this process, in bytes; 0 where that is not known."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if file.exists() else 0


@campaign("studio: uploads that break off", trials=60, dose=2)
def broken_uploads(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    """Whenever a client ends within an upload, nothing is left of it."""
    rows = [f"{s},{t},{s % 2},{s + t}" for s in range(200) for t in range(20)]
    content = ("series,time,label,a\n" + "\n".join(rows)).encode()
    last = False  # whether all of the trial before was sent: it may be read only now
    with studio(folder) as here:
        for _ in range(trials):
            sent = int(rng.integers(0, len(content) + 1)) if rng.random() < 0.7 else len(content)
            head = (
                f"POST /api/v1/datasets/upload?filename=a.csv HTTP/1.1\r\nHost: localhost:{here.port}\r\n"
                f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            with here.connect() as client:
                client.sendall(head.encode() + content[:sent])
                time.sleep(float(rng.uniform(0, 0.3)))
                if rng.random() < 0.5:  # a reset instead of an end
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            whole: list[str] = []  # read before the end of the client was noticed

            def settled(found: list[str] = whole) -> bool:
                found[:] = here.left()
                return not any(name.startswith(".") for name in found)

            gone = wait_until(settled)
            complete = all((here.folder / "datasets" / name / "about.json").exists() for name in whole)
            for name in whole:
                here.ask(f"/api/v1/datasets/{name}", method="DELETE")
            fault = f"{sent} of {len(content)} bytes: left {whole}"
            right = gone and complete and (not whole or sent == len(content) or last) and here.ask().status == 200
            last = sent == len(content)
            yield OK if right else Trial(fault)
