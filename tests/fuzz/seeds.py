"""Generated files from which the fuzzing starts."""

from __future__ import annotations

from pathlib import Path

from tests.support import documents

LINES = ["The lease begins in March 2024.", "It ends after two years, and costs 450 euros a month."]


def make_seeds(folder: Path) -> list[Path]:
    """PDF files with text, columns, a picture and a font of their own, and DOCX files with tables and notes."""
    body = "<w:p><w:r><w:t>The lease</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>Rent</w:t></w:r></w:p></w:tc>"
    body += "<w:tc><w:p><w:r><w:t>450</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    styles = '<w:styles xmlns:w="w"><w:style w:styleId="a"><w:basedOn w:val="b"/></w:style></w:styles>'
    return [
        documents.make_pdf(folder / "text.pdf", LINES, LINES[:1], title="The lease", heading="Lease"),
        documents.make_pdf(folder / "turned.pdf", LINES, rotation=90),
        documents.make_two_column_pdf(folder / "columns.pdf", LINES * 8, LINES[::-1] * 8),
        documents.make_picture_pdf(folder / "picture.pdf"),
        documents.make_mapped_pdf(folder / "mapped.pdf", "abc", {"a": "x", "b": "y", "c": "z"}),
        documents.make_docx(folder / "plain.docx", "The lease", LINES[0], LINES[1]),
        documents.make_raw_docx(folder / "raw.docx", body, styles=styles),
    ]
