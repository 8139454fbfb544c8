"""What a model looks up on its own while it answers one question: how much it may, and what it found."""

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
"""Calls that are run in one round; the others are answered with a word about it."""
MAX_ECHOED = 8
"""Calls that the model is shown again; what it has made beyond them is forgotten."""
MAX_ECHO_CHARS = 10_000
"""Of a call's arguments; longer ones than any tool takes are repeated as none, and what was wrong is said."""
MAX_SAID_TOKENS = 1_000
"""Of what it has written beside its calls."""
MAX_TOKENS = 6_000
"""Room in the prompt for everything that the tools of one answer return, as `estimate_tokens` counts."""
MAX_SECONDS = 10.0
"""From then on the model has to answer with what it has: a reader is waiting, and a gateway gives up after 30 s."""

_TOO_MANY = f"Not run: at most {MAX_CALLS} calls at once. Make it again if you still need it."
_REPEATED = "Not run: you have made this very call before, and its result stands above. Answer, or ask something else."
_NOTHING_NEW = "It found nothing but passages that you already have."
_NO_ROOM = "Not run: there is no room for more. Answer with what you have."


class ToolRounds:
    """The rounds of one answer; `hits` grows by the passages that the tools return, which may then be cited."""

    def __init__(self, runner: ports.ToolRunner | None, rounds: int, hits: Sequence[models.SearchHit]) -> None:
        self.hits = list(hits)
        self._runner = runner
        self._rounds = rounds
        self._tokens = MAX_TOKENS
        self._deadline = time.monotonic() + MAX_SECONDS
        self._made: set[tuple[str, str]] = set()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that the model may call next; none when its rounds, its room or its time are used up."""
        is_open = self._rounds > 0 and self._tokens > 0 and time.monotonic() < self._deadline
        return TOOLS if self._runner is not None and is_open else ()

    def close(self) -> None:
        """No more rounds: the model does not know how to call a tool."""
        self._rounds = 0

    def play(self, text: str, calls: Sequence[ports.ToolCall]) -> list[ports.ChatMessage]:
        """Runs a round: the model's own message with its calls, and one message of a tool for each of them."""
        self._rounds -= 1
        calls = [replace(call, id=clean_text(call.id)) for call in calls[:MAX_ECHOED]]
        results = [
            ports.ChatMessage("tool", self._run(call) if at < MAX_CALLS else _TOO_MANY, tool_call_id=call.id)
            for at, call in enumerate(calls)
        ]
        said = cut_text(clean_text(text), MAX_SAID_TOKENS)
        return [ports.ChatMessage("assistant", said, tuple(map(_tidy, calls))), *results]

    def _run(self, call: ports.ToolCall) -> str:
        key = (call.name, _canonical(call.arguments) or call.arguments)
        if key in self._made:
            return _REPEATED
        if self._runner is None or self._tokens <= 0:
            return _NO_ROOM
        self._made.add(key)
        result = self._runner.run(call.name, call.arguments)
        text = self._add_passages(result.hits) if result.hits else cut_text(result.text, self._tokens)
        self._tokens -= estimate_tokens(text)
        return text

    def _add_passages(self, hits: Sequence[models.SearchHit]) -> str:
        found = {hit.segment_id: hit for hit in hits}
        self.hits = [_stronger(hit, found.pop(hit.segment_id, hit)) for hit in self.hits]
        new = prompts.fit_passages(list(found.values()), self._tokens)
        self.hits += new
        return prompts.enclose_passages(new) if new else _NOTHING_NEW


def _stronger(known: models.SearchHit, again: models.SearchHit) -> models.SearchHit:
    """The same passage with the better evidence: for the question, or for what the model has asked itself."""
    return again if again.text == known.text and weigh_evidence(again) > weigh_evidence(known) else known


def _tidy(call: ports.ToolCall) -> ports.ToolCall:
    """The call as it is repeated to the server, which may refuse what its own model has written."""
    name = re.sub(r"[^\w-]", "_", call.name, flags=re.ASCII)[:64] or "unknown"
    arguments = _canonical(call.arguments) or "{}"
    return ports.ToolCall(call.id, name, arguments if len(arguments) <= MAX_ECHO_CHARS else "{}")


def _canonical(arguments: str) -> str | None:
    """The same text for the same arguments; None for what is no JSON object."""
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return json.dumps(parsed, sort_keys=True) if isinstance(parsed, dict) else None
