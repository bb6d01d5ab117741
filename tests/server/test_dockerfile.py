"""The Dockerfile: what it runs is what scripts/try_dockerfile.py carries out, and what the package offers."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi.testclient import TestClient

from sparcets.cli.main import app
from sparcets.web.requests import bind

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "try_dockerfile.py"))


def test_the_command_and_the_health_check_fit_the_server(script: dict[str, Any], client: TestClient) -> None:
    _, name, folder, *options = script["start_command"]()
    assert (name, folder) == ("serve", "/model")
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    known = {flag: parameter for parameter in command.params for flag in parameter.opts}
    assert options[::2] and all(flag in known for flag in options[::2])
    values = dict(zip(options[::2], options[1::2], strict=True))
    assert values["--host"] == "0.0.0.0" and f"EXPOSE {values['--port']}" in (ROOT / "Dockerfile").read_text()
    asked = script["health_check"]()[-1]
    assert f":{values['--port']}/ready'" in asked and client.get("/ready", headers={}).status_code == 200
    with bind("127.0.0.1", 0) as opened, pytest.raises(OSError):  # noqa: PT011 - a server that does not answer
        exec(asked.replace(values["--port"], str(opened.getsockname()[1])).replace("timeout=4", "timeout=0.1"), {})
