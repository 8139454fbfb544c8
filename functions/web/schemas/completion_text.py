"""Appends the list of sources to the text of a completion, for clients that show nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.core import models
from functions.core.answering import export
from functions.core.citations.description import describe_citation, describe_section

_START = "\n\n**Sources**\n\n1. "


def list_sources(answer: models.Answer, lang: export.Language) -> str:
    """Markdown to append to the answer: remarks about it, and its sources with quotes, numbered like its marks.

    Begins with a blank line; empty if there are neither remarks nor sources.
    """
    message = export.Message(
        role="assistant",
        content="",
        created_at=datetime.now(UTC),
        status=answer.status,
        mode=answer.mode,
        sources=[describe_citation(citation) for citation in answer.sources],
        sections=[describe_section(section) for section in answer.sections],
    )
    states: dict[str, export.SourceState] = {citation.source_id: "current" for citation in answer.sources}
    return export.write_answer(message, address="", states=states, lang=lang).rstrip()


def drop_sources(text: str) -> str:
    """An answer that a client sends back, without the text that `list_sources` appended."""
    answer, separator, _ = text.rpartition(_START)
    paragraphs = (answer if separator else text).split("\n\n")
    while len(paragraphs) > 1 and paragraphs[-1].startswith(export.REMARKS):
        paragraphs.pop()
    return "\n\n".join(paragraphs)
