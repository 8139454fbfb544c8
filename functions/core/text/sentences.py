"""Finds where sentences begin and end in the text of a page, in English, French, Chinese and Japanese."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

MAX_CHARS = 600
"""Longer spans are tables or lists without full stops rather than sentences; they are cut at line ends."""

SENTENCE_END = r"""
    (?: (?:\.(?:[ \u00a0]\.){2,} | [.!?…]+)                      # an ellipsis with spaces, or stops
        (?:\s?[”"'’»)\]])* (?:\[\d{1,3}\])* (?=\s|$)            # closing marks, footnote marks
      | [。！？｡]+ [」』”’）]* )
"""
"""Matches a stop that may end a sentence (a verbose pattern); `ends_sentence` decides whether it does."""

_END = re.compile(SENTENCE_END, re.VERBOSE)
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\S+",
        """
    mr mrs ms dr prof st sr jr gen gov sen rep capt lt sgt rev hon vs cf fig figs eq eqs vol vols pp p ch
    chap ed eds al ca approx dept inc ltd co corp jan feb apr jul aug sep sept oct nov u.s u.k e.g i.e
    m mm mme mlle mgr ste env av apr boul bd tél réf éd coll trad janv févr avr juil déc n.d.l.r
    """,
    )
)
_BEFORE_NUMBERS = frozenset(
    {"no", "nos", "n", "sec", "ch", "art", "ex", "col", "tab", "mar", "jun", "dec", "ffr", "fr", "frs"}
)
"""Abbreviations only in front of a number: several of them are words that end sentences."""
_BULLET = re.compile(r"[ \t]*(?:[-*+•▪◦‣–—·][ \t]|\(?(?:\d{1,3}|[a-zA-Z])[.)][ \t])")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_NUMBERED_HEADING = re.compile(r"[ \t]*\d{1,2}(?:\.\d{1,2}){0,3}\.?[ \t]+[A-ZÀ-ÖØ-Þ]")
_SECTION_NAME = re.compile(
    r"(?:abstract|summary|introduction|background|methods?|materials and methods|results?|discussion|conclusions?|"
    r"references|acknowledg(?:e)?ments|résumé|contexte|méthodes?|résultats?|conclusions?|références|remerciements)",
    re.IGNORECASE,
)
_STOPS = tuple(".!?…:;,。！？｡、，-")
_OPENING = "«“‘\"'([ \t\n\u00a0"
_OPENING_RUN = re.compile(f"[{re.escape(_OPENING)}]*")


def split_sentences(text: str) -> list[Span]:
    """The sentences of `text` as (start, end), in order, without the white space around them.

    A line break does not end a sentence, since pages break lines anywhere; blank lines, headings, bullets and table
    rows do.
    """
    return [
        piece
        for start, end in _find_blocks(text)
        for sentence in _split_block(text, start, end)
        for piece in _cut_long(text, *sentence)
    ]


def begins_item(line: str) -> bool:
    """Whether a line begins with the sign or number of an item of a list."""
    return _BULLET.match(line) is not None


def ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    """Whether the match of `SENTENCE_END` ends the sentence that begins at `start`; nothing after `end` is looked at.

    A full stop after an abbreviation, an initial or the number of a list item does not, nor does a stop that a lower
    case letter follows.
    """
    mark = stop.group()
    if mark[0] in "。！？｡":
        return True
    opening = _OPENING_RUN.match(text, stop.end(), end)
    following = text[opening.end() : min(opening.end() + 1, end)] if opening else ""
    if following.islower() or following in tuple(",;:"):
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    return not _is_abbreviation(text[start : stop.start()], following)


def _find_blocks(text: str) -> Iterator[Span]:
    """Stretches of lines that a sentence may run through."""
    lines = list(re.finditer(r"[^\n]*\n?", text))
    width = _typical_width([match.group().strip() for match in lines])
    start: int | None = None
    was_alone = False
    for match, following in zip(lines, [*lines[1:], None], strict=True):
        line = match.group()
        is_blank = not line.strip()
        if start is not None and (is_blank or was_alone or _starts_block(line)):
            yield start, match.start()
            start = None
        if start is None and not is_blank:
            start = match.start()
        was_alone = not is_blank and (
            _stands_alone(line) or _is_title(line, following.group() if following else "", width)
        )
    if start is not None:
        yield start, len(text)


def _starts_block(line: str) -> bool:
    return begins_item(line) or _stands_alone(line)


def _stands_alone(line: str) -> bool:
    """Whether the line is a heading or a table row, which shares no sentence with the lines around it."""
    words = line.strip()
    if words.startswith("|") or _HEADING.match(line) or _SECTION_NAME.fullmatch(words):
        return True
    if len(words) > 80 or words.endswith(_STOPS):
        return False
    letters = sum(map(str.isalpha, words))
    is_capitals = letters >= 4 and words.upper() == words and words.lower() != words and letters * 2 > len(words)
    return is_capitals or (_NUMBERED_HEADING.match(line) is not None and len(words) <= 60)


def _typical_width(lines: list[str]) -> int:
    """The line length at which the page breaks its text, in characters; 0 if there are too few lines to tell."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[len(lengths) * 3 // 4] if len(lengths) >= 3 else 0


def _is_title(line: str, following: str, width: int) -> bool:
    """Whether a line ends well before the margin, without a stop, above a line that begins something new."""
    words, after = line.strip(), following.strip().lstrip(_OPENING)
    begins_anew = after[:1].isupper() or after[:1] in tuple("–—-•")
    return 0 < len(words) < 0.6 * width and not words.endswith(_STOPS) and begins_anew


def _split_block(text: str, start: int, end: int) -> Iterator[Span]:
    left = start
    for match in _END.finditer(text, start, end):
        if ends_sentence(text, left, match, end):
            yield from _trim(text, left, match.end())
            left = match.end()
    yield from _trim(text, left, end)


def _is_abbreviation(sentence: str, following: str) -> bool:
    word = re.split(r"[\s(«“\"'’]", sentence[-20:])[-1]
    if word.lower() in _BEFORE_NUMBERS:
        return following.isdigit()
    if word.lower() in _ABBREVIATIONS or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):
        return True
    if len(word) == 1 and word.isalpha() and word.isupper():  # an initial
        return True
    return re.fullmatch(r"\s*\(?(?:\d{1,3}|[a-zA-Z])", sentence) is not None  # the number of a list item


def _trim(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _cut_long(text: str, start: int, end: int) -> Iterator[Span]:
    """Cuts at the last line end, semicolon or space before `MAX_CHARS`; text with none of them stays whole."""
    while end - start > MAX_CHARS:
        window = text[start : start + MAX_CHARS]
        cut = max(window.rfind("\n"), window.rfind("; ") + 1)
        cut = cut if cut > MAX_CHARS // 4 else window.rfind(" ")
        if cut <= 0:
            break
        yield from _trim(text, start, start + cut)
        start += cut
        while text[start].isspace():
            start += 1
    yield from _trim(text, start, end)
