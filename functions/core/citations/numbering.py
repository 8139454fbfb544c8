"""Numbers the places that an answer cites, and builds their citations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from functions.core import models
from functions.core.retrieval import guard

PREVIEW_CHARS = 200
RANK = {"exact": 2, "fuzzy": 1, "unverified": 0}


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """The part [start, end) of a hit's text that a section cites.

    `check` says whether the words stand there, `share` which part of a statement's words does, and `support` whether
    the place bears out what is said.
    """

    hit: models.SearchHit
    start: int
    end: int
    check: models.CheckResult
    share: float = 1.0
    support: models.SupportResult = "low"


class Numbering:
    """Gives each cited place one number for each result of `support`; a place inside another may share its number."""

    def __init__(self) -> None:
        self.citations: list[models.Citation] = []

    def number(self, place: CitedPlace) -> int:
        """The number of the citation of this place, which is added or, with a better check, updated."""
        new = _build_citation(place, len(self.citations) + 1)
        for at, old in enumerate(self.citations):
            if _share_page(old, new) and (_is_inside(new, old) or _mostly_covers(old, new)):
                is_same_place = _is_inside(new, old) and _is_inside(old, new)
                if is_same_place or old.check == new.check or old.check == "exact":
                    self.citations[at] = replace(old, check=max(old.check, new.check, key=RANK.__getitem__))
                    return old.number
        self.citations.append(new)
        return new.number


def _share_page(old: models.Citation, new: models.Citation) -> bool:
    """Whether both are of one page and bear out what is said of them, or both do not."""
    keys = ((one.source, one.source_id, one.page_start, one.support) for one in (old, new))
    return next(keys) == next(keys)


def _is_inside(one: models.Citation, other: models.Citation) -> bool:
    return other.start_offset <= one.start_offset and one.end_offset <= other.end_offset


def _mostly_covers(old: models.Citation, new: models.Citation) -> bool:
    """Whether an exact quotation is most of the place that a later section cites without quoting it."""
    return old.check == "exact" and _is_inside(old, new) and 2 * len(old.quote) >= len(new.quote)


def _build_citation(place: CitedPlace, number: int) -> models.Citation:
    hit = place.hit
    quote = hit.text[place.start : place.end]
    return models.Citation(
        number=number,
        source_id=hit.source_id,
        chunk_index=hit.chunk_index,
        source=hit.source,
        file_name=hit.file_name,
        file_type=hit.file_type,
        page_start=hit.page_start,
        page_end=hit.page_end,
        start_offset=hit.start_offset + place.start,
        end_offset=hit.start_offset + place.end,
        quote=quote,
        snippet_preview=_shorten_quote(quote),
        section_title=hit.section_title,
        score=round(guard.weigh_evidence(hit), 4),
        check=place.check,
        support=place.support,
        translation=hit.translation,
    )


def _shorten_quote(quote: str) -> str:
    line = " ".join(quote.split())
    if len(line) <= PREVIEW_CHARS:
        return line
    cut = line[: PREVIEW_CHARS - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[PREVIEW_CHARS // 2 :] else cut) + "…"
