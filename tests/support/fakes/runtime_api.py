"""Lambda's Runtime API (2018-06-01) on loopback: runtimes fetch events from it and send results to it."""

from __future__ import annotations

import json
import queue
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ACCOUNT = "123456789012"
REGION = "eu-central-1"

Json = dict[str, Any]


class FunctionError(Exception):
    """The error of a function or of its start: `{errorMessage, errorType, stackTrace}`."""


class RuntimeApi:
    """The platform for one function: hands out events one at a time."""

    def __init__(self, name: str, timeout: int) -> None:
        """`timeout` is the time limit of the function for each event, in seconds."""
        self.address = ""
        self.arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        self.timeout = timeout
        self.answered_at = 0.0
        """`time.perf_counter()` when the last answer was complete."""
        self.events: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self.answers: queue.Queue[Any] = queue.Queue()

    def invoke(self, event: Any) -> Any:
        """The function's result for an event; raises FunctionError if it fails or exceeds the timeout."""
        self.events.put((str(uuid.uuid4()), json.dumps(event).encode()))
        try:
            answer = self.answers.get(timeout=self.timeout)
        except queue.Empty:
            raise FunctionError(f"no answer in {self.timeout} s") from None
        if isinstance(answer, FunctionError):
            raise answer
        return answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: RuntimeApi

    def do_GET(self) -> None:
        """`/runtime/invocation/next`: waits for an event; None ends the wait."""
        queued = self.api.events.get()
        if queued is None:
            self.close_connection = True
            return
        request_id, event = queued
        headers = {
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + self.api.timeout) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": self.api.arn,
            "Lambda-Runtime-Trace-Id": "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0",
        }
        self._answer(200, event, headers)

    def do_POST(self) -> None:
        """`…/response`, `…/error` and `/runtime/init/error`."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.api.answered_at = time.perf_counter()
        self.api.answers.put(FunctionError(json.dumps(body)) if self.path.endswith("/error") else body)
        self._answer(202, b'{"status":"OK"}', {})

    def log_message(self, *_: Any) -> None:
        """Silences the request log of http.server."""

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a killed runtime leaves a waiting thread behind

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores the lost connection of a killed runtime."""


@contextmanager
def run(name: str = "function", timeout: int = 30) -> Iterator[RuntimeApi]:
    api = RuntimeApi(name, timeout)
    with _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api})) as server:
        api.address = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield api
        api.events.put(None)
        server.shutdown()
        thread.join()
