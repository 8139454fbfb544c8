"""Tables of PDF pages are found with their cells and their stretches of text; other text in columns is no table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from functions.core import models
from functions.core.extraction.documents import open_document
from functions.core.extraction.pdf import text_layer
from functions.core.extraction.pdf.reader import open_pdf, open_text_page
from functions.core.extraction.pdf.tables import finder
from tests.support import prose_documents, random_tables, table_documents
from tests.support.requirements import need_corpus, need_eval_data
from tests.support.table_documents import RULED, UNRULED, KnownTable, TableSpec, make_drawn_pdf, make_pdf

CARS = (("Town", "Year", "Cars sold"), ("Évreux", "2019", "1,204"), ("Nîmes", "2020", "98"), ("Lyon", "2021", "15,000"))
PROSE = (
    "Above and below stands a paragraph of ordinary words that goes on for longer than one line of the page does. " * 3
)


def read_pages(path: Path) -> list[models.Page]:
    with open_document(path, "pdf", max_pages=300) as document:
        return list(document.pages())


def read_tables(path: Path) -> list[list[tuple[str, ...]]]:
    """The cells of all tables, in the order of the pages."""
    return [[row.cells for row in table.rows] for page in read_pages(path) for table in page.tables]


def known_cells(known: Sequence[KnownTable]) -> list[list[tuple[str, ...]]]:
    """The cells of tables whose header is one row."""
    return [[table.header, *table.rows] for table in known]


def spec(*rows: Sequence[str], **options: Any) -> TableSpec:
    return TableSpec(rows or CARS, **options)


@pytest.mark.parametrize("style", [*RULED, *UNRULED])
def test_a_table_is_found_with_all_its_cells(tmp_path: Path, style: str) -> None:
    """ING-1"""
    known = make_pdf(
        tmp_path / "a.pdf", PROSE, "Table 1. Cars", spec(style=style, aligns=("LEFT", "LEFT", "RIGHT")), PROSE
    )
    assert read_tables(tmp_path / "a.pdf") == known_cells(known) == [list(CARS)]


def test_a_row_covers_its_own_text_and_no_other(tmp_path: Path) -> None:
    make_pdf(tmp_path / "a.pdf", PROSE, spec(), PROSE)
    (page,) = read_pages(tmp_path / "a.pdf")
    (table,) = page.tables
    assert [page.text[row.start : row.end] for row in table.rows] == [" ".join(row) for row in CARS]
    assert (table.header_rows, len(table.borders)) == (1, 4)


def test_a_cell_of_several_lines_becomes_one_line(tmp_path: Path) -> None:
    rows = [("Name", "What it is"), ("A", "one that goes on and on, over more lines than one"), ("B", "short")]
    known = make_pdf(tmp_path / "a.pdf", PROSE, spec(*rows, widths=(60.0, 90.0)), PROSE)
    assert read_tables(tmp_path / "a.pdf") == known_cells(known) == [rows]


def test_a_hyphen_at_a_line_end_is_undone_and_one_at_the_end_of_a_cell_kept(tmp_path: Path) -> None:
    """ING-4"""
    rows = [("Name", "Text"), ("A-", "con-\ntinued"), ("B", "pre-"), ("C", "more")]
    make_pdf(tmp_path / "a.pdf", PROSE, spec(*rows))
    assert read_tables(tmp_path / "a.pdf") == [[("Name", "Text"), ("A-", "continued"), ("B", "pre-"), ("C", "more")]]


@pytest.mark.parametrize("style", ["grid", "booktabs", "plain"])
def test_empty_cells_stay_empty(tmp_path: Path, style: str) -> None:
    rows = [("Town", "2019", "2020"), ("Lyon", "", "12"), ("Nîmes", "7", ""), ("Paris", "-", "8"), ("Alès", "1", "2")]
    make_pdf(tmp_path / "a.pdf", PROSE, "", spec(*rows, style=style), "", PROSE)
    assert read_tables(tmp_path / "a.pdf") == [rows]


@pytest.mark.parametrize("style", ["grid", "booktabs"])
def test_a_header_over_several_columns_names_each(tmp_path: Path, style: str) -> None:
    rows = [
        ("", "2019", "", "2020", ""),
        ("Town", "Cars", "Boats", "Cars", "Boats"),
        ("Lyon", "1", "2", "3", "4"),
        ("Alès", "5", "6", "7", "8"),
    ]
    make_pdf(
        tmp_path / "a.pdf",
        PROSE,
        "",
        spec(*rows, style=style, header_rows=2, spans=[(0, 1, 2), (0, 3, 4)], widths=(60.0,) * 5),
    )
    (page,) = read_pages(tmp_path / "a.pdf")
    (table,) = page.tables
    assert table.header_rows == 2
    assert [row.cells for row in table.rows] == [("", "2019", "2019", "2020", "2020"), *rows[1:]]


def test_a_cell_over_several_columns_belongs_to_the_first(tmp_path: Path) -> None:
    rows = [("Town", "Year", "Cars"), ("Lyon", "2019", "1"), ("not counted since then", "", ""), ("Alès", "2019", "6")]
    make_pdf(tmp_path / "a.pdf", PROSE, spec(*rows, spans=[(2, 0, 2)]))
    assert read_tables(tmp_path / "a.pdf") == [rows]


def test_a_title_across_a_ruled_table_is_not_a_row(tmp_path: Path) -> None:
    rows = [("Cars sold in three towns", "", ""), *CARS]
    make_pdf(tmp_path / "a.pdf", PROSE, spec(*rows, spans=[(0, 0, 2)]))
    assert read_tables(tmp_path / "a.pdf") == [list(CARS)]


@pytest.mark.parametrize("style", ["grid", "plain"])
def test_a_table_over_two_pages_is_one_on_each_with_the_same_borders(tmp_path: Path, style: str) -> None:
    """ING-6"""
    rows = [("Town", "Cars"), *((f"Town {number}", str(number * 37 % 100)) for number in range(10, 80))]
    known = make_pdf(tmp_path / "a.pdf", PROSE, spec(*rows, style=style, aligns=("LEFT", "RIGHT"), repeat=False))
    pages = read_pages(tmp_path / "a.pdf")
    tables = [page.tables[0] for page in pages]
    assert [len(page.tables) for page in pages] == [1, 1]
    assert [row.cells for table in tables for row in table.rows] == rows
    assert [len(table.rows) for table in tables] == [1 + len(table.rows) for table in known]
    assert tables[0].borders == tables[1].borders


@pytest.mark.parametrize("style", ["grid", "plain"])
@pytest.mark.parametrize("columns", [1, 2])
def test_several_tables_come_in_the_order_of_the_text(tmp_path: Path, columns: int, style: str) -> None:
    other = [("Term", "Share"), ("first", "12 %"), ("second", "3 %"), ("third", "85 %"), ("fourth", "0 %")]
    blocks: list[str | TableSpec | None] = [
        PROSE,
        "",
        spec(style=style),
        "",
        PROSE,
        "",
        spec(*other, style=style, aligns=("LEFT", "RIGHT")),
        "",
        PROSE * 4,
    ]
    make_pdf(tmp_path / "a.pdf", *blocks, columns=columns)
    assert read_tables(tmp_path / "a.pdf") == [list(CARS), other]


@pytest.mark.parametrize("style", ["grid", "plain"])
@pytest.mark.parametrize("upright", [True, False])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_turned_pages_have_the_same_tables(tmp_path: Path, rotation: int, upright: bool, style: str) -> None:
    table = spec(style=style, aligns=("LEFT", "LEFT", "RIGHT"))
    make_pdf(tmp_path / "a.pdf", PROSE, "", table, "", PROSE, rotation=rotation, upright=upright, size=(612.0, 780.0))
    (page,) = read_pages(tmp_path / "a.pdf")
    (found,) = page.tables
    assert [row.cells for row in found.rows] == list(CARS)
    assert [page.text[row.start : row.end] for row in found.rows] == [" ".join(row) for row in CARS]
    assert list(found.borders) == sorted(found.borders)


def test_a_table_ruled_between_columns_only_has_a_row_for_each_line(tmp_path: Path) -> None:
    make_pdf(tmp_path / "a.pdf", PROSE, spec(style="columns"), PROSE)
    assert read_tables(tmp_path / "a.pdf") == [list(CARS)]


def test_several_columns_between_two_rules_are_divided(tmp_path: Path) -> None:
    """One vertical line after the first column, as tables in articles have it."""

    def draw(pdf: Any) -> None:
        for number, row in enumerate(CARS):
            for x, text in zip((72, 200, 300), row, strict=True):
                pdf.drawString(x, 700 - 16 * number, text)
        pdf.grid([66, 190, 360], [716, 694, 640])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(CARS)]


TOWNS = (("", "2019", "2020"), ("Lyon", "98", "120"), ("Nîmes", "7", "15"), ("Paris", "311", "298"))
XS, YS = (66, 190, 290, 360), (716, 694, 674, 654, 634)


def draw_rows(pdf: Any, rows: Sequence[Sequence[str]], xs: Sequence[float] = (72, 200, 300), pitch: float = 20) -> None:
    for number, row in enumerate(rows):
        for x, text in zip(xs, row, strict=True):
            pdf.drawString(x, 700 - pitch * number, text)


def test_the_open_corners_of_a_table_without_outer_lines_hold_cells(tmp_path: Path) -> None:
    """ING-1"""

    def draw(pdf: Any) -> None:
        draw_rows(pdf, TOWNS)
        pdf.line(XS[1], YS[0], XS[3], YS[0])
        for n, y in enumerate(YS[1:]):
            pdf.line(XS[0] - n % 2, y, XS[3] + n % 2, y)
        for x in XS[1:3]:
            pdf.line(x, YS[0], x, YS[-1])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(TOWNS)]


def test_a_last_row_without_a_line_below_is_kept(tmp_path: Path) -> None:
    """ING-1"""

    def draw(pdf: Any) -> None:
        draw_rows(pdf, TOWNS)
        pdf.line(XS[1], YS[0], XS[1], YS[-1])
        for y in YS[:-1]:
            pdf.line(XS[0], y, XS[3], y)

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(TOWNS)]


def test_the_space_between_the_lines_of_a_double_rule_is_no_column(tmp_path: Path) -> None:
    """The boxes of the first row end at the one line, those of the others at the other."""

    def draw(pdf: Any) -> None:
        draw_rows(pdf, CARS)
        for n, (top, bottom) in enumerate(itertools.pairwise(YS)):
            for left, right in itertools.pairwise(XS):
                pdf.rect(
                    left + 5 * (n > 0 and left > XS[0]),
                    bottom,
                    right - left - 5 * (n > 0 and left > XS[0]),
                    top - bottom,
                )

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(CARS)]


def test_boxes_over_several_columns_are_divided_at_wide_gaps(tmp_path: Path) -> None:
    """Vertical lines stand in the first and the last row only."""

    def draw(pdf: Any) -> None:
        draw_rows(pdf, CARS)
        pdf.grid([XS[0], XS[3]], YS)
        for x in XS[1:3]:
            pdf.line(x, YS[0], x, YS[1])
            pdf.line(x, YS[3], x, YS[4])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(CARS)]


def test_shading_of_the_lines_in_a_shaded_cell_is_no_border(tmp_path: Path) -> None:
    def draw(pdf: Any) -> None:
        pdf.setFillGray(0.8)
        for box in ((66, 674, 124, 42), (72, 695, 112, 12), (72, 683, 112, 12)):
            pdf.rect(*box, stroke=0, fill=1)
        pdf.setFillGray(0)
        pdf.grid([66, 190, 290], [716, 674, 654, 634])
        for x, y, text in (
            (72, 698, "Town and"),
            (72, 686, "country"),
            (200, 692, "Cars"),
            (72, 660, "Lyon"),
            (200, 660, "98"),
        ):
            pdf.drawString(x, y, text)
        pdf.drawString(72, 640, "Nîmes")
        pdf.drawString(200, 640, "7")

    rows = [("Town and country", "Cars"), ("Lyon", "98"), ("Nîmes", "7")]
    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def test_a_label_over_several_rows_is_repeated_in_each(tmp_path: Path) -> None:
    """The row that is cited says what it counts."""
    rows = (("Year", "Sex", "Share"), ("1991", "Men", "48.4"), ("", "Women", "77.4"), ("1996", "All", "65.2"))

    def draw(pdf: Any) -> None:
        draw_rows(pdf, rows)
        pdf.grid(XS[1:], YS)
        for y in (*YS[:2], *YS[3:]):
            pdf.line(XS[0], y, XS[1], y)
        pdf.line(XS[0], YS[0], XS[0], YS[-1])

    (page,) = read_pages(make_drawn_pdf(tmp_path / "a.pdf", draw))
    (table,) = page.tables
    assert [row.cells for row in table.rows] == [*rows[:2], ("1991", "Women", "77.4"), rows[3]]
    assert page.text[table.rows[2].start : table.rows[2].end] == "Women 77.4"


def test_tables_side_by_side_are_apart_although_their_rows_alternate_in_the_text(tmp_path: Path) -> None:
    def draw(pdf: Any) -> None:
        draw_rows(pdf, [row + row for row in CARS], (72, 160, 210, 320, 410, 460))
        pdf.grid([66, 150, 200, 270], YS)
        pdf.grid([314, 400, 450, 520], YS)

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(CARS), list(CARS)]


def test_a_table_in_a_frame_is_found(tmp_path: Path) -> None:
    def draw(pdf: Any) -> None:
        draw_rows(pdf, CARS)
        pdf.grid(XS, YS)
        pdf.grid([40, 560], [740, 720, 600])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [list(CARS)]


def test_a_table_of_numbers_written_column_by_column_is_found_without_rules(tmp_path: Path) -> None:
    """ING-1"""
    rows = [
        ("Town", "2019", "2020"),
        *((name, str(7 * n), str(9 * n)) for n, name in enumerate("ABCDEFGHIJKLMNOP", 11)),
    ]

    def draw(pdf: Any) -> None:
        for column, x in enumerate((72, 200, 300)):
            for number, row in enumerate(rows):
                pdf.drawString(x, 700 - 14 * number, row[column])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def test_lines_that_run_through_words_are_no_table(tmp_path: Path) -> None:
    """The bars of a chart with figures on them, over the lines of its scale."""

    def draw(pdf: Any) -> None:
        draw_rows(pdf, [("30.5", "49.0", "20.4")] * 4, (110, 240, 370))
        pdf.grid([66, 120, 250, 380, 430], YS)

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == []


@pytest.mark.parametrize("pitch", [14, 30])
def test_names_far_above_a_table_without_rules_are_its_header(tmp_path: Path, pitch: int) -> None:
    rows = [("Town", "Births", "Deaths"), *((name, f"{n * 7}.5", str(n * 9)) for n, name in enumerate("ABCDEFGH", 11))]

    def draw(pdf: Any) -> None:
        for x, name in zip((72, 200, 300), rows[0], strict=True):
            pdf.drawString(x, 700 + pitch, name)
        draw_rows(pdf, rows[1:], pitch=14)

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def test_names_above_one_row_of_figures_are_a_table(tmp_path: Path) -> None:
    rows = [("", "2005", "2006", "2007"), ("Cars sold", "1,204", "98", "15,000")]

    def draw(pdf: Any) -> None:
        draw_rows(pdf, rows, (72, 200, 300, 400))

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def test_ruled_rows_with_addresses_are_a_table(tmp_path: Path) -> None:
    rows = [("Name", "Office", "E-mail"), ("Ann Lee", "Lyon", "al@x.gov"), ("Bo Ray", "Nice", "br@x.gov")]
    make_pdf(tmp_path / "a.pdf", PROSE, "", spec(*rows, style="booktabs"), "", PROSE)
    assert read_tables(tmp_path / "a.pdf") == [rows]


def test_signs_in_columns_of_their_own_stay_with_their_figures(tmp_path: Path) -> None:
    rows = [("", "2008", "2007"), ("Sales", "$1,204", "98%"), ("Costs", "$(302", "77%"), ("Income", "$902", "21%")]

    def draw(pdf: Any) -> None:
        for number, (label, amount, share) in enumerate(rows):
            y = 700 - 20 * number
            pdf.drawString(72, y, label)
            pdf.drawString(180, y, amount[: amount.startswith("$")])
            pdf.drawRightString(290, y, amount.removeprefix("$"))
            pdf.drawRightString(380, y, share.removesuffix("%"))
            pdf.drawString(400, y, share[len(share.removesuffix("%")) :])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def draw_statement(pdf: Any, rows: Sequence[Sequence[str]], pitches: Sequence[int]) -> None:
    """Rows of a label and right-aligned figures; a currency stands 50 points left of its figure's end."""
    y = 700.0
    for (label, *cells), pitch in zip(rows, pitches, strict=True):
        y -= pitch
        pdf.drawString(72, y, label)
        for end, cell in zip((350, 430), cells, strict=False):
            pdf.drawString(end - 50, y, cell[: cell.startswith("$")])
            pdf.drawRightString(end + 3 * cell.endswith(")"), y, cell.removeprefix("$ "))


