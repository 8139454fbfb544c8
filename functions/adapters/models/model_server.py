"""What is known of a model server without asking it a question: where it is, how large its model is, what it takes."""

from __future__ import annotations

import ipaddress
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from functions.adapters.models import openai_connection

if TYPE_CHECKING:
    import httpx2

SECONDS = 1.0
ASK_AGAIN_SECONDS = 60.0
COMPACT_PARAMETERS = 8.5e9
"""The size up to which a model gets the compact prompt: those that are called 8B have a little more."""

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d{1,2})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])", re.IGNORECASE)
_UNITS = {"b": 1e9, "m": 1e6}
_NEAR_ENDINGS = (".local", ".lan", ".internal", ".localhost")


def is_near(base_url: str | None) -> bool:
    """Whether the address is on this machine or its own network, where models are small and read slowly."""
    try:
        host = urlsplit(base_url or "https://api.openai.com").hostname or ""
    except ValueError:  # no address at all, which the first request tells
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_NEAR_ENDINGS)
    return address.is_private or address.is_loopback or address.is_link_local


def read_size(name: str) -> float | None:
    """The number of parameters in the name of a model: 1.5e9 in `qwen2.5:1.5b`, 30e9 in `Qwen3-30B-A3B`."""
    sizes = [int(many or 1) * float(number) * _UNITS[unit.lower()] for many, number, unit in _SIZE.findall(name)]
    return max(sizes, default=None)


def ask_size(base_url: str, api_key: str | None, model: str) -> float | None:
    """The number of parameters that llama.cpp (`/v1/models`) or Ollama (`/api/show`) tells; None if neither does."""
    with _open(api_key) as client:
        try:
            size = _read_listed_size(client.get(f"{base_url.rstrip('/')}/models").json(), model)
            if size is not None:
                return size
            return _read_shown_size(client.post(f"{_find_root(base_url)}/api/show", json={"model": model}).json())
        except _list_faults():
            return None


class ModelSize:
    """The number of parameters of a chat model, which its name or its server tells.

    A server that does not tell is asked again after ASK_AGAIN_SECONDS, because it may have started by then. No
    question waits for another one's request.
    """

    def __init__(
        self, model: str, base_url: str | None, api_key: str | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model, self._base_url, self._api_key, self._clock = model, base_url, api_key, clock
        self._size = read_size(model)
        self._ask_at = clock()
        self._lock = threading.Lock()

    def find(self) -> float | None:
        """The size, or None while it is not known; a server on the internet is not asked."""
        if self._size is None and self._base_url is not None and is_near(self._base_url):
            with self._lock:
                is_due = self._clock() >= self._ask_at
                if is_due:
                    self._ask_at = self._clock() + ASK_AGAIN_SECONDS
            if is_due:
                self._size = ask_size(self._base_url, self._api_key, self._model)
        return self._size


def ask_slots(base_url: str, api_key: str | None) -> int | None:
    """How many questions llama.cpp (`/props`) answers at the same time; None if the server does not tell."""
    with _open(api_key) as client:
        try:
            slots = _read_number(_get(client.get(f"{_find_root(base_url)}/props").json(), "total_slots"))
        except _list_faults():
            return None
    return None if slots is None else int(slots)


def _find_root(base_url: str) -> str:
    return base_url.rstrip("/").removesuffix("/v1")


def _open(api_key: str | None) -> httpx2.Client:
    import httpx2  # the library of the OpenAI client, which every question to a model loads

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    certificates = openai_connection.read_certificates()
    return httpx2.Client(verify=certificates, headers=headers, timeout=SECONDS, follow_redirects=False)


def _list_faults() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, ValueError, UnicodeEncodeError)


def _read_listed_size(listed: Any, model: str) -> float | None:
    """`meta.n_params` of the model in a list of models, or of the only one, whatever its name."""
    rows = [row for row in _get(listed, "data") or () if isinstance(row, dict)]
    named = [row for row in rows if row.get("id") == model] or (rows if len(rows) == 1 else [])
    return _read_number(_get(_get(named[0], "meta"), "n_params")) if named else None


def _read_shown_size(shown: Any) -> float | None:
    counted = _read_number(_get(_get(shown, "model_info"), "general.parameter_count"))
    return counted or read_size(str(_get(_get(shown, "details"), "parameter_size")))


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _read_number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value > 0 else None
