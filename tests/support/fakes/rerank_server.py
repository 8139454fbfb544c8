"""A reranker on loopback that speaks the protocol of Cohere or of text-embeddings-inference ("tei").

    with FakeRerankServer() as server:
        server.script(Fault(429, {"Retry-After": "0"}))
        RerankServer(base_url=server.base_url, model="fake").score("question", ["text"])

The score of a text is the number of the question's words in it. Like the real servers, it answers best first, refuses a
body of the other protocol and a wrong key, and with the second protocol more than 32 texts at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from tests.support.fakes.json_server import Body, FakeServer, Fault


class FakeRerankServer(FakeServer):
    """`requests` holds the bodies only."""

    def __init__(self, form: Literal["cohere", "tei"] = "cohere", *, api_key: str | None = None) -> None:
        super().__init__(api_key=api_key)
        self.form = form
        self.meanwhile: Callable[[], object] = lambda: None
        """Called while the client waits."""

    def record(self, request: Body) -> None:
        self.requests.append(request["body"])
        self.meanwhile()

    def answer(self, route: str, body: Body) -> Fault:
        if route != "POST /rerank":
            return Fault(404)
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
    question_words = set(re.findall(r"\w+", question.lower()))
    scores = [float(len(question_words & set(re.findall(r"\w+", text.lower())))) for text in texts]
    return sorted(enumerate(scores), key=lambda row: -row[1])
