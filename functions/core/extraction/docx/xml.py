"""Finds elements in the XML of Word files by local name, which both variants of the format, strict and usual, share."""

from __future__ import annotations

import zipfile
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from functions.core import errors


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Office files have no document type: a file declares one only to define entities that expand without end."""
        raise errors.CorruptDocumentError


def parse_part(archive: zipfile.ZipFile, name: str) -> Element | None:
    """The root of a part, None if the archive has no such part. Raises CorruptDocumentError."""
    if name not in archive.namelist():
        return None
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        with archive.open(name) as part:
            return ElementTree.parse(part, parser=parser).getroot()
    except (ElementTree.ParseError, LookupError) as exc:
        raise errors.CorruptDocumentError from exc


def tag_of(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def find(element: Element | None, *path: str) -> Element | None:
    """The first child named `path[0]`, its first child named `path[1]`, and so on."""
    found = element
    for tag in path:
        found = next((child for child in found if tag_of(child) == tag), None) if found is not None else None
    return found


def attribute(element: Element | None, name: str) -> str | None:
    if element is None:
        return None
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def value_of(element: Element | None) -> str | None:
    """The attribute `val`, in which most elements have their value."""
    return attribute(element, "val")


def number_of(element: Element | None, default: int = 0) -> int:
    value = value_of(element) or ""
    return int(value[:9]) if value.isdecimal() else default


def is_on(element: Element | None) -> bool | None:
    """The value of a switch, which is on if it has no value; None without the element."""
    return None if element is None else value_of(element) not in ("0", "false", "off", "none")
