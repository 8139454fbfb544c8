"""The unchecked sections of an answer, which `answering` reads from a model's reply and `citations` checks."""

from __future__ import annotations

from dataclasses import dataclass

SECTION_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class WrittenSection:
    """A section as the model wrote it; its ids and quotes may be invented."""

    text: str
    segment_ids: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
