"""Rates how well a document was read, by the figures of its health report.

`good` means that no figure is unusual, `check` that somebody should look at the document, `bad` that answers from it
cannot be trusted. The limits lie between the clean files of the question sets and the same files damaged on purpose
(`tests/eval/test_reading_quality.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Rating = Literal["good", "check", "bad"]

UNREAD: Final = ("page_unreadable", "too_complex", "reading_failed", "chunking_failed", "ocr_unavailable", "ocr_failed")
"""Warnings of pages that may have text of which no passage was made."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A figure above `check` or `bad` has that rating; below them, if `bad` is the lower one."""

    check: float
    bad: float

    def rate(self, value: float) -> Rating:
        sign = 1 if self.bad > self.check else -1
        if sign * value > sign * self.bad:
            return "bad"
        return "check" if sign * value > sign * self.check else "good"


LIMITS: Final[Mapping[str, Limits]] = {
    "unlikely_words": Limits(0.08, 0.16),
    "garbled_pages": Limits(0, 0.25),
    "broken_sentences": Limits(1.5, 5),
    "split_words": Limits(1.5, 10),
    "pages_without_text": Limits(0.2, 0.5),
    "pages_not_read": Limits(0, 0.2),
    "ocr_confidence": Limits(85, 65),
    "chunks_not_embedded": Limits(0, 0.2),
    "self_retrieval": Limits(0.8, 0.0),  # never bad: documents with nearly the same text hide each other's sentences
}


@dataclass(frozen=True, slots=True)
class Quality:
    """The worst rating of all figures, and the ratings of those that are not good."""

    rating: Rating
    reasons: Mapping[str, Rating]

    def dump(self) -> dict[str, Any]:
        """The quality as JSON, for the health report."""
        return asdict(self)


def rate(health: Mapping[str, Any], page_count: int) -> Quality:
    """The quality of a document with this health report; figures that were not measured do not count."""
    rated = {name: LIMITS[name].rate(value) for name, value in _figures(health, page_count) if value is not None}
    reasons = {name: rating for name, rating in rated.items() if rating != "good"}
    return Quality("bad" if "bad" in reasons.values() else "check" if reasons else "good", reasons)


def _figures(health: Mapping[str, Any], page_count: int) -> list[tuple[str, float | None]]:
    text, ocr, retrieval = health["text"] or {}, health["ocr"] or {}, health["self_retrieval"] or {}
    not_read = {page for code in UNREAD for page in health["warnings"].get(code, ())}
    return [
        ("unlikely_words", text.get("unlikely_words")),
        ("garbled_pages", _share(text.get("garbled_pages", ()), page_count)),
        ("broken_sentences", text.get("broken_sentences")),
        ("split_words", text.get("split_words")),
        ("pages_without_text", _share(health["pages_without_text"], page_count)),
        ("pages_not_read", _share(not_read, page_count)),
        ("ocr_confidence", ocr.get("confidence")),
        ("chunks_not_embedded", health["chunks_not_embedded"] / health["chunks"]),
        ("self_retrieval", retrieval.get("score")),
    ]


def _share(pages: Collection[int], page_count: int) -> float:
    return len(pages) / page_count
