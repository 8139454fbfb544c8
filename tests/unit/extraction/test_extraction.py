"""Every kind of file is read as text, page by page."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pypdfium2.raw as pdfium
import pytest
from reportlab.pdfgen import canvas

from functions.core import errors, models, ports
from functions.core.extraction import file_types, plain_text
from functions.core.extraction.documents import open_document
from functions.core.extraction.pdf import text_layer
from functions.core.extraction.pdf.reader import PDFIUM_LOCK, character_indices, open_pdf, open_text_page, raw_text
from functions.core.text.storable import clean_text
from tests.support import documents

WORD_2010 = "http://purl.oclc.org/ooxml/wordprocessingml/main"  # the strict variant of the format


def read_texts(path: Path, file_type: models.FileType = "pdf", start: int = 1, max_pages: int = 100) -> list[str]:
    with open_document(path, file_type, max_pages=max_pages) as document:
        return [page.text for page in document.pages(start)]


def read_metadata(path: Path, file_type: models.FileType = "pdf") -> models.DocumentMetadata:
    with open_document(path, file_type, max_pages=100) as document:
        return document.metadata


def read_docx_body(tmp_path: Path, body: str, **parts: str) -> str:
    (text,) = read_texts(documents.make_raw_docx(tmp_path / "raw.docx", body, **parts), "docx")
    return text


# PDF


def test_a_pdf_is_read_line_by_line_and_page_by_page(tmp_path: Path) -> None:
    """ING-1"""
    path = documents.make_pdf(tmp_path / "a.pdf", ["First line.", "Second line."], "", "Où est l'été ? Cœur, naïf.")
    assert read_texts(path) == ["First line.\nSecond line.", "", "Où est l'été ? Cœur, naïf."]


def test_reading_starts_at_the_given_page_and_is_lazy(tmp_path: Path) -> None:
    """ING-10"""
    path = documents.make_pdf(tmp_path / "a.pdf", *(f"page {number}" for number in range(1, 6)))
    assert read_texts(path, start=4) == ["page 4", "page 5"]
    with open_document(path, "pdf", max_pages=5) as document:
        assert document.page_count == 5
        assert next(document.pages(2)) == models.Page(number=2, text="page 2")


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    path = documents.make_two_column_pdf(tmp_path / "a.pdf", ["left one", "left two"], ["right one", "right two"])
    assert read_texts(path) == ["left one\nleft two\nright one\nright two"]


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_lines_of_rotated_pages_are_in_order(tmp_path: Path, rotation: int, upright: bool) -> None:
    """ING-1"""
    lines = ["First line.", "Second goes con-", "tinued.", "Last line."]
    path = documents.make_pdf(tmp_path / "a.pdf", lines, rotation=rotation, upright=upright, size=(612, 780))
    assert read_texts(path) == ["First line.\nSecond goes con\u00adtinued.\nLast line."]


def test_a_hyphen_at_a_line_end_is_a_soft_hyphen(tmp_path: Path) -> None:
    """ING-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", ["The office con-", "tinued, in 2019-", "2020."])
    assert read_texts(path) == ["The office con\u00adtinued, in 2019-\n2020."]


def test_characters_outside_the_basic_plane_and_ligatures_are_kept(tmp_path: Path) -> None:
    codes = {"A": "\U0001d465", "B": "😀", "C": "ffi", "D": "\U00020041"}
    assert read_texts(documents.make_mapped_pdf(tmp_path / "a.pdf", "xAyBoCceD", codes)) == ["x𝑥y😀office𠁁"]


def test_an_unmapped_glyph_is_not_mistaken_for_a_hyphen(tmp_path: Path) -> None:
    """ING-4"""
    assert read_texts(documents.make_mapped_pdf(tmp_path / "a.pdf", "xABy", {"A": "😀", "B": "\0"})) == ["x😀\ufffdy"]


def test_characters_that_postgres_cannot_store_are_replaced(tmp_path: Path) -> None:
    """ING-4"""
    path = documents.make_mapped_pdf(tmp_path / "a.pdf", "xAy", {"A": "\u0001"})
    path.write_bytes(path.read_bytes().replace(b"<0001>", b"<D835>"))
    (text,) = read_texts(path)
    assert text == "x\ufffdy"
    assert clean_text("a\x00b\udc00c") == "a\ufffdb\ufffdc"


