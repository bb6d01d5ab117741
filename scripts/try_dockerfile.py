"""Carry out the commands of the Dockerfile without Docker: in an empty folder, with an empty virtual environment.

    python scripts/try_dockerfile.py model               # a folder of `sparcets fit`
    python scripts/try_dockerfile.py model --keep /tmp/image --build-arg INDEX=    # PyTorch from the usual index

What the image has at ``/opt``, ``/tmp/wheel`` and ``/model`` lies in a temporary folder, the port is a free one, and no
user is made; all else is done as it is written there, in the same order. Then the health check has to succeed, an
answer has to come back with the token, and the server has to end on its stop signal with exit code 0. Some minutes,
most of them for the download of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KNOWN = ("FROM", "ARG", "COPY", "RUN", "USER", "EXPOSE", "ENV", "HEALTHCHECK", "STOPSIGNAL", "CMD")
PORT = "8766"
TOKEN = "token-of-the-image"
NOT_HERE = ("useradd",)  # needs root


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments, in order."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    assert {name for name, *_ in found} <= set(KNOWN), f"an instruction is not known here: {found}"
    return [(name, text.strip()) for name, _, text in found]


def health_check() -> list[str]:
    """Return the command of the health check."""
    text = dict(instructions())["HEALTHCHECK"]
    command: list[str] = json.loads(text[text.index("[") :])
    return command


def start_command() -> list[str]:
    """Return the command that the container runs."""
    command: list[str] = json.loads(dict(instructions())["CMD"])
    return command


def main() -> int:
    """Build, start, check and stop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a folder of `sparcets fit`")
    parser.add_argument("--python", default=sys.executable, help="the Python of the image")
    parser.add_argument("--build-arg", action="append", default=[], help="as of docker build: NAME=VALUE")
    parser.add_argument("--keep", type=Path, help="folder that stands for the image; kept, and used again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = options.keep or Path(temporary)
        build(place, options.python, dict(given.split("=", 1) for given in options.build_arg))
        return try_it(place, options.model.resolve())


def here(text: str, place: Path) -> str:
    """Return a command with the paths of the image replaced by those of a folder."""
    for path in ("/opt/", "/tmp/wheel/"):
        text = text.replace(path, f"{place}{path}")
    return text


def build(place: Path, python: str, arguments: dict[str, str]) -> None:
    """Carry out the instructions that make the image."""
    environment = dict(os.environ)
    wheels = place / "dist"
    subprocess.run([python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", wheels, ROOT], check=True)
    for name, text in instructions():
        if name == "COPY":
            pattern, target = text.split()
            folder = Path(here(target, place))
            folder.mkdir(parents=True, exist_ok=True)
            for file in wheels.glob(Path(pattern).name):
                shutil.copy(file, folder)
        elif name == "ARG":
            own, _, value = text.partition("=")
            environment[own] = arguments.get(own, value.strip('"'))
        elif name == "RUN" and not text.startswith(NOT_HERE):
            command = here(text, place).replace("python -m venv", f"{shlex.quote(python)} -m venv")
            print(f"RUN {command}", flush=True)
            subprocess.run(["sh", "-c", command], env=environment, check=True)


def try_it(place: Path, model: Path) -> int:
    """Start what was built, ask it something, and stop it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def command(words: list[str]) -> list[str]:
        return [here(word, place).replace(PORT, port).replace("/model", str(model)) for word in words]

    given = dict(text.split("=", 1) for name, text in instructions() if name == "ENV")
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), **given, "SPARCETS_SERVE_TOKEN": TOKEN}
    server = subprocess.Popen(command(start_command()), env=environment, cwd=place)
    try:
        for _ in range(120):
            checked = subprocess.run(command(health_check()), env=environment, capture_output=True, check=False)
            if checked.returncode == 0:
                break
            time.sleep(1)
        else:
            print(f"the health check failed: {checked.stderr.decode()}")
            return 1
        print(ask(port, "/model")["summary"])
        told = ask(port, "/model")
        series = [[0.0] * len(told["features"])] * told["n_steps"]
        answer = ask(port, "/explain", {"series": [series], "text": False})["answers"][0]
        print(f"healthy; an answer: {answer['predicted']} -> {answer['target']}, {answer['status']}")
        server.send_signal(getattr(signal, dict(instructions())["STOPSIGNAL"]))
        code = server.wait(15)
        print(f"stopped with exit code {code}")
        return code
    finally:
        server.kill()


def ask(port: str, path: str, body: object = None) -> dict[str, object]:
    """Return the response of the server."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        found: dict[str, object] = json.loads(response.read())
    return found


if __name__ == "__main__":
    sys.exit(main())
