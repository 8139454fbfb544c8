"""The text of a completion: an answer and, for clients that show nothing else, the list of its sources."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.core import models
from functions.core.answering import export
from functions.core.citations.description import describe_citation, describe_section

_START = "\n\n**Sources**\n\n1. "


def list_sources(answer: models.Answer, lang: export.Language) -> str:
    """What follows the answer as Markdown, blank line first: what is wrong with it, its sources with their quotes.

    Numbers are those of the marks. Empty where there is nothing to say.
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
    """An answer as a client sends it back, without what `list_sources` added: it is no part of what was said."""
    said, found, _ = text.rpartition(_START)
    paragraphs = (said if found else text).split("\n\n")
    while len(paragraphs) > 1 and paragraphs[-1].startswith(export.REMARKS):
        paragraphs.pop()
    return "\n\n".join(paragraphs)