def test_reading_twice_gives_the_same_text(tmp_path: Path) -> None:
    """ING-7"""
    path = documents.make_pdf(tmp_path / "a.pdf", *(["some words here", "more of them"] for _ in range(3)))
    assert read_texts(path) == read_texts(path)


@pytest.mark.parametrize("max_pages", [1, 2])
def test_a_file_with_too_many_pages_is_refused(tmp_path: Path, max_pages: int) -> None:
    """LIB-4"""
    path = documents.make_pdf(tmp_path / "a.pdf", "one", "two", "three")
    with pytest.raises(errors.TooManyPagesError) as caught:
        open_document(path, "pdf", max_pages=max_pages)
    assert caught.value.details == {"page_count": 3, "max_pages": max_pages}


def test_a_pdf_with_a_password_is_encrypted(tmp_path: Path) -> None:
    """ING-11"""
    path = documents.make_pdf(tmp_path / "a.pdf", "secret", password="opensesame")
    with pytest.raises(errors.EncryptedDocumentError):
        open_document(path, "pdf", max_pages=9)


@pytest.mark.parametrize("content", [b"%PDF-1.7\n", b"%PDF-1.4\n" + b"\0" * 4000], ids=["header only", "zeroed"])
def test_a_damaged_pdf_is_corrupt(tmp_path: Path, content: bytes) -> None:
    """ING-11"""
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    with pytest.raises(errors.CorruptDocumentError):
        open_document(path, "pdf", max_pages=9)


def test_pdf_metadata_is_read(tmp_path: Path) -> None:
    """ING-3"""
    path = documents.make_pdf(
        tmp_path / "a.pdf", "Text, see https://doi.org/10.1000/xyz-123.", title="A Study", author="Zoé Müller"
    )
    found = read_metadata(path)
    assert (found.title, found.author, found.doi) == ("A Study", "Zoé Müller", "10.1000/xyz-123")


def test_a_useless_title_is_replaced_by_the_largest_line(tmp_path: Path) -> None:
    """ING-3"""
    lines = ["Some body text.", "More body text.", "And more."]
    path = documents.make_pdf(tmp_path / "a.pdf", lines, title="Microsoft Word - a.doc", heading="The Real Title")
    assert read_metadata(path).title == "The Real Title"
    plain = documents.make_pdf(tmp_path / "b.pdf", lines, title="report_final.pdf")
    assert read_metadata(plain).title is None


def test_threads_may_read_at_the_same_time(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", *(f"page {number}" for number in range(30)))
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(read_texts(path))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[f"page {number}" for number in range(30)]] * 6


@pytest.mark.parametrize(
    ("raw", "stored", "units"),
    [
        ("a\r\nb", "a\nb", [0, 2, 3]),
        ("a\rb\n", "a\rb\n", [0, 1, 2, 3]),
        ("x😀y", "x😀y", [0, 1, 3]),
        ("con\ufffetinued", "con\u00adtinued", list(range(10))),
        ("\ud835\x00z", "\ufffd\ufffdz", [0, 1, 2]),
        ("", "", []),
    ],
)
def test_each_stored_character_maps_to_its_unit_in_the_source(raw: str, stored: str, units: list[int]) -> None:
    """ING-4"""
    assert text_layer.stored_text(raw) == stored
    assert [text_layer.unit_positions(raw)[place] for place in text_layer.natural_places(raw)] == units


@pytest.mark.parametrize("codes", ["AAABBBCCCneedle", "needleBxByBBz", "BBBB", "xyz"])
def test_the_place_of_every_character_is_known(tmp_path: Path, codes: str) -> None:
    """ING-4"""
    path = documents.make_mapped_pdf(tmp_path / "a.pdf", codes, {"A": "😀", "B": "\x00", "C": "ffi"})
    with open_pdf(path) as pdf, open_text_page(pdf, 1) as (_, text_page):
        raw = raw_text(text_page)
        asked = [pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, unit) for unit in text_layer.unit_positions(raw)]
        assert character_indices(text_page, 0, len(raw)) == asked


