"""Who may come in: tokens, names, origins and sizes; and what a page may load."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sparcets.studio.app import STATIC, create_app
from sparcets.studio.limits import Limits

from .conftest import HOST, error, npz

Start = Callable[..., TestClient]
STATUS = "/api/v1/status"


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}, {"Authorization": "secret"},
     {"Authorization": "Bearer "}, {"Authorization": "Bearer sécret".encode("latin-1")}],
)  # fmt: skip
def test_a_wrong_token_gets_nothing(start: Start, headers: dict[str, str]) -> None:
    client = start(token="secret")
    response = client.get(STATUS, headers=headers)
    assert error(response, 401)["code"] == "token_needed"
    assert response.headers["www-authenticate"] == "Bearer"
    error(client.get("/api/v1/openapi.json", headers=headers), 401)


def test_the_right_token_opens_and_the_page_itself_holds_no_data(start: Start) -> None:
    client = start(token="secret")
    assert client.get(STATUS, headers={"Authorization": "Bearer secret"}).status_code == 200
    assert client.get("/").status_code == 200
    described = client.get("/api/v1/openapi.json", headers={"Authorization": "Bearer secret"}).json()
    assert described["components"]["securitySchemes"]


def test_other_names_and_other_origins_are_refused(client: TestClient) -> None:
    assert error(client.get(STATUS, headers={"Host": "evil.example"}), 403)["code"] == "foreign_host"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert error(client.get(STATUS, headers={"Origin": origin}), 403)["code"] == "foreign_origin"
    for host in ("localhost:8765", "127.0.0.1", "[::1]:80"):
        assert client.get(STATUS, headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200


def test_an_oversized_upload_is_refused_announced_or_not(start: Start, tmp_path: Path) -> None:
    client = start(limits=Limits(upload_bytes=5000))
    data = npz(60)
    assert len(data) > 5000
    where = "/api/v1/datasets/upload?filename=own.npz"

    def pieces() -> Iterator[bytes]:
        for i in range(0, len(data), 1000):
            yield data[i : i + 1000]

    for content in (data, pieces()):
        told = error(client.post(where, content=content), 413)
        assert told["code"] == "too_large" and "0.004768 MiB" in told["message"]
    assert [p.name for p in (tmp_path / "workspace" / "datasets").iterdir()] == ["own"]


def test_other_requests_are_smaller_still(start: Start) -> None:
    client = start(limits=Limits(body_bytes=100))
    big = b'{"name": "' + b"x" * 200 + b'"}'

    def pieces() -> Iterator[bytes]:
        yield big[:60]
        yield big[60:]

    for content in (big, pieces()):
        error(client.post("/api/v1/datasets", content=content, headers={"Content-Type": "application/json"}), 413)


def test_pages_may_load_nothing_from_elsewhere(client: TestClient) -> None:
    response = client.get("/")
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get(STATUS).headers["cache-control"] == "no-store"
    for file in STATIC.rglob("*.*"):
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, file.name


def test_plotly_is_served_from_its_package(client: TestClient) -> None:
    response = client.get("/static/plotly.min.js")
    assert response.headers["content-type"].startswith("text/javascript") and b"plotly.js" in response.content[:200]


def test_without_the_page_there_is_the_api_alone(start: Start) -> None:
    client = start(api_only=True)
    assert client.get(STATUS).status_code == 200
    error(client.get("/"), 404)
    error(client.get("/static/style.css"), 404)


def test_an_unforeseen_failure_is_told_without_its_insides(tmp_path: Path) -> None:
    app = create_app(tmp_path)

    @app.get("/api/v1/broken")
    def broken() -> None:
        raise RuntimeError("secret insides")

    with TestClient(app, base_url=HOST, raise_server_exceptions=False) as client:
        told = error(client.get("/api/v1/broken"), 500)
    assert told["code"] == "internal" and "insides" not in told["message"]
