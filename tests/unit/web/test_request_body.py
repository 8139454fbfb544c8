"""Limits of the body of a request that no client over HTTP can show."""

from __future__ import annotations

import anyio
import pytest
from starlette.types import Message

from functions.web import app


def test_waiting_for_the_end_of_the_connection_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """CHAT-2: a stream waits for it while the answer is written."""
    monkeypatch.setattr(app, "BODY_SECONDS", 0.05)
    messages: list[tuple[float, Message]] = [
        (0.0, {"type": "http.request", "body": b"{}"}),
        (0.2, {"type": "http.disconnect"}),
    ]

    async def receive() -> Message:
        seconds, message = messages.pop(0)
        await anyio.sleep(seconds)
        return message

    async def receive_all() -> list[str]:
        limited = app._limit_body("/api/rag/chat", receive)
        return [(await limited())["type"], (await limited())["type"]]

    assert anyio.run(receive_all) == ["http.request", "http.disconnect"]
