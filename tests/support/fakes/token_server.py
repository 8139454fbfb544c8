"""A text-embeddings-inference server on loopback: `/info`, `/tokenize`, `/embed_all` and `/v1/embeddings`.

    with FakeTokenServer() as server:
        server.script(Fault(429, {"Retry-After": "0"}))
        embedder = OpenAIEmbedder(model="fake", dimensions=8, base_url=f"{server.base_url}/v1")
        tokens = TokenServer(embedder, base_url=server.base_url)

Like the real one, it counts offsets in bytes, adds a special token at both ends of a text, refuses empty texts, too
many and too long ones, and answers a wrong key with a 401. Words, punctuation marks and halves of emojis are tokens;
the vector of a token depends on its text alone.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Sequence

from tests.support.fakes.json_server import Body, FakeServer, Fault
from tests.support.fakes.model_server import word_vector

Token = tuple[str, int, int]

_TOKEN = re.compile(r"\w+|[^\w\s]")


class Refusal(Exception):
    """A status and its `error_type`."""


class FakeTokenServer(FakeServer):
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
        """`prompt` is prepended to each text, as with `--default-prompt`; `without` names missing routes."""
        super().__init__(api_key=api_key)
        self.dimensions = dimensions
        self.pooling = pooling
        self.prompt = prompt
        self.max_input_length = max_input_length
        self.without = without

    def paths(self) -> list[str]:
        return [request["path"] for request in self.requests]

    def answer(self, route: str, body: Body) -> Fault:
        routes = {
            "GET /info": self.info,
            "POST /tokenize": self.tokenize,
            "POST /embed_all": self.embed_all,
            "POST /v1/embeddings": self.embed,
        }
        if route not in routes or route.split()[1] in self.without:
            return Fault(404)
        try:
            return Fault(body=routes[route](body))
        except Refusal as exc:
            status, kind = exc.args
            return Fault(status, body={"error": "Input validation error", "error_type": kind})

    def info(self, _: Body) -> Body:
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
    """The tokens with the byte offsets of each."""
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
