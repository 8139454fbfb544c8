"""The connection to a server that speaks the OpenAI protocol: its HTTP client, its retries, its errors.

No other module handles the errors of the client library or repeats a request.
"""

from __future__ import annotations

import functools
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from functions.core import errors

if TYPE_CHECKING:  # openai takes 0.5 s to import, so the first request imports it
    import ssl

    import openai

Result = TypeVar("Result")

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
COMMENT_SECONDS = 120.0
"""How long a stream may consist of comments alone, which some servers send while a request is queued."""
IDLE_SECONDS = 60.0
"""How long an idle connection is kept: long enough for a user to read an answer and ask the next question."""

_ADVICE = {
    400: "The model server refused the request. An administrator should check the model's name and its input limits.",
    401: "The model server refused the key. An administrator should check the API key of the model.",
    403: "The model server does not let this key use this model. An administrator should check the key's permissions.",
    404: "The model server does not know the model. An administrator should check the model's name and address.",
}
_QUOTA = "The model server's quota is used up. An administrator should check its plan and billing."
_ADDRESS = "The address of the model server is not valid. An administrator should check it."
_VALIDATION = "validation error"
"""What llama-cpp-python says in a 500 about a field that it does not take."""
_RETRYABLE = (408, 409, 425, 429)


@functools.cache
def read_certificates() -> ssl.SSLContext:
    """The certificates that every client of the process trusts; reading them takes 20 to 100 ms."""
    import httpx2

    return httpx2.create_ssl_context()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a request is retried: at most `attempts` attempts, none of which starts after `total_seconds`."""

    attempts: int = 4
    total_seconds: float = 30.0
    first_wait: float = 0.5
    longest_wait: float = 20.0

    def find_wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after attempt `attempt`: the server's Retry-After, or else a growing random time."""
        if retry_after is not None:
            return retry_after * random.uniform(1.0, 1.1)
        return min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


QUICK = RetryPolicy(attempts=2, total_seconds=1.0, first_wait=0.1)
"""For somebody who waits: a second attempt only at once, because an idle connection may have been closed."""


class Connection:
    """The client of one address and key, and the only place where a request is retried."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        retry_policy: RetryPolicy,
        read_seconds: float,
        total_seconds: float = math.inf,
    ) -> None:
        """`read_seconds` limits each silence of the server, `total_seconds` a stream of comments alone or another body.

        Without `total_seconds`, a body may take as long as two silences.
        """
        self._total_seconds = total_seconds
        self._base_url = base_url
        self._api_key = api_key
        self._retry_policy = retry_policy
        self._read_seconds = read_seconds
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()  # two first requests would open two clients, and one would never be closed

    @property
    def client(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _open(self) -> openai.OpenAI:
        import httpx2
        import openai

        from functions.adapters.models import stream_body

        timeout = openai.Timeout(self._read_seconds, connect=CONNECT_SECONDS)
        wrap_body = functools.partial(
            stream_body.wrap_body,
            silence_seconds=min(self._total_seconds, COMMENT_SECONDS),
            total_seconds=2 * self._read_seconds if math.isinf(self._total_seconds) else self._total_seconds,
        )
        return openai.OpenAI(
            api_key=self._api_key or "none",  # the client requires one; servers without keys ignore it
            base_url=self._base_url or "https://api.openai.com/v1",
            max_retries=0,  # the client would obey a Retry-After of up to 120 s, longer than a function runs
            http_client=openai.DefaultHttpx2Client(
                verify=read_certificates(),
                timeout=timeout,
                follow_redirects=False,
                limits=httpx2.Limits(keepalive_expiry=IDLE_SECONDS),
                event_hooks={"response": [wrap_body]},
            ),
            timeout=timeout,
        )

    def close(self) -> None:
        """Closes the sockets; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def __del__(self) -> None:
        try:  # noqa: SIM105  suppress() no longer exists during interpreter shutdown
            self.close()
        except Exception:
            pass

    def send(self, request: Callable[[], Result], drop_field: Callable[[str], bool]) -> Result:
        """Runs `request` until it succeeds, is refused, or the retries are used up.

        `drop_field` gets the text of a refusal and returns whether it removed a field from the request.
        """
        started = time.monotonic()
        attempt = 1
        while True:
            try:
                with vendor_errors():
                    return request()
            except errors.ModelRejectedError as exc:
                if not drop_field(_read_refusal(exc)):
                    raise
            except errors.ModelUnavailableError as exc:
                if _VALIDATION in (text := _read_refusal(exc)) and drop_field(text):
                    continue
                wait = self._retry_policy.find_wait(attempt, exc.details.get("retry_after"))
                is_late = time.monotonic() - started + wait > self._retry_policy.total_seconds
                if is_late or attempt >= self._retry_policy.attempts:
                    raise
                attempt += 1
                time.sleep(wait)


def _read_refusal(fault: errors.UnavailableError) -> str:
    """The explanation of a 400, 422 or 500, else ""; it may quote the request, so it is never shown or logged."""
    cause = fault.__cause__
    if fault.details.get("status") not in (400, 422, 500) or cause is None:
        return ""
    return f"{getattr(cause, 'param', None) or ''} {cause}"


def mentions(text: str, field: str) -> bool:
    """Whether `text` contains the name of a request field as a whole word."""
    return re.search(rf"\b{field}\b", text) is not None


@contextmanager
def vendor_errors() -> Iterator[None]:
    """Turns every error of the client library into one of ours, whose message never contains a key."""
    import httpx2
    import openai

    try:
        yield
    except httpx2.InvalidURL as exc:
        raise errors.ModelRejectedError(_ADDRESS, status=404) from exc
    except openai.APIStatusError as exc:
        raise _status_error(exc) from exc
    except openai.APITimeoutError as exc:
        raise errors.ModelUnavailableError("The model server is too slow to answer. Try again in a moment.") from exc
    except (openai.OpenAIError, ValueError, OSError) as exc:  # ValueError: the response was not JSON
        raise errors.ModelUnavailableError() from exc


def _status_error(exc: openai.APIStatusError) -> errors.UnavailableError:
    status = exc.status_code
    if status == 429 and exc.code == "insufficient_quota":
        return errors.ModelRejectedError(_QUOTA, status=status)
    if 300 <= status < 500 and status not in _RETRYABLE:
        advice = 400 if status == 422 else status
        return errors.ModelRejectedError(_ADVICE.get(advice, _ADVICE[404]), status=status)
    kind = errors.ModelRateLimitedError if status == 429 else errors.ModelUnavailableError
    return kind(status=status, **_retry_after(exc))


def _retry_after(exc: openai.APIStatusError) -> dict[str, Any]:
    """The Retry-After of a response in seconds, at most an hour, as an error detail; dates are ignored."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(exc.response.headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return {"retry_after": min(seconds, 3600.0)}
    return {}
