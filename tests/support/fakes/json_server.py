"""The common base of the fake model servers: JSON over HTTP on loopback, a key, and scripted faults."""

from __future__ import annotations

import json
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """A reply, in scripts usually a faulty one; a `body` of bytes is sent unchanged."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0


class FakeServer(ABC):
    """Serves inside a `with` block; POST requests use up the scripted faults in order."""

    def __init__(self, *, api_key: str | None = None) -> None:
        self.api_key = api_key
        self.requests: list[Body] = []
        """Every request: `{path, headers, body}`, in order of arrival."""
        self.faults: deque[Fault] = deque()
        self.delay = 0.0
        """Seconds before each regular reply."""
        self._scheme = "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def encrypt(self, certificate: Path) -> None:
        """Speaks HTTPS from now on; the file has the certificate of 127.0.0.1 and its key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "https"

    def script(self, *faults: Fault) -> None:
        self.faults.extend(faults)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def record(self, request: Body) -> None:
        """Called for each request before it is answered."""
        self.requests.append(request)

    @abstractmethod
    def answer(self, route: str, body: Body) -> Fault:
        """The regular reply; `route` is like "POST /embed"."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def log_message(self, *_: object) -> None:
        """Tests read `requests` instead."""

    def do_GET(self) -> None:
        self._reply({})

    do_OPTIONS = do_GET

    def do_POST(self) -> None:
        self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _reply(self, body: Body) -> None:
        fake = self.fake
        fake.record({"path": self.path, "headers": dict(self.headers), "body": body})
        if fake.api_key and self.headers["Authorization"] != f"Bearer {fake.api_key}":
            self._send(Fault(401))
        elif self.command == "POST" and fake.faults:
            self._send(fake.faults.popleft())
        else:
            time.sleep(fake.delay)
            self._send(fake.answer(f"{self.command} {self.path}", body))

    def _send(self, fault: Fault) -> None:
        time.sleep(fault.delay)
        is_raw = isinstance(fault.body, bytes)
        content = fault.body if is_raw else json.dumps(fault.body).encode()
        self.send_response(fault.status)
        for name, value in ({"Content-Type": "text/plain" if is_raw else "application/json"} | fault.headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