def test_reading_a_text_layer_runs_no_ocr(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", "one", "two")
    with open_document(path, "pdf", max_pages=2, recognizer=Reader(error="never asked")) as document:
        assert [document.read_text_layer(number) for number in (1, 2)] == ["one", "two"]


def test_the_parts_of_a_text_file_have_no_running_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words " * 5000, "utf-8")
    with open_document(tmp_path / "a.txt", "txt", max_pages=9) as document:
        assert [document.read_text_layer(number) for number in (1, 2)] == ["", ""]


# OCR


@dataclass
class Reader:
    """A recognizer that returns `text` for every image, or fails with `error`."""

    text: str = "Read off a picture"
    confidence: float = 90.0
    error: str | None = None
    locked: list[bool] = field(default_factory=list)

    def recognize(self, png: bytes, *, timeout: float) -> ports.RecognizedPage:
        if self.error:
            raise errors.RecognitionError(self.error)
        thread = threading.Thread(target=self._try_lock)
        thread.start()
        thread.join()
        words = (models.RecognizedWord(0, len(self.text), 0.1, 0.1, 0.9, 0.2),) if self.text else ()
        return ports.RecognizedPage(self.text, models.Recognition(self.confidence, words))

    def _try_lock(self) -> None:
        free = PDFIUM_LOCK.acquire(timeout=0.5)
        self.locked.append(not free)
        if free:
            PDFIUM_LOCK.release()


def read_scan(path: Path, recognizer: ports.TextRecognizer | None) -> models.Page:
    with open_document(path, "pdf", max_pages=1, recognizer=recognizer) as document:
        return next(document.pages())


def test_a_page_without_text_is_read_by_ocr(tmp_path: Path) -> None:
    """ING-2"""
    reader = Reader()
    page = read_scan(documents.make_picture_pdf(tmp_path / "a.pdf"), reader)
    assert (page.text, page.warnings) == ("Read off a picture", ())
    assert page.recognition is not None
    assert page.recognition.confidence == 90.0
    assert reader.locked == [False]  # PDFium's lock is free during OCR


@pytest.mark.parametrize(
    ("reader", "text", "warnings"),
    [
        (None, "", ("ocr_unavailable", "no_text")),
        (Reader(error="too slow"), "", ("ocr_failed", "no_text")),
        (Reader(confidence=59.9), "Read off a picture", ("ocr_low_confidence",)),
        (Reader(text=""), "", ("no_text",)),
        (Reader(text="\u200b\ufeff\u00ad \n"), "\u200b\ufeff\u00ad \n", ("no_text",)),
        (Reader(text="a\x00\ud800"), "a\ufffd\ufffd", ()),
    ],
    ids=["no program", "failure", "unsure", "nothing found", "nothing visible", "unstorable"],
)
def test_the_outcome_of_ocr_is_reported(
    tmp_path: Path, reader: Reader | None, text: str, warnings: tuple[str, ...]
) -> None:
    """ING-2, ING-4"""
    page = read_scan(documents.make_picture_pdf(tmp_path / "a.pdf"), reader)
    assert (page.text, page.warnings) == (text, warnings)


def test_a_blank_page_has_no_text_and_skips_ocr(tmp_path: Path) -> None:
    """ING-2"""
    page = read_scan(documents.make_pdf(tmp_path / "a.pdf", ""), Reader(error="never asked"))
    assert page == models.Page(1, "", ("no_text",))


@pytest.mark.parametrize("meaning", ["\u200b", "\ufeff", "\u00ad", "\ufffd", "\x00"])
def test_unreadable_characters_do_not_count_as_text(tmp_path: Path, meaning: str) -> None:
    """ING-2"""
    page = read_scan(documents.make_mapped_pdf(tmp_path / "a.pdf", "A" * 80, {"A": meaning}), None)
    assert page.warnings[-1] == "no_text"


def test_tables_are_found_with_the_text(tmp_path: Path) -> None:
    """ING-6"""
    rows = [("Town", "People", "Since"), ("Arles", "52,548", "1789"), ("Nîmes", "148,561", "1790")]
    pdf = canvas.Canvas(str(tmp_path / "a.pdf"), invariant=1)
    pdf.grid([100, 200, 300, 400], [600, 620, 640, 660])
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            pdf.drawString(105 + 100 * column, 646 - 20 * number, cell)
    pdf.save()
    page = read_scan(tmp_path / "a.pdf", None)
    assert [row.cells for table in page.tables for row in table.rows] == rows


# DOCX


def test_a_docx_is_read_in_document_order(tmp_path: Path) -> None:
    """ING-1"""
    path = documents.make_docx(
        tmp_path / "a.docx",
        "# Report",
        "Intro.",
        [["Name", "Sum"], ["Zoé", "1|2"]],
        "## Détails",
        "- one",
        "- two",
        "End.",
    )
    assert read_texts(path, "docx") == [
        "# Report\n\nIntro.\n\n| Name | Sum |\n| --- | --- |\n| Zoé | 1\\|2 |\n\n## Détails\n\n- one\n- two\n\nEnd."
    ]


def test_docx_metadata_is_read(tmp_path: Path) -> None:
    """ING-3"""
    path = documents.make_docx(tmp_path / "a.docx", "# Heading", "doi:10.1000/182", title="Title", author="Zoé")
    found = read_metadata(path, "docx")
    assert (found.title, found.author, found.doi) == ("Title", "Zoé", "10.1000/182")
    untitled = documents.make_docx(tmp_path / "b.docx", "# Heading", "Text")
    assert read_metadata(untitled, "docx").title == "Heading"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>", "a\tb\nc"),
        ("<w:p><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p>", "link"),
        ("<w:sdt><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>", "control"),
        (
            "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>",
            "new",
        ),
        ("<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:t>seen</w:t></w:r></w:p>", "seen"),
        ("<w:p><w:r><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:r></w:p>", "box"),
        ('<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Deep</w:t></w:r></w:p>', "## Deep"),
        (
            "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc>"
            '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>',
            "| a |  |\n| --- | --- |\n| b |  |",
        ),
        (
            "<w:tbl><w:tr><w:tc><w:tbl><w:tr><w:tc><w:p><w:r><w:t>in</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:tc>"
            "</w:tr></w:tbl>",
            "in",
        ),
    ],
    ids=["breaks", "link", "control", "changes", "hidden", "text box", "outline", "merged cells", "nested table"],
)
def test_word_markup_is_read(tmp_path: Path, body: str, text: str) -> None:
    """ING-1"""
    assert read_docx_body(tmp_path, body) == text