def test_a_currency_apart_from_its_figure_leaves_the_names_and_groups_of_a_statement(tmp_path: Path) -> None:
    """ING-6"""
    rows = [
        ("", "2024", "2023"),
        ("Current assets:", "", ""),
        *(("Cash", "$ 1,204", "$ (98)"), ("Stocks", "(302)", "77"), ("Loans", "(12)", "6,130"), ("Sum", "$ —", "$ 9")),
    ]
    path = make_drawn_pdf(tmp_path / "a.pdf", lambda pdf: draw_statement(pdf, rows, [14] * 6))
    (page,) = read_pages(path)
    assert [(table.header_rows, [row.cells for row in table.rows]) for table in page.tables] == [(1, rows)]


def test_years_close_below_words_are_the_second_line_of_the_names(tmp_path: Path) -> None:
    """ING-6"""
    lines = [("", "March 31,", "March 31,"), ("(in millions)", "2024", "2023"), ("Assets:", "", "")]
    body = [("Cash", "1,204", "98"), ("Stocks", "302", "77"), ("Loans", "12", "6,130")]
    path = make_drawn_pdf(tmp_path / "a.pdf", lambda pdf: draw_statement(pdf, [*lines, *body], [0, 11, 16, 14, 14, 14]))
    assert read_tables(path) == [[("(in millions)", "March 31, 2024", "March 31, 2023"), lines[2], *body]]


