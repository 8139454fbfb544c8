from __future__ import annotations

import asyncio
import json
import math
import time
from typing import Any

import pytest
from starlette.requests import Request

from functions.web import deps
from tests.handlers.events import Context


def find_seconds(scope: dict[str, Any]) -> float:
    """The seconds that a request with this scope has left."""
    return asyncio.run(deps.get_deadline(Request({"type": "http", "headers": []} | scope))) - time.monotonic()


def write_header(value: str) -> dict[str, Any]:
    return {"headers": [(b"x-amzn-lambda-context", value.encode())]}


@pytest.mark.parametrize(
    ("scope", "seconds"),
    [
        ({"aws.context": Context(29.0)}, 29.0),
        (write_header("no JSON"), math.inf),
        (write_header("[]"), math.inf),
        ({}, math.inf),
    ],
    ids=["mangum", "garbage", "list", "neither"],
)
def test_the_function_tells_how_much_time_it_has_left(
    monkeypatch: pytest.MonkeyPatch, scope: dict[str, Any], seconds: float
) -> None:
    """CHAT-2"""
    monkeypatch.setattr(deps, "find_function_name", lambda: "chat")
    assert find_seconds(scope) == pytest.approx(seconds, abs=1)


def test_the_web_adapter_tells_the_time_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """CHAT-2"""
    monkeypatch.setattr(deps, "find_function_name", lambda: "chat")
    ends = (time.time() + 300) * 1000
    assert find_seconds(write_header(json.dumps({"deadline": ends}))) == pytest.approx(300, abs=1)


def test_outside_lambda_no_header_shortens_a_request() -> None:
    """CHAT-2"""
    assert find_seconds(write_header(json.dumps({"deadline": 0}))) == math.inf
