"""Hosts, origins and sizes of requests; security headers of responses."""

import asyncio
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sparcets.studio.app import PATHS, STATIC, create_app
from sparcets.studio.models import Limits
from sparcets.web.access import Access
from sparcets.web.errors import ApiError
from sparcets.web.requests import SecurityMiddleware
from tests.http_api import error

from .conftest import API, BEARER, HOST, TOKEN, npz_bytes

Start = Callable[..., TestClient]
STATUS = f"{API}/status"


def test_other_hosts_and_origins_are_rejected(client: TestClient) -> None:
    assert error(client.get(STATUS, headers={"Host": "evil.example"}), 403)["code"] == "foreign_host"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[::1", ""):
        assert error(client.get(STATUS, headers={"Origin": origin}), 403)["code"] == "foreign_origin"
    for site in ("cross-site", "same-site"):  # the latter also of another port
        assert error(client.get(STATUS, headers={"Sec-Fetch-Site": site}), 403)["code"] == "foreign_origin"
    for host in ("localhost:8765", "127.0.0.1", "[::1]:80"):
        assert client.get(STATUS, headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


def test_an_oversized_upload_is_rejected_with_and_without_content_length(start: Start, tmp_path: Path) -> None:
    client = start(limits=Limits(upload_bytes=5000))
    data = npz_bytes(60)
    assert len(data) > 5000
    url = f"{API}/datasets/upload?filename=own.npz"

    def pieces() -> Iterator[bytes]:
        for i in range(0, len(data), 1000):
            yield data[i : i + 1000]

    for content in (data, pieces()):
        problem = error(client.post(url, content=content), 413)
        assert problem["code"] == "too_large" and "0.004768 MiB" in problem["message"]
    assert [p.name for p in (tmp_path / "workspace" / "datasets").iterdir()] == ["own"]


def test_a_body_that_stops_arriving_is_not_waited_for() -> None:
    async def stalls() -> MutableMapping[str, Any]:
        await asyncio.sleep(60)
        raise AssertionError

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    limits = Limits(pause_seconds=0.05)
    guarded = SecurityMiddleware(
        app, access=Access(TOKEN, owner="studio", where=""), hosts=None, limits=limits, paths=PATHS
    )
    headers = [(name.lower().encode(), value.encode()) for name, value in {**BEARER, "Host": "here"}.items()]
    scope = {"type": "http", "path": STATUS, "headers": headers}
    with pytest.raises(ApiError, match=r"within 0\.05 s"):
        asyncio.run(guarded(scope, stalls, stalls))  # type: ignore[arg-type]


def test_pages_load_local_resources_only(client: TestClient) -> None:
    response = client.get("/")
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get(STATUS).headers["cache-control"] == "no-store"
    for file in STATIC.rglob("*.*"):
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, file.name


def test_api_only_serves_no_page(start: Start) -> None:
    client = start(api_only=True)
    assert client.get(STATUS).status_code == 200
    error(client.get("/"), 404)
    error(client.get("/static/style.css"), 404)


def test_an_unexpected_error_shows_no_internals(tmp_path: Path) -> None:
    app = create_app(tmp_path, token=TOKEN)

    @app.get(f"{API}/broken")
    def broken() -> None:
        raise RuntimeError("internal detail")

    with TestClient(app, base_url=HOST, headers=BEARER, raise_server_exceptions=False) as client:
        problem = error(client.get(f"{API}/broken"), 500)
    assert problem["code"] == "internal" and "detail" not in problem["message"]
