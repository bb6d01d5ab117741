"""Who may use the studio: token, sessions, hosts and origins; sizes of requests, and headers of responses."""

import asyncio
import os
import stat

import pytest
from fastapi.testclient import TestClient

from sparcets.core.errors import ConfigError, StorageError
from sparcets.studio.app import PATHS, STATIC, create_app
from sparcets.studio.models import Limits
from sparcets.web.access import TOKEN_FILE, Access, Sessions, find_token, split_host
from sparcets.web.errors import ApiError
from sparcets.web.requests import SecurityMiddleware, accepted_hosts
from tests.http_api import error

from .conftest import API, BEARER, HOST, TOKEN, npz_bytes

STATUS = f"{API}/status"
LOGIN, LOGOUT = f"{API}/login", f"{API}/logout"


def test_requests_without_the_token_are_refused_in_words(start):
    client = start(headers={})
    wrong = ["Bearer wrong", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer "]
    none = ({}, {"Cookie": f"sparcets-studio-80={TOKEN}"}, {"X-Token": TOKEN})  # no cookie counts
    cases = [(headers, "token_needed") for headers in none]
    cases += [({"Authorization": text}, "wrong_token") for text in (*wrong, "Bearer sécret".encode("latin-1"))]
    for headers, code in cases:
        for method, path in (("GET", STATUS), ("GET", f"{API}/openapi.json"), ("DELETE", f"{API}/datasets/own")):
            response = client.request(method, path, headers=headers)
            problem = error(response, 401)
            assert problem["code"] == code and "Open the address" in problem["message"], headers
            assert response.headers["www-authenticate"] == "Bearer"


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def log_in(client, **given):
    """Log in and return the headers of a page that has."""
    response = client.post(LOGIN, json=given)
    assert response.status_code == 200, response.text
    return {"Authorization": f"Bearer {response.json()['secret']}"}


def test_a_code_is_used_once_for_a_session_of_its_own(start):
    sessions = Sessions()
    client = start(headers={}, sessions=sessions)
    code = sessions.new_code()
    response = client.post(LOGIN, json={"code": code})
    secret = response.json()["secret"]
    assert len(secret) >= 43 and "set-cookie" not in response.headers
    assert response.headers["cache-control"] == "no-store" and response.headers["referrer-policy"] == "no-referrer"
    assert client.get(STATUS, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert error(client.post(LOGIN, json={"code": code}), 401)["code"] == "wrong_code"
    others = [log_in(client, code=sessions.new_code()), log_in(client, token=TOKEN), log_in(client, token=TOKEN)]
    assert len({secret, *(headers["Authorization"][7:] for headers in others)}) == 4  # none derived from the token
    for wrong in (code, TOKEN[:-1], secret):
        assert error(client.post(LOGIN, json={"token": wrong}), 401)["code"] == "wrong_token"
    for bad in ({}, {"code": "a", "token": "b"}, {"code": 1}, {"code": None}):
        error(client.post(LOGIN, json=bad), 422)


def test_only_the_newest_code_is_valid_and_guesses_do_not_use_it_up(start):
    sessions = Sessions()
    client = start(headers={}, sessions=sessions)
    old, new = sessions.new_code(), sessions.new_code()
    for wrong in (old, new[:-1], "", TOKEN):
        error(client.post(LOGIN, json={"code": wrong}), 401)
    assert client.get(STATUS, headers=log_in(client, code=new)).status_code == 200


def test_codes_and_sessions_expire(start):
    clock = Clock()
    sessions = Sessions(code_seconds=600, idle_seconds=100, seconds=250, clock=clock)
    client = start(headers={}, sessions=sessions)
    code = sessions.new_code()
    clock.now += 600
    assert error(client.post(LOGIN, json={"code": code}), 401)["code"] == "wrong_code"
    clock.now -= 1
    error(client.post(LOGIN, json={"code": code}), 401)  # gone with the first attempt

    idle = log_in(client, token=TOKEN)
    for _ in range(2):
        clock.now += 99
        assert client.get(STATUS, headers=idle).status_code == 200  # each use counts
    clock.now += 100
    problem = error(client.get(STATUS, headers=idle), 401)
    assert problem["code"] == "wrong_token" and "the session has ended" in problem["message"]

    busy = log_in(client, token=TOKEN)
    for _ in range(5):
        clock.now += 49
        assert client.get(STATUS, headers=busy).status_code == 200
    clock.now += 5
    error(client.get(STATUS, headers=busy), 401)  # 250 seconds after the log-in, however busy


def test_logging_out_ends_one_session_and_the_token_ends_all(start):
    client = start(headers={})
    first, second, third = (log_in(client, token=TOKEN) for _ in range(3))
    error(client.post(LOGOUT), 401)
    assert client.post(LOGOUT, headers=first).status_code == 204
    error(client.get(STATUS, headers=first), 401)
    assert client.get(STATUS, headers=second).status_code == 200
    assert client.post(LOGOUT, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 204
    for headers in (second, third):
        error(client.get(STATUS, headers=headers), 401)


def test_sessions_are_limited_in_number():
    sessions = Sessions(most=2)
    first, second = sessions.open(), sessions.open()
    assert sessions.is_open(first)  # so that the second was used least recently
    third = sessions.open()
    assert [sessions.is_open(secret) for secret in (first, second, third)] == [True, False, True]


def test_other_pages_cannot_log_in_or_out(start):
    client = start(headers={})
    headers = log_in(client, token=TOKEN)
    for foreign in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}, {"Host": "evil.example"}):
        error(client.post(LOGIN, json={"token": TOKEN}, headers=foreign), 403)
        error(client.post(LOGOUT, headers={**headers, **foreign}), 403)


def test_pages_hold_no_data_set_no_cookie_and_load_local_resources_only(start):
    client = start(headers={})
    for address in ("/", "/login", f"/?token={TOKEN}"):
        response = client.get(address, follow_redirects=False)
        assert response.status_code == 200 and TOKEN not in response.text
        assert response.headers["cache-control"] == "no-store" and "set-cookie" not in response.headers
        assert "default-src 'self'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
    for file in STATIC.rglob("*.*"):
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text and "https://" not in text, file.name


def test_the_token_is_kept_in_a_file_of_the_owner_alone(tmp_path):
    file = tmp_path / TOKEN_FILE
    token = find_token(file, None)
    assert len(token) >= 32 and file.read_text() == f"{token}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert find_token(file, None) == token  # also after a restart
    assert find_token(file, "my-own-token") == find_token(file, None) == "my-own-token"
    for unusable in ("", "short", "with a space", "zwölf-zeichen"):
        with pytest.raises(ConfigError, match="at least 8 characters"):
            find_token(file, unusable)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_token_that_others_may_have_read_is_not_used(tmp_path):
    file = tmp_path / TOKEN_FILE
    file.write_text("planted-by-somebody")
    file.chmod(0o644)
    token = find_token(tmp_path / TOKEN_FILE, None)
    assert token != "planted-by-somebody" and stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "elsewhere").write_text("planted-by-somebody")
    (tmp_path / "elsewhere").chmod(0o600)
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"it is a link, and its content is for you alone. Remove the link"):
        find_token(tmp_path / TOKEN_FILE, None)
    assert (tmp_path / "elsewhere").read_text() == "planted-by-somebody" and file.is_symlink()


