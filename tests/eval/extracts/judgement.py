"""Judges an answer that is made of quotations, by a rule that was written before any answer was seen.

An answer is acceptable if it holds the gold answer, each part starts and ends as a sentence, a row or an item of a
list, no part is from another document than the gold answer, and it has at most four sentences or rows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

from functions.core import models
from functions.core.text.sentences import split_sentences

MAX_SENTENCES: Final = 4
PUBLICATIONS: Final = (
    ("eu-004", "eu-005", "eu-006", "eu-007"),
    ("eu-008", "eu-010"),
    ("eu-012", "eu-013", "eu-014"),
    ("eu-016", "eu-017", "eu-018", "eu-019"),
    ("eu-020", "eu-021", "eu-022", "eu-023", "eu-024", "eu-025"),
    ("eu-026", "eu-027"),
)
"""Documents of `reports_eu` that are excerpts of one publication."""

_START: Final = re.compile(r"[\W_]*[^\W\d_a-zß-öø-ÿ]|[\W_]*\d|[-|]")
_END: Final = re.compile(r"[.!?…:;][”\"'’»)\]\d\s]*$|\|$")


def find_faults(
    answer: models.Answer, gold: Sequence[Sequence[str]], document: str, document_of: Mapping[str, str]
) -> list[str]:
    """What is wrong with an answer; each group of `gold` must be in it, by one of its forms.

    `document_of` maps ids of sources to the names that gold documents have.
    """
    parts = [section for section in answer.sections if section.citations]
    if not parts:
        return ["refused"]
    text = _normalize(" ".join(section.text for section in parts))
    cited = {document_of[source.source_id] for source in answer.sources}
    faults = {
        "gold answer missing": not all(any(_normalize(form) in text for form in forms) for forms in gold),
        "starts inside a sentence": not all(_START.match(section.text) for section in parts),
        "ends inside a sentence": not all(_ends_whole(section.text) for section in parts),
        "other document": {_name_publication(name) for name in cited} != {_name_publication(document)},
        "too long": sum(_count_sentences(section.text) for section in parts) > MAX_SENTENCES,
    }
    return [fault for fault, is_found in faults.items() if is_found]


def _name_publication(document: str) -> str:
    """Excerpts of one publication are one document."""
    return next((excerpts[0] for excerpts in PUBLICATIONS if document in excerpts), document)


def _ends_whole(text: str) -> bool:
    return _END.search(text) is not None or text.splitlines()[-1].startswith("- ")


def _count_sentences(text: str) -> int:
    """The sentences of a part, or the rows of its table; a list counts as the sentence that announces it."""
    lines = text.splitlines()
    if lines[-1].startswith("|"):
        table = [line for line in lines if line.startswith("|")]
        return len(table) - 2 if any(set(line) <= set("|-: ") for line in table) else len(table)
    prose = " ".join(line for line in lines if not line.startswith("- "))
    return max(len(split_sentences(prose)), 1)


def _normalize(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").replace("*", "")
    return " ".join(plain.casefold().split())
