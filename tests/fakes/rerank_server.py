"""A reranker on loopback, in Cohere's form or in that of text-embeddings-inference ("tei").

    with FakeRerankServer() as server:
        server.script(Fault(429, {"Retry-After": "0"}))
        RerankServer(base_url=server.base_url, model="fake").score("question", ["text"])

The score of a text is the number of the question's words in it. As the real ones do, it answers best first, refuses a
body of the other form and a wrong key, and in the second form more than 32 texts at once.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.fakes.token_server import Fault

Body = dict[str, Any]


class FakeRerankServer:
    """Serves from `with` to the end of the block; scripted faults are used once each, in order."""

    def __init__(self, form: Literal["cohere", "tei"] = "cohere", *, api_key: str | None = None) -> None:
        self.form = form
        self.api_key = api_key
        self.requests: list[Body] = []
        """The bodies of all requests, in order of arrival."""
        self.faults: deque[Fault] = deque()
        self.meanwhile: Callable[[], object] = lambda: None
        """Called while the client waits."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *faults: Fault) -> None:
        self.faults.extend(faults)

    def __enter__(self) -> FakeRerankServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def answer(self, body: Body) -> Fault:
        if self.form == "tei":
            return self._answer_texts(body)
        if "documents" not in body:
            return Fault(400, body={"message": "invalid request: documents is required"})
        rows = [{"index": at, "relevance_score": score} for at, score in _rank(body["query"], body["documents"])]
        return Fault(body={"id": "1", "results": rows[: body["top_n"]], "meta": {}})

    def _answer_texts(self, body: Body) -> Fault:
        if "texts" not in body:
            refusal = (
                b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1 column 9"
            )
            return Fault(422, body=refusal)
        if len(body["texts"]) > 32:
            return Fault(
                413, body={"error": "batch size 33 > maximum allowed batch size 32", "error_type": "Validation"}
            )
        return Fault(body=[{"index": at, "score": score} for at, score in _rank(body["query"], body["texts"])])


def _rank(question: str, texts: list[str]) -> list[tuple[int, float]]:
    asked = set(re.findall(r"\w+", question.lower()))
    scores = [float(len(asked & set(re.findall(r"\w+", text.lower())))) for text in texts]
    return sorted(enumerate(scores), key=lambda row: -row[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeRerankServer

    def log_message(self, *_: object) -> None:
        """Tests read `requests` instead."""

    def do_POST(self) -> None:
        fake = self.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.requests.append(body)
        fake.meanwhile()
        if self.path != "/rerank":
            self._send(Fault(404))
        elif fake.api_key and self.headers["Authorization"] != f"Bearer {fake.api_key}":
            self._send(Fault(401))
        else:
            self._send(fake.faults.popleft() if fake.faults else fake.answer(body))

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
