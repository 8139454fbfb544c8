"""Reads the title, authors, DOI, journal and date of publication of a PDF file; doubtful values are None.

They come from three places: the XMP packet, the document information dictionary and the first pages. An XMP packet is
XML that producers leave uncompressed, so that it can be found without reading the structure of the file.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from functions.core import errors, models
from functions.core.extraction import plain_text
from functions.core.extraction.pdf import filings, text_layer
from functions.core.text import dates, titles

if TYPE_CHECKING:
    import pypdfium2

_MAX_VALUE = 300
"""The most characters of a value that are kept."""
_INFO_KEYS = ("Title", "Author", "Subject", "Keywords", "CreationDate", "doi", "DOI", "WPS-ARTICLEDOI")
_PDF_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?")

_NOT_AN_AUTHOR = re.compile(
    r"\W*(anonym\w*|unknown( author)?|inconnue?|none|n/?a|unspecified|author|auteur|owner|admin(istrat(or|eur))?|root"
    r"|((default|windows|microsoft|ms|office|valued) )*(user|utilisateur|customer)\w*|your name|scan(ner)?)\W*"
    r"|.*\b(microsoft|adobe|acrobat|(pdf|xe|lua)?(la)?tex|libreoffice|openoffice|ghostscript|reportlab|wkhtmltopdf"
    r"|quarkxpress|indesign|powerpoint|distiller|pdfcreator)\b.*|[\W\d_]*",
    re.I,
)

_WORD = r"[A-ZÀ-Þ][\w&'’.-]*"
_LINK = r"(?:of|for|on|in|and|the|to|de|des|du|et|la|le|les|en|pour|sur|&|-|[dl]['’]\w+)"
_NAME = rf"(?P<name>{_WORD}(?: (?:{_WORD}|{_LINK}))*)"
_JOURNAL_WORD = (
    r"(?:Journal|JOURNAL|Revue|REVUE|Proceedings|PROCEEDINGS|Annals|Annales|Transactions|Bulletin|Cahiers|Actes)"
)
_NUMBERS = r"[\s,;.:|(–-]*(?:(?i:vol|tome|issue|issn|n°|no\.|num)|t\.\s*\d|\(?(?:19|20)\d\d\b|\d+\s*[(:,])"
_JOURNAL_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:Published in|Appeared in|Publié dans|Paru dans)\s*:?\s+{_NAME}",
        rf"{_NAME}\s*\|\s*(?:\((?:19|20)\d\d\)|(?i:vol))",
        rf"(?:.{{1,60}}\bet al\.?,?\s+)?{_NAME}[,.]?\s*\((?:19|20)\d\d\)\s*\d+\s*[:(]",
        rf"(?P<name>(?:La )?(?:Revue|Cahiers|Annales|Bulletin|Actes)(?: [^\W\d_][\w'’-]*){{1,7}}?){_NUMBERS}",
        rf"{_NAME}{_NUMBERS}",
    )
)
_JOURNAL_IN_SUBJECT = re.compile(
    r"(?P<name>[A-ZÀ-Þ][^\d,;:()]{2,90}?)[,;]\s*"
    r"(?:(?i:vol|tome|doi)\b|\d+\s*\((?:19|20)\d\d\)|\(?(?:19|20)\d\d\)?\s*[,;]\s*\d)"
)
_MARGIN_LINES = 8
"""How many lines at the top and at the bottom of the first page may name the journal."""

_TITLE_LINES, _MAX_PRINTED_TITLE = 3, 200
"""The most lines and characters of a title on the first page."""
_LARGER, _AS_LARGE = 1.15, 0.98
"""A title is set this much larger than the median line; lines nearly as large as its first belong to it."""

_PACKET_START, _PACKET_END = b"<x:xmpmeta", b"</x:xmpmeta>"
_MAX_PACKET_BYTES, _MAX_PACKETS = 256 * 1024, 20
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_PREFIXES = {
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/xap/1.0/": "xmp",
    "http://ns.adobe.com/pdf/1.3/": "pdf",
    "http://ns.adobe.com/pdfx/1.3/": "pdfx",
    "http://crossref.org/crossmark/1.0/": "crossmark",
}


def read_metadata(
    path: Path, info: Mapping[str, str], first_pages: str, first_page: str, large_lines: Sequence[str]
) -> models.DocumentMetadata:
    """A DOI is looked for in `first_pages`; `large_lines` may be the title of a file that declares no useful one."""
    packet = read_xmp(path)
    declared = [info["Title"], *packet.get("dc:title", [])[:1]]
    title = filings.name_filing(first_pages) or next(
        filter(titles.is_title, filter(None, map(_tidy, [*declared, *large_lines]))), None
    )
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


def find_large_lines(text_page: pypdfium2.PdfTextPage, limit: int = 40) -> tuple[str, ...]:
    """What a page has in larger letters than its median line, the largest first; () where all sizes are alike.

    Consecutive lines of one size are one text, of which the first lines count.
    """
    lines = _measure_lines(text_page, limit)
    if not lines:
        return ()
    usual = statistics.median(height for _, height in lines)
    runs: list[tuple[float, list[str]]] = []
    last = 0.0
    for text, height in lines:
        if runs and _AS_LARGE * height <= last <= height / _AS_LARGE:
            runs[-1][1].append(text)
        else:
            runs.append((height, [text]))
        last = height
    large = [(height, texts) for height, texts in runs if len(lines) == 1 or height >= _LARGER * usual]
    texts = (" ".join(texts[:_TITLE_LINES]).strip() for _, texts in sorted(large, key=lambda run: -run[0]))
    return tuple(text for text in texts if len(text) <= _MAX_PRINTED_TITLE and text[-1] not in ":,;")


def _measure_lines(text_page: pypdfium2.PdfTextPage, limit: int) -> list[tuple[str, float]]:
    """The first lines of a page with the heights of their letters in points."""
    from pypdfium2 import raw as pdfium

    layer = text_layer.read_layer(text_page)
    indices = layer.indices(text_page)
    lines: list[tuple[str, float]] = []
    for match in list(re.finditer(r"[^\n]*\w[^\n]*", layer.text))[:limit]:
        index = indices[match.start()]
        if index is not None and pdfium.FPDFText_GetFontSize(text_page.raw, index) > 0:
            _, bottom, _, top = text_page.get_charbox(index, loose=True)
            lines.append((match.group(), round(top - bottom, 1)))
    return lines


def _find_authors(creators: Sequence[str], author: str) -> str | None:
    names = [name for name in map(_tidy, creators) if name and not _NOT_AN_AUTHOR.fullmatch(name)]
    if names:
        return _tidy(("; " if any("," in name for name in names) else ", ").join(names))
    return _first_useful([author], _NOT_AN_AUTHOR)


def _find_doi(packet: Mapping[str, Sequence[str]], info: Mapping[str, str], first_pages: str) -> str | None:
    declared = [*packet.get("prism:doi", []), *packet.get("crossmark:DOI", []), *packet.get("pdfx:doi", [])]
    unreliable = [*packet.get("dc:identifier", []), *(info[key] for key in (*_INFO_KEYS[5:], "Subject", "Keywords"))]
    found = map(plain_text.find_doi, [*declared, first_pages, *unreliable])
    return next(filter(None, found), None)


def _find_journal(
    packet: Mapping[str, Sequence[str]], info: Mapping[str, str], first_page: str, title: str | None
) -> str | None:
    for publication in packet.get("prism:publicationName", []):
        return _tidy(publication)
    subject = _JOURNAL_IN_SUBJECT.match(info["Subject"])
    if subject:
        return _tidy(subject["name"])
    lines = [line.strip() for line in first_page.split("\n") if line.strip()]
    for line in [*lines[:_MARGIN_LINES], *lines[_MARGIN_LINES:][-_MARGIN_LINES:]]:
        name = _journal_of(line)
        if name and name != title and line != title:
            return name
    return None


def _journal_of(line: str) -> str | None:
    """The journal that a line names; None for a line that is neither a journal's name nor a reference to one."""
    for number, pattern in enumerate(_JOURNAL_LINES):
        match = pattern.match(line)
        if match and (number < 3 or re.search(rf"\b{_JOURNAL_WORD}\b", match["name"])):
            return _trim_name(match["name"])
    alone = re.fullmatch(_NAME, line)
    if alone and re.search(rf"\b{_JOURNAL_WORD}\b (?:{_LINK}|[A-ZÀ-Þ])", line) and 2 < len(line.split()) < 10:
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


