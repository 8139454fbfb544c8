"""What a PDF file says of itself: title, authors, DOI, journal, date of publication; rather None than wrong.

It is said in three places: in XMP, in the document information dictionary, and on the first pages.
"""

from __future__ import annotations

import ctypes
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from functions.core import models
from functions.core.extraction import plain_text
from functions.core.extraction.pdf import text_layer, xmp
from functions.core.text import dates

if TYPE_CHECKING:
    import pypdfium2

_MAX_VALUE = 300
_INFO_KEYS = ("Title", "Author", "Subject", "Keywords", "CreationDate", "doi", "DOI", "WPS-ARTICLEDOI")
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?")

_USELESS_TITLE = re.compile(
    r"\(?(untitled|no title|sans titre|title|titre|documente?|doc|layout|slide|print|présentation|presentation)\W*\d*"
    r"|untitled.*|microsoft \w+ - .*|(adobe )?(photoshop|indesign|illustrator|acrobat)\b.*"
    r"|(présentation |microsoft )*power ?point( presentation)?"
    r"|\S+ \d+\.\.\d+|(doi:)?10\.\d{4,9}/\S+|<[\da-f]+>"
    r"|.*\.(docx?|od[tpsg]|rtf|txt|tex|dvi|indd|qxd|pdf|pptx?|xlsx?|csv|jpe?g|png|tiff?|ps|eps|html?)|[\W\d_]*",
    re.I,
)
_NOBODY = re.compile(
    r"\W*(anonym\w*|unknown( author)?|inconnue?|none|n/?a|unspecified|author|auteur|owner|admin(istrat(or|eur))?|root"
    r"|((default|windows|microsoft|ms|office|valued) )*(user|utilisateur|customer)\w*|your name|scan(ner)?)\W*"
    r"|.*\b(microsoft|adobe|acrobat|(pdf|xe|lua)?(la)?tex|libreoffice|openoffice|ghostscript|reportlab|wkhtmltopdf"
    r"|quarkxpress|indesign|powerpoint|distiller|pdfcreator)\b.*|[\W\d_]*",
    re.I,
)

_WORD = r"[A-ZÀ-Þ][\w&'’.-]*"
_LINK = r"(?:of|for|on|in|and|the|to|de|des|du|et|la|le|les|en|pour|sur|&|-|[dl]['’]\w+)"
_NAME = rf"(?P<name>{_WORD}(?: (?:{_WORD}|{_LINK}))*)"
_KIND = r"(?:Journal|JOURNAL|Revue|REVUE|Proceedings|PROCEEDINGS|Annals|Annales|Transactions|Bulletin|Cahiers|Actes)"
_NUMBERS = r"[\s,;.:|(–-]*(?:(?i:vol|tome|issue|issn|n°|no\.|num)|t\.\s*\d|\(?(?:19|20)\d\d\b|\d+\s*[(:,])"
_CITED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:Published in|Appeared in|Publié dans|Paru dans)\s*:?\s+{_NAME}",
        rf"{_NAME}\s*\|\s*(?:\((?:19|20)\d\d\)|(?i:vol))",
        rf"(?:.{{1,60}}\bet al\.?,?\s+)?{_NAME}[,.]?\s*\((?:19|20)\d\d\)\s*\d+\s*[:(]",
        rf"(?P<name>(?:La )?(?:Revue|Cahiers|Annales|Bulletin|Actes)(?: [^\W\d_][\w'’-]*){{1,7}}?){_NUMBERS}",
        rf"{_NAME}{_NUMBERS}",
    )
)
_SUBJECT = re.compile(
    r"(?P<name>[A-ZÀ-Þ][^\d,;:()]{2,90}?)[,;]\s*"
    r"(?:(?i:vol|tome|doi)\b|\d+\s*\((?:19|20)\d\d\)|\(?(?:19|20)\d\d\)?\s*[,;]\s*\d)"
)
_MARGIN_LINES = 8


def read_metadata(
    path: Path, info: Mapping[str, str], first_pages: str, first_page: str, largest_line: str | None
) -> models.DocumentMetadata:
    """`first_pages` are the characters that a DOI is looked for in, `largest_line` what looks like a title."""
    packet = xmp.read_properties(path)
    title = _first_useful([info["Title"], *packet.get("dc:title", [])[:1]], _USELESS_TITLE) or largest_line
    return models.DocumentMetadata(
        title=title,
        author=_find_authors(packet.get("dc:creator", []), info["Author"]),
        doi=_find_doi(packet, info, first_pages),
        journal=_find_journal(packet, info, first_page, title),
        published_at=_find_date(packet, info, first_page),
    )


