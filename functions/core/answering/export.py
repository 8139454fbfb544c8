"""Writes a conversation, or one of its answers, as self-contained Markdown with citation marks, sources and quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from functions.core import models
from functions.core.citations import relocation
from functions.core.text import markdown_escape
from functions.core.text.markdown_tables import find_markdown_tables

Language = Literal["en", "fr"]
SourceState = relocation.State

_REPORTED_FACTS: Final = ("lost", "superseded", "deleted")  # all other states and places need no remark
_MAX_NAME = 100
_UNSAFE_IN_NAMES = re.compile(r'[<>:"/\\|?*%]')
_RESERVED_NAMES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.IGNORECASE)

_LABELS: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "dates": "Conversation of {begun}, exported on {exported}",
        "question": "Question {n}",
        "answer": "Answer",
        "sources": "Sources",
        "untitled": "Untitled conversation",
        "note": "note",
        "untitled note": "Untitled note",
        "page": "page {first}",
        "pages": "pages {first}–{last}",
        "part": "part {first}",
        "parts": "parts {first}–{last}",
        "exact": "exact",
        "fuzzy": "close",
        "unverified": "unverified",
        "low": "may not support this",
        "deleted": "source deleted",
        "superseded": "superseded by a newer version",
        "lost": "the quoted words are no longer there",
        "numbers": "Figures not found in any cited passage: {numbers}",
        "interrupted": "This answer was interrupted before it was complete.",
        "failed": "This answer failed.",
    },
    "fr": {
        "dates": "Conversation du {begun}, exportée le {exported}",
        "question": "Question {n}",
        "answer": "Réponse",
        "sources": "Sources",
        "untitled": "Conversation sans titre",
        "note": "note",
        "untitled note": "Note sans titre",
        "page": "page {first}",
        "pages": "pages {first}–{last}",
        "part": "partie {first}",
        "parts": "parties {first}–{last}",
        "exact": "exact",
        "fuzzy": "proche",
        "unverified": "non vérifié",
        "low": "n’appuie peut-être pas ce propos",
        "deleted": "source supprimée",
        "superseded": "remplacée par une version plus récente",
        "lost": "les mots cités n’y figurent plus",
        "numbers": "Chiffres introuvables dans les passages cités : {numbers}",
        "interrupted": "Cette réponse a été interrompue avant la fin.",
        "failed": "Cette réponse a échoué.",
    },
}
REMARKS = tuple(
    f"*{labels[remark].partition('{')[0]}"
    for labels in _LABELS.values()
    for remark in ("interrupted", "failed", "numbers")
)
"""The beginnings of the paragraphs that say what is wrong with an answer, in every language."""


@dataclass(frozen=True, slots=True)
class Message:
    """A saved question or answer.

    `sources` have the fields of `models.Citation` and, if it is known, a `place` (`relocation.Place`); `sections` have
    the fields of `models.CitedSection`.
    """

    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    status: str = "complete"
    mode: str | None = None
    sources: Sequence[Mapping[str, Any]] = ()
    sections: Sequence[Mapping[str, Any]] = ()


def write_conversation(
    title: str,
    messages: Sequence[Message],
    *,
    begun_at: datetime,
    exported_at: datetime,
    states: Mapping[str, SourceState],
    lang: Language = "en",
) -> str:
    """The whole conversation; `states` maps the ids of cited sources to their states, and missing ids are deleted."""
    labels = _LABELS[lang]
    dates = labels["dates"].format(begun=_format_day(begun_at), exported=_format_day(exported_at))
    parts = [f"# {markdown_escape.escape_line(title) or labels['untitled']}", f"*{dates}*"]
    question_number = 0
    for message in messages:
        if message.role == "user":
            question_number += 1
            parts.append(f"## {labels['question'].format(n=question_number)}")
            parts.append(f"*{message.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC*")
            parts.append(markdown_escape.escape_text(message.content))
        else:
            parts.append(f"### {labels['answer']}")
            parts.extend(_write_answer(message, labels, states))
    return "\n\n".join(parts) + "\n"


def write_answer(message: Message, *, address: str, states: Mapping[str, SourceState], lang: Language = "en") -> str:
    """One answer with its sources; those that still exist are linked to their passages unless `address` is empty."""
    return "\n\n".join(_write_answer(message, _LABELS[lang], states, address)) + "\n"


def name_file(title: str) -> str:
    """A file name for the title that is valid on every operating system, ending in `.md`."""
    letters = unicodedata.normalize("NFC", title)
    visible = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in letters)
    name = " ".join(_UNSAFE_IN_NAMES.sub(" ", visible).split())[:_MAX_NAME].strip(" .")
    if _RESERVED_NAMES.match(name):
        name = f"_{name}"
    return f"{name or 'conversation'}.md"


def _write_answer(
    message: Message, labels: Mapping[str, str], states: Mapping[str, SourceState], address: str | None = None
) -> Iterator[str]:
    yield _write_text(message)
    if message.status in ("interrupted", "failed"):
        yield f"*{labels[message.status]}*"
    numbers = dict.fromkeys(number for section in message.sections for number in section.get("unsupported_numbers", ()))
    if numbers:
        yield f"*{labels['numbers'].format(numbers=', '.join(map(markdown_escape.escape_line, numbers)))}*"
    if message.sources:
        yield f"**{labels['sources']}**"
        yield "\n\n".join(_write_source(source, labels, states, address) for source in message.sources)


def _write_text(message: Message) -> str:
    """The text of an answer; only that of a model and extracts of notes and Markdown files are Markdown."""
    by_number = {int(source["number"]): source for source in message.sources}
    if message.mode == "model":
        return markdown_escape.confine_markdown(message.content, by_number.keys())
    if message.mode != "extractive" or not message.content:
        return markdown_escape.escape_text(message.content, by_number.keys())
    from functions.core.citations import cite  # loaded only here: lists of conversations do without it

    parts = []
    for section in message.sections:
        numbers = tuple(number for number in section.get("citations", ()) if number in by_number)
        marked = cite.mark_answer([models.CitedSection(section["text"], (), numbers)])
        is_written = bool(numbers) and all(_is_markdown(by_number[number]) for number in numbers)
        is_markdown = is_written or bool(find_markdown_tables(section["text"]))
        escape = markdown_escape.confine_markdown if is_markdown else markdown_escape.escape_text
        parts.append(escape(marked, by_number.keys()))
    return "\n\n".join(parts)


def _is_markdown(source: Mapping[str, Any]) -> bool:
    return source.get("source") == "note" or source.get("file_type") == "md"


def _write_source(
    source: Mapping[str, Any], labels: Mapping[str, str], states: Mapping[str, SourceState], address: str | None
) -> str:
    marker = f"{int(source['number'])}. "
    name = markdown_escape.escape_line(source.get("file_name") or labels["untitled note"])
    check = source.get("check")
    facts = [labels[check if check in ("exact", "fuzzy") else "unverified"]]
    facts += [labels["low"]] if source.get("support") == "low" else []  # older answers do not say
    state = states.get(str(source["source_id"]), "deleted")
    facts += [labels[fact] for fact in (source.get("place"), state) if fact in _REPORTED_FACTS]
    section = markdown_escape.escape_line(source.get("section_title") or "")
    place = ", ".join(text for text in (_describe_place(source, labels), section) if text)
    head = f"[{name}]({address}{_name_passage(source)})" if address and state != "deleted" else f"**{name}**"
    words = source.get("quote") or source.get("snippet_preview") or ""
    cited = f"\n\n{markdown_escape.indent(markdown_escape.quote(words), len(marker))}" if words.strip() else ""
    return f"{marker}{head}, {place} ({'; '.join(facts)}){cited}"


def _name_passage(source: Mapping[str, Any]) -> str:
    """The part of an address that opens the page and highlights the passage; a lost passage is not highlighted."""
    kind = "n" if source.get("source") == "note" else "d"
    page = f"#{kind}={source['source_id']}&page={int(source['page_start'])}"
    start, end = source.get("start_offset") or 0, source.get("end_offset") or 0
    can_highlight = end > start and source.get("place") != "lost"
    return f"{page}&start={int(start)}&end={int(end)}" if can_highlight else page


def _describe_place(source: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    if source.get("source") == "note":
        return labels["note"]
    first, last = source["page_start"], source.get("page_end") or source["page_start"]
    kind = "page" if source.get("file_type") == "pdf" else "part"
    return labels[kind if first == last else f"{kind}s"].format(first=first, last=last)


def _format_day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"
