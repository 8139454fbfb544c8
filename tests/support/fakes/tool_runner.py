"""Tools over a list of passages instead of a database, for tests of models that call tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from functions.core import errors, models
from functions.core.answering import tool_results, tools
from functions.core.ports import ToolResult


class FakeToolRunner:
    """Searches find the passages that contain all words of the query; `calls` records every call."""

    def __init__(self, *library: models.SearchHit) -> None:
        self.library = library
        self.calls: list[tuple[str, Any]] = []

    def run(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        self.calls.append((name, arguments))
        try:
            call = tools.read_call(name, arguments)
        except errors.IbidError as exc:
            return tool_results.describe_error(exc.code, exc.message)
        if isinstance(call, tools.NoteRead):
            return ToolResult(f"A note\n\n{json.dumps(call.note_id)}", {})
        words = call.query.lower().split()
        return tool_results.describe_passages([h for h in self.library if all(w in h.text.lower() for w in words)])
