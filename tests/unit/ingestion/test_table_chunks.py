"""Cutting tables into passages: whole where they fit, otherwise by rows with their header, without losing text."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies

from functions.core import models
from functions.core.ingestion.chunking import chunker
from functions.core.ingestion.chunking.page_layout import Carry
from functions.core.ingestion.chunking.passages import ChunkSettings
from functions.core.text import markdown_tables
from tests.unit.ingestion.test_chunking import SENTENCE, count_tokens

HEADER = ("Year", "Venue", "Sum")
ROWS = [(str(2000 + index), f"Town {index}", str(100 * index)) for index in range(12)]


def table(*rows: Sequence[str], gap: str = " ", header_rows: int = 1, borders: tuple[float, ...] = ()) -> models.Table:
    """A table whose text is its rows, one line each; `make_page` sets its offsets."""
    found, start = [], 0
    for cells in rows:
        end = start + len(gap.join(cells))
        found.append(models.TableRow(start, end, tuple(cells)))
        start = end + 1
    return models.Table(tuple(found), header_rows, borders)


def make_page(*blocks: str | models.Table, gap: str = " ", hidden: str = "") -> models.Page:
    """A page of paragraphs and tables, with a line break after each; `hidden` is a stretch of invisible text."""
    text, found = "", []
    for block in blocks:
        if isinstance(block, str):
            text += block + "\n"
            continue
        at = len(text)
        rows = tuple(models.TableRow(at + row.start, at + row.end, row.cells) for row in block.rows)
        found.append(dataclasses.replace(block, rows=rows))
        text += "\n".join(gap.join(row.cells) for row in rows) + "\n"
    stretch = (text.index(hidden), text.index(hidden) + len(hidden))
    return models.Page(3, text, tables=tuple(found), hidden=(stretch,) if hidden else ())


def chunk(
    page: models.Page,
    *,
    target: int = 80,
    maximum: int = 80,
    carry: Carry | None = None,
    title: str | None = None,
    skip: Sequence[models.Offsets] = (),
) -> tuple[list[models.Chunk], Carry]:
    return chunker.chunk_page(
        page,
        settings=ChunkSettings(target_tokens=target, overlap_tokens=0, max_tokens=maximum),
        count_tokens=count_tokens,
        title=title,
        carry=carry or Carry(),
        first_index=0,
        lang="en",
        skip=skip,
    )


def chunks_of(*blocks: str | models.Table, **options: Any) -> list[models.Chunk]:
    return chunk(make_page(*blocks), **options)[0]


# Whole tables


def test_a_table_that_fits_is_one_chunk() -> None:
    """ING-6"""
    page = make_page(SENTENCE, table(HEADER, *ROWS[:3]), SENTENCE)
    found, _ = chunk(page, title="Report")
    assert [part.markdown for part in found] == [None, markdown_tables.render_markdown((HEADER,), ROWS[:3]), None]
    assert found[1].text == "Year Venue Sum\n2000 Town 0 0\n2001 Town 1 100\n2002 Town 2 200"
    assert found[1].search_text == f"Report\n{found[1].text}"
    assert [part.index for part in found] == [0, 1, 2]


def test_rows_are_searched_without_pipes_and_dashes() -> None:
    """ING-6"""
    text = "| Name | Note |\n| --- | --- |\n| Zoé | – |\n| A | con\u00adtinued |"
    page = models.Page(1, text, tables=markdown_tables.find_markdown_tables(text))
    ((found,), _) = chunk(page)
    assert found.text == text
    assert found.search_text == "Name Note\nZoé\nA continued"


def test_a_caption_belongs_to_its_table() -> None:
    """ING-6"""
    for caption in ("Table 3: Sums by year", "Tableau 2 – Sommes\npar année", "TABLE IV. SUMS", "Tab. 1.2 Sums"):
        _, found = chunks_of(f"{SENTENCE}\n\n{caption}", table(HEADER, *ROWS[:2]))
        assert found.text.startswith(caption)
        assert found.search_text.startswith(" ".join(caption.split()))


@pytest.mark.parametrize(
    "caption", ["Table SA3. | Sums by year", "Table 3.3: Sums by year", "Table 3.5: Sums\nFigure 3.11: Sums by year"]
)
def test_a_numbered_caption_belongs_to_its_table_without_an_empty_line_above(caption: str) -> None:
    """ING-6"""
    before, found = chunks_of(f"{SENTENCE} It is page\n51\n{caption}", table(HEADER, *ROWS[:2]))
    assert before.text.endswith("\n51")
    assert found.search_text.startswith(" ".join(caption.split()))


@pytest.mark.parametrize("title", ["62nd Cup (shogi) — Round 1", "Sums by year", "The sums are as follows:"])
def test_a_separate_line_above_a_table_is_its_title(title: str) -> None:
    """ING-6"""
    before, *pieces = chunks_of(SENTENCE, title, table(HEADER, *ROWS), maximum=45)
    assert before.text == SENTENCE
    assert pieces[0].text.startswith(f"{title}\nYear")
    assert all(piece.search_text.startswith(f"{title}\nYear Venue Sum\n") for piece in pieces)


@pytest.mark.parametrize(
    "unit",
    [
        *("(in millions, except per share data)", "In thousands of euros", "(%)", "(Amounts in USD million)"),
        *("(US$ in millions)", "(millions of euros)", "($000)", "(en milliers d’euros)"),
    ],
)
def test_a_unit_stands_with_the_title_above_each_piece(unit: str) -> None:
    """ING-6"""
    before, *pieces = chunks_of(SENTENCE, "Statement of income", unit, table(HEADER, *ROWS), maximum=60)
    assert before.text == SENTENCE
    assert all(part.search_text.startswith(f"Statement of income {unit}\nYear Venue Sum\n") for part in pieces)


@pytest.mark.parametrize(
    "line", ["in millions of homes", "(see the note in million", "Sales rose in millions of homes."]
)
def test_a_sentence_with_a_unit_is_not_a_caption(line: str) -> None:
    _, found = chunks_of(f"{SENTENCE} It is\n{line}", table(HEADER, *ROWS[:2]))
    assert found.text.startswith("Year")


@pytest.mark.parametrize("above", ["Lifestyle", "χ = 16.9, 2, 0.0005 v p"])
def test_a_title_below_a_line_that_ends_early_belongs_to_its_table(above: str) -> None:
    """ING-6"""
    before, found = chunks_of(f"{SENTENCE}\n{above}\nSums by year", table(HEADER, *ROWS[:2]))
    assert before.text.endswith(above)
    assert found.search_text.startswith("Sums by year\nYear")


def test_a_caption_above_a_description_is_above_each_piece_too() -> None:
    """ING-6"""
    described = "Table 2: Sums\nThis table contains the sums of all towns and the years\nin which they were paid."
    before, *pieces = chunks_of(described, table(HEADER, *ROWS), maximum=45)
    assert before.text == described
    assert len(pieces) > 1
    assert all(piece.search_text.startswith("Table 2: Sums\nYear Venue Sum\n") for piece in pieces)


@pytest.mark.parametrize("line", ["as shown in\nTable 3 below the line", "The sums by year", "good. It is late."])
def test_the_end_of_a_paragraph_is_not_a_caption(line: str) -> None:
    before, found = chunks_of(f"{SENTENCE} It is\n{line}", table(HEADER, *ROWS[:2]))
    assert before.text.endswith(line)
    assert found.text.startswith("Year")


def test_a_heading_directly_above_a_table_is_in_the_tables_chunk() -> None:
    """ING-5"""
    _, found = chunks_of(SENTENCE, "# Sums by year", table(HEADER, *ROWS[:2]))
    assert found.text.startswith("# Sums by year\nYear Venue")
    assert found.section_title == "Sums by year"


def test_lines_of_a_table_are_not_headings() -> None:
    _, found = chunks_of("Introduction", SENTENCE, table(("RESULTS", "TOTAL"), ("METHODS", "1")), SENTENCE)[:2]
    assert found.section_title == "Introduction"


# Cut tables


def test_a_table_that_does_not_fit_is_cut_at_rows_and_repeats_its_header() -> None:
    """ING-6"""
    found = chunks_of(table(HEADER, *ROWS), maximum=40)
    assert [part.markdown for part in found] == [
        markdown_tables.render_markdown((HEADER,), ROWS[:6]),
        markdown_tables.render_markdown((HEADER,), ROWS[6:]),
    ]
    assert found[1].search_text.split("\n")[:2] == ["Year Venue Sum", "2006 Town 6 600"]
    assert found[1].text.split("\n")[0] == "2006 Town 6 600"


def test_each_piece_names_the_caption_and_the_section() -> None:
    """ING-6"""
    page = make_page("# Results", SENTENCE, "Table 1. Sums", table(HEADER, *ROWS))
    pieces = [part for part in chunk(page, maximum=40, title="Report")[0] if part.markdown]
    assert len(pieces) > 1
    assert all(part.search_text.startswith("Report\nResults\nTable 1. Sums\nYear Venue Sum\n") for part in pieces)


def test_a_piece_begins_with_the_title_of_its_first_rows() -> None:
    """A row alone does not say of which group it is."""
    groups = [("North", "", ""), *ROWS[:7], ("South", "", ""), *ROWS[7:]]
    found = chunks_of(table(HEADER, *groups), maximum=40)
    assert [part.markdown for part in found] == [
        markdown_tables.render_markdown((HEADER,), groups[:7]),
        markdown_tables.render_markdown((HEADER,), [("North", "", ""), *groups[7:]]),
    ]
    assert found[1].text.startswith("2006")


def test_a_row_with_dashes_is_no_title_of_the_rows_below() -> None:
    """ING-6"""
    rows = [("North", "", ""), *ROWS[:4], ("Loans", "—", "—"), *ROWS[4:]]
    *_, last = chunks_of(table(HEADER, *rows), maximum=40)
    assert last.markdown is not None
    assert "| North |" in last.markdown
    assert "Loans" not in last.markdown


def test_a_large_model_does_not_make_large_pieces() -> None:
    found = chunks_of(table(HEADER, *ROWS * 10), target=60, maximum=8000)
    assert len(found) > 3
    assert all(part.token_count <= 2 * 60 + 10 for part in found)


def test_a_long_row_is_cut_at_cells_and_sentences_and_repeats_its_first_cell() -> None:
    """ING-6"""
    long = " ".join(f"Clause {number} says so." for number in range(30))
    found = chunks_of(table(("Key", "Text", "Sum"), ("K7", long, "99")), maximum=50)
    assert len(found) > 2
    assert all(part.search_text.startswith("Key Text Sum\nK7 ") and part.token_count <= 50 for part in found)
    assert re.findall(r"Clause \d+", " ".join(part.search_text for part in found)) == [f"Clause {n}" for n in range(30)]
    assert found[1].text.startswith("Clause")
    assert len(found[1].text) < len(long) / 2
    assert found[-1].markdown is not None
    assert "| 99 |" in found[-1].markdown


def test_a_long_header_is_given_once_in_full_and_shortened_above_each_piece() -> None:
    """ING-6"""
    header = tuple(f"The long name of column number {column}" for column in range(20))
    row = tuple(str(number) for number in range(20))
    found = chunks_of(table(header, row, row, row))
    said = " ".join(part.search_text for part in found)
    assert all(part.token_count <= 80 for part in found)
    assert all(f"column number {column}" in said for column in range(20))


def test_rows_that_share_a_stretch_of_text_are_still_cut() -> None:
    """The text of a page may give a table column by column; each row then spans the whole text of the table."""
    columns = "\n".join("\n".join(column) for column in zip(HEADER, *ROWS, strict=True))
    page = models.Page(
        1, columns, tables=(models.Table(tuple(models.TableRow(0, len(columns), row) for row in (HEADER, *ROWS))),)
    )
    found, _ = chunk(page, maximum=40)
    assert [part.search_text for part in found] == [
        "\n".join(" ".join(row) for row in (HEADER, *rows)) for rows in (ROWS[:6], ROWS[6:])
    ]
    assert {part.text for part in found} == {columns}


def test_column_names_far_from_their_rows_have_their_own_chunk() -> None:
    """The text of a page may give the names of the columns after the rows."""
    page = make_page(table(*ROWS, HEADER))
    (whole,) = page.tables
    turned = models.Table((whole.rows[-1], *whole.rows[:-1]))
    found, _ = chunk(dataclasses.replace(page, tables=(turned,)), maximum=40)
    assert [part.text.split("\n")[0] for part in found] == ["Year Venue Sum", "2000 Town 0 0", "2006 Town 6 600"]
    assert all(part.search_text.startswith("Year Venue Sum") for part in found)


def test_prose_inside_a_table_is_also_in_a_chunk() -> None:
    text = f"Name\n{SENTENCE} {SENTENCE}\nSum"
    page = models.Page(1, text, tables=(models.Table((models.TableRow(0, len(text), ("Name", "Sum")),)),))
    found = [part.search_text for part in chunk(page)[0]]
    assert found == [text, "Name Sum"]


def test_a_few_words_between_rows_are_kept_as_a_row() -> None:
    page = make_page(table(HEADER, ROWS[0], ("Europe, all of it",), ROWS[1]))
    (whole,) = page.tables
    rows = (*whole.rows[:2], whole.rows[3])
    (found,), _ = chunk(dataclasses.replace(page, tables=(models.Table(rows),)))
    assert found.markdown == markdown_tables.render_markdown(
        (HEADER,), [ROWS[0], ("Europe, all of it", "", ""), ROWS[1]]
    )


# Tables over several pages

BORDERS = (72.0, 150.0, 300.0, 400.0)


def test_a_row_of_amounts_is_never_a_header() -> None:
    """A table found without its header: each row is a row, and none is repeated above the others."""
    rows = [("Net sales", "$ 1,204", "(98)"), ("Costs", "$ 1,102", "77.5 %"), ("Income", "$ 102", "12.0")]
    (found,) = chunks_of(table(*rows))
    assert found.markdown == markdown_tables.render_markdown((), rows)


def test_a_row_of_amounts_without_a_label_is_never_a_header() -> None:
    rows = [("200.01", "1"), ("400.01", "3"), ("600.01", "5")]
    (found,) = chunks_of(table(*rows))
    assert found.markdown == markdown_tables.render_markdown((), rows)


@pytest.mark.parametrize("names", [("Town", "2019", "2020"), ("Age", "18-24", "25-44"), ("Rank", "1", "2")])
def test_years_ages_and_numbers_of_columns_are_a_header(names: tuple[str, ...]) -> None:
    rows = [("Lyon", "1,204", "98.5"), ("Nice", "2,204", "97.5")]
    (found,) = chunks_of(table(names, *rows))
    assert found.markdown == markdown_tables.render_markdown((names,), rows)


def test_rows_of_a_table_beside_it_are_not_rows_of_a_table() -> None:
    """Tables side by side, whose rows alternate in the text."""
    text = "Town Cars Year Rain\nLyon 98 1990 12\nNice 71 1991 15\n"
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    sides = [
        models.Table(
            tuple(
                models.TableRow(words[n][0], words[n + 1][1], (text[slice(*words[n])], text[slice(*words[n + 1])]))
                for n in range(first, len(words), 4)
            )
        )
        for first in (0, 2)
    ]
    found, _ = chunk(models.Page(1, text, tables=tuple(sides)))
    assert [each.search_text for each in found] == ["Town Cars\nLyon 98\nNice 71", "Year Rain\n1990 12\n1991 15"]


def carry_of(*blocks: str | models.Table) -> Carry:
    return chunk(make_page(*blocks))[1]


def test_a_page_that_ends_in_a_table_carries_its_header_over() -> None:
    """ING-6"""
    first = table(HEADER, *ROWS[:2], borders=BORDERS)
    assert carry_of(SENTENCE, first) == carry_of(SENTENCE, first, "– 12 –") == Carry(None, (HEADER,), BORDERS)
    assert carry_of(first, SENTENCE) == carry_of(SENTENCE) == Carry()


def test_a_continued_table_gets_the_header_of_the_previous_page() -> None:
    """ING-6"""
    rest = table(*ROWS[2:4], header_rows=0, borders=(71.0, 152.0, 300.0, 400.0))
    found, carry = chunk(make_page(rest), carry=Carry("S", (HEADER,), BORDERS))
    assert [part.markdown for part in found] == [markdown_tables.render_markdown((HEADER,), ROWS[2:4])]
    assert found[0].search_text == "S\nYear Venue Sum\n2002 Town 2 200\n2003 Town 3 300"
    assert carry.header == (HEADER,)


def test_a_continued_table_keeps_the_caption_of_the_previous_page() -> None:
    """ING-6"""
    carry = carry_of("Table 1. Sums (in millions)", table(HEADER, *ROWS[:2], borders=BORDERS))
    for rest in (table(*ROWS[2:4], header_rows=0, borders=BORDERS), table(HEADER, *ROWS[2:4], borders=BORDERS)):
        (found,), again = chunk(make_page(rest), carry=carry)
        assert found.search_text.startswith("Table 1. Sums (in millions)\nYear Venue Sum\n")
        assert again == carry


def test_a_continued_table_keeps_the_title_of_its_last_rows() -> None:
    """ING-6"""
    carry = carry_of(table(HEADER, ("North", "", ""), *ROWS[:2], ("South", "", ""), *ROWS[2:4], borders=BORDERS))
    (found,), again = chunk(make_page(table(*ROWS[4:6], header_rows=0, borders=BORDERS)), carry=carry)
    assert found.markdown == markdown_tables.render_markdown((HEADER,), [("South", "", ""), *ROWS[4:6]])
    assert again == carry


def test_amounts_or_the_same_names_continue_a_table_whose_inner_borders_differ() -> None:
    """Columns without rules begin and end where the words of the page do."""
    names, rows = ("Item", "2024", "2023"), [("Cash", "1,204", "98.5"), ("Stocks", "2,204", "97.5")]
    carry = Carry(None, (names,), (72.0, 150.0, 300.0), "Assets (in millions)")
    for rest in (table(*rows, borders=(72.0, 190.0, 310.0, 400.0)), table(names, *rows, borders=(72.0, 190.0, 310.0))):
        (found,), _ = chunk(make_page(rest), carry=carry)
        assert found.search_text.startswith("Assets (in millions)\nItem 2024 2023\nCash")


def test_the_same_names_continue_a_table_without_a_column_that_is_empty_now() -> None:
    """ING-6"""
    carry = Carry(None, (("Item", "Note", "2024"),), (72.0, 150.0, 300.0, 400.0), "Assets (in millions)")
    rest = table(("Item Note", "2024"), ("Cash", "1,204"), ("Stocks", "2,204"), borders=(72.0, 310.0, 400.0))
    (found,), _ = chunk(make_page(rest), carry=carry)
    assert found.search_text.startswith("Assets (in millions)\nItem Note 2024\nCash")


def test_a_table_of_other_width_without_known_borders_is_another_one() -> None:
    page = make_page(table(("Year", "Venue"), ("2019", "Lyon")))
    (found,), _ = chunk(page, carry=Carry(None, (HEADER,), (), "Table 1"))
    assert found.search_text == "Year Venue\n2019 Lyon"


def test_a_table_with_a_title_or_borders_of_its_own_has_no_caption_of_the_previous_page() -> None:
    carry = Carry(None, (HEADER,), BORDERS, "Table 1. Sums")
    other = table(HEADER, *ROWS[2:4], borders=(*BORDERS[:-1], BORDERS[-1] + 50))
    for page in (make_page(other), make_page("Sums by town", table(HEADER, *ROWS[2:4], borders=BORDERS))):
        (found,), _ = chunk(page, carry=carry)
        assert "Table 1" not in found.search_text


def test_the_first_row_of_a_continued_table_is_a_row_and_no_header() -> None:
    """ING-6"""
    (found,), _ = chunk(make_page(table(*ROWS[2:5])), carry=Carry(None, (HEADER,)))
    assert found.markdown == markdown_tables.render_markdown((HEADER,), ROWS[2:5])


def test_a_header_repeated_on_the_page_is_not_duplicated() -> None:
    """ING-6"""
    page = make_page(table(("Year", "VENUE ", "Sum"), *ROWS[2:4]))
    (found,), _ = chunk(page, carry=Carry(None, (HEADER,)))
    assert found.search_text.count("Year") == 1
    assert found.text == page.text.strip()


@pytest.mark.parametrize(
    ("page", "carry"),
    [
        (make_page(SENTENCE, table(*ROWS[2:4], header_rows=0)), Carry(None, (HEADER,))),
        (make_page(table(*ROWS[2:4], header_rows=0)), Carry(None, (("One", "Two"),))),
        (make_page(table(*ROWS[2:4], header_rows=0, borders=(1.0, 2.0))), Carry(None, (HEADER,), BORDERS)),
        (make_page(table(("Week", "Town", "Cost"), *ROWS[2:4])), Carry(None, (HEADER,))),
    ],
    ids=["text before", "other columns", "other borders", "names of its own"],
)
def test_a_different_table_does_not_get_the_header(page: models.Page, carry: Carry) -> None:
    found, _ = chunk(page, carry=carry)
    assert not any("Year" in part.search_text or "One" in part.search_text for part in found)


def test_a_running_line_does_not_interrupt_a_table() -> None:
    """ING-6"""
    page = make_page("ACME Report", table(*ROWS[2:4], header_rows=0), "Confidential")
    skip = [(page.text.index(line), page.text.index(line) + len(line)) for line in ("ACME Report", "Confidential")]
    (found,), carry = chunk(page, carry=Carry(None, (HEADER,)), skip=skip)
    assert found.markdown == markdown_tables.render_markdown((HEADER,), ROWS[2:4])
    assert carry.header == (HEADER,)


def test_the_header_of_a_table_is_never_skipped() -> None:
    page = make_page(table(HEADER, *ROWS[:2]))
    (found,), _ = chunk(page, skip=[(0, len("Year Venue Sum"))])
    assert found.markdown == markdown_tables.render_markdown((HEADER,), ROWS[:2])


def test_the_carried_header_survives_json() -> None:
    carry = Carry("S", (HEADER,), BORDERS, "Table 1", {"EU": "European Union"}, "North")
    assert Carry.load(json.loads(json.dumps(dataclasses.asdict(carry)))) == carry
    assert Carry.load({}) == Carry()


# Properties of all tables


def test_a_row_with_hidden_text_is_read_as_prose_around_it() -> None:
    """ING-5"""
    page = make_page(table(HEADER, ROWS[0], ("2001", "Ghost town", "5"), ROWS[2]), hidden="Ghost town")
    found = [(part.search_text, part.markdown is None) for part in chunk(page)[0]]
    assert found == [
        ("Year Venue Sum\n2000 Town 0 0", False),
        ("2001", True),
        ("5", True),
        ("Year Venue Sum\n2002 Town 2 200", False),
    ]


def random_rows(chance: random.Random) -> list[tuple[str, ...]]:
    """Rows whose words are all different, with none to two hundred in a cell."""
    number = 0

    def cell() -> str:
        nonlocal number
        words = []
        for _ in range(chance.choice([0, 1, 1, 2, 5, 40, 200])):
            number += 1
            words.append(f"w{number}" + chance.choice(["", "", ".", ","]))
        return " ".join(words) or chance.choice(["", "-"])

    width = chance.randint(1, 6)
    return [tuple(cell() for _ in range(width)) for _ in range(chance.randint(1, 20))]


def test_no_word_of_a_table_is_lost() -> None:
    """ING-6, ING-7"""
    chance = random.Random(6)
    for _ in range(60):
        rows = random_rows(chance)
        page = make_page(SENTENCE, table(*rows, header_rows=chance.choice([0, 1])), SENTENCE)
        maximum, title = chance.choice([40, 80, 240]), chance.choice([None, "Long title " * 20])
        found, carry = chunk(page, target=maximum, maximum=maximum, title=title)
        assert (found, carry) == chunk(page, target=maximum, maximum=maximum, title=title)
        assert all(page.text[part.start_offset : part.end_offset] == part.text for part in found)
        assert all(part.token_count == count_tokens(part.search_text) <= maximum for part in found)
        said = set(re.findall(r"\w+", " ".join(part.search_text for part in found)))
        read = set(re.findall(r"\w+", " ".join(part.markdown or "" for part in found)))
        wanted = {word for cells in rows for cell in cells for word in re.findall(r"\w+", cell)}
        assert wanted <= said
        assert wanted <= read


NAMES = strategies.from_regex(r"[A-Z][a-z]{1,5}", fullmatch=True)


@given(strategies.lists(NAMES, min_size=2, max_size=4), strategies.integers(1, 60), strategies.integers(25, 80))
def test_a_table_is_cut_between_rows_and_each_piece_begins_with_its_header(
    header: list[str], row_count: int, maximum: int
) -> None:
    """ING-6: no row is lost, doubled or cut."""
    rows = [tuple(f"{row}x{column}" for column in range(len(header))) for row in range(row_count)]
    found = chunks_of(table(header, *rows), target=maximum, maximum=maximum)
    pieces = [part.search_text.split("\n") for part in found]
    names = [name for name, _ in itertools.groupby(header)]  # a name that spans columns is indexed once
    assert {piece[0] for piece in pieces} == {" ".join(names)}
    assert [line for piece in pieces for line in piece[1:]] == [" ".join(row) for row in rows]
    assert all(part.token_count <= maximum for part in found)
