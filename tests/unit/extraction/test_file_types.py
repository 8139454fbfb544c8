"""Files are accepted or refused by their name and by their content."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from functions.core import errors, models
from functions.core.extraction import file_types
from functions.core.extraction.documents import open_document
from tests.support import documents, requirements

DOCX_MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LIMIT = 100 << 20


@pytest.mark.parametrize(
    ("file_name", "mime_type", "expected"),
    [
        ("report.pdf", "application/pdf", "pdf"),
        ("REPORT.PDF", "application/pdf", "pdf"),
        ("Thèse de Zoé – été 2024.docx", DOCX_MIME, "docx"),
        ("../../etc/passwd.pdf", "application/pdf", "pdf"),
        ("C:\\docs.v2\\notes.txt", "text/plain; charset=utf-8", "txt"),
        ("notes.md", "text/plain", "md"),
        ("notes.markdown", "", "md"),
        ("paper.pdf", None, "pdf"),
        ("paper.pdf ", "application/octet-stream", "pdf"),
    ],
)
def test_a_file_is_typed_by_its_extension(file_name: str, mime_type: str | None, expected: str) -> None:
    """LIB-4"""
    assert file_types.check_upload(file_name, mime_type, 10, LIMIT) == expected


@pytest.mark.parametrize(
    ("file_name", "mime_type"),
    [
        ("letter.doc", "application/msword"),
        ("picture.png", "image/png"),
        ("archive.pdf.exe", "application/pdf"),
        ("pdf", "application/pdf"),
        ("", "application/pdf"),
        ("folder.pdf/file", "application/pdf"),
        ("paper.pdf", "image/png"),
        ("paper.pdf", DOCX_MIME),
    ],
)
def test_any_other_type_is_refused_with_a_list_of_accepted_types(file_name: str, mime_type: str) -> None:
    """LIB-4"""
    with pytest.raises(errors.UnsupportedTypeError, match="Send a PDF, DOCX, TXT or Markdown file") as caught:
        file_types.check_upload(file_name, mime_type, 10, LIMIT)
    assert caught.value.details["accepted"]


@pytest.mark.parametrize(
    ("size", "error"), [(0, errors.EmptyDocumentError), (-1, errors.EmptyDocumentError), (101, errors.TooLargeError)]
)
def test_empty_and_too_large_files_are_refused(size: int, error: type[errors.IbidError]) -> None:
    """LIB-4"""
    with pytest.raises(error):
        file_types.check_upload("a.pdf", "application/pdf", size, 100)


def test_a_file_of_exactly_the_limit_is_accepted() -> None:
    """LIB-4"""
    assert file_types.check_upload("a.pdf", "application/pdf", 100, 100) == "pdf"


def test_content_that_matches_its_name_is_accepted(tmp_path: Path) -> None:
    """LIB-4"""
    file_types.check_content(documents.make_pdf(tmp_path / "a.pdf", "Hello"), "pdf")
    file_types.check_content(documents.make_docx(tmp_path / "a.docx", "Hello"), "docx")


def test_a_pdf_header_may_come_after_as_much_junk_as_pdfium_skips(tmp_path: Path) -> None:
    pdf = documents.make_pdf(tmp_path / "a.pdf", "Hello")
    pdf.write_bytes(b"x" * 1024 + pdf.read_bytes())
    file_types.check_content(pdf, "pdf")
    with open_document(pdf, "pdf", max_pages=1) as document:
        assert [page.text for page in document.pages()] == ["Hello"]
    pdf.write_bytes(b"x" + pdf.read_bytes())
    with pytest.raises(errors.WrongContentError):
        file_types.check_content(pdf, "pdf")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (documents.PNG_HEADER + b"\x00" * 50, "pdf"),
        (b"just words", "pdf"),
        (b"just words", "docx"),
        (b"%PDF-1.7 ...", "docx"),
        (b"%PDF-1.7 ...", "txt"),
        (documents.PNG_HEADER, "txt"),
        (documents.OLE_HEADER + b"WordDocument" * 9, "docx"),
        (bytes(range(256)) * 4, "md"),
        (b"PK\x03\x04" + b"a" * 99, "md"),
    ],
)
def test_content_that_does_not_match_its_name_is_refused(
    tmp_path: Path, content: bytes, expected: models.FileType
) -> None:
    """LIB-4"""
    path = tmp_path / "upload"
    path.write_bytes(content)
    with pytest.raises(errors.WrongContentError):
        file_types.check_content(path, expected)


@pytest.mark.parametrize("expected", ["pdf", "docx", "txt", "md"])
def test_an_empty_file_is_refused_as_empty(tmp_path: Path, expected: models.FileType) -> None:
    path = tmp_path / "upload"
    path.touch()
    with pytest.raises(errors.EmptyDocumentError):
        file_types.check_content(path, expected)


@pytest.mark.parametrize("content", [b" \n\t\r\n ", b"\xef\xbb\xbf\n"], ids=["blank", "byte order mark"])
def test_a_blank_text_is_refused_as_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(errors.EmptyDocumentError):
        file_types.check_content(path, "txt")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_text_in_common_encodings_is_accepted(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Où est l’été ? À l’œuvre.".encode(encoding))
    file_types.check_content(path, "txt")


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("word", ["Текст о договоре ", "合同文本"], ids=["Cyrillic", "Chinese"])
def test_a_long_text_is_accepted_wherever_its_sample_is_cut(tmp_path: Path, word: str, shift: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a" * shift + word * ((1 << 21) // len(word.encode())), "utf-8")
    file_types.check_content(path, "txt")


def test_a_docx_with_a_password_is_encrypted(tmp_path: Path) -> None:
    """ING-11"""
    path = tmp_path / "a.docx"
    path.write_bytes(documents.OLE_HEADER + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(errors.EncryptedDocumentError):
        file_types.check_content(path, "docx")


def test_a_zip_that_is_not_a_word_file_is_refused(tmp_path: Path) -> None:
    odt = documents.make_zip(tmp_path / "a.docx", mimetype="application/vnd.oasis.opendocument.text")
    with pytest.raises(errors.WrongContentError):
        file_types.check_content(odt, "docx")


def test_a_docx_without_its_text_is_corrupt(tmp_path: Path) -> None:
    path = documents.make_zip(tmp_path / "a.docx", **{"[Content_Types].xml": "<Types/>", "word/styles.xml": "<s/>"})
    with pytest.raises(errors.CorruptDocumentError):
        file_types.check_content(path, "docx")


def test_a_truncated_docx_is_corrupt(tmp_path: Path) -> None:
    path = documents.make_docx(tmp_path / "a.docx", "Hello")
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(errors.CorruptDocumentError):
        file_types.check_content(path, "docx")


def test_a_docx_whose_main_part_has_another_name_is_found(tmp_path: Path) -> None:
    relation = '<Relationship Type="http://x/relationships/officeDocument" Target="/word/document2.xml"/>'
    path = documents.make_zip(tmp_path / "a.docx", **{"_rels/.rels": relation, "word/document2.xml": "<d/>"})
    with zipfile.ZipFile(path) as archive:
        assert file_types.find_main_part(archive) == "word/document2.xml"


@pytest.mark.parametrize("megabytes", [6, 60])
def test_a_zip_bomb_is_too_large(tmp_path: Path, megabytes: int) -> None:
    path = documents.make_raw_docx(tmp_path / "a.docx", "<w:p/>" + " " * (megabytes << 20))
    assert path.stat().st_size < 100_000
    with pytest.raises(errors.TooLargeError):
        file_types.check_content(path, "docx")


def test_a_zip_bomb_under_another_name_is_too_large(tmp_path: Path) -> None:
    relation = '<Relationship Type="a/relationships/officeDocument" Target="word/main.dat"/>'
    body = "<w:p/>" + " " * (60 << 20)
    path = documents.make_zip(
        tmp_path / "a.docx", _rels___dot_rels=f"<Relationships>{relation}</Relationships>", word__main_dot_dat=body
    )
    with pytest.raises(errors.TooLargeError):
        file_types.check_content(path, "docx")


def test_no_corpus_file_crashes_and_each_has_an_expected_outcome() -> None:
    """LIB-4, ING-11"""
    root = requirements.need_corpus()
    rows = [json.loads(line) for line in (root / "manifest.jsonl").read_text("utf-8").splitlines()]
    outcomes = {row["file"]: _outcome(root / row["file"]) for row in rows}
    allowed = {
        "ok": {"text"},
        "ocr": {"text", "no_text"},
        "no_text": {"text", "no_text"},
        "other_type": {"text", "unsupported_type"},
        "damaged": {"corrupt", "empty"},
        "wrong_type": {"unsupported_type"},
        "password": {"encrypted"},
        "too_big": {"too_large"},
    }
    unfit = {row["file"]: outcomes[row["file"]] for row in rows if outcomes[row["file"]] not in allowed[row["expect"]]}
    assert unfit == {}


def _outcome(path: Path) -> str:
    try:
        file_type = file_types.check_upload(path.name, None, path.stat().st_size, LIMIT)
        file_types.check_content(path, file_type)
        with open_document(path, file_type, max_pages=2000) as document:
            pages = list(document.pages())
            assert len(pages) == document.page_count
            return "text" if any(page.text.strip() for page in pages) else "no_text"
    except errors.IbidError as error:
        return error.code
