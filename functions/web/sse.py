"""Sends the events of a synchronous generator as server-sent events, with pings during pauses."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
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
        self._lines = stream_events(events, PING_SECONDS, end)
        super().__init__(self._lines, media_type="text/event-stream", headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._lines.aclose()


async def stream_events(
    events: Iterator[dict[str, Any]], ping_seconds: float, end: str = ""
) -> AsyncGenerator[str, None]:
    """Each event as it arrives, the comment `: ping` after every `ping_seconds` without one, and at last `end`.

    `events` runs in a thread of its own, because it waits for a model; none of the threads that run routes is kept.
    After the client has disconnected, the thread closes `events` at its next event. Events wait for a client that reads
    slowly; they are no more than one answer.
    """
    pending: asyncio.Queue[Any] = asyncio.Queue()
    is_closed = threading.Event()
    put = partial(_put, asyncio.get_running_loop(), pending, is_closed)
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(_pump, events, put), name="sse", daemon=True).start()
    try:
        while True:
            try:
                async with asyncio.timeout(ping_seconds):
                    item = await pending.get()
            except TimeoutError:
                yield ": ping\n\n"
                continue
            if item is _END:
                break
            yield format_event(item)
    finally:
        is_closed.set()
    if end:
        yield end


def _pump(events: Iterator[dict[str, Any]], put: Callable[[Any], bool]) -> None:
    try:
        for event in events:
            if not put(event):
                break
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()
        put(_END)


def _put(loop: asyncio.AbstractEventLoop, pending: asyncio.Queue[Any], is_closed: threading.Event, item: Any) -> bool:
    """False after the client has disconnected, or the server has stopped."""
    if is_closed.is_set():
        return False
    try:
        loop.call_soon_threadsafe(pending.put_nowait, item)
    except RuntimeError:  # the loop is closed
        return False
    return True