def test_headings_are_found_through_base_styles(tmp_path: Path) -> None:
    styles = (
        '<w:styles xmlns:w="x"><w:style w:styleId="Titre2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="Titre2"/></w:style>'
        '<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style></w:styles>'
    )
    body = '<w:p><w:pPr><w:pStyle w:val="Mine"/></w:pPr><w:r><w:t>Été</w:t></w:r></w:p>'
    assert read_docx_body(tmp_path, body, styles=styles) == "## Été"


def test_footnotes_follow_the_text(tmp_path: Path) -> None:
    notes = (
        '<w:footnotes xmlns:w="x"><w:footnote w:type="separator"><w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>'
        "<w:footnote><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>"
    )
    assert read_docx_body(tmp_path, "<w:p><w:r><w:t>Text.</w:t></w:r></w:p>", footnotes=notes) == "Text.\n\nA note."


def test_the_strict_variant_is_read(tmp_path: Path) -> None:
    path = documents.make_raw_docx(tmp_path / "a.docx", "<w:p><w:r><w:t>x</w:t></w:r></w:p>", namespace=WORD_2010)
    assert read_texts(path, "docx") == ["x"]


def test_a_docx_without_text_fails_with_no_text(tmp_path: Path) -> None:
    """LIB-10"""
    with pytest.raises(errors.NoTextError):
        read_texts(documents.make_docx(tmp_path / "a.docx", "", " "), "docx")


