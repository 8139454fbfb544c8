"""What stands above each passage of a document."""

from __future__ import annotations

import json
from dataclasses import asdict

from functions.core import models
from functions.core.extraction import plain_text
from functions.core.ingestion import outline


def make_outline(title: str | None, file_name: str) -> outline.Outline:
    return outline.describe_document(plain_text.build_parts("Rivers flow.", max_pages=9, title=title), [], file_name)


def test_a_document_is_searched_by_its_title_and_the_words_of_its_file_name() -> None:
    """ING-3"""
    assert make_outline("Annual Report", "acme_2019_report.pdf").name == "Annual Report – acme 2019 report"


def test_the_words_of_a_file_name_are_not_repeated() -> None:
    assert make_outline("Acme 2019", "acme_2019.pdf").name == "Acme 2019"
    assert outline.Outline("acme_2019", "en", file_words="acme 2019").name == "acme_2019"


def test_an_outline_survives_its_checkpoint() -> None:
    """ING-10"""
    made = outline.Outline("T", "fr", models.DocumentMetadata("T"), ("top: t",), "Header", "file words")
    assert outline.Outline.load(json.loads(json.dumps(asdict(made)))) == made
