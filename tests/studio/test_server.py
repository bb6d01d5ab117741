"""The command ``sparcets studio``: address, token, and errors on one line."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparcets.__main__ import main
from sparcets.errors import ConfigError
from sparcets.studio.server import _opening_file
from sparcets.web.sockets import bind


@contextmanager
def running(*options: str) -> Iterator[dict[str, str]]:
    """Start the studio and yield its start message as a dict."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sparcets", "studio", "--port", "0", *options], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    message: dict[str, str] = {}
    for line in process.stderr:
        name, _, value = line.strip().partition(": ")
        message[name] = value
        if "Ctrl-C" in line:
            break
    try:
        yield message
    finally:
        process.send_signal(signal.SIGINT)
        code, rest = process.wait(120), process.stderr.read()
        process.stderr.close()
    assert (code, rest) == (130, "sparcets: stopped\n")


def get(url: str, token: str | None = None) -> tuple[int, bytes]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=120) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_the_token_is_printed_and_asked_for_on_loopback(tmp_path: Path) -> None:
    with running("--workspace", str(tmp_path / "w")) as message:
        address, _, token = message["studio"].partition("/?token=")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address) and len(token) >= 24
        assert token == message["token"] == (tmp_path / "w" / "token").read_text().strip()
        assert get(f"{address}/api/v1/status")[0] == get(f"{address}/api/v1/status", "guess")[0] == 401
        status, body = get(f"{address}/api/v1/status", token)
        assert status == 200 and json.loads(body)["workspace"] == "w"
        assert b"needs its token" in get(address)[1]


def test_other_hosts_without_the_page(tmp_path: Path) -> None:
    with running("--workspace", str(tmp_path / "w"), "--host", "0.0.0.0", "--api-only") as message:
        token, port = message["token"], re.search(r":(\d+)/", message["API"])
        assert port is not None
        url = f"http://127.0.0.1:{port[1]}/api/v1/status"
        assert get(url)[0] == 401 and get(url, token)[0] == 200
        assert get(f"http://127.0.0.1:{port[1]}/")[0] == 404


def test_the_browser_is_not_given_the_token_as_an_argument(tmp_path: Path) -> None:
    page = "http://127.0.0.1:8765/?token=s3cret-word"
    file = _opening_file(tmp_path, page)
    assert page in file.read_text() and "s3cret" not in file.as_uri() and file.stat().st_mode & 0o077 == 0


def test_a_port_in_use_is_an_error_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["studio", "--port", str(port), "--workspace", str(tmp_path / "w")]) == 2
    text = capsys.readouterr().err.strip()
    assert len(text.splitlines()) == 1 and "--port" in text


def test_an_address_of_another_machine() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_a_short_token_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", "--token", "short", "--workspace", str(tmp_path / "w")]) == 2
    assert "at least 8 characters" in capsys.readouterr().err
