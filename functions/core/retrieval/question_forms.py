"""Tells what a question asks: several things, of which each is searched, or all or the number of something."""

from __future__ import annotations

import re
from typing import Final

from functions.core.text import words
from functions.core.text.sentences import split_sentences

MAX_PARTS: Final = 3
"""A question in more parts is searched as a whole: each part costs an embedding and a ranking."""

_ASKING: Final = (
    "who|whom|whose|what|which|when|where|why|how"
    "|qui|que|qu['’]est|quoi|quels?|quelles?|quand|où|pourquoi|comment|combien|lequel|laquelle|lesquel(?:le)?s"
)
_BORDER = re.compile(
    rf"""(?:\s*[,;]\s*|\s+)(?:and|as\s+well\s+as|et|ainsi\s+que|puis)\s+(?:also\s+|then\s+|aussi\s+)?
    (?=(?:(?:in|for|to|at|by|from|on|with|under|of|à|de|d['’]|en|dans|pour|depuis|par|sur|avec|sous)\s*)?
    (?P<word>{_ASKING})\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKS = re.compile(rf"\b(?:{_ASKING})\b", re.IGNORECASE)
_REFERENCE = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|ils?|elles?|lui|leurs?|cet|cette|ces|celui"
    r"|celles?|ceux|cela|ça|son|sa|ses|l['’](?:a|ont|avai(?:t|ent)))\b",
    re.IGNORECASE,
)

_ASKS_FOR_ALL = re.compile(
    r"""\bhow\s+many\b | \b(?:what|which|who)\s+(?:are|were)\s+all\b
    | \b(?:list|enumerate|name|count|find|show|give|state)\s+(?:me\s+)?(?:a\s+list\b|all\b|every\b|each\b)
    | ^\W*(?:please\s+)?(?:list|enumerate|count)\s+the\b
    | \bcombien\s+d(?:['’]|es?\s+(?!temps\b)) | \bquel(?:le)?s\s+(?:sont|étaient|furent)\s+(?:tous|toutes)\b
    | \b(?:liste|énumère|cite|nomme|compte|donne|trouve|indique)[rsz]?(?:[- ]moi)?\s+(?:tous|toutes|la\s+liste)\b
    | ^\W*(?:liste|énumère|compte)[rsz]?\s+les\b""",
    re.IGNORECASE | re.VERBOSE,
)


def asks_for_all(question: str) -> bool:
    """Whether the question asks for all or the number of something, so that unread passages could change the answer."""
    return _ASKS_FOR_ALL.search(question) is not None


def split_question(question: str) -> tuple[str, ...]:
    """The parts of a question, two or three, or nothing if it asks one thing.

    A part that points back ("who paid for it") is followed by the names of the first part, or by its other words if it
    has none; a part without a name of its own by the names alone.
    """
    text = " ".join(question.split())
    sentences = [text[start:end] for start, end in split_sentences(text)]
    asked = [sentence for sentence in sentences if sentence.endswith("?") or sentence is sentences[-1]]
    parts = [part for sentence in asked for part in _split_sentence(sentence)]
    if not 2 <= len(parts) <= MAX_PARTS or not all(words.keys(part) for part in parts):
        return ()
    return (parts[0], *(_complete(part, parts[0]) for part in parts[1:]))


def _split_sentence(sentence: str) -> list[str]:
    """Cuts before "and who", unless the word also stands before, as in "the man who came and who left"."""
    parts, start = [], 0
    for border in _BORDER.finditer(sentence):
        before = [match.group().lower() for match in _ASKS.finditer(sentence, start, border.start())]
        if before and border["word"].lower() not in before[1:]:
            parts.append(sentence[start : border.start()])
            start = border.end()
    return [*parts, sentence[start:]]


def _complete(part: str, first: str) -> str:
    subject = _list_names(first)
    if _REFERENCE.search(part):
        subject = subject or [first[word.start : word.end] for word in words.content_words(first)]
    elif words.names_and_numbers(part):
        return part
    return f"{part.rstrip(' ?')} ({' '.join(subject)})?" if subject else part


def _list_names(first: str) -> list[str]:
    """The names and figures in their order."""
    names = words.names_and_numbers(first)
    return [first[word.start : word.end] for word in words.content_words(first) if word.key in names]
