"""Reads text that has no pages: decodes it, replaces what Postgres cannot store, and cuts it into parts."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from functions.core import errors, models
from functions.core.text import markdown_tables
from functions.core.text.storable import clean_text
from functions.core.text.visible import is_blank

PART_CHARACTERS = 20_000
DOI_CHARACTERS = 10_000

_DOI = re.compile(r"\b10\.\d{4,9}/[-._;()/:<>A-Za-z0-9]+")
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@dataclass(frozen=True)
class TextParts:
    """An `ExtractedDocument` whose whole text is in memory, so there is no file to close."""

    parts: Sequence[str]
    metadata: models.DocumentMetadata

    @property
    def page_count(self) -> int:
        return len(self.parts)

    def pages(self, start: int = 1) -> Iterator[models.Page]:
        for number in range(start, len(self.parts) + 1):
            text = self.parts[number - 1]
            yield models.Page(number, text, tables=markdown_tables.find_markdown_tables(text))

    def read_text_layer(self, number: int) -> str:
        """Always empty: parts are not pages, so they have no running headers and footers to compare."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def open_text(path: Path, *, max_pages: int) -> TextParts:
    """Reads a plain text or Markdown file as parts of at most 20,000 characters."""
    return build_parts(decode_text(path.read_bytes()), max_pages=max_pages)


def build_parts(
    text: str,
    *,
    max_pages: int,
    title: str | None = None,
    author: str | None = None,
    published_at: str | None = None,
) -> TextParts:
    """Cuts a whole text into parts, and finds its DOI and, unless `title` is given, its title in the first heading.

    Raises EmptyDocumentError if no character of the text is visible, and TooManyPagesError.
    """
    if is_blank(text):
        raise errors.EmptyDocumentError
    parts = cut_parts(text)
    if len(parts) > max_pages:
        raise errors.TooManyPagesError(page_count=len(parts), max_pages=max_pages)
    metadata = models.DocumentMetadata(
        title=title or _first_heading(text),
        author=author,
        doi=find_doi(text[:DOI_CHARACTERS]),
        published_at=published_at,
    )
    return TextParts(parts, metadata)


def decode_text(content: bytes, *, is_whole: bool = True) -> str:
    """Decodes by byte order mark, else as UTF-8, else as Windows-1252; line ends become `\\n`. Never fails.

    If `content` is only the beginning of a file (`is_whole` false), an incomplete last character is dropped. Text that
    is mostly valid UTF-8 is decoded as UTF-8, and each invalid byte in it becomes U+FFFD.
    """
    encoding = next((name for bom, name in _BOMS if content.startswith(bom)), "utf-8")
    text = codecs.getincrementaldecoder(encoding)("replace").decode(content, final=is_whole)
    if encoding == "utf-8" and "\ufffd" in text and not _is_mostly_utf8(content, text):
        text = content.decode("cp1252", errors="replace")
    return clean_text(text.replace("\r\n", "\n").replace("\r", "\n"))


def _is_mostly_utf8(content: bytes, text: str) -> bool:
    """Whether `text` has at least as many valid multi-byte characters as invalid bytes.

    Text in another encoding contains hardly any byte sequence that is a valid multi-byte character.
    """
    invalid = text.count("\ufffd") - content.count(b"\xef\xbf\xbd")
    return sum(character > "\x7f" for character in text) - text.count("\ufffd") >= invalid


def cut_parts(text: str, limit: int = PART_CHARACTERS) -> list[str]:
    """Cuts at paragraph breaks, else line ends, else spaces, else anywhere; the parts joined together are `text`."""
    parts, start = [], 0
    while len(text) - start > limit:
        end = _find_cut(text, start, start + limit)
        parts.append(text[start:end])
        start = end
    parts.append(text[start:])
    while len(parts) > 1 and not parts[-1].strip():
        parts[-2:] = [parts[-2] + parts[-1]]
    return parts


def _find_cut(text: str, start: int, end: int) -> int:
    """The position after the last break in the second half of [start, end), `end` if there is none."""
    for separator in ("\n\n", "\n", " "):
        position = text.rfind(separator, start + (end - start) // 2, end - len(separator) + 1)
        if position >= 0:
            return position + len(separator)
    return end


def find_doi(text: str) -> str | None:
    """The first DOI in `text`, without the punctuation that follows it in prose."""
    match = _DOI.search(text)
    if not match:
        return None
    doi = match.group().rstrip(".,;:<>")
    return doi.rstrip(")") if doi.count("(") < doi.count(")") else doi


def _first_heading(text: str) -> str | None:
    match = re.search(r"^#{1,2} +(\S.*)$", text[:DOI_CHARACTERS], re.MULTILINE)
    return match.group(1).rstrip("# ")[:300] or None if match else None