def test_names_that_reach_over_a_narrow_column_stay_in_their_own(tmp_path: Path) -> None:
    rows = [("", "Note", "December 31, 2024", "December 31, 2023")]
    rows += [(name, str(n), f"{n * 7}.5", f"{n * 9}.5") for n, name in enumerate("ABCDEF", 11)]

    def draw(pdf: Any) -> None:
        for end in (350, 440):
            pdf.drawRightString(end, 712, "December 31,")
        for number, (label, note, *figures) in enumerate([("", "Note", "2024", "2023"), *rows[1:]]):
            y = 701 - 15 * number
            pdf.drawString(72, y, label)
            pdf.drawString(280, y, note)
            for end, figure in zip((350, 440), figures, strict=True):
                pdf.drawRightString(end, y, figure)

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def test_values_below_a_name_over_two_columns_are_no_header(tmp_path: Path) -> None:
    """ING-6"""
    rows = [("Illness", "", "Suffered", "Treated"), ("Asthma", "Count", "93", "77"), ("Flu", "Count", "31", "22")]
    make_pdf(tmp_path / "a.pdf", spec(*rows, style="grid", spans=[(0, 0, 1)]))
    assert [table.header_rows for table in read_pages(tmp_path / "a.pdf")[0].tables] == [1]


def test_a_table_whose_names_are_written_last_is_found_whole(tmp_path: Path) -> None:
    """ING-1"""
    rows = [("Town", "Births", "Deaths"), *((name, f"{n * 7}.5", str(n * 9)) for n, name in enumerate("ABCDEF", 11))]

    def draw(pdf: Any) -> None:
        for number in (3, 1, 6, 2, 5, 4, 0):
            for x, cell in zip((72, 200, 300), rows[number], strict=True):
                pdf.drawString(x, 700 - 14 * number, cell)

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [rows]


