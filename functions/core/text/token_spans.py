"""Cuts text into spans that tile it, at the ends of sentences where possible, and counts their tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from functions.core.text.sentences import SENTENCE_END, ends_sentence

CountTokens = Callable[[str], int]

# The end of a sentence, a blank line, or the line end before a bullet or a table row.
_BORDER = re.compile(rf"(?P<stop>{SENTENCE_END}) | \n\s*\n | \n(?=\s*(?:[-*•▪◦‣–][ ]|\|))", re.VERBOSE)


@dataclass(frozen=True, slots=True)
class Span:
    """text[start:end] including trailing white space; spans follow each other without a gap."""

    start: int
    end: int
    tokens: int
    ends_paragraph: bool = False


def split_spans(text: str, start: int, end: int, limit: int, count_tokens: CountTokens) -> list[Span]:
    """The sentences of text[start:end]; one of more than `limit` tokens is cut at lines, then words, then anywhere.

    Each piece of text is counted once per level, so the cost grows with the length of the text, not with its borders.
    """
    spans: list[Span] = []
    for left, right, ends_paragraph in _split_sentences(text, start, end):
        pieces = list(_fit(text, left, right, limit, count_tokens))
        if ends_paragraph:
            last = pieces[-1]
            pieces[-1] = Span(last.start, last.end, last.tokens, ends_paragraph=True)
        spans += pieces
    return spans


def _split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    left = start
    for match in _BORDER.finditer(text, start, end):
        right = _skip_space(text, match.end(), end)
        if right <= left or (right < end and match["stop"] and not ends_sentence(text, left, match, end)):
            continue
        yield left, right, _ends_paragraph(text, left, match.start(), right)
        left = right
    if left < end:
        yield left, end, True


def _ends_paragraph(text: str, left: int, border: int, right: int) -> bool:
    """Whether the border is a blank line, or the end of a line clearly shorter than the one above it."""
    space = text[border:right]
    if "\n" not in space:
        return False
    if space.count("\n") > 1:
        return True
    line_start = text.rfind("\n", 0, border) + 1
    above = text.rfind("\n", 0, max(line_start - 1, 0)) + 1
    return line_start > above and border - line_start < 0.75 * (line_start - 1 - above)


def _fit(text: str, start: int, end: int, limit: int, count_tokens: CountTokens) -> Iterator[Span]:
    tokens = count_tokens(text[start:end])
    if tokens <= limit:
        yield Span(start, end, tokens)
        return
    for pattern in (r"[^\n]*\n+\s*|[^\n]+", r"\S+\s*|\s+"):
        pieces = [match.span() for match in re.compile(pattern).finditer(text, start, end)]
        if len(pieces) > 1:
            yield from _gather(text, pieces, limit, count_tokens)
            return
    yield from _cut_anywhere(text, start, end, tokens, limit, count_tokens)


def _gather(text: str, pieces: list[tuple[int, int]], limit: int, count_tokens: CountTokens) -> Iterator[Span]:
    """Joins neighbouring pieces up to the limit, and cuts a piece that exceeds it by itself."""
    left, tokens = pieces[0][0], 0
    for start, end in pieces:
        count = count_tokens(text[start:end])
        if tokens and tokens + count > limit:
            yield Span(left, start, tokens)
            left, tokens = start, 0
        if count > limit:
            yield from _fit(text, start, end, limit, count_tokens)
            left, tokens = end, 0
        else:
            tokens += count
    if left < pieces[-1][1]:
        yield Span(left, pieces[-1][1], tokens)


def _cut_anywhere(
    text: str, start: int, end: int, tokens: int, limit: int, count_tokens: CountTokens
) -> Iterator[Span]:
    size = max(1, (end - start) * limit // (tokens + tokens // 4 + 1))
    left = start
    while left < end:
        right = min(end, left + size)
        # An accent stays with its letter, unless a run of accents is longer than the piece.
        while right < min(end, left + 2 * size) and unicodedata.combining(text[right]):
            right += 1
        count = count_tokens(text[left:right])
        if count > limit and size > 1:
            size //= 2
            continue
        yield Span(left, right, count)
        left = right


def _skip_space(text: str, position: int, end: int) -> int:
    while position < end and text[position].isspace():
        position += 1
    return position
