"""Decides which files are accepted: before the upload by name and declared type, after it by content."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import Final

from functions.core import errors, models
from functions.core.extraction import plain_text
from functions.core.text.visible import is_blank

EXTENSIONS: Final[dict[str, models.FileType]] = {
    "pdf": "pdf",
    "docx": "docx",
    "txt": "txt",
    "md": "md",
    "markdown": "md",
}
MIME_TYPES: Final[dict[models.FileType, frozenset[str]]] = {
    "pdf": frozenset({"application/pdf", "application/x-pdf"}),
    "docx": frozenset({"application/vnd.openxmlformats-officedocument.wordprocessingml.document"}),
    "txt": frozenset({"text/plain"}),
    "md": frozenset({"text/markdown", "text/x-markdown", "text/plain"}),
}
UNKNOWN_MEDIA_TYPE: Final = "application/octet-stream"
MEDIA_TYPES: Final = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "txt": "text/plain",
    "md": "text/markdown",
}
"""The media type with which a stored file is served, by the extension that Ibid gave to its path."""
# Browsers send one of these for a file whose type they do not know.
_UNDECLARED = frozenset({"", "application/octet-stream", "binary/octet-stream"})

_MAX_PDF_JUNK = 1024  # bytes before the header that PDFium, like other readers, accepts
_OLE_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BINARY_HEADERS = (b"%PDF-", b"PK\x03\x04", _OLE_HEADER, b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"{\\rtf", b"\x1f\x8b")
_TEXT_SAMPLE_BYTES = 1 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_MAX_CONTROL_SHARE = 0.02

# What `zipfile` raises for damaged files; RuntimeError also for entries that are encrypted or of an unknown kind.
ZIP_ERRORS = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, RuntimeError, OSError, EOFError, ValueError)
_DOCX_MAIN_PART = "word/document.xml"
_MAX_XML_BYTES = 50 << 20
_MAX_COMPRESSION_RATIO = 250
_RATIO_CHECKED_ABOVE = 5 << 20  # bytes


def check_upload(file_name: str, mime_type: str | None, size: int, max_bytes: int) -> models.FileType:
    """Checks a file before its upload; returns its type, by its extension and declared MIME type.

    `file_name` is for display only and may hold anything. Raises UnsupportedTypeError, TooLargeError or
    EmptyDocumentError.
    """
    _, dot, extension = re.split(r"[/\\]", file_name.strip())[-1].rpartition(".")
    file_type = EXTENSIONS.get(extension.lower()) if dot else None
    if file_type is None:
        raise errors.UnsupportedTypeError(accepted=sorted(EXTENSIONS))
    declared = (mime_type or "").partition(";")[0].strip().lower()
    if declared not in _UNDECLARED | MIME_TYPES[file_type]:
        raise errors.UnsupportedTypeError(
            "The declared type does not match the file name. Send a PDF, DOCX, TXT or Markdown file.",
            accepted=sorted(MIME_TYPES[file_type]),
        )
    if size <= 0:
        raise errors.EmptyDocumentError
    if size > max_bytes:
        limit = f"{max_bytes / (1 << 20):g} MB"
        raise errors.TooLargeError(
            f"The file is larger than {limit}, the limit of this installation. Upload a smaller file."
        )
    return file_type


def find_media_type(path: str) -> str:
    """The media type of a stored object, by the extension of its path."""
    return MEDIA_TYPES.get(path.rpartition(".")[2], UNKNOWN_MEDIA_TYPE)


def check_content(path: Path, expected: models.FileType) -> None:
    """Checks that the content of an uploaded file has the type that its name announced.

    Raises WrongContentError, EmptyDocumentError, EncryptedDocumentError, CorruptDocumentError, or TooLargeError for a
    DOCX file that unpacks to more text than Ibid reads.
    """
    with path.open("rb") as file:
        head = file.read(_MAX_PDF_JUNK + len(b"%PDF-"))
    if not head:
        raise errors.EmptyDocumentError
    if expected == "pdf":
        if b"%PDF-" not in head:
            raise errors.WrongContentError
    elif expected == "docx":
        _check_docx(path, head)
    else:
        _check_text(path)


def find_main_part(archive: zipfile.ZipFile) -> str | None:
    """The name of the part that holds the text of a DOCX: the one its relationships name, else the usual one."""
    names = set(archive.namelist())
    if "_rels/.rels" in names and archive.getinfo("_rels/.rels").file_size < 1 << 20:
        relationships = archive.read("_rels/.rels").decode("utf-8", errors="replace")
        for relationship in re.findall(r"<[^>]*/relationships/officeDocument[\"'][^>]*>", relationships):
            target = re.search(r"Target=[\"']/?([^\"']+)", relationship)
            if target and target.group(1) in names:
                return target.group(1)
    return _DOCX_MAIN_PART if _DOCX_MAIN_PART in names else None


def _check_docx(path: Path, head: bytes) -> None:
    if head.startswith(_OLE_HEADER):
        # Word stores a file with a password as an encrypted package inside an OLE container.
        encrypted = "EncryptedPackage".encode("utf-16-le") in path.read_bytes()
        raise errors.EncryptedDocumentError if encrypted else errors.WrongContentError
    if not head.startswith(b"PK"):
        raise errors.WrongContentError
    try:
        with zipfile.ZipFile(path) as archive:
            _check_parts(archive)
    except ZIP_ERRORS as exc:
        raise errors.CorruptDocumentError from exc


def _check_parts(archive: zipfile.ZipFile) -> None:
    names = set(archive.namelist())
    if any(entry.flag_bits & 1 for entry in archive.infolist()):
        raise errors.EncryptedDocumentError
    main_part = find_main_part(archive)
    if main_part is None:
        is_office = "[Content_Types].xml" in names and any(name.startswith("word/") for name in names)
        raise errors.CorruptDocumentError if is_office else errors.WrongContentError
    if "word" not in main_part.lower() and not any(name.startswith("word/") for name in names):
        raise errors.WrongContentError  # a spreadsheet or a presentation
    # zipfile never yields more than the size an entry declares, so the declared sizes can be trusted here.
    # The main part counts too, because it is read even if its name does not end in .xml.
    xml = [
        entry
        for entry in archive.infolist()
        if entry.filename == main_part or entry.filename.lower().endswith((".xml", ".rels"))
    ]
    packed, unpacked = sum(entry.compress_size for entry in xml), sum(entry.file_size for entry in xml)
    if unpacked > _MAX_XML_BYTES or (unpacked > _RATIO_CHECKED_ABOVE and unpacked > _MAX_COMPRESSION_RATIO * packed):
        raise errors.TooLargeError(
            "The file unpacks to more text than Ibid reads. Split it and upload the parts.", unpacked_bytes=unpacked
        )


def _check_text(path: Path) -> None:
    with path.open("rb") as file:
        sample = file.read(_TEXT_SAMPLE_BYTES)
    if sample.startswith(_BINARY_HEADERS):
        raise errors.WrongContentError
    text = plain_text.decode_text(sample, is_whole=len(sample) < _TEXT_SAMPLE_BYTES)
    if len(_CONTROL.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise errors.WrongContentError
    if is_blank(text) and path.stat().st_size <= _TEXT_SAMPLE_BYTES:
        raise errors.EmptyDocumentError