def test_figures_that_grow_are_no_page_numbers_where_they_have_a_name(tmp_path: Path) -> None:
    rows = [("Age", "Persons"), *((f"{n} to {n + 4} years", str(40 + n)) for n in range(5, 50, 5))]
    make_pdf(tmp_path / "a.pdf", PROSE, "", spec(*rows, style="plain", aligns=("LEFT", "RIGHT")), "", PROSE)
    assert read_tables(tmp_path / "a.pdf") == [rows]


def test_wide_gaps_inside_a_run_of_text_are_found(tmp_path: Path) -> None:
    path = make_drawn_pdf(
        tmp_path / "a.pdf", lambda pdf: table_documents.draw_kerned(pdf, RIVERS, (72.0, 260.0, 400.0))
    )
    assert read_tables(path) == [list(RIVERS)]


RIVERS = (
    ("River", "Length", "Mouth"),
    ("Loire", "1006", "Atlantic"),
    ("Seine", "775", "Channel"),
    ("Rhone", "813", "Sea"),
)


def test_rows_whose_characters_alternate_in_the_text_share_a_stretch(tmp_path: Path) -> None:
    """In text written column by column, the stretches of all rows overlap."""

    def draw(pdf: Any) -> None:
        for column, x in enumerate((72, 200, 300)):
            for number, row in enumerate(CARS):
                pdf.drawString(x, 700 - 20 * number, row[column])
        pdf.grid([66, 190, 290, 360], [716, 694, 674, 654, 634])

    (page,) = read_pages(make_drawn_pdf(tmp_path / "a.pdf", draw))
    (table,) = page.tables
    assert [row.cells for row in table.rows] == list(CARS)
    assert {(row.start, row.end) for row in table.rows} == {(0, len(page.text.rstrip()))}


