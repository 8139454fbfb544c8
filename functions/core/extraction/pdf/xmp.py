"""Reads the XMP packet of a PDF file: an XML description that producers leave uncompressed, so that it can be found."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from functions.core import errors

_START, _END = b"<x:xmpmeta", b"</x:xmpmeta>"
_MAX_BYTES, _MAX_PACKETS = 256 * 1024, 20
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_PREFIXES = {
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/xap/1.0/": "xmp",
    "http://ns.adobe.com/pdf/1.3/": "pdf",
    "http://ns.adobe.com/pdfx/1.3/": "pdfx",
    "http://crossref.org/crossmark/1.0/": "crossmark",
}


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """XMP has no document type; one is there only to define entities that expand without end."""
        raise errors.CorruptDocumentError


def read_properties(path: Path) -> Mapping[str, list[str]]:
    """The values of each property of the document by its usual name, as `dc:title`; none where there is no packet.

    Pictures in the file have packets of their own; the last one that speaks of a PDF file is that of the document.
    """
    found: list[dict[str, list[str]]] = []
    for packet in _find_packets(path):
        try:
            root = ElementTree.fromstring(packet, ElementTree.XMLParser(target=_Builder()))
        except (ElementTree.ParseError, LookupError, ValueError, errors.CorruptDocumentError):
            continue
        properties = _collect(root)
        formats = properties.get("dc:format", [])
        if "application/pdf" in formats or any(name.startswith(("pdf:", "prism:")) for name in properties):
            return properties
        if not formats:
            found.append(properties)
    return found[0] if found else {}


def _find_packets(path: Path) -> Iterator[bytes]:
    """The packets of a file, the last one first."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = len(content)
        for _ in range(_MAX_PACKETS):
            start = content.rfind(_START, 0, end)
            if start < 0:
                return
            close = content.find(_END, start, start + _MAX_BYTES)
            if close >= 0:
                yield content[start : close + len(_END)]
            end = start


def _collect(root: ElementTree.Element) -> dict[str, list[str]]:
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
