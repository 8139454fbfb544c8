"""Marks and sources are added to the text of a completion, and removed when a client sends it back."""

from __future__ import annotations

import pytest

from functions.core import models
from functions.core.answering import export
from functions.core.citations.cite import cite_extracts
from functions.core.citations.sections import Quotation
from functions.web.schemas import completion_text

ANSWER = "The kiln burns 99 logs. [1]\n\nIt stands in Lyon."
HIT = models.SearchHit(
    1, "document", "d", 0, "a.pdf", None, "pdf", 1, 1, 0, 4, None, "logs", "en", 0.5, similarity=0.5, coverage=0.5
)


@pytest.mark.parametrize("lang", ["en", "fr"])
@pytest.mark.parametrize("status", ["complete", "interrupted"])
@pytest.mark.parametrize("numbers", [(), ("99",)])
@pytest.mark.parametrize("is_cited", [False, True])
def test_added_marks_and_sources_are_removed_again(
    lang: export.Language, status: models.MessageStatus, numbers: tuple[str, ...], is_cited: bool
) -> None:
    """CHAT-10"""
    sources = cite_extracts([Quotation(HIT, ((0, 4),), HIT.text[:4])])[1] if is_cited else ()
    answer = models.Answer(ANSWER, (models.CitedSection(ANSWER, (), (), numbers),), sources, status, "model")
    added = completion_text.list_sources(answer, lang)
    assert bool(added) == (is_cited or bool(numbers) or status == "interrupted")
    assert completion_text.drop_sources(ANSWER + added) == ANSWER
