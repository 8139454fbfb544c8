"""Sends the events of a synchronous generator as server-sent events, with pings during pauses."""

from __future__ import annotations

import contextvars
import json
import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

PING_SECONDS = 15.0
HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}

# How OpenAPI describes a route that streams when it is asked to.
RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}

_END = object()


def format_event(data: dict[str, Any]) -> str:
    """The bytes of one event, with `data` as JSON."""
    return f"data: {json.dumps(data, ensure_ascii=False, default=str)}\n\n"


class EventStream(StreamingResponse):
    """A response that sends `events` and then `end`.

    `events` is closed as soon as the client disconnects, not when the garbage collector finds it.
    """

    def __init__(self, events: Iterator[dict[str, Any]], end: str = "") -> None:
        self._lines = _append(stream_events(events, PING_SECONDS), end)
        super().__init__(self._lines, media_type="text/event-stream", headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._lines.close()


def _append(lines: Generator[str, None, None], end: str) -> Generator[str, None, None]:
    yield from lines
    if end:
        yield end


def stream_events(events: Iterator[dict[str, Any]], ping_seconds: float) -> Generator[str, None, None]:
    """Each event as it arrives, and the comment `: ping` after every `ping_seconds` without one.

    `events` runs in a separate thread, because a generator that waits for a model cannot send pings. After the client
    has disconnected, the thread closes `events` at its next event.
    """
    pending: queue.Queue[Any] = queue.Queue(maxsize=64)
    is_closed = threading.Event()
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(_pump, events, pending, is_closed), name="sse", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = pending.get(timeout=ping_seconds)
            except queue.Empty:
                yield ": ping\n\n"
                continue
            if item is _END:
                return
            yield format_event(item)
    finally:
        is_closed.set()


def _pump(events: Iterator[dict[str, Any]], pending: queue.Queue[Any], is_closed: threading.Event) -> None:
    try:
        for event in events:
            if not _put(pending, event, is_closed):
                break
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()
        _put(pending, _END, is_closed)


def _put(pending: queue.Queue[Any], item: Any, is_closed: threading.Event) -> bool:
    while not is_closed.is_set():
        try:
            pending.put(item, timeout=0.5)
            return True
        except queue.Full:
            continue
    return False
