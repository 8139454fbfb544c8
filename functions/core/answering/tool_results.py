"""Writes the result of a tool as text for a model and as data for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from functions.core import models
from functions.core.answering import prompts
from functions.core.ports import ToolResult
from functions.core.retrieval import guard

NOTE_CHARS: Final = 12_000
"""Characters of a note that one call returns."""


def describe_passages(hits: Sequence[models.SearchHit], not_searched: Sequence[str] = ()) -> ToolResult:
    """Passages with their tags as text, and as data; without hits, the names of documents `not_searched` yet."""
    data: dict[str, Any] = {"passages": [_describe_passage(hit) for hit in hits]}
    if hits:
        count = "One passage" if len(hits) == 1 else f"{len(hits)} passages, best first"
        return ToolResult(f"{count}.\n\n{prompts.write_passages(hits)}", data, tuple(hits))
    text = "Nothing found. Try other words, or leave out what narrows the search."
    if not_searched:
        data["not_searched"] = list(not_searched)
        text += f" Still being processed, so not searched: {prompts.neutralise(', '.join(not_searched))}."
    return ToolResult(text, data)


def _describe_passage(hit: models.SearchHit) -> dict[str, Any]:
    return {
        "segment_id": hit.segment_id,
        "source": hit.source,
        "source_id": hit.source_id,
        "file_name": hit.file_name,
        "title": hit.title,
        "page_start": hit.page_start,
        "page_end": hit.page_end,
        "section_title": hit.section_title,
        "text": hit.markdown or hit.text,
        "score": round(guard.weigh_evidence(hit), 4),
    }


def describe_note(row: Mapping[str, Any], offset: int, hits: Sequence[models.SearchHit] = ()) -> ToolResult:
    """A part of a note from its character `offset` on, from a row of rag.notes; `hits` are its citable passages."""
    content = str(row["content"])
    text = content[offset : offset + NOTE_CHARS]
    end = offset + len(text)
    next_offset = end if end < len(content) else None
    data = {
        "note_id": str(row["id"]),
        "title": row["title"],
        "text": text,
        "offset": offset,
        "next_offset": next_offset,
        "length": len(content),
        "updated_at": row["updated_at"].isoformat(),
    }
    more = "" if next_offset is None else f"\n\n(The note goes on: read it from offset {next_offset}.)"
    return ToolResult(prompts.neutralise(f"{row['title']}\n\n{text}") + more, data, tuple(hits))


def describe_error(code: str, message: str) -> ToolResult:
    """An error as the result of a tool, for a model to read."""
    return ToolResult(f"{code}: {message}", {"error": {"code": code, "message": message}}, is_error=True)