def test_a_table_whose_text_is_scattered_over_the_page_is_left_out(tmp_path: Path) -> None:
    def draw(pdf: Any) -> None:
        for number, row in enumerate(CARS):
            for x, text in zip((72, 200, 300), row, strict=True):
                pdf.drawString(x, 700 - 20 * number, text)
            for line in range(4):
                pdf.drawString(72, 560 - 60 * number - 13 * line, PROSE[:90])
        pdf.grid([66, 190, 290, 360], [716, 694, 674, 654, 634])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == []


def test_a_table_in_a_cell_is_part_of_its_text(tmp_path: Path) -> None:
    def draw(pdf: Any) -> None:
        for x, y, text in (
            (72, 700, "Name"),
            (202, 700, "Parts"),
            (72, 676, "Lock"),
            (206, 676, "pin"),
            (256, 676, "bolt"),
        ):
            pdf.drawString(x, y, text)
        for x, text in ((206, "1"), (256, "2")):
            pdf.drawString(x, 662, text)
        pdf.grid([66, 198, 320], [714, 692, 650])
        pdf.grid([203, 250, 310], [688, 672, 658])

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == [[("Name", "Parts"), ("Lock", "pin bolt 1 2")]]


def test_the_lines_of_a_chart_are_not_a_table(tmp_path: Path) -> None:
    def draw(pdf: Any) -> None:
        pdf.grid(range(100, 500, 40), range(300, 600, 30))
        for number in range(10):
            pdf.drawString(96 + 40 * number, 288, str(number))
            pdf.drawString(80, 297 + 30 * number, str(number))
        pdf.drawString(250, 452, "growth")

    assert read_tables(make_drawn_pdf(tmp_path / "a.pdf", draw)) == []


