"""``sparcets studio`` as it is typed: where it listens, when it wants a token, and mistakes in one line."""

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
from sparcets.studio.server import bind


@contextmanager
def running(*options: str) -> Iterator[dict[str, str]]:
    """Start the studio; give what it says about itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sparcets", "studio", "--port", "0", *options], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said: dict[str, str] = {}
    for line in process.stderr:
        name, _, value = line.strip().partition(": ")
        said[name] = value
        if "Ctrl-C" in line:
            break
    try:
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stderr.close()


def get(url: str, token: str | None = None) -> tuple[int, bytes]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_on_this_machine_alone_no_token_is_needed(tmp_path: Path) -> None:
    with running("--workspace", str(tmp_path / "w")) as said:
        address = said["studio"].rstrip("/")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address) and "token" not in said
        status, body = get(f"{address}/api/v1/status")
        assert status == 200 and json.loads(body)["workspace"] == "w"
        assert b"<title>sparcets studio" in get(address)[1]


def test_where_others_can_reach_it_a_token_is_made_up(tmp_path: Path) -> None:
    with running("--workspace", str(tmp_path / "w"), "--host", "0.0.0.0", "--api-only") as said:
        token, port = said["token"], re.search(r":(\d+)/", said["API"])
        assert len(token) >= 24 and port is not None
        url = f"http://127.0.0.1:{port[1]}/api/v1/status"
        assert get(url)[0] == 401 and get(url, "guess")[0] == 401 and get(url, token)[0] == 200
        assert get(f"http://127.0.0.1:{port[1]}/")[0] == 404


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["studio", "--port", str(port), "--workspace", str(tmp_path / "w")]) == 2
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1 and "--port" in told


def test_an_address_that_is_not_here() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


@pytest.mark.parametrize("token", ["", "short"])
def test_a_token_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str) -> None:
    assert main(["studio", "--host", "0.0.0.0", "--token", token, "--workspace", str(tmp_path / "w")]) == 2
    assert "at least 8 characters" in capsys.readouterr().err
