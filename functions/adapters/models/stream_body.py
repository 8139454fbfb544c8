"""The body of a streamed answer: given up when it says nothing, read to its end when it is done.

Loads the HTTP library of OpenAI's client: imported when the first request is made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx2

REST_BYTES = 65_536
REST_SECONDS = 5.0
"""How much, and for how long, may follow the word that a stream is done before its connection is given up."""
_DATA, _DONE = b"data:", b"[DONE]"


class EventBody(httpx2.SyncByteStream):
    """The bytes of server-sent events as they come.

    Raises ReadTimeout after `silence_seconds` of comments alone, which are news for a read timeout but not for a
    reader. A client stops at the word DONE, a few bytes before the end: the rest is read in a thread of its own, since
    a connection that was read to its end serves the next request, too. A stream closed before is hung up on, so that
    the server stops writing.
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
        heard = time.monotonic()
        for piece in self._pieces:
            self._look_at(piece)
            if _DATA in piece:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._silence_seconds:
                raise httpx2.ReadTimeout("nothing but comments", request=self._request)
            yield piece

    def close(self) -> None:
        if self._is_done:
            threading.Thread(target=self._read_rest, name="event-body", daemon=True).start()
        else:
            self._body.close()

    def _look_at(self, piece: bytes) -> None:
        self._tail = (self._tail + piece)[-2 * len(_DONE) - 8 :]
        self._is_done = _DONE in self._tail

    def _read_rest(self) -> None:
        left, deadline = REST_BYTES, time.monotonic() + REST_SECONDS
        with suppress(Exception):  # nobody waits for it: the answer is told, and the client may have been closed
            for piece in self._pieces:
                left -= len(piece)
                if left < 0 or time.monotonic() > deadline:
                    break
            self._body.close()


def watch(response: httpx2.Response, silence_seconds: float) -> None:
    """A hook for responses: one of server-sent events gets such a body, unless it is compressed."""
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    if is_stream and "content-encoding" not in response.headers:
        response.stream = EventBody(response, silence_seconds)
