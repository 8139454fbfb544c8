"""The passages that an answer was given, with what checking it needs to know of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from functions.core import models
from functions.core.citations import quotes
from functions.core.citations.figures import comparison
from functions.core.text import words
from functions.core.text.sentences import Span, split_sentences

_MAX_WINDOW = 3  # sentences
_MAX_BRIDGE = 600  # characters that a quotation with parts left out may span


class Passage:
    """A hit with what is worked out of its text at most once."""

    def __init__(self, hit: models.SearchHit) -> None:
        self.hit = hit

    @cached_property
    def folded(self) -> quotes.Folded:
        return quotes.fold(self.hit.text)

    @cached_property
    def shown(self) -> str:
        """What the model was shown of the passage, but for its file's name and its page."""
        hit = self.hit
        return "\n".join(filter(None, (hit.text, hit.markdown, hit.title, hit.section_title)))

    @cached_property
    def values(self) -> frozenset[str]:
        """Of every figure in it; of a file's name the years alone, since others rarely say anything."""
        name = self.hit.file_name
        named = comparison.find_values(name) if self.hit.source == "note" else comparison.find_years(name)
        return comparison.find_values(self.shown) | named

    @cached_property
    def measures(self) -> frozenset[tuple[str, str]]:
        return comparison.find_measures(self.shown)

    @cached_property
    def windows(self) -> list[tuple[Span, frozenset[str], int]]:
        """Every run of up to three sentences: its span, its content words, how many sentences more than one."""
        spans = split_sentences(self.hit.text)
        held = [words.keys(self.hit.text[start:end]) for start, end in spans]
        return [
            ((spans[at][0], spans[at + more][1]), frozenset().union(*held[at : at + more + 1]), more)
            for more in range(_MAX_WINDOW)
            for at in range(len(spans) - more)
        ]

    def find_quote(self, quote: str) -> Span | None:
        span = quotes.find_exact(quote, self.hit.text, self.folded)
        return span if span and span[1] - span[0] <= max(len(quote) * 2, _MAX_BRIDGE) else None


def know_figures(passages: Sequence[Passage], asked: frozenset[str]) -> comparison.Known:
    """What the figures of a section may rest on that cites these passages; `asked` are values of the question."""
    return comparison.Known(
        frozenset().union(*(passage.values for passage in passages)),
        frozenset(str(page) for passage in passages for page in (passage.hit.page_start, passage.hit.page_end)),
        asked,
        frozenset().union(*(passage.measures for passage in passages)) if asked else frozenset(),
    )


def without_names(text: str, passages: Sequence[Passage]) -> str:
    """The text without the names of the files it rests on, whose figures are none of the answer. Notes have titles."""
    for name in {passage.hit.file_name for passage in passages if passage.hit.source == "document"} - {"", None}:
        text = re.sub(rf"(?<!\w){re.escape(str(name))}(?!\w)", " ", text)
    return text