@pytest.mark.parametrize("kind", prose_documents.PROSE)
def test_other_text_in_columns_is_not_a_table(tmp_path: Path, kind: str) -> None:
    found = [read_tables(prose_documents.make_pdf(tmp_path / "a.pdf", kind, seed)) for seed in range(4)]
    assert found == [[], [], [], []]


def test_the_characters_of_prose_are_not_measured(tmp_path: Path) -> None:
    def indices() -> list[int | None]:
        raise AssertionError("a page of prose was read character by character")

    make_pdf(tmp_path / "a.pdf", *[PROSE] * 9)
    with open_pdf(tmp_path / "a.pdf") as pdf, open_text_page(pdf, 1) as (page, text_page):
        assert finder.find_tables(page, text_page, text_layer.read_layer(text_page).text, indices) == ()


@pytest.mark.parametrize("ruled", [True, False], ids=["ruled", "unruled"])
@pytest.mark.parametrize("seed", range(5))
def test_tables_of_random_documents_are_consistent(tmp_path: Path, seed: int, ruled: bool) -> None:
    """Rows are in order and inside the page, and the text of each cell is inside the stretch of its row."""
    random_tables.make_random_pdf(tmp_path / "a.pdf", seed, ruled=ruled)
    pages = read_pages(tmp_path / "a.pdf")
    assert any(page.tables for page in pages)
    for page in pages:
        ends = [0]
        for table in page.tables:
            assert table.start >= ends[-1]
            assert len({len(row.cells) for row in table.rows}) == 1
            body = table.rows[table.header_rows :]
            for row, following in zip(table.rows, [*table.rows[1:], None], strict=True):
                assert 0 <= row.start < row.end <= len(page.text)
                assert (
                    following is None
                    or row.end <= following.start
                    or (row.start, row.end) == (following.start, following.end)
                )
            for row in body:
                letters = sorted(filter(str.isalnum, "".join(row.cells)))
                assert not letters or is_part(letters, sorted(page.text[row.start : row.end]))
            ends.append(table.end)


