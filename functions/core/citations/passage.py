"""The passages that an answer may cite, with the data that checking its quotations and figures needs."""

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
_MAX_BRIDGE = 600  # characters that a quotation with "…" may span


class Passage:
    """A hit, with data derived from its text on first use."""

    def __init__(self, hit: models.SearchHit) -> None:
        self.hit = hit

    @cached_property
    def folded_text(self) -> quotes.Folded:
        return quotes.fold(self.hit.text)

    @cached_property
    def shown_text(self) -> str:
        """The text of the passage as the model read it, except its file name and page."""
        hit = self.hit
        return "\n".join(filter(None, (hit.text, hit.markdown, hit.title, hit.section_title)))

    @cached_property
    def values(self) -> frozenset[str]:
        """The values of its figures; from a document's file name only years: its other figures mean little."""
        name = self.hit.file_name
        name_values = comparison.find_values(name) if self.hit.source == "note" else comparison.find_years(name)
        return comparison.find_values(self.shown_text) | name_values

    @cached_property
    def measures(self) -> frozenset[tuple[str, str]]:
        return comparison.find_measures(self.shown_text)

    @cached_property
    def windows(self) -> list[tuple[Span, frozenset[str], int]]:
        """Every run of up to three sentences: its span, its content words, and its number of sentences minus one."""
        spans = split_sentences(self.hit.text)
        keys = [words.keys(self.hit.text[start:end]) for start, end in spans]
        return [
            ((spans[at][0], spans[at + extra][1]), frozenset().union(*keys[at : at + extra + 1]), extra)
            for extra in range(_MAX_WINDOW)
            for at in range(len(spans) - extra)
        ]

    def find_quote(self, quote: str) -> Span | None:
        """Where `quote` is in the hit's text, word for word; None if its parts are too far apart."""
        span = quotes.find_exact(quote, self.hit.text, self.folded_text)
        return span if span and span[1] - span[0] <= max(len(quote) * 2, _MAX_BRIDGE) else None


def collect_allowed_figures(passages: Sequence[Passage], question_values: frozenset[str]) -> comparison.AllowedFigures:
    """The figures that a section may state if it cites these passages."""
    return comparison.AllowedFigures(
        frozenset().union(*(passage.values for passage in passages)),
        frozenset(str(page) for passage in passages for page in (passage.hit.page_start, passage.hit.page_end)),
        question_values,
        frozenset().union(*(passage.measures for passage in passages)) if question_values else frozenset(),
    )


def remove_file_names(text: str, passages: Sequence[Passage]) -> str:
    """`text` without the file names of its documents: a figure in a file name is not a figure of the answer."""
    for name in {passage.hit.file_name for passage in passages if passage.hit.source == "document"} - {"", None}:
        text = re.sub(rf"(?<!\w){re.escape(str(name))}(?!\w)", " ", text)
    return text
