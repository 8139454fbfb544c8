"""Runs the tool calls that a model makes while it answers one question, and limits their number, size and time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace

from functions.core import models, ports
from functions.core.answering import prompts
from functions.core.answering.tools import TOOLS
from functions.core.ports import Tool
from functions.core.retrieval.guard import weigh_evidence
from functions.core.text.storable import clean_text
from functions.core.text.token_estimate import cut_text, estimate_tokens

MAX_CALLS = 4
"""Calls that are run in one round; the result of any other call says that it was not run."""
MAX_REPEATED_CALLS = 8
"""Calls of one round that are repeated to the model in its next request; further ones are dropped."""
MAX_REPEATED_CHARS = 10_000
"""Of a call's arguments, more than any tool takes; longer ones are repeated as `{}`, beside the error they caused."""
MAX_TEXT_TOKENS = 1_000
"""Of the text that a model writes in the same reply as its calls; the rest is not repeated to it."""
MAX_RESULT_TOKENS = 6_000
"""Of all tool results of one answer, as `estimate_tokens` counts."""
MAX_SECONDS = 10.0
"""After that the model must answer without tools: a reader is waiting, and a gateway gives up after 30 s."""

_TOO_MANY = f"Not run: at most {MAX_CALLS} calls at once. Make it again if you still need it."
_REPEATED = "Not run: you have made this very call before, and its result stands above. Answer, or ask something else."
_NOTHING_NEW = "It found nothing but passages that you already have."
_NO_ROOM = "Not run: there is no room for more. Answer with what you have."


class ToolRounds:
    """The tool rounds of one answer; passages that the tools return are added to `hits`, so they can be cited."""

    def __init__(self, runner: ports.ToolRunner | None, rounds: int, hits: Sequence[models.SearchHit]) -> None:
        self.hits = list(hits)
        self._runner = runner
        self._rounds_left = rounds
        self._tokens_left = MAX_RESULT_TOKENS
        self._deadline = time.monotonic() + MAX_SECONDS
        self._calls_run: set[tuple[str, str]] = set()

    @property
    def offered_tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call next; none once its rounds, its tokens or its time are used up."""
        is_open = self._rounds_left > 0 and self._tokens_left > 0 and time.monotonic() < self._deadline
        return TOOLS if self._runner is not None and is_open else ()

    def close(self) -> None:
        """Allows no more rounds, because the model cannot call tools properly."""
        self._rounds_left = 0

    def run_calls(self, text: str, calls: Sequence[ports.ToolCall]) -> list[ports.ChatMessage]:
        """Runs one round; returns the model's message with its calls, then one tool message for each call.

        `text` is what the model wrote beside its calls.
        """
        self._rounds_left -= 1
        calls = [replace(call, id=clean_text(call.id)) for call in calls[:MAX_REPEATED_CALLS]]
        results = [
            ports.ChatMessage("tool", self._run(call) if at < MAX_CALLS else _TOO_MANY, tool_call_id=call.id)
            for at, call in enumerate(calls)
        ]
        content = cut_text(clean_text(text), MAX_TEXT_TOKENS)
        return [ports.ChatMessage("assistant", content, tuple(map(_make_acceptable, calls))), *results]

    def _run(self, call: ports.ToolCall) -> str:
        key = (call.name, _normalise_arguments(call.arguments) or call.arguments)
        if key in self._calls_run:
            return _REPEATED
        if self._runner is None or self._tokens_left <= 0:
            return _NO_ROOM
        self._calls_run.add(key)
        result = self._runner.run(call.name, call.arguments)
        text = self._add_passages(result.hits) if result.hits else cut_text(result.text, self._tokens_left)
        self._tokens_left -= estimate_tokens(text)
        return text

    def _add_passages(self, hits: Sequence[models.SearchHit]) -> str:
        """Adds the passages that the model does not have yet; returns those that fit, as text for the model."""
        hits_by_id = {hit.segment_id: hit for hit in hits}
        self.hits = [_choose_better_evidence(hit, hits_by_id.pop(hit.segment_id, hit)) for hit in self.hits]
        new_hits = prompts.fit_passages(list(hits_by_id.values()), self._tokens_left)
        self.hits += new_hits
        return prompts.enclose_passages(new_hits) if new_hits else _NOTHING_NEW


def _choose_better_evidence(given: models.SearchHit, found: models.SearchHit) -> models.SearchHit:
    """Of two hits of one passage, the one with more evidence: for the question, or for the model's own search."""
    return found if found.text == given.text and weigh_evidence(found) > weigh_evidence(given) else given


def _make_acceptable(call: ports.ToolCall) -> ports.ToolCall:
    """The call with a valid name and valid arguments: some servers refuse a call that their own model wrote."""
    name = re.sub(r"[^\w-]", "_", call.name, flags=re.ASCII)[:64] or "unknown"
    arguments = _normalise_arguments(call.arguments) or "{}"
    return ports.ToolCall(call.id, name, arguments if len(arguments) <= MAX_REPEATED_CHARS else "{}")


def _normalise_arguments(arguments: str) -> str | None:
    """JSON with sorted keys, so that equal arguments are equal texts; None if `arguments` is not a JSON object."""
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return json.dumps(parsed, sort_keys=True) if isinstance(parsed, dict) else None
