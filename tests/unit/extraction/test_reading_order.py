"""Page text is in reading order, whatever the order in the file."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pypdfium2.raw as pdfium
import pytest
from reportlab.lib.utils import simpleSplit
from reportlab.pdfgen import canvas

from functions.core.extraction.pdf import line_pieces, page_images, reading_order, text_layer
from functions.core.extraction.pdf.reader import PdfPages, character_indices, open_pdf, open_text_page
from tests.support import requirements

WIDTH, HEIGHT = 612.0, 792.0
SIZE, LEADING, TOP = 10.0, 12.0, 700.0
WORDS = """river bridge market winter letter garden window council harbour village engine paper silver north quiet early
between under without against the of a to in for with that were had would from which over into while because"""

Line = tuple[float, float, str]
"""Left edge, baseline and text."""


def make_words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(WORDS.split()) for _ in range(count)).capitalize()


def make_lines(seed: int, left: float, width: float, top: float = TOP, paragraphs: int = 4) -> list[Line]:
    """Lines of prose in a column, with space after some paragraphs."""
    chance, lines, y = random.Random(seed), list[Line](), top
    for _ in range(paragraphs):
        for line in simpleSplit(make_words(chance, chance.randint(40, 60)) + ".", "Helvetica", SIZE, width):
            lines.append((left, y, line))
            y -= LEADING
        y -= chance.choice([0, 6])
    return lines


def interleave(*columns: Sequence[Line]) -> list[Line]:
    """The lines as a program writes them that goes line by line across all columns."""
    return sorted((line for column in columns for line in column), key=lambda line: (-line[1], line[0]))


def write(
    path: Path,
    lines: Sequence[Line],
    rotation: int = 0,
    upright: bool = False,
    rules: Sequence[tuple[float, float, float]] = (),
) -> Path:
    """A page with these lines in this order, and horizontal `rules` (left, right, height).

    With `rotation` the lines appear sideways; with `upright` too, they appear the right way up.
    """
    sideways = rotation in (90, 270)
    pdf = canvas.Canvas(str(path), pagesize=(HEIGHT, WIDTH) if sideways else (WIDTH, HEIGHT), invariant=1)
    pdf.setPageRotation(rotation)
    if upright:
        pdf.translate(*{90: (WIDTH, 0), 180: (WIDTH, HEIGHT), 270: (0, HEIGHT)}[rotation])
        pdf.rotate(rotation)
    for left, right, height in rules:
        pdf.line(left, height, right, height)
    pdf.setFont("Helvetica", SIZE)
    for x, y, text in lines:
        pdf.drawString(x, y, text)
    pdf.save()
    return path


def read(path: Path) -> str:
    with PdfPages(path, max_pages=10) as document:
        return document.read_text_layer(1)


def joined(*columns: Sequence[Line]) -> str:
    return "\n".join(text for column in columns for _, _, text in column)


LEFT, RIGHT = make_lines(1, 60, 230), make_lines(2, 320, 230)
TITLE: Line = (150, 740, "A Title That Stands Across Both Of The Columns Of This Page")


def test_interleaved_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    """ING-1"""
    assert read(write(tmp_path / "a.pdf", interleave(LEFT, RIGHT))) == joined(LEFT, RIGHT)


@pytest.mark.parametrize("offset", [-5.0, -2.0, 3.0, 6.0])
def test_columns_need_not_share_their_baselines(tmp_path: Path, offset: float) -> None:
    right = [(x, y + offset, text) for x, y, text in RIGHT]
    assert read(write(tmp_path / "a.pdf", interleave(LEFT, right))) == joined(LEFT, right)


def test_lines_drawn_across_two_columns_at_once_are_split(tmp_path: Path) -> None:
    pdf = canvas.Canvas(str(tmp_path / "a.pdf"), pagesize=(WIDTH, HEIGHT), invariant=1)
    pdf.setFont("Courier", 8)
    left, right = ([text[:46] for _, _, text in column[:20]] for column in (LEFT, RIGHT))
    for number, texts in enumerate(zip(left, right, strict=True)):
        pdf.drawString(40, TOP - LEADING * number, f"{texts[0]:50}{texts[1]}")
    pdf.save()
    assert read(tmp_path / "a.pdf") == "\n".join([*map(str.strip, left), *map(str.strip, right)])


def test_three_interleaved_columns_are_read_from_left_to_right(tmp_path: Path) -> None:
    columns = [make_lines(seed, left, 150) for seed, left in ((3, 50), (4, 222), (5, 394))]
    assert read(write(tmp_path / "a.pdf", interleave(*columns))) == joined(*columns)


def test_columns_end_at_a_heading_across_them(tmp_path: Path) -> None:
    upper, lower = (LEFT[:12], RIGHT[:12]), (make_lines(6, 60, 230, 500), make_lines(7, 320, 230, 500))
    heading: Line = (100, 530, "A Heading In The Middle Of The Page, Longer Than Any Of Its Columns Is Wide")
    lines = [TITLE, *interleave(*upper), heading, *interleave(*lower)]
    assert read(write(tmp_path / "a.pdf", lines)) == joined([TITLE], *upper, [heading], *lower)


def test_running_heads_and_page_numbers_stay_where_they_are(tmp_path: Path) -> None:
    head, feet = [(60, 760, "The Journal"), (520, 760, "Page 3")], [(60, 30, "Draft"), (545, 30, "3")]
    text = read(write(tmp_path / "a.pdf", [*head, *interleave(LEFT, RIGHT), *feet]))
    assert text.split("\n")[1:-1] == joined(LEFT, RIGHT).split("\n")
    assert (text.split("\n")[0], text.split("\n")[-1]) == ("The Journal Page 3", "Draft 3")


def test_a_figure_across_the_columns_divides_them(tmp_path: Path) -> None:
    upper, lower = (LEFT[:8], RIGHT[:8]), (make_lines(8, 60, 230, 400), make_lines(9, 320, 230, 400))
    path = write(tmp_path / "a.pdf", interleave(*upper, *lower), rules=[(60, 550, 580), (60, 550, 430)])
    assert read(path) == joined(*upper, *lower)


def test_a_figure_in_one_column_does_not_divide_them(tmp_path: Path) -> None:
    left = [*LEFT[:6], *make_lines(10, 60, 230, 480)]
    path = write(tmp_path / "a.pdf", interleave(left, RIGHT), rules=[(60, 290, 600), (60, 290, 500)])
    assert read(path) == joined(left, RIGHT)


def test_horizontal_rules_in_one_line_are_joined_even_at_the_edge_of_the_page() -> None:
    along_the_edge, vertical = [(0.0, 0.0, 300.0, 0.0), (301.0, 0.2, 612.0, 0.2)], (50.0, -90.0, 50.0, -10.0)
    assert reading_order.join_rules([vertical, *along_the_edge]) == [(0.0, 0.2, 612.0, 0.2)]


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_columns_of_a_rotated_page_are_put_in_order(tmp_path: Path, rotation: int, upright: bool) -> None:
    path = write(tmp_path / "a.pdf", interleave(LEFT, RIGHT), rotation, upright)
    assert read(path) == joined(LEFT, RIGHT)


def test_a_word_cut_at_a_line_end_is_joined_within_its_column(tmp_path: Path) -> None:
    """ING-4"""
    left, right = LEFT[:], RIGHT[:]
    left[2], left[3] = (60, left[2][1], left[2][2][:-3] + "con-"), (60, left[3][1], "tinued " + left[3][2][:-8])
    right[5], right[6] = (320, right[5][1], right[5][2][:-3] + "sen-"), (320, right[6][1], "tence " + right[6][2][:-8])
    written_in_order = read(write(tmp_path / "a.pdf", [*left, *right]))
    assert "con\u00adtinued" in written_in_order
    assert "sen\u00adtence" in written_in_order
    assert read(write(tmp_path / "b.pdf", interleave(left, right))) == written_in_order


def test_columns_in_order_are_left_as_pdfium_reads_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pdf", [TITLE, *LEFT, *RIGHT])
    with open_pdf(path) as pdf, open_text_page(pdf, 1) as (_, text_page):
        layer = text_layer.read_layer(text_page)
        assert (layer.places, layer.text) == (None, text_layer.stored_text(text_page.get_text_range()))


def test_columns_written_from_right_to_left_are_swapped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pdf", [TITLE, *RIGHT, *LEFT])
    assert read(path) == joined([TITLE], LEFT, RIGHT)
    columns = [make_lines(seed, left, 150) for seed, left in ((3, 50), (4, 222), (5, 394))]
    assert read(write(tmp_path / "b.pdf", [line for column in columns[::-1] for line in column])) == joined(*columns)


@pytest.mark.parametrize(
    ("right", "left"),
    [
        (RIGHT, make_lines(11, 60, 110)),
        (RIGHT, LEFT[:4]),
        (RIGHT, [(x, y - 200, text) for x, y, text in LEFT]),
        ([*RIGHT[:-1], (*RIGHT[-1][:2], "and so on")], [(*LEFT[0][:2], LEFT[0][2].lower()), *LEFT[1:]]),
    ],
    ids=["margin notes", "too few lines", "lower down", "a sentence goes on"],
)
def test_columns_in_an_unclear_order_are_left_unchanged(tmp_path: Path, right: list[Line], left: list[Line]) -> None:
    assert read(write(tmp_path / "a.pdf", [*right, *left])) == joined(right, left)


def cells(*rows: Sequence[str], left: float = 60, step: float = 160, top: float = TOP) -> Iterator[Line]:
    for number, row in enumerate(rows):
        yield from ((left + step * column, top - 16 * number, cell) for column, cell in enumerate(row))


def test_rows_of_short_cells_stay_rows(tmp_path: Path) -> None:
    """ING-6"""
    rows = [(f"Town {n}", f"{1000 + 37 * n}", f"{n}.5 %") for n in range(20)]
    assert read(write(tmp_path / "a.pdf", list(cells(*rows)))) == "\n".join(map(" ".join, rows))


def test_rows_of_long_cells_stay_rows(tmp_path: Path) -> None:
    """ING-6"""
    chance = random.Random(12)
    rows = [
        tuple(
            " ".join(chance.choice(WORDS.split()) for _ in range(chance.randint(1, 7))).capitalize() for _ in range(2)
        )
        for _ in range(25)
    ]
    lines = list(cells(*rows, step=260))
    assert read(write(tmp_path / "a.pdf", lines)) == "\n".join(map(" ".join, rows))


def test_rows_between_rules_stay_rows(tmp_path: Path) -> None:
    """ING-6"""
    lines, rules = list[Line](), [(60.0, 550.0, TOP + 12)]
    for row in range(8):
        top = TOP - 40 * row
        blocks = [make_lines(20 + 2 * row + side, x, 220, top, 1)[:3] for side, x in enumerate((60, 320))]
        lines += interleave(*blocks)
        rules.append((60.0, 550.0, top - 27))
    assert read(write(tmp_path / "a.pdf", lines, rules=rules)).split("\n")[::3] == [
        f"{lines[n][2]} {lines[n + 1][2]}" for n in range(0, len(lines), 6)
    ]


def test_rows_of_wrapped_cells_separated_by_white_space_stay_rows(tmp_path: Path) -> None:
    """ING-6"""
    lines = list[Line]()
    for row in range(8):
        blocks = [make_lines(40 + 2 * row + side, x, 220, TOP - 50 * row, 1)[:3] for side, x in enumerate((60, 320))]
        lines += interleave(*blocks)
    first, second = lines[0][2], lines[1][2]
    assert read(write(tmp_path / "a.pdf", lines)).startswith(f"{first} {second}\n")


def test_reordered_characters_keep_their_places_on_the_page(tmp_path: Path) -> None:
    """WEB-4, ING-7"""
    path = write(tmp_path / "a.pdf", interleave(LEFT, RIGHT))
    text = read(path)
    with open_pdf(path) as pdf, open_text_page(pdf, 1) as (_, text_page):
        indices = character_indices(text_page, 0, len(text))
        found = [chr(pdfium.FPDFText_GetUnicode(text_page, n)) if n is not None else "\n" for n in indices]
    assert "".join(found) == text
    boxes = page_images.highlight_boxes(path, 1, 0, len(joined(LEFT)))
    assert len(boxes) == len(LEFT)
    assert all(box.right < 0.5 for box in boxes)


@pytest.mark.parametrize("folder", ["pages_en", "pages_fr"])
def test_pages_in_order_are_left_unchanged(folder: str) -> None:
    """ING-1"""
    for path in sorted((requirements.need_eval_data(folder) / "pdf").glob("*.pdf")):
        with open_pdf(path) as pdf:
            for number in range(1, len(pdf) + 1, 3):
                with open_text_page(pdf, number) as (_, text_page):
                    assert text_layer.read_layer(text_page).places is None, (path.name, number)


@pytest.mark.parametrize("name", ["sample-files/multicolumn.pdf", "pdfplumber/federal-register-2020-17221.pdf"])
def test_real_columns_are_left_in_their_order(name: str) -> None:
    """ING-1: joining an accent to its letter leaves one character out, and moves none."""
    with open_pdf(requirements.need_corpus(f"files/{name}")) as pdf:
        for number in range(1, len(pdf) + 1):
            with open_text_page(pdf, number) as (_, text_page):
                places = text_layer.read_layer(text_page).places or []
            assert list(places) == sorted(places)


def test_a_page_of_many_small_pieces_is_given_up_quickly() -> None:
    """Thousands of small pieces side by side are not put in order."""
    pieces = [line_pieces.Piece(x, y, x + 30, y + 8) for y in range(5000, 0, -10) for x in range(0, 600, 40)]
    assert reading_order.find_order(pieces) is None
