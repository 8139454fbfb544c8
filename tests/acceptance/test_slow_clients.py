"""Clients that send slowly, or not at all, keep nobody else waiting."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from functions.local.server.serve import THREADS
from functions.web import app
from tests.support.fakes.model_server import FakeModelServer, Reply, quote_first_passage
from tests.support.local_server import LocalServer, Person, wait_until

BODY = b"x" * 1000


def open_request(method: str, url: str, sent: bytes, *, length: int = 1000, token: str = "") -> socket.socket:
    """Sends the head of a request and a part of its body."""
    address = urlsplit(url)
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=30)
    head = f"{method} {address.path}?{address.query} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {length}\r\n"
    head += f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\r\n"
    connection.sendall(head.encode() + sent)
    return connection


@contextmanager
def half_open_uploads(person: Person, count: int) -> Iterator[list[socket.socket]]:
    """Uploads with valid tickets that stop after ten bytes."""
    url = person.announce("slow.txt", BODY).json()["upload"]["url"]
    with ExitStack() as stack:
        yield [stack.enter_context(open_request("PUT", url, BODY[:10])) for _ in range(count)]


def test_half_open_uploads_keep_no_other_request_waiting(ada: Person, bob: Person) -> None:
    """LIM-1"""
    with half_open_uploads(ada, THREADS + 10):
        began = time.monotonic()
        assert bob.get("/documents")["items"] == []
        assert bob.announce("a.txt").status_code == 201
        assert time.monotonic() - began < 2


def test_long_polls_keep_no_other_request_waiting(server: LocalServer, ada: Person, bob: Person) -> None:
    """LIM-1, LIB-6"""
    document = ada.announce("later.txt").json()["document"]
    address = f"{server.base_url}/api/rag/documents/{document['id']}?wait=20"
    with ExitStack() as stack:
        for _ in range(THREADS + 10):
            stack.enter_context(open_request("GET", address, b"", length=0, token=ada.token))
        time.sleep(1)  # they have been received
        began = time.monotonic()
        assert bob.get("/documents")["items"] == []
        assert time.monotonic() - began < 2


def test_streams_keep_no_other_request_waiting(
    thinking: LocalServer, ada: Person, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIM-1, CHAT-2: there may be more readers than threads."""
    ada.follow(ada.add_bytes("boiler.txt", b"The boiler burns wood chips every day in winter.")["id"])
    readers, question = THREADS + 10, b'{"query": "What does the boiler burn in winter?", "stream": true}'
    is_over = threading.Event()
    monkeypatch.setattr(
        model, "respond", lambda request: quote_first_passage(request) if is_over.wait(60) else Reply(status=503)
    )
    address = f"{thinking.base_url}/api/rag/chat"
    with ExitStack() as stack:
        stack.callback(is_over.set)
        for _ in range(readers):
            stack.enter_context(open_request("POST", address, question, length=len(question), token=ada.token))
        wait_until(lambda: len(model.chats) >= readers, seconds=60)
        began = time.monotonic()
        with thinking.person("Bob") as bob:
            assert bob.get("/documents")["items"] == []
        assert time.monotonic() - began < 2
    wait_until(lambda: "sse" not in {thread.name for thread in threading.enumerate()})


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_body_that_does_not_arrive_in_time_is_refused(
    server: LocalServer, ada: Person, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """LIM-1: of an upload, and of JSON."""
    monkeypatch.setattr(app, "BODY_SECONDS", 0.5)
    upload = ada.announce("slow.txt", BODY).json()["upload"]["url"]
    url = upload if method == "PUT" else f"{server.base_url}/api/rag/documents"
    with open_request(method, url, BODY[:10], token=ada.token) as connection:
        answer = connection.makefile("rb").read()  # to the end of the connection
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in answer


def test_a_body_that_trickles_is_refused(ada: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIM-1"""
    monkeypatch.setattr(app, "BODY_SECONDS", 0.5)
    with half_open_uploads(ada, 1) as (connection,):
        connection.settimeout(0.1)
        began, answer = time.monotonic(), b""
        while not answer and time.monotonic() - began < 5:
            connection.send(b"x")
            try:
                answer = connection.recv(100)
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_uploads_are_stored_when_the_half_open_ones_have_been_refused(
    ada: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIM-1"""
    monkeypatch.setattr(app, "BODY_SECONDS", 0.5)
    ticket = bob.announce("a.txt", BODY).json()
    with half_open_uploads(ada, 40):
        assert bob.put(ticket, BODY).status_code == 200
