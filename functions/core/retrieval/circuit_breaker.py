"""Keeps an embedding server that failed from making each question wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from functions.core import background, errors, ports

if TYPE_CHECKING:
    from functions.core.ports import Vectors

TIME_LIMIT_SECONDS: Final = 8.0
"""How long a question waits for a server, which may have to load its model first."""
ASIDE_SECONDS: Final = 30.0


class CircuitBreaker:
    """The embedder of a server that is left aside for a while after it failed or took too long.

    Then one question tries it again, while the others still do without it. A refusal of one text is no failure.
    """

    def __init__(
        self,
        embedder: ports.QuestionEmbedder,
        *,
        time_limit: float = TIME_LIMIT_SECONDS,
        aside: float = ASIDE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._time_limit = time_limit
        self._aside = aside
        self._clock = clock
        self._lock = threading.Lock()
        self._closed_until: float | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises ModelUnavailableError at once while the server is left aside, else what the embedder raises."""
        self._enter()
        try:
            vectors = background.begin(lambda: self._embedder.embed(texts)).result(self._time_limit)
        except TimeoutError:
            self._leave_aside(self._aside)
            raise errors.ModelUnavailableError("The embedding server is too slow to answer.") from None
        except errors.UnavailableError as exc:
            if exc.retryable or (isinstance(exc, errors.ModelRejectedError) and exc.concerns_every_text):
                self._leave_aside(min(self._aside, exc.details.get("retry_after", self._aside)))
            else:
                self._closed_until = None
            raise
        self._closed_until = None
        return vectors

    def _enter(self) -> None:
        with self._lock:
            if self._closed_until is None:
                return
            if self._clock() < self._closed_until:
                raise errors.ModelUnavailableError("The embedding server failed a moment ago and is left aside.")
            self._closed_until = self._clock() + self._time_limit  # this question tries, the others wait for it

    def _leave_aside(self, seconds: float) -> None:
        self._closed_until = self._clock() + seconds
