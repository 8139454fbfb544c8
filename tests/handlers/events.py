"""Events as the platforms send them, from the samples in tests/data/events, and their handling of a response."""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from functions import ingest, retention, storage_event, sweeper, vector_indexes
from functions.runtime.services import Services

Json = dict[str, Any]

SAMPLES = Path(__file__).parent.parent / "data" / "events"


@cache
def _read(name: str) -> Json:
    sample: Json = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return sample


def load(name: str) -> Json:
    """A copy of a sample, which the caller may change."""
    return copy.deepcopy(_read(name))


@dataclass(frozen=True)
class Context:
    """The part of a Lambda context that the handlers read."""

    seconds: float = 300.0
    aws_request_id: str = "8f507cfc-xmpl-4697-b07a-ac58fc914c95"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


def share_services(patch: pytest.MonkeyPatch, services: Services) -> None:
    """Lets every handler that starts from events find `services` in place of those of the environment."""
    for module in (ingest, retention, storage_event, sweeper, vector_indexes):
        patch.setattr(module, "shared_services", lambda: services)


def http(
    method: str,
    path: str,
    body: Any = None,
    *,
    query: str = "",
    headers: Json | None = None,
    encoded: bool = False,
    sample: str = "http_api",
) -> Json:
    """A request as an API gateway or a Function URL passes it on; a body of type str is sent unchanged."""
    event = load(sample)
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["http"]["method"] = method
    event["rawQueryString"] = query
    event["headers"] |= headers or {}
    if body is not None:
        text = body if isinstance(body, str) else json.dumps(body)
        event["headers"] |= {"content-type": "application/json", "content-length": str(len(text.encode()))}
        event["body"] = base64.b64encode(text.encode()).decode() if encoded else text
        event["isBase64Encoded"] = encoded
    return event


@dataclass(frozen=True)
class Answer:
    """The response that the caller of the gateway receives."""

    status: int
    headers: Json
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def problem(self) -> tuple[int, str]:
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return self.status, self.json["code"]


def invoke(module: str, event: Json, seconds: float = 300.0) -> Any:
    """Runs `functions.<module>.handler` and checks that its result is JSON, which the platform requires."""
    answer = import_module(f"functions.{module}").handler(event, Context(seconds))
    return json.loads(json.dumps(answer))


def send(module: str, event: Json) -> Answer:
    """Runs a handler behind HTTP."""
    raw = invoke(module, event)
    body = raw.get("body") or ""
    content = base64.b64decode(body) if raw.get("isBase64Encoded") else body.encode()
    return Answer(raw["statusCode"], raw["headers"], content)
