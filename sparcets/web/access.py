"""Who may use a web application: programs that send its token, and pages that have logged in.

The token is stored in a file that only its owner can read. Programs send it as a header, ``Authorization: Bearer …``.
A page logs in with a code that is valid once, or with the token, and sends the secret of its session in the same
header. There is no cookie: browsers send cookies to every port of a host, whoever listens there.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import Request

from sparcets.core.errors import ConfigError
from sparcets.io.files import atomic_path
from sparcets.web.errors import ApiError

TOKEN_FILE = "token"
VALID_TOKEN = re.compile(r"[!-~]{8,}")  # printable ASCII: it has to fit into headers
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
MAX_PORT = 65535
HOUR = 3600.0


class Sessions:
    """The pages that have logged in. They are kept in memory only: a restart ends all of them.

    A code has to be used within ``code_seconds``. A session ends after ``idle_seconds`` without a request, and after
    ``seconds`` in any case; one more than ``most`` ends the one that was used least recently.

    >>> sessions = Sessions()
    >>> code = sessions.new_code()
    >>> secret = sessions.log_in(code)
    >>> sessions.log_in(code) is None, sessions.is_open(secret)
    (True, True)
    """

    def __init__(
        self,
        *,
        code_seconds: float = 600.0,
        idle_seconds: float = 4 * HOUR,
        seconds: float = 24 * HOUR,
        most: int = 64,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.code_seconds, self.idle_seconds, self.seconds = code_seconds, idle_seconds, seconds
        self._most, self._clock = most, clock
        self._code: tuple[str, float] | None = None  # and when it expires
        self._open: dict[str, tuple[float, float]] = {}  # start and last use, by digest; the least recent use first
        self._lock = threading.Lock()  # codes are made in another thread than they are used in

    def new_code(self) -> str:
        """Return a code for one login; it replaces the one before."""
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._code = (code, self._clock() + self.code_seconds)
        return code

    def log_in(self, code: str) -> str | None:
        """Return the secret of a new session, or None if this is not the code, or not any more."""
        with self._lock:
            if self._code is None or not _equal(code, self._code[0]):
                return None
            expires, self._code = self._code[1], None
        return self.open() if self._clock() < expires else None

    def open(self) -> str:
        """Return the secret of a new session."""
        secret, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            while len(self._open) >= self._most:
                del self._open[next(iter(self._open))]
            self._open[_digest(secret)] = (now, now)
        return secret

    def is_open(self, secret: str) -> bool:
        """Whether this is the secret of a session, which counts as its use."""
        name, now = _digest(secret), self._clock()
        with self._lock:
            found = self._open.pop(name, None)
            if found is None or now >= min(found[0] + self.seconds, found[1] + self.idle_seconds):
                return False
            self._open[name] = (found[0], now)
        return True

    def close(self, secret: str | None = None) -> None:
        """End one session, or all."""
        with self._lock:
            if secret is None:
                self._open.clear()
            else:
                self._open.pop(_digest(secret), None)


class Access:
    """Recognises requests that contain the token, or the secret of a session if there is a page.

    Errors name the ``owner``, that is the application, and say ``where`` its token is found.
    """

    def __init__(self, token: str, *, owner: str, where: str, sessions: Sessions | None = None) -> None:
        self._token, self._owner, self._where, self.sessions = token, owner, where, sessions

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return _equal(token, self._token)

    def check(self, scope: Any) -> None:
        """Raise a 401 error unless the request contains the token, or the secret of a session."""
        given = bearer(scope)
        if given is None:
            raise self.refused("token_needed", f"this {self._owner} needs its token.")
        if not self.knows(given) and (self.sessions is None or not self.sessions.is_open(given)):
            ended = "" if self.sessions is None else ", or the session has ended"
            raise self.refused("wrong_token", f"this is not the token of this {self._owner}{ended}.")

    def refused(self, code: str, problem: str) -> ApiError:
        """Return a 401 error that says where the token is found."""
        return ApiError(401, code, f"{problem} {self._where}", headers={"WWW-Authenticate": "Bearer"})


def bearer(scope: Any) -> str | None:
    """Return what the header ``Authorization: Bearer …`` of a request holds; None without one, "" if it is no such."""
    header = Request(scope).headers.get("authorization")
    if header is None:
        return None
    scheme, _, given = header.partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def split_host(host: str) -> tuple[str, int | None]:
    """Return name and port of a Host header; raise a 400 error if it is malformed.

    >>> split_host("[::1]:8765"), split_host("Localhost")
    (('::1', 8765), ('localhost', None))
    """
    found = HOST.fullmatch(host)
    port = int(found["port"]) if found and found["port"] else None
    if found is None or (port is not None and port > MAX_PORT):
        raise ApiError(400, "bad_host", f"the header Host must be a host name and perhaps a port, got {host!r}.")
    return found["name"].strip("[]").lower(), port


def find_token(file: Path, given: str | None) -> str:
    """Return the token: the given one, else that of the last start, else a new one; and store it for its owner alone.

    A file that others may have read is not used.
    """
    if given is not None:
        check_token(given)
    stored = _stored_token(file)
    token = given or stored or secrets.token_urlsafe(24)
    if token != stored:
        with atomic_path(file, private=True) as temporary:
            temporary.write_text(f"{token}\n", encoding="ascii")
    return token


def check_token(token: str) -> str:
    """Return a token that fits into headers; raise for any other."""
    if VALID_TOKEN.fullmatch(token) is None:
        raise ConfigError(
            f"a token needs at least 8 characters, letters, digits and signs without spaces, got {len(token)}. "
            "Omit it to generate one."
        )
    return token


def _stored_token(file: Path) -> str | None:
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with open(handle, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123 - of a handle
        about = os.fstat(handle)
        if os.name == "posix" and (about.st_uid != os.geteuid() or about.st_mode & 0o077):
            return None
        token = opened.read(1000).strip()
    return token if VALID_TOKEN.fullmatch(token) else None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()  # how long a look-up takes then says nothing


def _equal(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode())
