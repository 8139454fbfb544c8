"""Puts questions before files: the server marks each question, and while there are any its worker spares a processor.

The mark is the time of a file, because the two are processes that share nothing but a folder and the database, and the
worker looks before each text that it embeds.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from functions.runtime.config import Config

MODEL_THREADS = min(8, os.cpu_count() or 1)
SPARED_SECONDS = 10.0
"""How long a processor is spared after a question: about as long as an answer is written."""
MARK_SECONDS = 1.0
ASKING_PATHS = ("/api/rag/search", "/api/rag/chat", "/v1/", "/mcp")


class MarkQuestions:
    """Marks each search and question, at most once in MARK_SECONDS."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._app, self._path = app, _mark_of(config)
        self._marked_at = -MARK_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(ASKING_PATHS):
            self._mark()
        await self._app(scope, receive, send)

    def _mark(self) -> None:
        now = time.monotonic()
        if now - self._marked_at < MARK_SECONDS:
            return
        self._marked_at = now
        with suppress(OSError):  # a disk that is full or read-only stops no question
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()


class WorkerThreads:
    """How many texts the worker may embed at once: all that MODEL_THREADS allow, one less while people ask."""

    def __init__(self, config: Config) -> None:
        self._path = _mark_of(config)

    def count(self) -> int:
        if not self._has_recent_question():
            return MODEL_THREADS
        return max(1, min(MODEL_THREADS, (os.cpu_count() or 1) - 1))

    def _has_recent_question(self) -> bool:
        try:
            return 0 <= time.time() - self._path.stat().st_mtime < SPARED_SECONDS
        except OSError:
            return False


def _mark_of(config: Config) -> Path:
    return config.home / "asked"