def test_a_malformed_host_is_a_bad_request(client):
    for host in ("", "[::1", "a b", "localhost:x", "localhost:99999", "a@localhost", "localhost/", "é"):
        with pytest.raises(ApiError, match="host name and perhaps a port"):
            split_host(host)
        problem = error(client.get(STATUS, headers={"Host": host.encode()}), 400)
        assert problem["code"] == "bad_host", host


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_workspace_that_others_can_enter_becomes_private(start, sample):
    kinds = [sample.folder / kind for kind in ("datasets", "classifiers", "explainers")]
    own = kinds[0] / "own"
    for path in (*kinds, own):
        path.chmod(0o755)
    assert start().post(f"{API}/datasets", json={"name": "catching"}).status_code == 200
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in kinds} == {0o700}  # nobody else can go further
    assert stat.S_IMODE(own.stat().st_mode) == 0o755
    (new,) = set(kinds[0].iterdir()) - {own}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (new, *new.iterdir())} == {0o700, 0o600}


def test_other_hosts_and_origins_are_rejected(client):
    assert error(client.get(STATUS, headers={"Host": "evil.example"}), 403)["code"] == "foreign_host"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[::1", ""):
        assert error(client.get(STATUS, headers={"Origin": origin}), 403)["code"] == "foreign_origin"
    for site in ("cross-site", "same-site"):  # the latter also of another port
        assert error(client.get(STATUS, headers={"Sec-Fetch-Site": site}), 403)["code"] == "foreign_origin"
    for host in ("localhost:8765", "127.0.0.1", "[::1]:80"):
        response = client.get(STATUS, headers={"Host": host, "Origin": f"http://{host}"})
        assert response.status_code == 200 and response.headers["cache-control"] == "no-store"


def test_where_others_reach_it_requests_may_name_any_host():
    assert accepted_hosts("workstation") is None and accepted_hosts("192.168.1.5") is None


def test_an_oversized_upload_is_rejected_with_and_without_content_length(start, tmp_path):
    client = start(limits=Limits(upload_bytes=5000))
    data = npz_bytes(60)
    assert len(data) > 5000
    url = f"{API}/datasets/upload?filename=own.npz"

    def pieces():
        for i in range(0, len(data), 1000):
            yield data[i : i + 1000]

    for content in (data, pieces()):
        problem = error(client.post(url, content=content), 413)
        assert problem["code"] == "too_large" and "0.004768 MiB" in problem["message"]
    assert [p.name for p in (tmp_path / "workspace" / "datasets").iterdir()] == ["own"]


def test_a_body_that_stops_arriving_is_not_waited_for():
    async def stalls():
        await asyncio.sleep(60)
        raise AssertionError

    async def app(scope, receive, send):
        await receive()

    limits = Limits(pause_seconds=0.05)
    access = Access(TOKEN, owner="studio", where="")
    guarded = SecurityMiddleware(app, access=access, hosts=None, limits=limits, **PATHS)
    headers = [(name.lower().encode(), value.encode()) for name, value in {**BEARER, "Host": "here"}.items()]
    scope = {"type": "http", "path": STATUS, "headers": headers}
    with pytest.raises(ApiError, match=r"within 0\.05 s"):
        asyncio.run(guarded(scope, stalls, stalls))


def test_an_unexpected_error_shows_no_internals(tmp_path):
    app = create_app(tmp_path, token=TOKEN)

    @app.get(f"{API}/broken")
    def broken():
        raise RuntimeError("internal detail")

    with TestClient(app, base_url=HOST, headers=BEARER, raise_server_exceptions=False) as client:
        problem = error(client.get(f"{API}/broken"), 500)
    assert problem["code"] == "internal" and "detail" not in problem["message"]
