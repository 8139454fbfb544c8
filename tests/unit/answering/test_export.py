"""Conversations as Markdown: what is written, and that no text in it can break the document's structure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from functions.core.answering.export import Message, SourceState, name_file, write_answer, write_conversation
from functions.core.text import markdown_escape

MOMENT = datetime(2026, 11, 21, 10, 2, tzinfo=UTC)
KNOWN = {1, 2}
CURRENT: dict[str, SourceState] = {"d1": "current", "n1": "current"}


def make_source(**fields: Any) -> dict[str, Any]:
    return {
        "number": 1,
        "source_id": "d1",
        "source": "document",
        "file_name": "turbine.pdf",
        "file_type": "pdf",
        "page_start": 2,
        "page_end": 2,
        "start_offset": 10,
        "end_offset": 35,
        "section_title": "Winter",
        "quote": "It turns at\n3000 * r.p.m.",
        "check": "exact",
        "place": "unchanged",
    } | fields


def make_answer(content: str = "Fast. [1]", mode: str = "model", **fields: Any) -> Message:
    values: dict[str, Any] = {"sources": [make_source()]} | fields
    return Message("assistant", content, MOMENT, mode=mode, **values)


def export(*messages: Message, title: str = "Speed", **fields: Any) -> str:
    values: dict[str, Any] = {"states": {"d1": "current"}} | fields
    return write_conversation(title, messages, begun_at=MOMENT, exported_at=MOMENT, **values)


def test_a_conversation_is_written_with_its_questions_answers_and_sources() -> None:
    """CHAT-11"""
    assert export(Message("user", "How fast?", MOMENT), make_answer()) == (
        "# Speed\n\n"
        "*Conversation of 2026-11-21, exported on 2026-11-21*\n\n"
        "## Question 1\n\n"
        "*2026-11-21 10:02 UTC*\n\n"
        "How fast?\n\n"
        "### Answer\n\n"
        "Fast. [1]\n\n"
        "**Sources**\n\n"
        "1. **turbine.pdf**, page 2, Winter (exact)\n\n"
        "   > It turns at\\\n"
        "   > 3000 \\* r.p.m.\n"
    )


def test_an_answer_saved_as_a_note_links_each_source_to_its_passage() -> None:
    """CHAT-12"""
    sources = [
        make_source(),
        make_source(number=2, source_id="n1", source="note", file_name="", page_start=1, section_title=None),
    ]
    text = write_answer(make_answer("Fast. [1][2]", sources=sources), address="/", states=CURRENT)
    assert "1. [turbine.pdf](/#d=d1&page=2&start=10&end=35), page 2, Winter (exact)\n" in text
    assert "2. [Untitled note](/#n=n1&page=1&start=10&end=35), note (exact)\n" in text


@pytest.mark.parametrize(
    ("fields", "states", "head"),
    [
        ({"place": "lost"}, CURRENT, "1. [turbine.pdf](/#d=d1&page=2), page 2"),
        ({"start_offset": None, "end_offset": None}, CURRENT, "1. [turbine.pdf](/#d=d1&page=2), page 2"),
        ({}, {"d1": "superseded"}, "1. [turbine.pdf](/#d=d1&page=2&start=10&end=35), page 2"),
        ({"place": None}, {}, "1. **turbine.pdf**, page 2"),
    ],
    ids=["lost words", "no offsets", "older version", "deleted"],
)
def test_a_link_leads_only_to_what_still_exists(fields: Any, states: Any, head: str) -> None:
    """CHAT-12, LIB-8"""
    assert head in write_answer(make_answer(sources=[make_source(**fields)]), address="/", states=states)


def test_without_an_address_no_source_is_a_link() -> None:
    assert "1. **turbine.pdf**, page 2" in write_answer(make_answer(), address="", states=CURRENT)


@pytest.mark.parametrize(
    ("states", "place", "lang", "facts"),
    [
        ({"d1": "current"}, "unchanged", "en", "(exact)"),
        ({"d1": "current"}, "moved", "en", "(exact)"),
        ({"d1": "current"}, "lost", "en", "(exact; the quoted words are no longer there)"),
        ({"d1": "superseded"}, "unchanged", "en", "(exact; superseded by a newer version)"),
        ({}, None, "en", "(exact; source deleted)"),
        ({}, None, "fr", "(exact; source supprimée)"),
    ],
)
def test_a_source_is_written_with_its_state(states: Any, place: str | None, lang: Any, facts: str) -> None:
    """LIB-8"""
    answer = make_answer(sources=[make_source(place=place)])
    assert f"1. **turbine.pdf**, page 2, Winter {facts}\n" in export(answer, states=states, lang=lang)


@pytest.mark.parametrize(
    ("fields", "facts"),
    [({"support": "high"}, "(exact)"), ({"support": "low"}, "(exact; may not support this)"), ({}, "(exact)")],
    ids=["high", "low", "older-answer"],
)
def test_a_source_of_low_support_says_so(fields: dict[str, str], facts: str) -> None:
    """CHAT-5"""
    answer = make_answer(sources=[make_source(**fields)])
    assert f"1. **turbine.pdf**, page 2, Winter {facts}\n" in export(answer, states=CURRENT)


@pytest.mark.parametrize(
    ("lang", "note"),
    [
        ("en", "*Figures not found in any cited passage: 42 %, \\*7*"),
        ("fr", "*Chiffres introuvables dans les passages cités : 42 %, \\*7*"),
    ],
)
def test_unsupported_numbers_are_listed_below_the_answer(lang: Any, note: str) -> None:
    sections = [
        {"text": "", "unsupported_numbers": ["42 %"]},
        {"unsupported_numbers": ["*7", "42 %"]},
        {"text": "Old."},
    ]
    assert f"Fast. [1]\n\n{note}\n\n**" in export(make_answer(sections=sections), lang=lang)


def test_an_interrupted_answer_is_marked() -> None:
    assert "Fa\n\n*This answer was interrupted" in export(make_answer("Fa", status="interrupted", sources=[]))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# a", r"\# a"),
        ("<img src=x>", r"\<img src=x\>"),
        ("[a](http://b)", r"\[a\](http://b)"),
        ("a\n# b", r"a \# b"),
        ("```", r"\`\`\`"),
        ("1. a", r"1\. a"),
        ("1.5 kW", "1.5 kW"),
        ("- a", r"\- a"),
        ("---", r"\---"),
        ("-5 °C", "-5 °C"),
        ("===", r"\==="),
        ("a_b_.pdf", r"a_b\_.pdf"),
        ("R&D &lt; R&copy;", r"R&D \&lt; R\&copy;"),
        ("a|b", r"a\|b"),
        ("\\<b>", r"\\\<b\>"),
        ("[1] [3] [1](x) [1]: x", r"[1] \[3\] \[1\](x) \[1\]: x"),
    ],
)
def test_plain_text_is_rendered_literally(text: str, line: str) -> None:
    assert markdown_escape.escape_line(text, KNOWN) == line


def test_line_breaks_and_paragraphs_of_a_question_are_kept() -> None:
    assert markdown_escape.escape_text(" a\r\nb\n \n\n# c ") == "a\\\nb\n\n\\# c"


@pytest.mark.parametrize(
    ("text", "contained"),
    [
        ("**a** [1, 2] and\n\n| a | b |\n|---|---|\n| [1] | 2 |", None),
        ("- a\n  - b\n\n1. c", None),
        ("```py\n# <b> [x](y)\n```\nend", None),
        ("```\n# a", "```\n# a\n```"),
        ("~~~~\n```\n~~~\n    ~~~~", "~~~~\n```\n~~~\n    ~~~~\n~~~~"),
        ("- ```\n  ```\n# a", "- \\`\\`\\`\n  \\`\\`\\`\n#### a"),
        ("# a\n## b\n- # c", "#### a\n#### b\n- \\# c"),
        ("a\n===\nb\n---\nc\n-", "a\n\\===\nb\n***\nc\n\\-"),
        ("<script>", r"\<script>"),
        (r"\<b> \\<b>", r"\<b> \\\<b>"),
        ("[a](http://b) ![c](d)\n[1]: http://e", "\\[a](http://b) !\\[c](d)\n\\[1]: http://e"),
    ],
)
def test_markdown_of_a_model_cannot_leave_its_answer(text: str, contained: str | None) -> None:
    assert markdown_escape.confine_markdown(text, KNOWN) == (text if contained is None else contained)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("How fast?", "How fast.md"),
        ("Été 🐝", "Été 🐝.md"),
        ("../../etc/passwd", "etc passwd.md"),
        ('a"b\r\nSet-Cookie: x\u202e', "a b Set-Cookie x.md"),
        ("NUL", "_NUL.md"),
        (" . ", "conversation.md"),
        ("x" * 300, "x" * 100 + ".md"),
    ],
)
def test_a_file_name_is_safe_everywhere(title: str, name: str) -> None:
    assert name_file(title) == name
