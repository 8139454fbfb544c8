"""What stands above each passage of a document."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from functions.core import models
from functions.core.extraction import plain_text
from functions.core.ingestion import outline


def make_outline(title: str | None, file_name: str) -> outline.Outline:
    return outline.describe_document(plain_text.build_parts("Rivers flow.", max_pages=9, title=title), [], file_name)


@pytest.mark.parametrize(
    ("title", "file_name", "name"),
    [
        ("Our year", "acme_2019_report.pdf", "Acme 2019 Report – Our year"),
        ("Acme Inc. report 2019", "acme_2019.pdf", "Acme Inc. report 2019"),
        (None, "ACME_2019.pdf", "Acme 2019"),
        (None, "scan0012.pdf", "scan0012"),
    ],
)
def test_a_document_is_searched_by_its_title_and_its_file_name(title: str | None, file_name: str, name: str) -> None:
    """ING-3"""
    assert make_outline(title, file_name).name == name


def test_an_outline_survives_its_checkpoint() -> None:
    """ING-10"""
    made = outline.Outline("T", "fr", models.DocumentMetadata("T"), ("top: t",), "Header", "file words")
    assert outline.Outline.load(json.loads(json.dumps(asdict(made)))) == made
