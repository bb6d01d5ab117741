"""Who may use a web application: whoever knows its token. The browser keeps a cookie after the first visit.

The token is printed at the start and stored in a file that only its owner can read. Programs send it as a header,
``Authorization: Bearer …``.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Any

from fastapi import Request, Response

from sparcets.errors import ConfigError
from sparcets.storage import atomic_path
from sparcets.web.errors import ApiError

TOKEN_FILE = "token"
VALID_TOKEN = re.compile(r"[!-~]{8,}")  # printable ASCII: it has to fit into an address and into headers
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
MAX_PORT = 65535


class Access:
    """Recognises requests of people who know the token.

    Parameters
    ----------
    token
        The secret.
    owner, where
        Name of the application, and where its token is found: for error messages.
    """

    def __init__(self, token: str, *, owner: str, where: str) -> None:
        self._token, self._owner, self._where = token, owner, where
        # Not the token itself: a server on another port of this host receives the cookie, too.
        self._cookie = hashlib.sha256(f"sparcets studio {token}".encode()).hexdigest()

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return _equal(token, self._token)

    def check(self, scope: Any) -> None:
        """Raise a 401 error unless the request contains the token or the cookie."""
        request = Request(scope)
        header = request.headers.get("authorization")
        cookie = request.cookies.get(cookie_name(request.headers.get("host", "")))
        if header is None and cookie is None:
            raise self._refused("token_needed", f"this {self._owner} needs its token.")
        if header is not None:  # which then decides alone
            scheme, _, given = header.partition(" ")
            allowed = scheme.lower() == "bearer" and self.knows(given.strip())
        else:
            allowed = _equal(cookie or "", self._cookie)
        if not allowed:
            raise self._refused("wrong_token", f"this is not the token of this {self._owner}.")

    def sign_in(self, request: Request, response: Response) -> None:
        """Add the cookie to a response."""
        name = cookie_name(request.headers.get("host", ""))
        response.set_cookie(name, self._cookie, httponly=True, samesite="strict")

    def _refused(self, code: str, problem: str) -> ApiError:
        message = f"{problem} {self._where}"
        return ApiError(401, code, message, headers={"WWW-Authenticate": "Bearer"})


def cookie_name(host: str) -> str:
    """Return the name of the cookie; browsers do not tell the ports of a host apart.

    >>> cookie_name("localhost:8765")
    'sparcets-studio-8765'
    """
    return f"sparcets-studio-{split_host(host)[1] or 80}"


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
    """Return the token: the given one, else that of the last start, else a new one; and store it in a file.

    Parameters
    ----------
    file
        Where it is stored, for its owner alone. A file that others may have read is not used.
    given
        A token chosen by the user, or None.
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
    """Return a token that fits into an address and into headers; raise for any other."""
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


def _equal(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode())
