"""Long polls. They keep no thread while they wait, so any number of them keeps no other request waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread

POLL_SECONDS: Final = 0.3
MAX_WAIT_SECONDS: Final = 25
"""An API gateway gives up after 30."""

Found = TypeVar("Found")


async def read_until(read: Callable[[], Found], is_news: Callable[[Found], bool], seconds: float) -> Found:
    """Reads, in a thread, until there is news or `seconds` have passed; returns what was read last."""
    deadline = time.monotonic() + seconds
    while True:
        found = await anyio.to_thread.run_sync(read)
        if is_news(found) or time.monotonic() >= deadline:
            return found
        await anyio.sleep(POLL_SECONDS)
