"""``sparcets serve``: a real server, whose worker is killed, and which finishes what it took; the Dockerfile."""

import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from sparcets.__main__ import main
from sparcets.cli.main import app
from sparcets.web.requests import bind
from tests.http_api import started

from .conftest import BEARER, TOKEN


class Server(NamedTuple):
    """A running server, and what it said at its start."""

    process: Any
    said: dict[str, str]

    def ask(self, path, body=None):
        headers = {**BEARER, "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.said['server']}{path}", content, headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())

    def workers(self):
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [int(pid) for file in children for pid in file.read_text().split()]
        return [pid for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def has_ended(pid):
    """Wait for the end of a process that is not a child of this one; return whether it came."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@contextmanager
def running(folder, *options):
    with started("serve", str(folder), "--port", "0", "--device", "cpu", *options) as (process, said):
        yield Server(process, said)


@pytest.fixture(scope="module")
def server(fit, tmp_path_factory):
    token = tmp_path_factory.mktemp("secret") / "token"
    token.write_text(f"{TOKEN}\n")
    with running(fit.folder, "--token-file", str(token)) as server:
        assert server.said["token"] == "as given" and re.fullmatch(r"http://127.0.0.1:\d+", server.said["server"])
        yield server


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")
def test_the_examples_of_the_page_run(server, fit, tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shutil.copy(fit.folder.parent / "own.npz", tmp_path)
    monkeypatch.setenv("TOKEN", TOKEN)

    def blocks(language):
        found = re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)
        assert found
        return [text.replace("http://127.0.0.1:8766", server.said["server"]) for text in found]

    for block in blocks("python"):
        exec(compile(block, "serving.md", "exec"), {})
    assert "wild" in capsys.readouterr().out
    for block in blocks("bash"):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], capture_output=True, text=True, check=True)
        assert '"answers":[{"series":0' in done.stdout and 'sparcets_requests_total{path="/explain"' in done.stdout


# Last of those with the server, which it stops.
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_nothing_is_lost_when_a_worker_is_killed_and_when_the_server_stops(server, fit):
    body = {"series": fit.X[:2].tolist(), "target": "wild", "text": False}
    expected = server.ask("/explain", body)
    (worker,) = server.workers()
    os.kill(worker, signal.SIGSTOP)  # it has taken the next request, and will not answer
    late = []
    thread = threading.Thread(target=lambda: late.append(server.ask("/explain", body)))
    thread.start()
    time.sleep(0.3)
    os.kill(worker, signal.SIGKILL)
    thread.join(60)
    assert late == [expected] and server.workers() != [worker]
    (worker,) = server.workers()
    os.kill(worker, signal.SIGKILL)  # while it has nothing to do
    end = time.monotonic() + 30
    while server.workers() in ([], [worker]) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(server.workers()) == 1 and server.ask("/explain", body) == expected
    (worker,) = server.workers()
    os.kill(worker, signal.SIGSTOP)
    thread = threading.Thread(target=lambda: late.append(server.ask("/explain", body)))
    thread.start()
    time.sleep(0.3)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    with pytest.raises(urllib.error.URLError):  # nothing is accepted any more
        server.ask("/health")
    os.kill(worker, signal.SIGCONT)
    thread.join(60)
    assert late == [expected, expected]
    assert server.process.wait(20) == 0 and has_ended(worker)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_a_second_interrupt_ends_it_at_once(fit):
    with running(fit.folder, "--token", TOKEN) as server:
        (worker,) = server.workers()
        os.kill(worker, signal.SIGSTOP)  # as if it explained for a long time
        threading.Thread(target=_ask_in_vain, args=(server, fit), daemon=True).start()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 130
        assert server.process.stderr is not None and server.process.stderr.read() == "sparcets: stopped\n"
        assert has_ended(worker)


def _ask_in_vain(server, fit):
    with pytest.raises(OSError):  # noqa: PT011 - the connection ends without a response
        server.ask("/explain", {"series": fit.X[:1].tolist()})


def test_user_errors_are_one_line(fit, tmp_path, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert main(["serve", str(fit.folder), "--port", port]) == 2
    (tmp_path / "token").write_text("short\n")
    assert main(["serve", str(fit.folder), "--token-file", str(tmp_path / "token")]) == 2
    assert main(["serve", str(fit.folder), "--token", TOKEN, "--token-file", "token"]) == 2
    assert main(["serve", str(tmp_path / "nothing"), "--port", "0"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 4, said
    for line, part in zip(said, ("--port", "8 characters", "not both", "sparcets fit"), strict=True):
        assert part in line


ROOT = Path(__file__).parents[2]


def test_the_command_and_the_health_check_fit_the_server(client):
    script = runpy.run_path(str(ROOT / "scripts" / "try_dockerfile.py"))
    _, name, folder, *options = script["start_command"]()
    assert (name, folder) == ("serve", "/model")
    command = typer.main.get_command(app).commands["serve"]
    known = {flag: parameter for parameter in command.params for flag in parameter.opts}
    assert options[::2] and all(flag in known for flag in options[::2])
    values = dict(zip(options[::2], options[1::2], strict=True))
    assert values["--host"] == "0.0.0.0" and f"EXPOSE {values['--port']}" in (ROOT / "Dockerfile").read_text()
    asked = script["health_check"]()[-1]
    assert f":{values['--port']}/ready'" in asked and client.get("/ready", headers={}).status_code == 200
    with bind("127.0.0.1", 0) as opened, pytest.raises(OSError):  # noqa: PT011 - a server that does not answer
        exec(asked.replace(values["--port"], str(opened.getsockname()[1])).replace("timeout=4", "timeout=0.1"), {})
