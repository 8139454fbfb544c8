"""A small Supabase Storage over HTTP: the answers of the real server (storage 1.11) that our adapter depends on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "sb_secret_test"
CREATED = "2026-11-21T12:00:00.123456+00:00"


@dataclass
class StorageServer:
    """The objects by path, the requests seen, and a switch to make it fail."""

    url: str = ""
    bucket: str = "documents"
    objects: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failure: tuple[int, dict[str, str]] | None = None
    address: str = "http://127.0.0.1:9"  # nobody listens on the discard port


def refuse(status: str, error: str, message: str) -> tuple[int, dict[str, str]]:
    """The real server answers 400 and says in the body what it means."""
    return 400, {"statusCode": status, "error": error, "message": message}


NO_OBJECT = refuse("404", "not_found", "Object not found")
NO_BUCKET = refuse("404", "Bucket not found", "Bucket not found")


@contextmanager
def run() -> Iterator[StorageServer]:
    state = StorageServer()
    handler = type("Handler", (_Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield state
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: StorageServer

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_GET(self) -> None:
        self._answer("GET")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def _answer(self, method: str) -> None:
        address = urlsplit(self.path)
        path = unquote(address.path).removeprefix("/storage/v1/object/")
        self.state.requests.append(f"{method} {path}")
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        status, answer = self.state.failure or self._serve(method, path, query, body)
        payload, kind = answer if isinstance(answer, tuple) else (json.dumps(answer).encode(), "application/json")
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _serve(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        state = self.state
        if "token" in query:
            return self._serve_signed(method, path, query["token"], body)
        if self.headers.get("apikey") != KEY:
            return refuse("403", "Unauthorized", "Invalid Compact JWS")
        if f"/{state.bucket}" not in f"/{path}":
            return NO_BUCKET
        operation, _, name = path.rpartition(f"{state.bucket}")
        name = name.lstrip("/")
        match method, operation:
            case "POST", "upload/sign/":
                return 200, {"url": f"/object/upload/sign/{state.bucket}/{name}?token=up-{name}"}
            case "POST", "sign/" if name in state.objects:
                return 200, {"signedURL": f"/object/sign/{state.bucket}/{name}?token=down-{name}"}
            case "GET", "info/" if name in state.objects:
                content, kind = state.objects[name]
                return 200, {"name": name, "size": len(content), "content_type": kind, "created_at": CREATED}
            case "DELETE", "":
                removed = [name for name in json.loads(body)["prefixes"] if state.objects.pop(name, None)]
                return 200, [{"name": name} for name in removed]
            case _:
                return NO_OBJECT

    def _serve_signed(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        kind, _, name = token.partition("-")
        if not path.endswith(f"/{name}"):
            return refuse("400", "InvalidSignature", "The url does not match the signature")
        if method == "PUT" and kind == "up":
            if name in self.state.objects:
                return refuse("409", "Duplicate", "The resource already exists")
            self.state.objects[name] = (body, self.headers["content-type"])
            return 200, {"Key": f"{self.state.bucket}/{name}"}
        if method == "GET" and name in self.state.objects:
            return 200, self.state.objects[name]
        return NO_OBJECT
