"""Markdown tables: finding and writing them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from functions.core import models
from functions.core.extraction.documents import open_document
from functions.core.text import markdown_tables
from tests.support import documents


def find_cells(text: str) -> list[list[tuple[str, ...]]]:
    return [[row.cells for row in table.rows] for table in markdown_tables.find_markdown_tables(text)]


def test_a_table_is_found_with_the_offsets_of_its_header_and_rows() -> None:
    """ING-6"""
    text = "Before.\n\n| Year | Cars |\n| --- | ---: |\n| 2019 | 12 |\n| 2020 | 7 |\n\nAfter."
    (table,) = markdown_tables.find_markdown_tables(text)
    assert [text[row.start : row.end] for row in table.rows] == ["| Year | Cars |", "| 2019 | 12 |", "| 2020 | 7 |"]
    assert table == models.Table(
        rows=(
            models.TableRow(9, 24, ("Year", "Cars")),
            models.TableRow(40, 53, ("2019", "12")),
            models.TableRow(54, 66, ("2020", "7")),
        ),
        header_rows=1,
    )


def test_outer_borders_may_be_missing_and_lines_may_be_indented() -> None:
    assert find_cells("   a | b\n   :-- | :-:\n   1 | 2") == [[("a", "b"), ("1", "2")]]


def test_an_escaped_border_is_part_of_a_cell() -> None:
    assert find_cells("| a \\| b | c |\n|---|---|\n| 1 | 2\\|3 |") == [[("a | b", "c"), ("1", "2|3")]]


def test_rows_have_as_many_cells_as_the_header() -> None:
    assert find_cells("|a|b|c|\n|-|-|-|\n|1|\n|1|2|3|4|") == [[("a", "b", "c"), ("1", "", ""), ("1", "2", "3 4")]]


def test_a_table_ends_at_a_line_without_a_border() -> None:
    assert find_cells("|a|\n|-|\n|1|\nprose\n\n|b|\n|-|\n|2|") == [[("a",), ("1",)], [("b",), ("2",)]]


@pytest.mark.parametrize(
    "text",
    [
        "```\n| a | b |\n| - | - |\n```",
        "~~~~ text\n| a |\n|---|\n~~~\n| b |\n|---|\n~~~~",
        "    | a | b |\n    | - | - |",
        "either | or\nis prose",
        "one cell\n| - | - |",
        "| a | b |  c\n",
        "",
    ],
    ids=["fenced", "longer fence", "indented", "no delimiter", "other width", "open row", "empty"],
)
def test_code_and_prose_are_not_tables(text: str) -> None:
    assert markdown_tables.find_markdown_tables(text) == ()


def test_a_text_that_begins_inside_a_table_has_its_rows_without_a_header() -> None:
    text = "| 1 | 2 |\n| 3 | 4 |\n\nProse.\n\n| a | b |\n| - | - |\n| 5 | 6 |"
    found = markdown_tables.find_markdown_tables(text)
    assert [table.header_rows for table in found] == [0, 1]
    assert find_cells(text) == [[("1", "2"), ("3", "4")], [("a", "b"), ("5", "6")]]


def test_a_delimiter_row_at_the_start_is_not_a_row() -> None:
    text = "| --- | --- |\n| 1 | 2 |"
    assert markdown_tables.find_markdown_tables(text) == (
        models.Table((models.TableRow(14, 23, ("1", "2")),), header_rows=0),
    )


def test_the_tables_of_a_word_file_are_found_in_its_text(tmp_path: Path) -> None:
    """ING-1"""
    rows = [["Name", "a|b"], ["x", "1"]]
    path = documents.make_docx(tmp_path / "a.docx", "Before.", rows, "After.")
    with open_document(path, "docx", max_pages=9) as document:
        (page,) = document.pages()
    assert find_cells(page.text) == [[tuple(row) for row in rows]]


def test_rows_are_written_below_their_header() -> None:
    """ING-6"""
    written = markdown_tables.render_markdown([("Name", "a|b")], [("x\ny", ""), ("1", "2")])
    assert written == "| Name | a\\|b |\n| --- | --- |\n| x y |  |\n| 1 | 2 |"


def test_two_header_rows_are_written_as_one() -> None:
    header = [("", "2019", "2019", "Total"), ("Region", "Sales", "Profit", "Total")]
    assert markdown_tables.render_markdown(header, [("North", "1", "2", "3")]) == (
        "| Region | 2019 Sales | 2019 Profit | Total |\n| --- | --- | --- | --- |\n| North | 1 | 2 | 3 |"
    )


def test_without_a_header_only_rows_are_written() -> None:
    assert markdown_tables.render_markdown([], [("1", "2"), ("3", "4")]) == "| 1 | 2 |\n| 3 | 4 |"


@pytest.mark.parametrize("seed", range(20))
def test_a_written_table_is_found_again(seed: int) -> None:
    rng = random.Random(seed)
    width = rng.randint(1, 5)
    cells = ["", "été", "a | b", "|", "1,5 %", "-", "x\\|y", "two words"]
    header = [("h", *rng.choices(cells[1:3], k=width - 1))]
    rows = [("r", *rng.choices(cells, k=width - 1)) for _ in range(rng.randint(1, 6))]
    written = markdown_tables.render_markdown(header, rows)
    assert find_cells(f"Prose.\n\n{written}\n\nProse.") == [[*header, *rows]]
