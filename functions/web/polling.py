"""Long polls. They keep no thread while they wait, so any number of them keeps no other request waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread

POLL_SECONDS: Final = 0.3, 2.0
"""Between two reads, at first and after long: most sources are ready soon, and each read costs a transaction."""
POLL_SHARE: Final = 0.2
"""Of the time waited so far: news are late by no more."""
MAX_WAIT_SECONDS: Final = 25
"""An API gateway gives up after 30."""

Found = TypeVar("Found")


async def read_until(read: Callable[[], Found], is_news: Callable[[Found], bool], seconds: float) -> Found:
    """Reads, in a thread, until there is news or `seconds` have passed; returns what was read last."""
    began = time.monotonic()
    while True:
        found = await anyio.to_thread.run_sync(read)
        waited = time.monotonic() - began
        if is_news(found) or waited >= seconds:
            return found
        await anyio.sleep(min(POLL_SECONDS[1], max(POLL_SECONDS[0], POLL_SHARE * waited), seconds - waited))
