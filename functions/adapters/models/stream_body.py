"""The body of a response: a stream times out when it has only comments, any other body when it arrives too slowly.

This module imports the HTTP library of OpenAI's client, so the first request imports it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx2

REST_BYTES = 65_536
REST_SECONDS = 5.0
"""How much may follow the marker DONE, and for how long, before the connection is closed instead of reused."""
MAX_BODY_BYTES = 256 * 1024 * 1024
"""More than the vectors of the largest batch take as decimals."""
_DATA, _DONE = b"data:", b"[DONE]"


class EventBody(httpx2.SyncByteStream):
    """The bytes of server-sent events as they arrive.

    Raises ReadTimeout after `silence_seconds` of comments alone, which keep a read timeout from firing. The client
    stops at the marker DONE, a few bytes before the end; a thread reads the rest, because only a connection that was
    read to its end can serve the next request. Closing a stream before DONE closes the connection, so that the server
    stops.
    """

    def __init__(self, response: httpx2.Response, silence_seconds: float) -> None:
        assert isinstance(response.stream, httpx2.SyncByteStream)
        self._body = response.stream
        self._request = response.request
        self._pieces = iter(self._body)
        self._silence_seconds = silence_seconds
        self._tail = b""
        self._is_done = False

    def __iter__(self) -> Iterator[bytes]:
        last_data = time.monotonic()
        for piece in self._pieces:
            self._look_for_done(piece)
            if _DATA in piece:
                last_data = time.monotonic()
            elif time.monotonic() - last_data > self._silence_seconds:
                raise httpx2.ReadTimeout("the stream has only comments", request=self._request)
            yield piece

    def close(self) -> None:
        if self._is_done:
            threading.Thread(target=self._read_rest, name="event-body", daemon=True).start()
        else:
            self._body.close()

    def _look_for_done(self, piece: bytes) -> None:
        self._tail = (self._tail + piece)[-2 * len(_DONE) - 8 :]
        self._is_done = _DONE in self._tail

    def _read_rest(self) -> None:
        left, deadline = REST_BYTES, time.monotonic() + REST_SECONDS
        with suppress(Exception):  # the answer is complete, so an error here must reach nobody
            for piece in self._pieces:
                left -= len(piece)
                if left < 0 or time.monotonic() > deadline:
                    break
            self._body.close()


class WholeBody(httpx2.SyncByteStream):
    """A body that is read before it is used: raises ReadTimeout after `seconds`, and ReadError over MAX_BODY_BYTES.

    A read timeout alone never fires for a server that sends a byte now and then, nor for one that never ends.
    """

    def __init__(self, response: httpx2.Response, seconds: float) -> None:
        assert isinstance(response.stream, httpx2.SyncByteStream)
        self._body = response.stream
        self._request = response.request
        self._seconds = seconds

    def __iter__(self) -> Iterator[bytes]:
        left, deadline = MAX_BODY_BYTES, time.monotonic() + self._seconds
        for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError("the body is too large", request=self._request)
            if time.monotonic() > deadline:
                raise httpx2.ReadTimeout("the body arrives too slowly", request=self._request)
            yield piece

    def close(self) -> None:
        self._body.close()


def wrap_body(response: httpx2.Response, silence_seconds: float, total_seconds: float) -> None:
    """A response hook that limits how long a body may take; compressed server-sent events are left as they are."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = WholeBody(response, total_seconds)
    elif "content-encoding" not in response.headers:
        response.stream = EventBody(response, silence_seconds)
