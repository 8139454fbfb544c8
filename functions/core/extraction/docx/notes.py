"""Numbers the footnotes and endnotes of a Word file, and gives each note to the paragraph that cites it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from functions.core.extraction.docx.numbering import to_roman
from functions.core.extraction.docx.xml import attribute, parse_part, tag_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_KIND_OF_REFERENCE = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
REFERENCES = frozenset(_KIND_OF_REFERENCE)


class Notes:
    """The notes of a document, numbered in the order in which they are cited."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        self._notes: dict[str, list[tuple[str | None, Element]]] = {}
        for kind in ("footnotes", "endnotes"):
            root = parse_part(archive, f"{folder}/{kind}.xml")
            # The separators between text and notes are stored as notes with a type.
            self._notes[kind] = [
                (attribute(note, "id"), note)
                for note in (root if root is not None else ())
                if attribute(note, "type") in (None, "normal")
            ]
        self._by_id = {
            kind: {note_id: note for note_id, note in reversed(notes)} for kind, notes in self._notes.items()
        }
        self._counts = dict.fromkeys(self._notes, 0)
        self._cited: list[tuple[str, Element]] = []

    def cite(self, reference: Element) -> str:
        """The mark for a reference, such as "[2]" or for an endnote "[ii]"; `take` returns its note."""
        kind, note_id = _KIND_OF_REFERENCE[tag_of(reference)], attribute(reference, "id")
        note = self._by_id[kind].get(note_id)
        if note is None:
            return ""
        mark = ""
        if attribute(reference, "customMarkFollows") not in ("1", "true", "on"):
            self._counts[kind] += 1
            count = self._counts[kind]
            mark = f"[{count if kind == 'footnotes' else to_roman(count)}]"
        self._cited.append((mark, note))
        return mark

    def take(self) -> list[tuple[str, Element]]:
        """The notes cited since the last call, each with its mark; "" if the text has a mark of its own."""
        cited, self._cited = self._cited, []
        return cited

    def uncited(self, document: Element) -> Iterator[Element]:
        """The notes that nothing in the document refers to, not even deleted text."""
        for kind, notes in self._notes.items():
            tags = {tag for tag, known in _KIND_OF_REFERENCE.items() if known == kind}
            cited = {attribute(element, "id") for element in document.iter() if tag_of(element) in tags}
            yield from (note for note_id, note in notes if note_id is None or note_id not in cited)
