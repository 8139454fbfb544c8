from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

from functions.web.sse import format_event, stream_events


def slow(seconds: float, closed: threading.Event) -> Iterator[dict[str, Any]]:
    try:
        yield {"text": "é\n"}
        time.sleep(seconds)
        yield {"done": True}
    finally:
        closed.set()


def read(events: Iterator[dict[str, Any]], ping_seconds: float, end: str = "") -> list[str]:
    async def collect() -> list[str]:
        return [line async for line in stream_events(events, ping_seconds, end)]

    return asyncio.run(collect())


def test_events_are_sent_in_order_and_the_source_is_closed() -> None:
    """CHAT-2"""
    closed = threading.Event()
    assert read(slow(0, closed), ping_seconds=15, end="data: [DONE]\n\n") == [
        'data: {"text": "é\\n"}\n\n',
        'data: {"done": true}\n\n',
        "data: [DONE]\n\n",
    ]
    assert closed.is_set()


def test_a_silent_stream_sends_pings() -> None:
    """CHAT-2"""
    pieces = read(slow(0.35, threading.Event()), ping_seconds=0.1)
    assert pieces[1:-1] == [": ping\n\n"] * len(pieces[1:-1])
    assert 2 <= len(pieces[1:-1]) <= 3


def test_a_client_that_disconnects_closes_the_source() -> None:
    """CHAT-2"""
    closed = threading.Event()

    async def read_one() -> None:
        stream = stream_events(slow(0.2, closed), ping_seconds=15)
        await anext(stream)
        await stream.aclose()

    asyncio.run(read_one())
    assert closed.wait(5)


def test_an_event_is_one_line_of_json() -> None:
    assert format_event({"text": "a\r\nb\u2028"}) == 'data: {"text": "a\\r\\nb\u2028"}\n\n'
