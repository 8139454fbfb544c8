"""Server-sent events from a sync generator, with a comment ping while it is silent."""

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

_END = object()


def format_event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, default=str)}\n\n"


class EventStream(StreamingResponse):
    """The response that sends `events`, then `end`.

    When the client goes, they are closed then and not when memory is tidied up.
    """

    def __init__(self, events: Iterator[dict[str, Any]], end: str = "") -> None:
        self._lines = _end_with(stream_events(events, PING_SECONDS), end)
        super().__init__(self._lines, media_type="text/event-stream", headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._lines.close()


def _end_with(lines: Generator[str, None, None], end: str) -> Generator[str, None, None]:
    yield from lines
    if end:
        yield end


def stream_events(events: Iterator[dict[str, Any]], ping_seconds: float) -> Generator[str, None, None]:
    """Each event as it comes, and `: ping` after every `ping_seconds` of silence.

    `events` runs in a thread of its own, because a generator that waits for a model cannot ping meanwhile. When the
    client goes, the thread is told at its next event, and `events` is closed there.
    """
    waiting: queue.Queue[Any] = queue.Queue(maxsize=64)
    gone = threading.Event()
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(_pump, events, waiting, gone), name="sse", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = waiting.get(timeout=ping_seconds)
            except queue.Empty:
                yield ": ping\n\n"
                continue
            if item is _END:
                return
            yield format_event(item)
    finally:
        gone.set()


def _pump(events: Iterator[dict[str, Any]], waiting: queue.Queue[Any], gone: threading.Event) -> None:
    try:
        for event in events:
            if not _put(waiting, event, gone):
                break
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()
        _put(waiting, _END, gone)


def _put(waiting: queue.Queue[Any], item: Any, gone: threading.Event) -> bool:
    while not gone.is_set():
        try:
            waiting.put(item, timeout=0.5)
            return True
        except queue.Full:
            continue
    return False
