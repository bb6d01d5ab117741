"""The token: where it is kept, how requests and the browser give it, and what a wrong one is told."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sparcets.errors import ConfigError
from sparcets.web.access import TOKEN_FILE, find_token, split_host
from sparcets.web.errors import ApiError
from tests.http_api import error

from .conftest import API, TOKEN, Sample

Start = Callable[..., TestClient]
STATUS = f"{API}/status"
COOKIE = "sparcets-studio-80"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "token_needed"),
        ({"Authorization": "Bearer wrong"}, "wrong_token"),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, "wrong_token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, "wrong_token"),
        ({"Authorization": f"Basic {TOKEN}"}, "wrong_token"),
        ({"Authorization": TOKEN}, "wrong_token"),
        ({"Authorization": "Bearer "}, "wrong_token"),
        ({"Authorization": "Bearer sécret".encode("latin-1")}, "wrong_token"),
        ({"Cookie": f"{COOKIE}={TOKEN}"}, "wrong_token"),  # the cookie is not the token
        ({"Cookie": f"other={TOKEN}"}, "token_needed"),
    ],
)
def test_requests_without_the_token_are_refused_in_words(start: Start, headers: Any, code: str) -> None:
    client = start(headers={})
    for method, path in (("GET", STATUS), ("GET", f"{API}/openapi.json"), ("DELETE", f"{API}/datasets/own")):
        response = client.request(method, path, headers=headers)
        problem = error(response, 401)
        assert problem["code"] == code and "Open the address" in problem["message"]
        assert response.headers["www-authenticate"] == "Bearer"


def test_the_printed_address_gives_the_browser_a_cookie(start: Start) -> None:
    client = start(headers={})
    response = client.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=") and TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert client.get(STATUS).status_code == 200 and "main.js" in client.get("/").text
    # A wrong header is not made good by the cookie, and another port has a cookie of its own.
    error(client.get(STATUS, headers={"Authorization": "Bearer wrong"}), 401)
    assert error(client.get(STATUS, headers={"Host": "127.0.0.1:8765"}), 401)["code"] == "token_needed"


@pytest.mark.parametrize(
    ("address", "words"), [("/", "needs its token"), ("/?token=", "not the token"), ("/?token=<b>", "not the token")]
)
def test_the_page_asks_for_the_token(start: Start, address: str, words: str) -> None:
    response = start(headers={}).get(address)
    assert response.status_code == 401 and words in response.text and "<b>" not in response.text
    assert "main.js" not in response.text and response.headers["cache-control"] == "no-store"


def test_the_token_is_documented(client: TestClient) -> None:
    assert client.get(f"{API}/openapi.json").json()["components"]["securitySchemes"]


def test_the_token_is_kept_in_a_file_of_the_owner_alone(tmp_path: Path) -> None:
    token = find_token(tmp_path / TOKEN_FILE, None)
    file = tmp_path / TOKEN_FILE
    assert len(token) >= 32 and file.read_text() == f"{token}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert find_token(tmp_path / TOKEN_FILE, None) == token  # also after a restart
    assert (
        find_token(tmp_path / TOKEN_FILE, "my-own-token") == find_token(tmp_path / TOKEN_FILE, None) == "my-own-token"
    )


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_token_that_others_may_have_read_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / TOKEN_FILE
    file.write_text("planted-by-somebody")
    file.chmod(0o644)
    token = find_token(tmp_path / TOKEN_FILE, None)
    assert token != "planted-by-somebody" and stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "elsewhere").write_text("planted-by-somebody")
    (tmp_path / "elsewhere").chmod(0o600)
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert find_token(tmp_path / TOKEN_FILE, None) != "planted-by-somebody" and not file.is_symlink()


@pytest.mark.parametrize("token", ["", "short", "with a space", "zwölf-zeichen"])
def test_unusable_tokens_are_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(ConfigError, match="at least 8 characters"):
        find_token(tmp_path / TOKEN_FILE, token)


@pytest.mark.parametrize(
    "host", ["", "[::1", "a b", "localhost:x", "localhost:99999", "a@localhost", "localhost/", "é"]
)
def test_a_malformed_host_is_a_bad_request(client: TestClient, host: str) -> None:
    with pytest.raises(ApiError, match="host name and perhaps a port"):
        split_host(host)
    assert error(client.get(STATUS, headers={"Host": host.encode()}), 400)["code"] == "bad_host"  # type: ignore[dict-item]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_workspace_of_an_earlier_version_becomes_private(start: Start, sample: Sample) -> None:
    outside = sample.folder.parent / "outside"
    outside.write_text("somebody's")
    (sample.folder / "datasets" / "own" / "link").symlink_to(outside)
    outside.chmod(0o644)
    for path in (sample.folder, *sample.folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    client = start()
    assert client.post(f"{API}/datasets", json={"name": "catching"}).status_code == 200
    assert {
        stat.S_IMODE(p.lstat().st_mode) for p in sample.folder.rglob("*") if p.is_file() and not p.is_symlink()
    } == {0o600}
    assert {stat.S_IMODE(p.stat().st_mode) for p in (sample.folder, *sample.folder.rglob("*")) if p.is_dir()} == {0o700}
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_folder_with_other_things_keeps_its_permissions(start: Start, sample: Sample) -> None:
    (sample.folder / "thesis.tex").touch(0o644)
    sample.folder.chmod(0o755)
    start()
    assert stat.S_IMODE(sample.folder.stat().st_mode) == 0o755
    assert stat.S_IMODE((sample.folder / "thesis.tex").stat().st_mode) == 0o644
    assert stat.S_IMODE((sample.folder / "datasets").stat().st_mode) == 0o700
