"""A text-embeddings-inference server on loopback: `/info`, `/tokenize`, `/embed_all` and `/v1/embeddings`.

    with FakeTokenServer() as server:
        server.script(Fault(429, {"Retry-After": "0"}))
        embedder = OpenAIEmbedder(model="fake", dimensions=8, base_url=f"{server.base_url}/v1")
        tokens = TokenServer(embedder, base_url=server.base_url)

As the real one does, it counts offsets in bytes, puts a special token at either end of what it embeds, refuses empty
texts, too many and too long ones, and answers a wrong key with a 401. Words, punctuation marks and half emojis are
tokens; the vector of a token is made of its text alone.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.model_server import word_vector

Body = dict[str, Any]
Token = tuple[str, int, int]

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Fault:
    """A reply other than the right one; `body` is sent as it is when it is bytes."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0


class Refusal(Exception):
    """A status and the `error_type` that goes with it."""


class FakeTokenServer:
    """Serves from `with` to the end of the block; scripted faults are used once each, in order, by POST requests."""

    def __init__(
        self,
        *,
        dimensions: int = 8,
        pooling: str = "mean",
        prompt: str = "",
        max_input_length: int = 512,
        without: Sequence[str] = (),
        api_key: str | None = None,
    ) -> None:
        """`prompt` is put before each text, as with `--default-prompt`; `without` names routes that it lacks."""
        self.dimensions = dimensions
        self.pooling = pooling
        self.prompt = prompt
        self.max_input_length = max_input_length
        self.without = without
        self.api_key = api_key
        self.requests: list[Body] = []
        """Every request: `{path, headers, body}`, in order of arrival."""
        self.faults: deque[Fault] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *faults: Fault) -> None:
        self.faults.extend(faults)

    def paths(self) -> list[str]:
        return [request["path"] for request in self.requests]

    def __enter__(self) -> FakeTokenServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def info(self) -> Body:
        return {"model_id": "fake", "model_type": {"embedding": {"pooling": self.pooling}}, "max_input_length": 512}

    def tokenize(self, body: Body) -> list[list[Body]]:
        return [self._describe(self._tokens(text), body["add_special_tokens"]) for text in _inputs(body["inputs"])]

    def embed_all(self, body: Body) -> list[list[list[float]]]:
        return [self._states(text, truncate=body["truncate"]) for text in _inputs(body["inputs"])]

    def embed(self, body: Body) -> Body:
        states = [self._states(text, truncate=True) for text in _inputs(body["input"])]
        means = [[sum(values) / len(rows) for values in zip(*rows, strict=True)] for rows in states]
        packed = [base64.b64encode(struct.pack(f"<{len(mean)}f", *mean)).decode() for mean in means]
        data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(packed)]
        return {"object": "list", "model": "fake", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def _tokens(self, text: str) -> list[Token]:
        if not text:
            raise Refusal(400, "empty")
        return list(_split(self.prompt + text))

    def _describe(self, tokens: list[Token], add_special_tokens: bool) -> list[Body]:
        rows = [{"id": 9, "text": t, "special": False, "start": start, "stop": stop} for t, start, stop in tokens]
        ends = [{"id": 0, "text": name, "special": True, "start": None, "stop": None} for name in ("<s>", "</s>")]
        return [ends[0], *rows, ends[1]] if add_special_tokens else rows

    def _states(self, text: str, *, truncate: bool) -> list[list[float]]:
        words = ["<s>", *(word for word, _, _ in self._tokens(text)), "</s>"]
        if len(words) > self.max_input_length and not truncate:
            raise Refusal(413, "validation")
        return [word_vector(word, self.dimensions) for word in words[: self.max_input_length]]


def _split(text: str) -> Iterator[Token]:
    """The tokens with their places in the bytes of the text."""
    for match in _TOKEN.finditer(text):
        word, start = match.group(), len(text[: match.start()].encode())
        sizes = [2, 2] if len(word) == 1 and word > "\uffff" else [len(word.encode())]
        for size in sizes:
            yield word, start, start + size
            start += size


def _inputs(inputs: str | list[str]) -> list[str]:
    texts = [inputs] if isinstance(inputs, str) else inputs
    if len(texts) > 32:
        raise Refusal(413, "validation")
    return texts


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeTokenServer

    def log_message(self, *_: object) -> None:
        """Tests read `requests` instead."""

    def do_GET(self) -> None:
        self._handle({"/info": lambda _: self.fake.info()}, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake = self.fake
        self._handle({"/tokenize": fake.tokenize, "/embed_all": fake.embed_all, "/v1/embeddings": fake.embed}, body)

    def _handle(self, routes: dict[str, Any], body: Body) -> None:
        fake = self.fake
        fake.requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
        if fake.api_key and self.headers["Authorization"] != f"Bearer {fake.api_key}":
            self._send(Fault(401))
        elif self.path in fake.without or self.path not in routes:
            self._send(Fault(404))
        elif self.command == "POST" and fake.faults:
            self._send(fake.faults.popleft())
        else:
            self._answer(routes[self.path], body)

    def _answer(self, route: Any, body: Body) -> None:
        try:
            self._send(Fault(body=route(body)))
        except Refusal as exc:
            status, kind = exc.args
            self._send(Fault(status, body={"error": "Input validation error", "error_type": kind}))

    def _send(self, fault: Fault) -> None:
        time.sleep(fault.delay)
        is_raw = isinstance(fault.body, bytes)
        content = fault.body if is_raw else b"" if fault.body is None else json.dumps(fault.body).encode()
        self.send_response(fault.status)
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/html" if is_raw else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
