"""Runs the tools of `core/answering/tools.py` for one user, with the same search and notes as the other routes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from functions.adapters.postgres import documents, notes
from functions.core import errors, models
from functions.core.answering import tool_results, tools
from functions.core.ports import ToolResult
from functions.core.retrieval import context
from functions.core.text import languages
from functions.runtime import searching
from functions.runtime.services import Services

WIDE_COUNT = 200
"""How many passages are read when the search cannot apply a restriction and they are filtered afterwards."""

_OUTSIDE_SCOPE = "There is no such {} in the scope of this question."

_log = logging.getLogger(__name__)


class Toolbox:
    """The tools of one user within `scope`; with a `question`, reading a note also returns its citable passages."""

    def __init__(
        self, services: Services, user: models.User, scope: models.Scope | None = None, question: str | None = None
    ) -> None:
        self._services = services
        self._user = user
        self._scope = scope or models.Scope("library")
        self._question = question

    def run(self, name: str, arguments: str | Mapping[str, Any]) -> ToolResult:
        """Runs one call. Never raises: an error becomes a result that the model reads."""
        started = time.perf_counter()
        try:
            result = self._run(tools.read_call(name, arguments))
        except errors.IbidError as exc:
            result = tool_results.describe_error(exc.code, exc.message)
        except Exception:
            _log.exception("a tool failed")
            result = tool_results.describe_error("internal", "Something went wrong on our side. Go on without it.")
        logged_name = name if name in tools.BY_NAME else "unknown"
        error = result.data["error"]["code"] if result.is_error else None
        duration = round((time.perf_counter() - started) * 1000, 1)
        facts = {"tool": logged_name, "hits": len(result.hits), "error": error, "duration_ms": duration}
        _log.info("ai_rag_tool", extra={"user": self._user.id, **facts})
        return result

    def _run(self, call: tools.Call) -> ToolResult:
        if isinstance(call, tools.NoteRead):
            return self._read_note(call)
        if isinstance(call, tools.NoteSearch):
            if self._scope.document_ids:
                raise errors.NotFoundError(_OUTSIDE_SCOPE.format("note"))
            requested = models.Scope("library", notebook_id=call.notebook_id, filters={"source": "note"})
            return self._search(call.query, self._narrow(requested), call.limit)
        requested = models.Scope(
            "library", document_ids=call.document_ids, notebook_id=call.notebook_id, filters=call.filters
        )
        wanted = set(call.document_ids)
        # The scope's own documents take the one place for document ids, so the requested ones are filtered afterwards.
        is_wanted = (lambda hit: hit.source_id in wanted) if wanted and self._scope.document_ids else None
        return self._search(call.query, self._narrow(requested), call.limit, is_wanted)

    def _narrow(self, requested: models.Scope) -> models.Scope:
        """The requested scope within the scope of the question.

        Raises NotFoundError for ids that do not exist, belong to another user or are outside that scope.
        """
        with self._services.database.as_user(self._user) as connection:
            documents.check_scope(connection, requested.document_ids, requested.notebook_id, None)
        own = self._scope
        if own.notebook_id and requested.notebook_id not in (None, own.notebook_id):
            raise errors.NotFoundError(_OUTSIDE_SCOPE.format("notebook"))
        return replace(
            own,
            document_ids=own.document_ids or requested.document_ids,
            notebook_id=own.notebook_id or requested.notebook_id,
            filters={**requested.filters, **own.filters},
        )

    def _search(
        self,
        query_text: str,
        scope: models.Scope,
        limit: int,
        is_wanted: Callable[[models.SearchHit], bool] | None = None,
    ) -> ToolResult:
        hits = self._find_passages(query_text, scope, limit, is_wanted)
        return tool_results.describe_passages(
            hits, () if hits else searching.list_pending(self._services, self._user, scope)
        )

    def _find_passages(
        self,
        query_text: str,
        scope: models.Scope,
        limit: int,
        is_wanted: Callable[[models.SearchHit], bool] | None = None,
    ) -> Sequence[models.SearchHit]:
        policy = self._services.policy()
        count = WIDE_COUNT if is_wanted else 2 * limit  # twice the limit, because near-duplicates are dropped
        settings = replace(
            policy.settings,
            hybrid_top_k=count,
            arm_count=max(count, policy.settings.arm_count),
            context_passages=limit,
            passages_per_source=limit,
        )
        wide = replace(policy, settings=settings)
        lang = languages.guess_language(query_text)
        retrieval = searching.retrieve(self._services, self._user, wide, query_text, lang, scope)
        hits = [hit for hit in retrieval.ranking.hits if is_wanted is None or is_wanted(hit)]
        return context.choose_context(hits, settings, retrieval.ranking.candidate_sources)

    def _read_note(self, call: tools.NoteRead) -> ToolResult:
        with self._services.database.as_user(self._user) as connection:
            row = notes.find(connection, call.note_id)
        own = self._scope
        is_outside = own.notebook_id not in (None, str(row["notebook_id"])) or own.note_id not in (None, call.note_id)
        if is_outside or own.document_ids or own.filters:
            raise errors.NotFoundError(_OUTSIDE_SCOPE.format("note"))
        if row["trashed_at"] is not None:
            raise errors.ConflictError("The note is in the trash. Only its owner can restore it.")
        return tool_results.describe_note(row, call.offset, self._find_note_passages(call.note_id))

    def _find_note_passages(self, note_id: str) -> Sequence[models.SearchHit]:
        """The passages of a note in their order, for a model that may cite them; none without a question."""
        if self._question is None:
            return ()
        scope = models.Scope("note", note_id=note_id)
        hits = self._find_passages(self._question, scope, tools.MAX_PASSAGES, lambda hit: hit.source_id == note_id)
        return sorted(hits, key=lambda hit: hit.chunk_index)
