"""Connections: unfinished requests are ended in time and keep nobody out."""

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack

import pytest
import uvicorn

from sparcets.studio.models import Limits
from sparcets.web.requests import limited

REQUEST = "GET / HTTP/1.1\r\nHost: here\r\n\r\n"
UNFINISHED = "GET / HTTP/1.1\r\nHost: he"
SECONDS = 0.5  # for the header
in_work = []


async def app(scope, receive, send):
    """Answer "here"; to POST, before its body was read; to PATCH, after it; to PUT, after a while."""
    if scope["method"] == "PATCH":
        in_work.append(scope)
        await receive()
    if scope["method"] == "PUT":
        in_work.append(scope)
        await asyncio.sleep(2 * SECONDS)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"here"})


@pytest.fixture
def connect():
    """Return a function that opens a connection to a server of at most four, and sends a text."""
    limits = Limits(header_seconds=SECONDS, connections=4)
    config = uvicorn.Config(app, http=limited(limits), ws="none", lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        thread = threading.Thread(target=server.run, args=([opened],))
        thread.start()
        with ExitStack() as clients:

            def start(text):
                client = clients.enter_context(socket.create_connection(opened.getsockname(), timeout=60))
                client.sendall(text.encode())
                return client

            assert answer(start(REQUEST)).endswith("here")
            yield start
        server.should_exit = True
        thread.join()


def answer(client, end="here"):
    """Return what is received until the end, or until the connection is closed."""
    text = ""
    while not text.endswith(end):
        try:
            if not (piece := client.recv(4096)):
                break
        except ConnectionResetError:
            break
        text += piece.decode()
    return text


def refusal(text):
    head, _, body = text.partition("\r\n\r\n")
    return head.split(" ")[1], json.loads(body)["error"]


def test_an_unfinished_header_is_ended_in_time(connect):
    client = connect(UNFINISHED)
    time.sleep(0.8 * SECONDS)
    client.sendall(b"re")  # one more byte now and then gives no more time
    status, problem = refusal(answer(client, "\0"))
    assert status == "408" and "header" in problem["message"] and set(problem) == {"code", "message", "details"}


def test_a_connection_that_says_nothing_is_closed(connect):
    assert answer(connect("")) == ""
    client = connect(REQUEST)
    assert answer(client).endswith("here")
    client.sendall(b"GET / HT")  # the beginning of a second request
    assert refusal(answer(client, "\0"))[0] == "408"


def test_bodies_that_never_come_and_requests_in_work(connect):
    client = connect("POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\nx")
    assert answer(client).endswith("here") and answer(client) == ""
    assert answer(connect(REQUEST.replace("GET", "PUT"))).endswith("here")  # takes longer than a header may


def test_the_connection_that_has_waited_longest_makes_room(connect):
    waiting = [connect(UNFINISHED) for _ in range(12)]
    assert answer(connect(REQUEST)).endswith("here")
    assert answer(waiting[0]) == ""  # closed without a word


def test_requests_without_their_body_make_room_too(connect):
    in_work.clear()
    unfinished = [connect("PATCH / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n") for _ in range(4)]
    while len(in_work) < len(unfinished):
        time.sleep(0.01)
    assert answer(connect(REQUEST)).endswith("here")
    assert answer(unfinished[0]) == ""


def test_connections_in_use_are_kept(connect):
    in_work.clear()
    busy = [connect(REQUEST.replace("GET", "PUT")) for _ in range(4)]
    while len(in_work) < len(busy):
        time.sleep(0.01)
    refused, large = connect(REQUEST), connect("POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 4194304\r\n\r\n")
    status, problem = refusal(answer(refused, "\0"))
    assert status == "503" and problem["code"] == "busy" and "4 connections" in problem["message"]
    # Also while the client still sends: its connection is not reset before it has read why.
    large.sendall(b" " * 4194304)
    text = answer(large, "\0")
    assert refusal(text)[0] == "503" and "Retry-After: 1" in text
    assert all(answer(client).endswith("here") for client in busy)


@pytest.mark.parametrize(
    "text", ["\0\x01nonsense\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"]
)
def test_what_is_no_request_gets_an_error_of_the_usual_shape(connect, text):
    status, problem = refusal(answer(connect(text), "\0"))
    assert status == "400" and problem["code"] == "bad_request"