def is_part(few: Sequence[str], many: Sequence[str]) -> bool:
    rest = iter(many)
    return all(any(letter == other for other in rest) for letter in few)


@pytest.mark.parametrize("ruled", [True, False], ids=["ruled", "unruled"])
@pytest.mark.parametrize("seed", [3, 8, 21])
def test_tables_of_random_documents_are_found_whole(tmp_path: Path, seed: int, ruled: bool) -> None:
    known = random_tables.make_random_pdf(tmp_path / "a.pdf", seed, ruled=ruled)
    found = [table for page in read_pages(tmp_path / "a.pdf") for table in page.tables]
    names = [
        tuple(
            table_documents.name_column(row.cells[n] for row in table.rows[: table.header_rows] if row.cells[n])
            for n in range(len(table.rows[0].cells))
        )
        for table in found
    ]
    assert names == [table.header for table in known]
    assert [tuple(row.cells for row in table.rows[table.header_rows :]) for table in found] == [
        table.rows for table in known
    ]


def test_the_tables_of_the_question_sets_are_found() -> None:
    """ING-1"""
    folder = need_eval_data("pages_en")
    wanted = []
    for line in (folder / "queries.dev.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        wanted += [
            (e["doc_id"], e["page"], row)
            for e in query["evidence"]
            for row in e["text"].split("\n")
            if query.get("kind") == "table"
        ]
    found = {
        (path.stem, page.number, " | ".join(row.cells))
        for path in sorted((folder / "pdf").glob("*.pdf"))
        for page in read_pages(path)
        for table in page.tables
        for row in table.rows
    }
    assert len(wanted) > 100
    assert [row for row in wanted if row not in found] == []


def test_prose_of_the_question_sets_has_no_tables() -> None:
    folder = need_eval_data("pages_fr")
    assert [
        page.tables for path in sorted((folder / "pdf").glob("*.pdf")) for page in read_pages(path) if page.tables
    ] == []


REAL: list[tuple[str, int, int, tuple[str, ...]]] = [
    (
        "pdfplumber/federal-register-2020-17221.pdf",
        6,
        2,
        ("AOA sensor system test", "40 work-hours × $85 per hour = $3,400.", "$0", "$3,400", "$248,200."),
    ),
    ("pdfplumber/issue-466-example.pdf", 1, 3, ("T0-20-last", "T0-21-last", "T0-22-last")),
    ("pdfplumber/word365_structure.pdf", 1, 2, ("Linge 2", "Belette", "Bibitte")),
    ("docling/odf_table_with_title_01.ods.pdf", 1, 6, ("2024", "180")),
    ("sample-files/google-doc-document.pdf", 1, 2, ("Capital", "Jakarta", "Berlin", "Vienna", "Paris", "Vatican City")),
    ("sample-files/multicolumn.pdf", 3, 3, ("Czech Republic", "10.7", "78,866", "Prague", "Czech")),
]


@pytest.mark.parametrize(("name", "number", "row", "cells"), REAL, ids=[name for name, *_ in REAL])
def test_tables_of_real_files_are_found(name: str, number: int, row: int, cells: tuple[str, ...]) -> None:
    page = read_pages(need_corpus(f"files/{name}"))[number - 1]
    assert page.tables[0].rows[row].cells == cells


@pytest.mark.parametrize("name", ["nics-background-checks-2015-11.pdf", "nics-background-checks-2015-11-rotated.pdf"])
def test_a_large_table_is_the_same_on_a_turned_page(name: str) -> None:
    (page,) = read_pages(need_corpus(f"files/pdfplumber/{name}"))
    (table,) = page.tables
    assert (table.header_rows, len(table.rows), len(table.rows[0].cells)) == (2, 58, 25)
    assert table.rows[0].cells[7:13] == ("Pre-Pawn",) * 3 + ("Redemption",) * 3
    assert table.rows[2].cells[:6] == ("Alabama", "18,870", "23,022", "22,650", "859", "1,178")
    assert table.rows[-1].cells[0] == "Totals"
