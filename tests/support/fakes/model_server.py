"""A model server on loopback that speaks the OpenAI protocol, and can fail in the ways that real servers do.

    with FakeModelServer() as server:
        server.script(Reply(status=429, headers={"Retry-After": "0"}), answer(("Paris.", ["doc:0"])))
        model = OpenAIChatModel(model="fake", base_url=server.base_url)
        ...
        assert server.chats[0]["messages"][-1]["content"]

Scripted replies are used once each, in order, by chat and by embeddings alike. When none is left, a chat quotes the
first sentence of the first passage of its prompt, and embeddings are unit vectors made of word hashes: the same text
gives the same vector, and texts that share words are alike.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal

Body = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call in a reply; arguments that are not a string are sent as JSON."""

    name: str
    arguments: Any = ""
    id: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """One reply of the server; the defaults are those of a good reply."""

    pieces: Sequence[str] = ()
    """The text of a chat answer as it is streamed; joined when the request does not stream."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: Body = field(default_factory=lambda: {"message": "scripted failure", "type": "server_error", "code": None})
    """The field `error` of the body, when `status` is an error or `ending` is `error`."""
    delay: float = 0.0
    """Seconds before each piece."""
    ending: Literal["done", "length", "cut", "silent", "error"] = "done"
    """How a stream ends: complete, at the token limit, cut off, without a final event, or by an error."""
    refusal: bool = False
    """The pieces are a refusal, not content."""
    raw: bytes | None = None
    """The exact bytes of the body, for example the HTML of a proxy."""
    drip: float = 0.0
    """Seconds before each 100 of the `raw` bytes."""
    vectors: Sequence[Sequence[float]] | None = None
    """The embeddings to return, whatever the input is."""
    calls: Sequence[Call] = ()
    """The tool calls that follow the text."""
    comments: int = 0
    """The number of comments before the first piece, each after `delay`: servers send them while requests wait."""
    call_deltas: Sequence[Body] | None = None
    """The exact `tool_calls` of the streamed deltas in place of `calls`, because servers split them differently."""


def pieces(text: str, size: int = 7) -> list[str]:
    """`text` cut into pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def answer_json(*sections: tuple[str, Sequence[str]] | tuple[str, Sequence[str], Sequence[str]]) -> str:
    """The JSON of a valid answer with sections of (text, source_ids[, quotes])."""
    rows = [{"text": text, "source_ids": list(ids), "quotes": list(*quotes)} for text, ids, *quotes in sections]
    return json.dumps({"sections": rows}, ensure_ascii=False)


def answer(*sections: tuple[str, Sequence[str]] | tuple[str, Sequence[str], Sequence[str]]) -> Reply:
    """A valid answer with sections of (text, source_ids[, quotes]), in pieces."""
    return Reply(pieces(answer_json(*sections)))


def quote_first_passage(request: Body) -> Reply:
    """The default chat model: it answers with the first sentence of the first passage, quoted and cited."""
    prompt = "\n".join(str(message["content"]) for message in request["messages"])
    passage = re.search(r"\[SEG=([^\]\s]+:\d+)\][^\n]*\n(.+?[.!?](?=\s|$)|.+)", prompt)
    if passage is None:
        numbered = re.search(r"<passages>\n\[1\][^\n]*\n(.+?)(?=[.!?](?:\s|$)|\n)", prompt)
        return Reply(pieces(f"{numbered[1]} [1].")) if numbered else answer(("NO_ANSWER", []))
    return answer((passage[2], [passage[1]], [passage[2]]))


