"""Runs the whole service for tests: the local app on a loopback port, and a worker."""

from __future__ import annotations

import hashlib
import mimetypes
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from functions.adapters import auth
from functions.core import errors, models
from functions.local.server import serve
from functions.runtime import translating
from functions.runtime.config import Config
from functions.runtime.services import Services

Json = dict[str, Any]

SETTLED_STATUSES = ("indexed", "failed", "awaiting_upload")
PATIENCE_SECONDS = 60.0


class Person:
    """A user with a token and a client; `http` sends the token with every request to this server."""

    def __init__(self, server: LocalServer, name: str, *, admin: bool = False) -> None:
        self.server = server
        self.id = str(uuid4())
        self.token = auth.issue_local_token(server.services.local_secret, self.id, name, admin=admin)
        self.http = server.open_client(Authorization=f"Bearer {self.token}")

    @property
    def user(self) -> models.User:
        return models.User(self.id, False, {"sub": self.id})

    def announce(self, file_name: str, content: bytes = bytes(1000), **fields: Any) -> httpx.Response:
        """Sends the first step of an upload."""
        body = {"file_name": file_name, "size": len(content), "mime_type": mimetypes.guess_type(file_name)[0]}
        return self.http.post("/api/rag/documents", json=body | fields)

    def put(self, ticket: Json, content: bytes) -> httpx.Response:
        """Sends the second step: the bytes, without a token, as a browser sends them to Supabase Storage."""
        upload = ticket["upload"]
        return self.server.http.request(upload["method"], upload["url"], content=content, headers=upload["headers"])

    def add_bytes(self, file_name: str, content: bytes, **fields: Any) -> Json:
        """Stores and finalizes a document, without waiting for its ingestion."""
        ticket = self.announce(file_name, content, sha256=hashlib.sha256(content).hexdigest(), **fields)
        assert ticket.status_code == 201, ticket.text
        stored = self.put(ticket.json(), content)
        assert stored.status_code == 200, stored.text
        return self.post(f"/documents/{ticket.json()['document']['id']}/finalize")

    def add(self, path: Path, **fields: Any) -> Json:
        """Uploads a file and waits until it is indexed or has failed."""
        return self.follow(self.add_bytes(path.name, path.read_bytes(), **fields)["id"])

    def follow(self, document_id: str) -> Json:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (document := self.get(f"/documents/{document_id}"))["status"] not in SETTLED_STATUSES:
            assert time.monotonic() < deadline, document
            time.sleep(0.05)
        return document

    def get(self, path: str, **params: Any) -> Json:
        """The body of a request that must succeed."""
        return read(self.http.get(f"/api/rag{path}", params=params))

    def post(self, path: str, **body: Any) -> Json:
        return read(self.http.post(f"/api/rag{path}", json=body))

    def ask(self, query: str, **fields: Any) -> Json:
        return self.post("/chat", query=query, **fields)


def read(response: httpx.Response) -> Json:
    """The body of a response, which must be a success."""
    assert response.is_success, response.text
    body: Json = response.json()
    return body


def problem_of(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a response, which must be a complete problem document with a request id."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert set(body) - {"faults", "conversation_id"} == {"type", "title", "status", "detail", "code", "request_id"}
    assert body["status"] == response.status_code
    assert body["type"] == f"urn:ibid:error:{body['code']}"
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["detail"]
    return body["status"], body["code"]


class LocalServer:
    """A running server; `http` is a client without a token, `person` creates users with separate libraries."""

    def __init__(self, services: Services, app: FastAPI, base_url: str) -> None:
        self.services = services
        self.app = app
        self.base_url = base_url
        self.worker = InProcessWorker(services)
        self.http = self.open_client()

    @property
    def door(self) -> str:
        """The address that `make run` prints, which signs one browser in."""
        return f"{self.base_url}/#key={self.app.state.sign_in.key}"

    def open_client(self, **headers: str) -> httpx.Client:
        """A client of this server, without certificates, because loading them takes longer than a request."""
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=30, trust_env=False, verify=False)

    @contextmanager
    def person(self, name: str = "someone", *, admin: bool = False) -> Iterator[Person]:
        person = Person(self, name, admin=admin)
        with person.http:
            yield person


class InProcessWorker:
    """Ingests in a thread, as `functions.local.server.worker` does in a process, and can be paused."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stopping = threading.Event()
        self._working = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="test-worker")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside the block no job runs; a running job is finished first."""
        with self._working:
            yield

    def _run(self) -> None:
        while not self._stopping.is_set():
            outcome: object = None
            with self._working, suppress(errors.IbidError):  # as the worker process does: the next attempt may succeed
                outcome = self._services.make_worker().ingest_next() or translating.translate_next(self._services)
            self._stopping.wait(0.001 if outcome else 0.05)  # lets `paused` take the lock


@contextmanager
def run_local_server(dsn: str, home: Path, *, worker: bool = True, **config: Any) -> Iterator[LocalServer]:
    """Serves on a free port until the end of the block; `config` are fields of `Config`."""
    services = Services(Config(database_url=SecretStr(dsn), ibid_home=home, log_level="CRITICAL", **config))
    app = serve.create_local_app(services)
    with closing(services), serve.bind(0) as listener, _serving(app, listener):
        server = LocalServer(services, app, f"http://127.0.0.1:{listener.getsockname()[1]}")
        if worker:
            server.worker.start()
        try:
            yield server
        finally:
            server.worker.stop()
            server.http.close()


@contextmanager
def _serving(app: FastAPI, listener: socket.socket) -> Iterator[None]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="test-server")
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        assert server.started
        yield
    finally:
        server.should_exit = True
        thread.join()


def wait_until(condition: Any, seconds: float = 10.0) -> Any:
    """Calls `condition` until its result is true, and returns that; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(AssertionError):
            if result := condition():
                return result
        time.sleep(0.02)
    raise AssertionError(f"The condition was not true within {seconds} s.")
