"""The offsets of citations hold from the file through extraction and chunking to the quoted words."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import example, given, settings, strategies

from functions.core import errors, models
from functions.core.citations import quotes
from functions.core.extraction.documents import open_document
from functions.core.ingestion.chunking import chunker
from functions.core.ingestion.chunking.page_layout import Carry
from functions.core.ingestion.chunking.passages import ChunkSettings
from tests.support.documents import make_docx, make_pdf
from tests.unit.ingestion.test_chunking import count_tokens

ANY_TEXT = strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=2000)
WORDS = strategies.lists(strategies.from_regex(r"[a-zA-Z]{1,12}[,.;]?", fullmatch=True), min_size=1, max_size=300)


def read(path: Path, kind: models.FileType) -> list[models.Page]:
    with open_document(path, kind, max_pages=100) as document:
        return list(document.pages(1))


def cut(page: models.Page) -> list[models.Chunk]:
    found, _ = chunker.chunk_page(
        page,
        settings=ChunkSettings(target_tokens=40, overlap_tokens=5, max_tokens=80),
        count_tokens=count_tokens,
        title=None,
        carry=Carry(None),
        first_index=0,
        lang="en",
    )
    return found


def check_offsets(pages: list[models.Page], first_word: int, word_count: int) -> None:
    """Each chunk is a slice of its page, and words quoted from it are found where they stand."""
    for page in pages:
        for part in cut(page):
            assert page.text[part.start_offset : part.end_offset] == part.text
            quote = " ".join(part.text.split()[first_word : first_word + word_count])
            span = quotes.find_exact(quote, part.text, quotes.fold(part.text))
            if span is not None:
                place = slice(part.start_offset + span[0], part.start_offset + span[1])
                assert quotes.fold(page.text[place]).text == quotes.fold(quote).text


@given(ANY_TEXT, strategies.integers(0, 20), strategies.integers(3, 20))
@example("# Café\n\nThe ﬁrst infor-\nmation\u200b was “well-known”. 漢字、日本語。\r\n\tEnd \U0001f600", 0, 9)
def test_quotes_of_any_text_file_are_found_at_their_offsets(text: str, first_word: int, word_count: int) -> None:
    """ING-1, ING-5, CHAT-5"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.txt"
        path.write_text(text, encoding="utf-8", newline="")
        with suppress(errors.EmptyDocumentError):
            check_offsets(read(path, "txt"), first_word, word_count)


@settings(max_examples=12)
@given(WORDS, strategies.integers(5, 12), strategies.integers(0, 20), strategies.integers(3, 20))
def test_quotes_of_pdf_and_docx_files_are_found_at_their_offsets(
    words: list[str], width: int, first_word: int, word_count: int
) -> None:
    """ING-1, ING-5, CHAT-5"""
    lines = [" ".join(words[at : at + width]) for at in range(0, len(words), width)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = read(make_pdf(folder / "any.pdf", lines[:35], lines[35:] or lines[:1]), "pdf")
        pages += read(make_docx(folder / "any.docx", *lines), "docx")
        check_offsets(pages, first_word, word_count)
        assert " ".join(pages[0].text.split()) == " ".join(" ".join(lines[:35]).split())


@given(ANY_TEXT)
@example("well-known ﬁ… e\u0301-a «İ» a-b-c")
def test_every_folded_character_comes_from_the_characters_at_its_place(text: str) -> None:
    """CHAT-5"""
    folded = quotes.fold(text)
    assert len(folded.text) == len(folded.starts) == len(folded.ends)
    assert list(folded.starts) == sorted(folded.starts)
    places = zip(folded.text, folded.starts, folded.ends, strict=True)
    assert all(char in quotes.fold(text[start:end]).text for char, start, end in places)
