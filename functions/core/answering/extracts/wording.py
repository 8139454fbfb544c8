"""What a question asks for, by its words, and what kind of text a sentence is, in English and French."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from functions.core.text import words

_FIGURE = re.compile(
    r"""\b(?:how\ (?:many|much|long|old|far|large|often|high)|when|percent(?:age)?|combien|quand|pour\ cent|pourcentage
    |number|share|proportion|fraction|rate|amount|cost|price|sum|year|nombre|part|taux|montant|co[ûu]t|prix|somme
    |ann[ée]e|dur[ée]e)s?\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TERM = r"(?P<term>[^?,;:]+?)"
_TERM_END = r"(?=\s+(?:in|under|used|for|within|according|on|at|from|by|dans|en|selon|chez|aux?|pour)\b|\s*[?,;:]|\s*$)"
_ASKS_DEFINITION = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^\W*what\s+(?:does|do|did)\s+(?:the\s+)?{_TERM}\s+(?:mean|stand\s+for|refer\s+to)\b",
        rf"^\W*what\s+is\s+meant\s+by\s+(?:the\s+)?{_TERM}{_TERM_END}",
        rf"^\W*what(?:\s+(?:is|are)|['’]s)\s+(?:an?\s+|the\s+)?(?!.*\bof\b){_TERM}{_TERM_END}",
        rf"^\W*how\s+(?:is|are)\s+(?:an?\s+|the\s+)?{_TERM}\s+defined\b",
        rf"\b(?:define|definition\s+of)\s+(?:an?\s+|the\s+)?{_TERM}{_TERM_END}",
        rf"^\W*qu['’]est[- ]ce\s+qu(?:e|['’])\s*(?:l[ea]s?\s+|l['’]|une?\s+|des\s+)?{_TERM}{_TERM_END}",
        rf"^\W*que\s+(?:signifient?|veut\s+dire|d[ée]signent?)\s+(?:l[ea]s?\s+|l['’])?{_TERM}{_TERM_END}",
        rf"^\W*(?:comment\s+d[ée]finit[- ]on|qu['’]entend[- ]on\s+par)\s+(?:l[ea]s?\s+|l['’]|une?\s+)?"
        rf"{_TERM}{_TERM_END}",
        rf"\bd[ée]finition\s+d(?:e\s+la|es?|u|['’])\s*{_TERM}{_TERM_END}",
    )
)
_MAX_TERM_WORDS = 4
_DEFINES = re.compile(
    r"""\b(?:is|are|means?|consists?\ of|comprises?|refers?\ to|stands?\ for|denotes?|est|sont|d[ée]signent?|signifient?
    |s['’]entend(?:ent)?|constituent?)\b|[:=–—]""",
    re.IGNORECASE | re.VERBOSE,
)
_LIST = re.compile(
    r"""\b(?:which|what)\ (?:\w+\ )?(?:are|were|\w+s\b)|\blist\b|\bname\ (?:the|all)|\bquel(?:le)?s\b|\b[ée]num[ée]re
    |\bliste[rz]?\b""",
    re.IGNORECASE | re.VERBOSE,
)
_LEANS = re.compile(
    r"""(?:it|they|he|she|this|these|those|that|such|both|its|their|his|her|however|therefore|thus|moreover|instead
    |otherwise|in\ (?:addition|particular|contrast)|the\ (?:latter|former|same)|il|ils|elles?|ce|cet|cette|ces|cela
    |celui(?:-ci)?|celle(?:-ci)?|ceux(?:-ci)?|cependant|toutefois|ainsi|en\ outre|par\ ailleurs|de\ plus|leurs?|son|sa
    |ses|c['’]est|c['’][ée]tai(?:en)?t)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_POINTS_BACK = re.compile(
    r"(?:[^,.]{1,40},\s+)?(?:(?:it|this|these|they)\s+(?:is|are|means?|refers?|consists?|comprises?)|ce\s+(?:est|sont)|c['’]est"
    r"|il\s+s['’]agit|(?:ils?|elles?)\s+(?:est|sont|d[ée]signent?))\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(
    r"\W*(?:table|figure|fig\.|box|sources?|notes?|chart|tableau|graphique|encadr[ée]|carte)\s*(?:\d|[:.–—])",
    re.IGNORECASE,
)
_CONTINUED = re.compile(r"\(\s*(?:continued|cont['’.]?d?|suite)\s*\)", re.IGNORECASE)
_CLOSING = " \n”\"'’»)]*_"
_STOPS = tuple(".!?…:;。！？")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a question asks for: its content words, whether a figure or a list, and the terms to be defined, if any."""

    keys: frozenset[str]
    asks_figure: bool
    asks_list: bool
    terms: tuple[frozenset[str], ...]


def read_question(question: str) -> Wanted:
    asks_figure, asks_list = (pattern.search(question) is not None for pattern in (_FIGURE, _LIST))
    return Wanted(words.keys(question), asks_figure, asks_list, _find_terms(question))


def _find_terms(question: str) -> tuple[frozenset[str], ...]:
    """The content words of the term whose definition is asked for, and of its abbreviation in parentheses."""
    for match in filter(None, (pattern.search(question) for pattern in _ASKS_DEFINITION)):
        names = [words.keys(name) for name in re.split(r"[()]", match["term"])]
        if all(len(name) <= _MAX_TERM_WORDS for name in names) and any(names):
            return tuple(filter(None, names))
    return ()


def defines(sentence: str, before: str, terms: Collection[frozenset[str]]) -> bool:
    """Whether a sentence says what a term is that it begins with, or that stands in the sentence `before`."""
    match = _DEFINES.search(sentence)
    if match is not None and holds_any(words.keys(sentence[: match.start()]), terms):
        return True
    return holds_any(words.keys(before), terms) and _POINTS_BACK.match(sentence) is not None


def holds_any(keys: frozenset[str], terms: Collection[frozenset[str]]) -> bool:
    return any(term <= keys for term in terms)


def leans_back(sentence: str) -> bool:
    """Whether a sentence begins with a word that stands for what the sentence before it says: "It", "However"."""
    return _LEANS.match(sentence.lstrip(" \n\"'“«(•-–—")) is not None


def is_question(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING).endswith(("?", "？"))


def introduces(sentence: str) -> bool:
    """Whether a sentence announces what follows it."""
    return sentence.rstrip(_CLOSING).endswith((":", "："))


def is_caption(sentence: str) -> bool:
    return _CAPTION.match(sentence) is not None


def is_fragment(sentence: str) -> bool:
    """Whether a text is a caption, a part of a sentence, or a line that no stop ends, such as a heading."""
    text = sentence.strip()
    is_cut = text[:1].islower() or not text.rstrip(_CLOSING).endswith(_STOPS)
    return is_cut or is_caption(text) or _CONTINUED.search(text) is not None
