"""The sections of an answer as a model wrote them, before any of it is checked."""

from __future__ import annotations

from dataclasses import dataclass

SECTION_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class WrittenSection:
    """A section as the model wrote it: nothing of it is checked."""

    text: str
    segment_ids: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
