"""The quotation of an answer is on its page, word for word, and is highlighted where it is printed.

Pages are printed word by word, so that the rectangle of every word is known: as wide as its characters, as high as its
font from descender to ascender. Sentences are quoted as a model writes them (on one line, without the hyphens of line
ends, ligatures as letters), checked by the real citations against the real extraction and passages, and marked as the
page route marks them.

A quotation is marked by one box a line, so two things are compared, both as area in common to area in all (IoU), in
fractions of the page as it is seen: the box of each word, asked for alone, with the word's rectangle; and the boxes of
the whole quotation with its words' rectangles joined to lines. A word counts when it and its quotation reach 0.5. A
word that a line end cuts has two rectangles and two boxes, taken together.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import reportlab
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas

from functions.core import models
from functions.core.citations.cite import cite_sections
from functions.core.citations.sections import WrittenSection
from functions.core.extraction.pdf import page_images
from functions.core.extraction.pdf.reader import PdfPages
from functions.core.ingestion.chunking import chunker, page_layout, passages
from tests.support.documents import LETTER

Rectangle = tuple[float, float, float, float]

LEAST_IOU, LEAST_SHARE = 0.5, 0.98
MARGIN = 60.0
QUOTES_OF_A_PAGE = 3
VOCABULARY = (
    "boiler chimney contract landlord rent winter repair garden tenant notice window office station turbine energy "
    "consumption installation responsibility maintenance agreement temperature whether because neighbours 1931 4.5 % "
    "the of and in to a is by on at élève façade août cœur où déjà être naïve garçon Müller Straße Ångström "
    "fifty offices final efficient reflect flowers workflow first affluent kilowatt-hours landlord's (sometimes)"
)
WORDS = VOCABULARY.split()
LIGATURES = {"ffi": "ffi", "fi": "\ufb01", "fl": "\ufb02"}  # the font has no ffi
VERA = "Vera"
pdfmetrics.registerFont(TTFont(VERA, str(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf")))


@dataclass(frozen=True, slots=True)
class Layout:
    """How a page is printed: `turn` rotates its text, `rotation` the page itself."""

    font: str = "Times-Roman"
    size: float = 10.0
    columns: int = 1
    across: bool = False
    """Columns are written line by line across the page, not one after the other."""
    justified: bool = False
    hyphens: bool = False
    ligatures: bool = False
    by_word: bool = False
    turn: int = 0
    rotation: int = 0
    crop: Rectangle = (0.0, 0.0, *LETTER)


LAYOUTS = {
    "small": Layout("Helvetica", 7),
    "plain": Layout(),
    "typewriter": Layout("Courier", 11),
    "bold": Layout("Helvetica-Bold", 14),
    "truetype": Layout(VERA, 12),
    "large": Layout("Times-Italic", 24),
    "words set one by one": Layout(by_word=True),
    "justified": Layout(justified=True),
    "justified word by word": Layout("Helvetica", 9, justified=True, by_word=True),
    "hyphens": Layout(hyphens=True, justified=True, columns=3),
    "ligatures": Layout(VERA, 11, ligatures=True, hyphens=True),
    "two columns": Layout(columns=2, justified=True, by_word=True),
    "two columns written across": Layout(columns=2, justified=True, across=True),
    "three columns of 8 points": Layout("Helvetica", 8, columns=3),
    "cropped": Layout(crop=(45.0, 30.0, 570.0, 750.0)),
    "cropped, seen at 270": Layout(crop=(20.0, 50.0, 600.0, 770.0), rotation=270, columns=2),
    **{f"seen at {angle}": Layout("Helvetica", rotation=angle) for angle in (90, 180, 270)},
    **{f"printed across at {angle}": Layout(turn=angle, rotation=angle, columns=2) for angle in (90, 180, 270)},
    **{f"text turned by {angle}": Layout(turn=angle, justified=True) for angle in (90, 180, 270)},
}


@dataclass(slots=True)
class Word:
    """A printed word: its text, and the rectangle and line number of each of its parts."""

    text: str
    parts: list[tuple[int, Rectangle]] = field(default_factory=list)


@dataclass(slots=True)
class Printer:
    """Prints sentences from the top of a page and records where their words are."""

    pdf: canvas.Canvas
    layout: Layout
    lines: list[list[tuple[str, Word]]] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)
    """The lines that end a paragraph."""

    @property
    def frame(self) -> tuple[float, float]:
        """Width and height of the page in the direction of its text."""
        return LETTER if self.layout.turn in (0, 180) else (LETTER[1], LETTER[0])

    @property
    def column(self) -> float:
        return (self.frame[0] - 2 * MARGIN - 24 * (self.layout.columns - 1)) / self.layout.columns

    def width(self, text: str) -> float:
        return float(pdfmetrics.stringWidth(text, self.layout.font, self.layout.size))

    def print(self, paragraphs: Sequence[Sequence[Word]]) -> None:
        for words in paragraphs:
            self._break_lines(words)
            self.ends.add(len(self.lines) - 1)
        rows = int((self.frame[1] - 2 * MARGIN) / (1.3 * self.layout.size))
        rows = min(rows, -(-len(self.lines) // self.layout.columns))
        del self.lines[rows * self.layout.columns :]
        order: Sequence[int] = range(len(self.lines))
        if self.layout.across:
            order = sorted(order, key=lambda number: (number % rows, number // rows))
        left, bottom, right, top = self.layout.crop
        self.pdf.setCropBox((left, bottom, right, top))
        self.pdf.setPageRotation(self.layout.rotation)
        width, height = LETTER
        self.pdf.translate(*{0: (0, 0), 90: (width, 0), 180: (width, height), 270: (0, height)}[self.layout.turn])
        self.pdf.rotate(self.layout.turn)
        self.pdf.setFont(self.layout.font, self.layout.size)
        for number in order:
            x = MARGIN + number // rows * (self.column + 24)
            self._print_line(number, x, self.frame[1] - MARGIN - (number % rows + 1) * 1.3 * self.layout.size)

    def _break_lines(self, words: Sequence[Word]) -> None:
        line: list[tuple[str, Word]] = []
        for word in words:
            text = self._shape(word.text)
            before = "".join(f"{part} " for part, _ in line)
            if line and self.width(before + text) > self.column:
                if self.layout.hyphens and len(text) >= 8 and text.isalpha():
                    line.append((f"{text[: len(text) // 2]}-", word))
                    text = text[len(text) // 2 :]
                self.lines.append(line)
                line = []
            line.append((text, word))
        self.lines.append(line)

    def _shape(self, text: str) -> str:
        for letters, ligature in LIGATURES.items() if self.layout.ligatures else ():
            text = text.replace(letters, ligature)
        return text

    def _print_line(self, number: int, x: float, y: float) -> None:
        line = self.lines[number]
        spare = self.column - self.width(" ".join(text for text, _ in line))
        stretched = self.layout.justified and number not in self.ends and len(line) > 1
        space = max(0.0, spare / (len(line) - 1)) if stretched else 0.0
        if not self.layout.by_word:
            whole = self.pdf.beginText(x, y)
            whole.setWordSpace(space)
            whole.textOut(" ".join(text for text, _ in line))
            self.pdf.drawText(whole)
        ascent, descent = pdfmetrics.getAscentDescent(self.layout.font, self.layout.size)
        for text, word in line:
            if self.layout.by_word:
                self.pdf.drawString(x, y, text)
            end = x + self.width(text)
            word.parts.append((number, to_page_fractions((x, y + descent, end, y + ascent), self.layout)))
            x = end + self.width(" ") + space


def to_page_fractions(box: Rectangle, layout: Layout) -> Rectangle:
    """Turns a box of the text's frame (left, bottom, right, top) into fractions of the visible page (left, top, …)."""
    width, height = LETTER
    corners = [(box[0], box[1]), (box[2], box[3])]
    place = {
        0: lambda x, y: (x, y),
        90: lambda x, y: (width - y, x),
        180: lambda x, y: (width - x, height - y),
        270: lambda x, y: (y, height - x),
    }[layout.turn]
    left, bottom, right, top = layout.crop
    seen = [((x - left) / (right - left), (top - y) / (top - bottom)) for x, y in itertools.starmap(place, corners)]
    for _ in range(layout.rotation // 90):
        seen = [(1 - y, x) for x, y in seen]
    (x1, y1), (x2, y2) = seen
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def write_sentence(chance: random.Random) -> list[Word]:
    words = chance.choices(WORDS, k=chance.randint(8, 16))
    return [Word(words[0].capitalize()), *map(Word, words[1:]), Word(f"{chance.choice(WORDS[:20])}.")]


def print_page(path: Path, layout: Layout, chance: random.Random) -> list[list[Word]]:
    """Fills a page with paragraphs; returns the sentences that are complete on it."""
    paragraphs = [[write_sentence(chance) for _ in range(4)] for _ in range(8)]
    size = LETTER[::-1] if layout.rotation in (90, 270) else LETTER  # reportlab rotates it with the page
    pdf = canvas.Canvas(str(path), pagesize=size, invariant=1)
    Printer(pdf, layout).print([list(itertools.chain(*sentences)) for sentences in paragraphs])
    pdf.showPage()
    pdf.save()
    return [words for words in itertools.chain(*paragraphs) if words[0].parts and words[-1].parts]


def find_hits(page: models.Page) -> list[models.SearchHit]:
    """The passages of a page as a search would find them."""
    chunks, _ = chunker.chunk_page(
        page,
        settings=passages.ChunkSettings(),
        count_tokens=lambda text: len(text.split()),
        title=None,
        carry=page_layout.Carry(),
        first_index=0,
        lang="en",
    )
    return [
        models.SearchHit(
            chunk_id=chunk.index,
            source="document",
            source_id="page",
            chunk_index=chunk.index,
            file_name="page.pdf",
            title=None,
            file_type="pdf",
            page_start=page.number,
            page_end=page.number,
            start_offset=chunk.start_offset,
            end_offset=chunk.end_offset,
            section_title=chunk.section_title,
            text=chunk.text,
            lang="en",
            score=1.0,
        )
        for chunk in chunks
    ]


def cite(sentence: Sequence[Word], hits: Sequence[models.SearchHit]) -> models.Citation:
    """The only citation of an answer that states and quotes this sentence."""
    text = " ".join(word.text for word in sentence)
    _, (citation,) = cite_sections([WrittenSection(text, (), (text,))], hits)
    return citation


def join_lines(words: Sequence[Word]) -> list[Rectangle]:
    """The rectangles of these words, joined line by line."""
    lines: dict[int, Rectangle] = {}
    for number, box in itertools.chain(*(word.parts for word in words)):
        old = lines.get(number, box)
        lines[number] = (min(old[0], box[0]), min(old[1], box[1]), max(old[2], box[2]), max(old[3], box[3]))
    return list(lines.values())


def measure_iou(found: Sequence[Rectangle], truth: Sequence[Rectangle]) -> float:
    """The area that both cover divided by the area that either covers; overlaps within one of them count once."""
    xs = sorted({side for box in (*found, *truth) for side in (box[0], box[2])})
    ys = sorted({side for box in (*found, *truth) for side in (box[1], box[3])})
    both = either = 0.0
    for (left, right), (top, bottom) in itertools.product(itertools.pairwise(xs), itertools.pairwise(ys)):
        x, y = (left + right) / 2, (top + bottom) / 2
        inside = [any(b[0] < x < b[2] and b[1] < y < b[3] for b in boxes) for boxes in (found, truth)]
        both += all(inside) * (right - left) * (bottom - top)
        either += any(inside) * (right - left) * (bottom - top)
    return both / either if either else 0.0


def find_boxes(path: Path, start: int, end: int) -> list[Rectangle]:
    boxes = page_images.highlight_boxes(path, 1, start, end)
    return [(box.left, box.top, box.right, box.bottom) for box in boxes]


def find_tokens(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the words of text [start, end) are."""
    at = start
    for token in text[start:end].split():
        at = text.index(token, at)
        yield at, at + len(token)
        at += len(token)


def measure_page(path: Path, layout: Layout, chance: random.Random) -> list[float]:
    """For each word of some quotations: its IoU or that of its quotation, whichever is less."""
    sentences = print_page(path, layout, chance)
    with PdfPages(path, max_pages=1) as document:
        (page,) = document.pages()
    hits = find_hits(page)
    shares = []
    chance.shuffle(sentences)
    sentences.sort(
        key=lambda words: -sum(len(word.parts) > 1 for word in words)
    )  # sentences with words cut by line ends
    for sentence in sentences[:QUOTES_OF_A_PAGE]:
        citation = cite(sentence, hits)
        start, end = citation.start_offset, citation.end_offset
        assert (citation.check, page.text[start:end]) == ("exact", citation.quote), (sentence, citation)
        whole = measure_iou(find_boxes(path, start, end), join_lines(sentence))
        tokens = list(find_tokens(page.text, start, end))
        for word, token in zip(sentence, tokens, strict=True):
            own = measure_iou(find_boxes(path, *token), [box for _, box in word.parts])
            shares.append(min(own, whole))
    return shares


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    folder, chance = tmp_path_factory.mktemp("highlights"), random.Random(11)
    return {name: measure_page(folder / "page.pdf", layout, chance) for name, layout in LAYOUTS.items()}


def share_of_words(shares: Sequence[float]) -> float:
    return sum(share >= LEAST_IOU for share in shares) / len(shares)


def test_words_are_highlighted_where_they_are_printed(measured: dict[str, list[float]]) -> None:
    """WEB-4, CHAT-5"""
    shares = list(itertools.chain(*measured.values()))
    print(f"\nIoU >= {LEAST_IOU} for {share_of_words(shares):.4f} of {len(shares)} words")
    for name, found in measured.items():
        print(f"  {name:28} {share_of_words(found):.3f}  mean {sum(found) / len(found):.3f}  least {min(found):.3f}")
    assert len(shares) > 800
    assert share_of_words(shares) >= LEAST_SHARE


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_layout_is_highlighted_badly(measured: dict[str, list[float]], name: str) -> None:
    """WEB-4"""
    assert share_of_words(measured[name]) >= 0.95