class _XmpBuilder(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """XMP has no document type: a file declares one only to define entities that expand without end."""
        raise errors.CorruptDocumentError


def read_xmp(path: Path) -> Mapping[str, list[str]]:
    """The values of each XMP property of a file by its usual name, such as `dc:title`; empty without a packet.

    Pictures in the file have packets of their own; the last packet that describes a PDF file is the document's.
    """
    found: list[dict[str, list[str]]] = []
    for packet in _find_packets(path):
        try:
            root = ElementTree.fromstring(packet, ElementTree.XMLParser(target=_XmpBuilder()))
        except (ElementTree.ParseError, LookupError, ValueError, errors.CorruptDocumentError):
            continue
        properties = _collect_properties(root)
        formats = properties.get("dc:format", [])
        if "application/pdf" in formats or any(name.startswith(("pdf:", "prism:")) for name in properties):
            return properties
        if not formats:
            found.append(properties)
    return found[0] if found else {}


def _find_packets(path: Path) -> Iterator[bytes]:
    """The XMP packets of a file, the last one first."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = len(content)
        for _ in range(_MAX_PACKETS):
            start = content.rfind(_PACKET_START, 0, end)
            if start < 0:
                return
            close = content.find(_PACKET_END, start, start + _MAX_PACKET_BYTES)
            if close >= 0:
                yield content[start : close + len(_PACKET_END)]
            end = start


def _collect_properties(root: ElementTree.Element) -> dict[str, list[str]]:
    properties: dict[str, list[str]] = {}
    for element in root.iter():
        named = [(element.tag, [item.text or "" for item in element.iter(f"{{{_RDF}}}li")] or [element.text or ""])]
        named += [(name, [value]) for name, value in element.attrib.items()]
        for tag, values in named:
            namespace, _, name = tag.removeprefix("{").rpartition("}")
            prefix = "prism" if "prismstandard.org" in namespace else _PREFIXES.get(namespace)
            texts = [text for text in map(str.strip, values) if text]
            if prefix and texts:
                properties.setdefault(f"{prefix}:{name}", texts)
    return properties
