"""The command ``sparcets studio``: address, log-in, token, and errors on one line."""

import json
import os
import re
import signal
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from sparcets.studio.app import _opening_file
from tests.http_api import started

STATUS = "/api/v1/status"


@contextmanager
def running(*options, **how):
    """Start the studio and yield its start message as a dict, and the stream of what it says later."""
    with started("studio", "--port", "0", *options, **how) as (process, said):
        yield said, process.stderr
        process.send_signal(signal.SIGINT)
        assert (process.wait(120), process.stderr.read()) == (130, "sparcets: stopped\n")


def get(url, token=None):
    return send(url, {} if token is None else {"Authorization": f"Bearer {token}"})


def send(url, headers, body=None):
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_the_address_holds_a_code_and_the_token_is_in_its_file(tmp_path):
    with running("--workspace", str(tmp_path / "w")) as (message, _):
        address, _, code = message["studio"].partition("/login#code=")
        token = (tmp_path / "w" / "token").read_text().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address) and len(code) >= 24
        assert message["token"] == f"in the file {tmp_path / 'w' / 'token'}" and token not in str(message)
        assert get(f"{address}{STATUS}")[0] == get(f"{address}{STATUS}", "guess")[0] == 401
        assert get(f"{address}{STATUS}", code)[0] == 401  # the code is for the log-in alone
        status, body = get(f"{address}{STATUS}", token)
        assert status == 200 and json.loads(body)["workspace"] == "w"
        assert b"Log in" in get(f"{address}/login")[1]
        assert send(f"{address}/api/v1/login", {}, {"code": code})[0] == 200
        assert send(f"{address}/api/v1/login", {}, {"code": code})[0] == 401


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of POSIX")
def test_enter_prints_a_new_address(tmp_path):
    ours, theirs = os.openpty()
    try:
        with running("--workspace", str(tmp_path / "w"), stdin=theirs) as (message, later):
            assert "press Enter for a new address" in str(message)
            os.write(ours, b"\n")
            new = later.readline().strip().removeprefix("studio: ")
            address, _, code = new.partition("/login#code=")
            assert new != message["studio"] and message["studio"].startswith(address)
            old = message["studio"].partition("/login#code=")[2]
            assert [send(f"{address}/api/v1/login", {}, {"code": c})[0] for c in (old, code)] == [401, 200]
    finally:
        os.close(ours)
        os.close(theirs)


def test_other_hosts(tmp_path):
    with running("--workspace", str(tmp_path / "w"), "--host", "0.0.0.0") as (message, _):
        token, port = (tmp_path / "w" / "token").read_text().strip(), re.search(r":(\d+)/", message["studio"])
        address = f"http://127.0.0.1:{port[1]}"
        assert get(f"{address}{STATUS}")[0] == 401 and get(f"{address}{STATUS}", token)[0] == 200


def test_the_browser_is_not_given_the_code_as_an_argument(tmp_path):
    page = "http://127.0.0.1:8765/login#code=s3cret-word"
    file = _opening_file(tmp_path, page)
    assert page in file.read_text() and "s3cret" not in file.as_uri() and file.stat().st_mode & 0o077 == 0
