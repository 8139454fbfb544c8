"""One server that speaks the OpenAI protocol: its client, when a request is tried again, what its errors mean.

Only this module knows the vendor's errors, and only here is a request repeated.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from functions.core import errors

if TYPE_CHECKING:  # openai costs 0.5 s at import: it is imported when the first request is made
    import openai

Result = TypeVar("Result")

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
COMMENT_SECONDS = 120.0
"""How long a stream may hold nothing but comments: some servers send them while a question waits for its turn."""
IDLE_SECONDS = 60.0
"""How long a connection is kept for the next request; it is longer than a reader takes over an answer."""

_ADVICE = {
    400: "The model server refused the request. An administrator should check the model's name and its input limits.",
    401: "The model server refused the key. An administrator should check the API key of the model.",
    403: "The model server does not allow this model to this key. An administrator should check the key's rights.",
    404: "The model server does not know the model. An administrator should check the model's name and address.",
}
_QUOTA = "The model server's quota is used up. An administrator should check its plan and billing."
_BUSY = (408, 409, 425, 429)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is tried again: at most `attempts` times, no new attempt after `total_seconds`."""

    attempts: int = 4
    total_seconds: float = 30.0
    first_wait: float = 0.5
    longest_wait: float = 20.0

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds before attempt `attempt + 1`: what the server asked for, else a growing random time."""
        if asked is not None:
            return asked * random.uniform(1.0, 1.1)
        return min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


class Connection:
    """One address and key, and the only place where a request is tried again."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        patience: Patience,
        read_seconds: float,
        total_seconds: float = math.inf,
    ) -> None:
        """`read_seconds` is the longest silence; `total_seconds` how long a stream may hold nothing but comments."""
        self._total_seconds = total_seconds
        self._base_url = base_url
        self._api_key = api_key
        self._patience = patience
        self._read_seconds = read_seconds
        self._client: openai.OpenAI | None = None

    @property
    def client(self) -> openai.OpenAI:
        if self._client is None:
            import httpx2
            import openai

            from functions.adapters.models import stream_body

            timeout = openai.Timeout(self._read_seconds, connect=CONNECT_SECONDS)
            watch = partial(stream_body.watch, silence_seconds=min(self._total_seconds, COMMENT_SECONDS))
            self._client = openai.OpenAI(
                api_key=self._api_key or "none",  # servers without keys still get the header
                base_url=self._base_url or "https://api.openai.com/v1",
                max_retries=0,  # the client would wait up to 120 s at a server's word, longer than a function lives
                http_client=openai.DefaultHttpx2Client(
                    timeout=timeout,
                    follow_redirects=False,
                    limits=httpx2.Limits(keepalive_expiry=IDLE_SECONDS),
                    event_hooks={"response": [watch]},
                ),
                timeout=timeout,
            )
        return self._client

    def close(self) -> None:
        """Gives the sockets back; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def __del__(self) -> None:
        try:  # noqa: SIM105  suppress() itself is gone when the interpreter goes down
            self.close()
        except Exception:
            pass

    def ask(self, request: Callable[[], Result], give_up_field: Callable[[str], bool]) -> Result:
        """Runs `request` until it succeeds, is refused, or patience ends.

        `give_up_field` may change what is sent after a refusal; it says whether it did.
        """
        started = time.monotonic()
        attempt = 1
        while True:
            try:
                with vendor_errors():
                    return request()
            except errors.ModelRejectedError as exc:
                if not give_up_field(_refused_text(exc)):
                    raise
            except errors.ModelUnavailableError as exc:
                wait = self._patience.wait(attempt, exc.details.get("retry_after"))
                late = time.monotonic() - started + wait > self._patience.total_seconds
                if late or attempt >= self._patience.attempts:
                    raise
                attempt += 1
                time.sleep(wait)


def _refused_text(fault: errors.ModelRejectedError) -> str:
    """What the server said of a 400 or 422, "" for any other; it may quote the request and goes no further."""
    cause = fault.__cause__
    if fault.details.get("status") not in (400, 422) or cause is None:
        return ""
    return f"{getattr(cause, 'param', None) or ''} {cause}"


def names(text: str, field: str) -> bool:
    return re.search(rf"\b{field}\b", text) is not None


@contextmanager
def vendor_errors() -> Iterator[None]:
    """Turns everything the client library raises into our errors; a key is never part of a message."""
    import openai

    try:
        yield
    except openai.APIStatusError as exc:
        raise _status_error(exc) from exc
    except openai.APITimeoutError as exc:
        raise errors.ModelUnavailableError("The model server is too slow to answer. Try again in a moment.") from exc
    except (openai.OpenAIError, ValueError, OSError) as exc:  # ValueError: what came was not JSON
        raise errors.ModelUnavailableError() from exc


def _status_error(exc: openai.APIStatusError) -> errors.UnavailableError:
    status = exc.status_code
    if status == 429 and exc.code == "insufficient_quota":
        return errors.ModelRejectedError(_QUOTA, status=status)
    if 300 <= status < 500 and status not in _BUSY:
        known = 400 if status == 422 else status
        return errors.ModelRejectedError(_ADVICE.get(known, _ADVICE[404]), status=status)
    kind = errors.ModelRateLimitedError if status == 429 else errors.ModelUnavailableError
    return kind(status=status, **_retry_after(exc))


def _retry_after(exc: openai.APIStatusError) -> dict[str, Any]:
    """The seconds the server asks to wait, an hour at most, as an error detail; a date or nonsense is no word."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(exc.response.headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return {"retry_after": min(seconds, 3600.0)}
    return {}
