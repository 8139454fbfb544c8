"""Writes real documents: PDF files with reportlab or byte by byte, DOCX files with python-docx or as raw XML."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import docx
from reportlab.lib import pdfencrypt
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen import canvas

LETTER = (612.0, 792.0)
LEFT, TOP, LEADING, FONT, SIZE = 72.0, 720.0, 18.0, "Helvetica", 12.0

OLE_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PNG_HEADER = b"\x89PNG\r\n\x1a\n"


def text_width(text: str, size: float = SIZE) -> float:
    """The printed width of text in the font of these documents, in points."""
    return float(pdfmetrics.stringWidth(text, FONT, size))


def make_pdf(
    path: Path,
    *pages: str | Sequence[str],
    title: str | None = None,
    author: str | None = None,
    password: str | None = None,
    rotation: int = 0,
    upright: bool = False,
    crop: tuple[float, float, float, float] | None = None,
    size: tuple[float, float] = LETTER,
    heading: str | None = None,
) -> Path:
    """A PDF with one page per argument: its lines from (72, 720) down, 18 points apart, in Helvetica 12.

    `crop` is (left, bottom, right, top). With `rotation` the lines appear sideways; with `upright` too, they appear
    the right way up, as on a landscape page. `heading` is printed on page 1 at (72, 750) in 24 points.
    """
    encryption = pdfencrypt.StandardEncryption(password, canPrint=1) if password else None
    # reportlab swaps the page size with the rotation; the media box must stay as given.
    page_size = size[::-1] if rotation in (90, 270) else size
    pdf = canvas.Canvas(str(path), pagesize=page_size, encrypt=encryption, invariant=1)
    pdf.setTitle(title or "untitled")
    if author:
        pdf.setAuthor(author)
    for number, lines in enumerate(pages or ("",), 1):
        pdf.setPageRotation(rotation)
        if crop:
            pdf.setCropBox(crop)
        if upright:
            _turn(pdf, rotation, size)
        if heading and number == 1:
            pdf.setFont(FONT, 24)
            pdf.drawString(LEFT, 750, heading)
        pdf.setFont(FONT, SIZE)
        for index, line in enumerate([lines] if isinstance(lines, str) else lines):
            pdf.drawString(LEFT, TOP - LEADING * index, line)
        pdf.showPage()
    pdf.save()
    return path


def _turn(pdf: canvas.Canvas, rotation: int, size: tuple[float, float]) -> None:
    width, height = size
    pdf.translate(*{0: (0, 0), 90: (width, 0), 180: (width, height), 270: (0, height)}[rotation])
    pdf.rotate(rotation)


def make_two_column_pdf(path: Path, left: Sequence[str], right: Sequence[str]) -> Path:
    """One page with two columns of lines, at x = 72 and x = 330, the left one drawn first."""
    pdf = canvas.Canvas(str(path), pagesize=LETTER, invariant=1)
    pdf.setFont(FONT, SIZE)
    for x, lines in ((LEFT, left), (330.0, right)):
        for index, line in enumerate(lines):
            pdf.drawString(x, TOP - LEADING * index, line)
    pdf.showPage()
    pdf.save()
    return path


def make_picture_pdf(path: Path) -> Path:
    """A page with a drawing and no text, like a scan."""
    pdf = canvas.Canvas(str(path), pagesize=LETTER, invariant=1)
    pdf.rect(100, 100, 300, 300, fill=1)
    pdf.showPage()
    pdf.save()
    return path


def make_mapped_pdf(path: Path, codes: str, unicode_of: dict[str, str]) -> Path:
    """A page that shows `codes` in Helvetica 20 at (72, 700), in a font that maps each code to the text given for it.

    So a page can have characters outside the basic plane, ligatures, and meaningless glyphs (mapped to NUL).
    """
    rows = "".join(f"<{ord(code):02X}> <{text.encode('utf-16-be').hex()}>\n" for code, text in unicode_of.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <00> <FF> endcodespacerange\n"
        f"{len(unicode_of)} beginbfchar\n{rows}endbfchar endcmap end end"
    )
    content = f"BT /F1 20 Tf 72 700 Td ({codes}) Tj ET"
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        page,
        f"<</Length {len(content)}>>stream\n{content}\nendstream",
        font,
        f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream",
    ]
    body, offsets = "%PDF-1.7\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Root 1 0 R/Size {size}>>\nstartxref\n{len(body)}\n"
    path.write_bytes((body + tail + "%%EOF").encode("latin-1"))
    return path


def make_docx(path: Path, *blocks: Any, title: str | None = None, author: str | None = None) -> Path:
    """A DOCX: `"# x"` is a heading, `"- x"` a list item, a list of lists a table, any other text a paragraph."""
    document = docx.Document()
    document.core_properties.title = title or ""
    document.core_properties.author = author or ""
    for block in blocks:
        if isinstance(block, str):
            marks, _, rest = block.partition(" ")
            if marks and set(marks) == {"#"}:
                document.add_heading(rest, level=len(marks))
            elif marks == "-":
                document.add_paragraph(rest, style="List Bullet")
            else:
                document.add_paragraph(block)
        else:
            table = document.add_table(rows=0, cols=len(block[0]))
            for row in block:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
    document.save(str(path))
    return path


def make_raw_docx(path: Path, body: str, *, namespace: str | None = None, prolog: str = "", **parts: str) -> Path:
    """A DOCX whose `w:body` is `body`; `parts` adds files to `word/` (`styles="<w:styles…"`)."""
    namespace = namespace or "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'{prolog}<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", document)
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", content)
    return path


def make_zip(path: Path, **entries: str | bytes) -> Path:
    """A zip file; `__` in a name stands for a slash and `_dot_` for a full stop."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return path