def read_info(pdf: pypdfium2.PdfDocument) -> dict[str, str]:
    """The entries of the document information dictionary, empty where missing; called under the lock of PDFium."""
    from pypdfium2 import raw as pdfium

    info: dict[str, str] = {}
    for key in _INFO_KEYS:
        name = key.encode() + b"\0"
        size = pdfium.FPDF_GetMetaText(pdf.raw, name, None, 0)
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDF_GetMetaText(pdf.raw, name, buffer, size)
        info[key] = _tidy(buffer.raw.decode("utf-16-le", errors="replace")) or ""
    return info


def find_largest_line(text_page: pypdfium2.PdfTextPage, limit: int = 40) -> str | None:
    """The first line of a page in its largest font, with those that go on in it; None where all are much alike."""
    from pypdfium2 import raw as pdfium

    layer = text_layer.read_layer(text_page)
    indices = layer.indices(text_page)
    lines: list[tuple[str, float]] = []
    for match in list(re.finditer(r"[^\n]*\w[^\n]*", layer.text))[:limit]:
        index = indices[match.start()]
        if index is not None and pdfium.FPDFText_GetFontSize(text_page.raw, index) > 0:
            _, bottom, _, top = text_page.get_charbox(index, loose=True)
            lines.append((match.group(), round(top - bottom, 1)))
    largest = max((height for _, height in lines), default=0.0)
    if not lines or (len(lines) > 1 and largest < 1.15 * statistics.median(height for _, height in lines)):
        return None
    first = next(number for number, (_, height) in enumerate(lines) if height == largest)
    title = _tidy(" ".join(text for text, height in lines[first : first + 3] if height >= 0.98 * largest))
    return title if title and re.search(r"[^\W\d_]{2}", title) else None


def _find_authors(creators: Sequence[str], author: str) -> str | None:
    names = [name for name in map(_tidy, creators) if name and not _NOBODY.fullmatch(name)]
    if names:
        return _tidy(("; " if any("," in name for name in names) else ", ").join(names))
    return _first_useful([author], _NOBODY)


def _find_doi(packet: Mapping[str, Sequence[str]], info: Mapping[str, str], first_pages: str) -> str | None:
    said = [*packet.get("prism:doi", []), *packet.get("crossmark:DOI", []), *packet.get("pdfx:doi", [])]
    less = [*packet.get("dc:identifier", []), *(info[key] for key in (*_INFO_KEYS[5:], "Subject", "Keywords"))]
    found = map(plain_text.find_doi, [*said, first_pages, *less])
    return next(filter(None, found), None)


def _find_journal(
    packet: Mapping[str, Sequence[str]], info: Mapping[str, str], first_page: str, title: str | None
) -> str | None:
    for publication in packet.get("prism:publicationName", []):
        return _tidy(publication)
    subject = _SUBJECT.match(info["Subject"])
    if subject:
        return _tidy(subject["name"])
    lines = [line.strip() for line in first_page.split("\n") if line.strip()]
    for line in [*lines[:_MARGIN_LINES], *lines[_MARGIN_LINES:][-_MARGIN_LINES:]]:
        name = _journal_of(line)
        if name and name != title and line != title:
            return name
    return None


def _journal_of(line: str) -> str | None:
    """The journal that a line at the top or the bottom of a page names, where it does nothing else."""
    for number, pattern in enumerate(_CITED):
        match = pattern.match(line)
        if match and (number < 3 or re.search(rf"\b{_KIND}\b", match["name"])):
            return _trim_name(match["name"])
    alone = re.fullmatch(_NAME, line)
    if alone and re.search(rf"\b{_KIND}\b (?:{_LINK}|[A-ZÀ-Þ])", line) and 2 < len(line.split()) < 10:
        return _trim_name(line)
    return None


def _trim_name(name: str) -> str | None:
    return _tidy(re.sub(rf"(?: {_LINK}|[.,\s])+$", "", name))


def _find_date(packet: Mapping[str, Sequence[str]], info: Mapping[str, str], first_page: str) -> str | None:
    for key in ("prism:publicationDate", "prism:coverDate", "prism:coverDisplayDate"):
        for value in packet.get(key, []):
            found = dates.parse_date(value)
            if found:
                return found
    created = _PDF_DATE.match(info["CreationDate"])
    return dates.find_publication_date(first_page) or (dates.format_date(*created.groups()) if created else None)


def _first_useful(values: Sequence[str | None], useless: re.Pattern[str]) -> str | None:
    tidied = (_tidy(value or "") for value in values)
    return next((value for value in tidied if value and not useless.fullmatch(value)), None)


def _tidy(value: str) -> str | None:
    """One line of printable characters."""
    text = " ".join("".join(char if char.isprintable() and char != "\ufffd" else " " for char in value).split())
    return text[:_MAX_VALUE] or None
