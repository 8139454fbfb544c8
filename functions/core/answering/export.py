"""A conversation, or one answer of it, as a Markdown text that stands on its own: answers, marks, sources, quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from functions.core.citations import relocation
from functions.core.text import markdown_escape

Language = Literal["en", "fr"]
SourceState = relocation.State

_NEWS: Final = ("lost", "superseded", "deleted")
_MAX_NAME = 100
_UNSAFE_IN_NAMES = re.compile(r'[<>:"/\\|?*%]')
_RESERVED_NAMES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)", re.IGNORECASE)

_WORDS: Final[Mapping[Language, Mapping[str, str]]] = {
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
        "deleted": "source deleted",
        "superseded": "superseded by a newer version",
        "lost": "no longer stands there word for word",
        "numbers": "Figures that stand in no cited passage: {numbers}",
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
        "deleted": "source supprimée",
        "superseded": "remplacée par une version plus récente",
        "lost": "n’y figure plus mot pour mot",
        "numbers": "Chiffres qui ne figurent dans aucun passage cité : {numbers}",
        "interrupted": "Cette réponse a été interrompue avant la fin.",
        "failed": "Cette réponse a échoué.",
    },
}
REMARKS = tuple(
    f"*{say[remark].partition('{')[0]}" for say in _WORDS.values() for remark in ("interrupted", "failed", "numbers")
)
"""How the paragraphs begin that say what is wrong with an answer."""


@dataclass(frozen=True, slots=True)
class Message:
    """A question or an answer as it was saved.

    `sources` have the fields of `models.Citation`, and the `place` of their words where it is known; `sections` those
    of `models.CitedSection`.
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
    """The whole conversation; `states` says by id what has become of the cited sources, those left out are deleted."""
    say = _WORDS[lang]
    dates = say["dates"].format(begun=_day(begun_at), exported=_day(exported_at))
    parts = [f"# {markdown_escape.escape_line(title) or say['untitled']}", f"*{dates}*"]
    asked = 0
    for message in messages:
        if message.role == "user":
            asked += 1
            parts.append(f"## {say['question'].format(n=asked)}")
            parts.append(f"*{message.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC*")
            parts.append(markdown_escape.escape_text(message.content))
        else:
            parts.append(f"### {say['answer']}")
            parts.extend(_write_answer(message, say, states))
    return "\n\n".join(parts) + "\n"


def write_answer(message: Message, *, address: str, states: Mapping[str, SourceState], lang: Language = "en") -> str:
    """One answer with its sources, those that exist linked to their passages at `address`; without one, none is."""
    return "\n\n".join(_write_answer(message, _WORDS[lang], states, address)) + "\n"


def name_file(title: str) -> str:
    """A file name for the title that every system takes, with `.md`."""
    letters = unicodedata.normalize("NFC", title)
    visible = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in letters)
    name = " ".join(_UNSAFE_IN_NAMES.sub(" ", visible).split())[:_MAX_NAME].strip(" .")
    if _RESERVED_NAMES.match(name):
        name = f"_{name}"
    return f"{name or 'conversation'}.md"


def _write_answer(
    message: Message, say: Mapping[str, str], states: Mapping[str, SourceState], address: str | None = None
) -> Iterator[str]:
    marks = {int(source["number"]) for source in message.sources}
    # Only a model writes Markdown; what is quoted without one is word for word.
    write = markdown_escape.contain if message.mode == "model" else markdown_escape.escape_text
    yield write(message.content, marks)
    if message.status in ("interrupted", "failed"):
        yield f"*{say[message.status]}*"
    numbers = dict.fromkeys(number for section in message.sections for number in section.get("unsupported_numbers", ()))
    if numbers:
        yield f"*{say['numbers'].format(numbers=', '.join(map(markdown_escape.escape_line, numbers)))}*"
    if message.sources:
        yield f"**{say['sources']}**"
        yield "\n\n".join(_write_source(source, say, states, address) for source in message.sources)


def _write_source(
    source: Mapping[str, Any], say: Mapping[str, str], states: Mapping[str, SourceState], address: str | None
) -> str:
    marker = f"{int(source['number'])}. "
    name = markdown_escape.escape_line(source.get("file_name") or say["untitled note"])
    check = source.get("check")
    facts = [say[check if check in ("exact", "fuzzy") else "unverified"]]
    state = states.get(str(source["source_id"]), "deleted")
    news = (source.get("place"), state)
    facts += [say[fact] for fact in news if fact in _NEWS]
    section = markdown_escape.escape_line(source.get("section_title") or "")
    place = ", ".join(text for text in (_describe_place(source, say), section) if text)
    head = f"[{name}]({address}{_name_passage(source)})" if address and state != "deleted" else f"**{name}**"
    words = source.get("quote") or source.get("snippet_preview") or ""
    cited = f"\n\n{markdown_escape.indent(markdown_escape.quote(words), len(marker))}" if words.strip() else ""
    return f"{marker}{head}, {place} ({'; '.join(facts)}){cited}"


def _name_passage(source: Mapping[str, Any]) -> str:
    """The part of an address that opens the page with its passage highlighted; what is lost has only a page."""
    kind = "n" if source.get("source") == "note" else "d"
    page = f"#{kind}={source['source_id']}&page={int(source['page_start'])}"
    start, end = source.get("start_offset") or 0, source.get("end_offset") or 0
    stands = end > start and source.get("place") != "lost"
    return f"{page}&start={int(start)}&end={int(end)}" if stands else page


def _describe_place(source: Mapping[str, Any], say: Mapping[str, str]) -> str:
    if source.get("source") == "note":
        return say["note"]
    first, last = source["page_start"], source.get("page_end") or source["page_start"]
    kind = "page" if source.get("file_type") == "pdf" else "part"
    return say[kind if first == last else f"{kind}s"].format(first=first, last=last)


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"