def word_vector(text: str, dimensions: int) -> list[float]:
    """A unit vector that is a function of the words alone."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % dimensions] += 1.0 if digest[4] % 2 else -1.0
        vector[int.from_bytes(digest[5:9], "big") % dimensions] += 0.5
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


class FakeModelServer:
    """Serves `/v1/chat/completions`, `/v1/embeddings` and `/v1/models` inside a `with` block."""

    def __init__(
        self,
        *,
        dimensions: int = 384,
        refuses: Sequence[str] = (),
        respond: Callable[[Body], Reply] = quote_first_passage,
        embed: Callable[[Sequence[str]], Sequence[Sequence[float]]] | None = None,
    ) -> None:
        """`refuses` lists request fields and types of response format (`json_schema`) that get a 400.

        `embed` replaces the word hashes as the model of texts, with vectors of `dimensions`.
        """
        self.dimensions = dimensions
        self.embed = embed or (lambda texts: [word_vector(text, dimensions) for text in texts])
        self.refuses = set(refuses)
        self.respond = respond
        self.requests: list[Body] = []
        """Every request: `{path, headers, body, client}`, in order of arrival; `client` is its connection's address."""
        self.closed_early = threading.Event()
        """Set when a client disconnected before the end of a stream."""
        self._replies: deque[Reply] = deque()
        self._server = _QuietServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def chats(self) -> list[Body]:
        """The bodies of the chat requests."""
        return [request["body"] for request in self.requests if request["path"].endswith("/chat/completions")]

    @property
    def embeddings(self) -> list[Body]:
        """The bodies of the embedding requests."""
        return [request["body"] for request in self.requests if request["path"].endswith("/embeddings")]

    def script(self, *replies: Reply | str) -> None:
        """Adds replies; a string is a chat answer of one piece."""
        self._replies.extend(Reply([reply]) if isinstance(reply, str) else reply for reply in replies)

    def forget_script(self) -> None:
        """Drops the replies that were not used."""
        self._replies.clear()

    def next_reply(self, body: Body, default: Callable[[Body], Reply]) -> Reply:
        if refused := self._find_refused_field(body):
            fault = {"message": f"Unsupported parameter: '{refused}'", "type": "invalid_request_error"}
            return Reply(status=400, error=fault | {"param": refused, "code": "unsupported_parameter"})
        if message := self._find_fault(body):
            return Reply(status=400, error={"message": message, "type": "invalid_request_error", "param": "messages"})
        return self._replies.popleft() if self._replies else default(body)

    def _find_fault(self, body: Body) -> str | None:
        """The error message of a strict server for inconsistent tool messages or malformed arguments."""
        if body.get("tools") == []:
            return "Invalid 'tools': empty array. Expected an array with minimum length 1."
        waiting: list[str] = []
        for message in body.get("messages", ()):
            if message["role"] == "tool":
                if message["tool_call_id"] not in waiting:
                    return "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                waiting.remove(message["tool_call_id"])
            elif waiting:
                break
            for call in message.get("tool_calls", ()):
                if not _is_object(call["function"]["arguments"]):
                    return "The arguments of a tool call are not a JSON object."
                waiting.append(call["id"])
        if waiting:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each of them."
            )
        return None

    def _find_refused_field(self, body: Body) -> str | None:
        if body.get("response_format", {}).get("type") in self.refuses:
            return "response_format"
        return next((name for name in body if name in self.refuses), None)

    def __enter__(self) -> FakeModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnect; any other error is a bug of this fake."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as real servers do: otherwise the second small packet waits for 40 ms
    fake: FakeModelServer

    def log_message(self, *_: object) -> None:
        """Tests read `requests` instead."""

    def do_GET(self) -> None:
        self._record({})
        self._send(200, {"object": "list", "data": [{"id": "fake", "object": "model", "owned_by": "tests"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self._record(body)
        handle = {"/v1/chat/completions": self._chat, "/v1/embeddings": self._embed}.get(self.path)
        if handle is None:
            self._send(404, {"error": {"message": f"no route {self.path}"}})
            return
        try:
            handle(body)
        except (BrokenPipeError, ConnectionResetError):
            self.fake.closed_early.set()

    def _record(self, body: Body) -> None:
        request = {"path": self.path, "headers": dict(self.headers), "body": body, "client": self.client_address}
        self.fake.requests.append(request)

    def _chat(self, body: Body) -> None:
        reply = self.fake.next_reply(body, self.fake.respond)
        if reply.raw is not None or reply.status != 200:
            self._fail(reply)
        elif body.get("stream"):
            self._stream(body, reply)
        else:
            self._complete(body, reply)

    def _complete(self, body: Body, reply: Reply) -> None:
        time.sleep(reply.delay * len(reply.pieces))
        text = "".join(reply.pieces)
        message: Body = {"role": "assistant", "content": None, "refusal": text} if reply.refusal else {"content": text}
        if reply.calls:
            message = {"content": text or None, "tool_calls": [_whole_call(at, c) for at, c in enumerate(reply.calls)]}
        choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": _finish(reply)}
        self._send(200, _head(body) | {"object": "chat.completion", "choices": [choice], "usage": _usage(body, text)})

    def _stream(self, body: Body, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(reply.comments):
            time.sleep(reply.delay)
            self._write_chunk(b": waiting\n\n")
        for event in _events(body, reply):
            time.sleep(reply.delay)
            self._write_chunk(f"data: {event}\n\n".encode())
        if reply.ending == "cut":
            self.close_connection = True  # not a reset, which could discard data that was already sent
        else:
            self._write_chunk(b"")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _embed(self, body: Body) -> None:
        reply = self.fake.next_reply(body, lambda _: Reply())
        time.sleep(reply.delay)
        if reply.raw is not None or reply.status != 200:
            self._fail(reply)
            return
        inputs = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = reply.vectors or self.fake.embed([str(text) for text in inputs])
        encode = _base64 if body.get("encoding_format") == "base64" else list
        data = [{"object": "embedding", "index": at, "embedding": encode(vector)} for at, vector in enumerate(vectors)]
        self._send(200, {"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": 1}})

    def _fail(self, reply: Reply) -> None:
        time.sleep(reply.delay)
        body = reply.raw if reply.raw is not None else json.dumps({"error": reply.error}).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        is_json = body[:1] in (b"{", b"[")
        self.send_header("Content-Type", "application/json" if is_json else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(0, len(body), 100 if reply.drip else len(body) or 1):
            time.sleep(reply.drip)
            self.wfile.write(body[at : at + 100] if reply.drip else body)

    def _send(self, status: int, body: Body) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _events(body: Body, reply: Reply) -> Iterator[str]:
    """The data of each event."""
    head = _head(body) | {"object": "chat.completion.chunk"}
    key = "refusal" if reply.refusal else "content"
    deltas: list[Body] = [{"role": "assistant", "content": ""}, *({key: piece} for piece in reply.pieces)]
    deltas += [{"tool_calls": [delta]} for delta in _call_deltas(reply)]
    for delta in deltas:
        yield json.dumps(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if reply.ending == "error":
        yield json.dumps({"error": reply.error})
    if reply.ending in ("error", "cut", "silent"):
        return
    yield json.dumps(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
    if body.get("stream_options", {}).get("include_usage"):
        yield json.dumps(head | {"choices": [], "usage": _usage(body, "".join(reply.pieces))})
    yield "[DONE]"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _call_deltas(reply: Reply) -> Iterator[Body]:
    """The first piece of each call has its id and name; the pieces of its arguments follow under its index."""
    if reply.call_deltas is not None:
        yield from reply.call_deltas
        return
    for at, call in enumerate(reply.calls):
        whole = _whole_call(at, call)
        yield {"index": at} | whole | {"function": {"name": call.name, "arguments": ""}}
        for piece in pieces(call.text):
            yield {"index": at, "function": {"arguments": piece}}


def _whole_call(at: int, call: Call) -> Body:
    function = {"name": call.name, "arguments": call.text}
    return {"id": call.id or f"call_fake{at}", "type": "function", "function": function}


def _finish(reply: Reply) -> str:
    if reply.ending == "length":
        return "length"
    return "tool_calls" if reply.calls or reply.call_deltas else "stop"


def _head(body: Body) -> Body:
    return {"id": "chatcmpl-fake", "created": 0, "model": body.get("model", "fake")}


def _usage(body: Body, text: str) -> Body:
    """Counts words as tokens, so that tests can predict the usage."""
    prompt = sum(len(str(message["content"]).split()) for message in body["messages"])
    return {"prompt_tokens": prompt, "completion_tokens": len(text.split()), "total_tokens": prompt + len(text.split())}


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