@pytest.mark.parametrize(
    ("body", "prolog"),
    [
        ("<w:p>", ""),
        ("&bomb;", '<!DOCTYPE w [<!ENTITY bomb "boom">]>'),
        ("&x;", '<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    ],
    ids=["broken XML", "entities", "file entity"],
)
def test_a_docx_with_bad_xml_is_corrupt(tmp_path: Path, body: str, prolog: str) -> None:
    """ING-11"""
    path = documents.make_raw_docx(tmp_path / "a.docx", body, prolog=prolog)
    with pytest.raises(errors.CorruptDocumentError):
        read_texts(path, "docx")


def test_deep_nesting_does_not_crash(tmp_path: Path) -> None:
    body = "<w:p><w:r><w:t>top</w:t></w:r></w:p>" + "<w:ins>" * 5000 + "</w:ins>" * 5000
    assert read_docx_body(tmp_path, body) == "top"


@pytest.mark.parametrize("tags", [("w:sdt", "w:sdtContent"), ("w:ins", "w:ins")])
def test_text_nested_too_deeply_raises_an_error(tmp_path: Path, tags: tuple[str, str]) -> None:
    """LIB-10"""
    opening, closing = "".join(f"<{tag}>" for tag in tags), "".join(f"</{tag}>" for tag in reversed(tags))
    deep = opening * 150 + "<w:p><w:r><w:t>deep</w:t></w:r></w:p>" + closing * 150
    with pytest.raises(errors.CorruptDocumentError, match="too deeply"):
        read_docx_body(tmp_path, "<w:p><w:r><w:t>top</w:t></w:r></w:p>" + deep)


# Text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_text_is_decoded(tmp_path: Path, encoding: str, line_end: str) -> None:
    """ING-1"""
    path = tmp_path / "a.txt"
    path.write_bytes(f"L’été,{line_end}à Nîmes – 5 €".encode(encoding))
    assert read_texts(path, "txt") == ["L’été,\nà Nîmes – 5 €"]


def test_a_bad_byte_does_not_change_the_encoding_of_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("L’été dernier, à l’hôtel ".encode() + b"\xff fin")
    assert read_texts(path, "txt") == ["L’été dernier, à l’hôtel \ufffd fin"]


def test_bytes_in_no_valid_encoding_still_give_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xe9 \x81 \x00 end")
    assert read_texts(path, "txt") == ["café \ufffd \ufffd end"]


def test_long_text_is_cut_at_paragraphs(tmp_path: Path) -> None:
    """ING-1"""
    path = tmp_path / "a.md"
    text = "".join(f"Paragraph {number}. {'words ' * 150}\n\n" for number in range(60))
    path.write_text(text, "utf-8")
    parts = read_texts(path, "md")
    assert "".join(parts) == text
    assert len(parts) == 3
    assert all(part.startswith("Paragraph") and len(part) <= 20_000 for part in parts)


@pytest.mark.parametrize(
    "text", ["x" * 90, "ab cd " * 20, "one\ntwo\n" * 20, "日本語" * 40, "p\n\n" * 40, "a" * 40 + "\n" * 60]
)
@pytest.mark.parametrize("limit", [7, 20, 40])
def test_parts_join_to_the_whole_and_none_is_blank(text: str, limit: int) -> None:
    parts = plain_text.cut_parts(text, limit)
    assert "".join(parts) == text
    assert parts[-1].strip()


def test_text_of_too_many_parts_is_refused(tmp_path: Path) -> None:
    """LIB-4"""
    path = tmp_path / "a.txt"
    path.write_text("words " * 20_000, "utf-8")
    with pytest.raises(errors.TooManyPagesError):
        open_document(path, "txt", max_pages=5)


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("see doi:10.1038/s41586-020-2649-2.", "10.1038/s41586-020-2649-2"),
        ("(https://doi.org/10.1016/S0140-6736(20)30183-5)", "10.1016/S0140-6736(20)30183-5"),
        ("version 10.12/3 of 2010.1234", None),
    ],
)
def test_a_doi_is_found_in_prose(text: str, doi: str | None) -> None:
    """ING-3"""
    assert plain_text.find_doi(text) == doi


@pytest.mark.parametrize("file_type", ["pdf", "docx"])
def test_damaged_bytes_raise_only_our_errors(tmp_path: Path, file_type: models.FileType) -> None:
    """ING-11"""
    path = tmp_path / f"a.{file_type}"
    make = {"pdf": documents.make_pdf, "docx": documents.make_docx}[file_type]
    whole = make(path, "Some text", "More text").read_bytes()
    chance = random.Random(11)
    outcomes = set()
    for _ in range(150):
        damaged = bytearray(whole)
        for position in chance.choices(range(len(whole)), k=chance.choice([1, 5, 50])):
            damaged[position] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            file_types.check_content(path, file_type)
            read_texts(path, file_type)
            outcomes.add("text")
        except errors.IbidError as error:
            outcomes.add(error.code)
    assert {"text", "corrupt"} <= outcomes
