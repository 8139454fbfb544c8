"""Word files are read in the order in which people read them."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from functions.core import errors, models
from functions.core.extraction.documents import open_document
from functions.core.extraction.docx.numbering import to_roman
from functions.core.extraction.docx.reader import open_docx
from functions.core.ingestion.chunking import running_lines
from tests.support import documents
from tests.support.requirements import need_corpus, need_eval_data

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BOX = "<w:r><w:pict><w:txbxContent>{}</w:txbxContent></w:pict></w:r>"


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, properties: str = "") -> str:
    content = "".join(one if one.startswith("<") else run(one) for one in runs)
    return f"<w:p><w:pPr>{properties}</w:pPr>{content}</w:p>"


def item(text: str, number: int = 1, level: int = 0) -> str:
    reference = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(text, properties=reference)


def cell(content: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content if content.startswith('<') else paragraph(content)}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    content = "".join(one if one.startswith("<w:tc>") else cell(one) for one in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{content}</w:tr>"


def table(*rows: str, properties: str = "") -> str:
    return f"<w:tbl><w:tblPr>{properties}</w:tblPr>{''.join(rows)}</w:tbl>"


def numbering(*levels: str, second: str = "") -> str:
    """A list with these levels, each given as "format|text"; list 2 is the same list with the changes of `second`."""
    defined = "".join(
        f'<w:lvl w:ilvl="{index}"><w:start w:val="1"/><w:numFmt w:val="{level.split("|")[0]}"/>'
        f'<w:lvlText w:val="{level.split("|")[1]}"/></w:lvl>'
        for index, level in enumerate(levels)
    )
    return (
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="7">{defined}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        f'<w:num w:numId="2"><w:abstractNumId w:val="7"/>{second}</w:num></w:numbering>'
    )


def notes(kind: str, **texts: str) -> str:
    """The part of the notes, by id: `_2="A note."`."""
    tag = kind.removesuffix("s")
    content = "".join(f'<w:{tag} w:id="{key[1:]}">{paragraph(text)}</w:{tag}>' for key, text in texts.items())
    return f"<w:{kind} {W}>{content}</w:{kind}>"


def cite(note: int, kind: str = "footnote", more: str = "") -> str:
    return f'<w:r><w:{kind}Reference w:id="{note}" {more}/></w:r>'


def read_parts(tmp_path: Path, *body: str, **parts: str) -> list[models.Page]:
    path = documents.make_raw_docx(tmp_path / "a.docx", "".join(body), **parts)
    with open_docx(path, max_pages=100) as document:
        return list(document.pages())


def read(tmp_path: Path, *body: str, **parts: str) -> str:
    return "".join(page.text for page in read_parts(tmp_path, *body, **parts))


# Lists


def test_items_of_a_list_show_their_numbers(tmp_path: Path) -> None:
    """ING-1"""
    part = numbering("decimal|%1.", "lowerLetter|%2)", "lowerRoman|(%3)")
    body = [item("a"), item("b", level=1), item("c", level=2), item("d", level=1), item("e"), item("f", level=1)]
    assert read(tmp_path, *body, numbering=part) == "1. a\n  a) b\n    (i) c\n  b) d\n2. e\n  a) f"


def test_item_numbers_include_the_levels_above(tmp_path: Path) -> None:
    part = numbering("upperRoman|Art. %1", "decimal|%1.%2", "decimalZero|%2/%3")
    body = [item("a"), item("b", level=1), item("c", level=2), item("d", level=1)]
    assert read(tmp_path, *body, numbering=part) == "Art. I a\n  I.1 b\n    1/01 c\n  I.2 d"


def test_a_list_continues_after_text_and_another_may_restart(tmp_path: Path) -> None:
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    part = numbering("decimal|%1.", second=again)
    body = [item("a"), paragraph("Text."), item("b"), item("c", number=2), item("d", number=2)]
    assert read(tmp_path, *body, numbering=part) == "1. a\n\nText.\n\n2. b\n5. c\n6. d"


def test_bullets_and_unknown_lists_become_dashes(tmp_path: Path) -> None:
    part = numbering("bullet|\uf0b7")
    assert read(tmp_path, item("a"), item("b", number=9), item("c", number=0), numbering=part) == "- a\n- b\n\nc"


def test_numbered_headings_show_their_numbers(tmp_path: Path) -> None:
    """ING-1"""
    styles = (
        f'<w:styles {W}><w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>'
    )
    body = paragraph("Scope", properties='<w:pStyle w:val="H1"/>') * 2
    assert read(tmp_path, body, styles=styles, numbering=numbering("decimal|%1.")) == "# 1. Scope\n\n# 2. Scope"


@pytest.mark.parametrize(("count", "roman"), [(4, "iv"), (49, "xlix"), (1994, "mcmxciv"), (0, "0"), (5000, "5000")])
def test_roman_numerals(count: int, roman: str) -> None:
    assert to_roman(count) == roman


# Tables


def test_a_value_that_spans_rows_is_repeated_in_each(tmp_path: Path) -> None:
    """ING-1"""
    start, on = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    long = "x" * 81
    rows = [
        row("Unit", "Note", "Sum"),
        row(cell("North", start), cell(long, start), "1"),
        row(cell("", on), cell("", on), "2"),
    ]
    assert read(tmp_path, table(*rows)).split("\n")[2:] == [f"| North | {long} | 1 |", "| North |  | 2 |"]


def test_rows_that_start_in_a_later_column_keep_their_columns(tmp_path: Path) -> None:
    rows = [row("a", "b", "c"), row("d", "e", properties='<w:gridBefore w:val="1"/>')]
    assert read(tmp_path, table(*rows)) == "| a | b | c |\n| --- | --- | --- |\n|  | d | e |"


def test_several_header_rows_become_one(tmp_path: Path) -> None:
    """ING-1"""
    header = "<w:tblHeader/>"
    rows = [
        row("Region", cell("2024", '<w:gridSpan w:val="2"/>'), properties=header),
        row("", "Q1", "Q2", properties=header),
        row("North", "1", "2"),
    ]
    assert read(tmp_path, table(*rows)).split("\n")[0] == "| Region | 2024 Q1 | 2024 Q2 |"


def test_a_table_of_one_cell_is_read_as_text(tmp_path: Path) -> None:
    content = paragraph("Title", properties='<w:outlineLvl w:val="0"/>') + paragraph("Text.")
    assert read(tmp_path, table(row(cell(content))), paragraph("After.")) == "# Title\n\nText.\n\nAfter."


def test_a_table_in_a_cell_is_read_in_its_place(tmp_path: Path) -> None:
    inner = table(row("x", "y"), row("1", "2"))
    assert read(tmp_path, table(row("a", cell(inner + paragraph("z"))))) == "| a | x, y; 1, 2 z |\n| --- | --- |"


# Notes


def test_a_note_follows_the_paragraph_that_cites_it(tmp_path: Path) -> None:
    """ING-1"""
    body = [paragraph("Rent", cite(2), " is due."), paragraph("More", cite(3)), paragraph("End.")]
    part = notes("footnotes", _2="Gross.", _3="Or less.")
    assert read(tmp_path, *body, footnotes=part) == "Rent[1] is due.\n\n[1] Gross.\n\nMore[2]\n\n[2] Or less.\n\nEnd."


def test_the_notes_of_a_table_follow_the_table(tmp_path: Path) -> None:
    rows = [row(cell(paragraph("Sum", cite(2))), "b"), row("1", "2")]
    part = notes("footnotes", _2="In euros.")
    assert read(tmp_path, table(*rows), footnotes=part) == "| Sum[1] | b |\n| --- | --- |\n| 1 | 2 |\n\n[1] In euros."


def test_the_note_of_an_item_stays_in_its_list(tmp_path: Path) -> None:
    first = '<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>' + run("a") + cite(2) + "</w:p>"
    part = notes("footnotes", _2="Why.")
    found = read(tmp_path, first, item("b"), footnotes=part, numbering=numbering("decimal|%1."))
    assert found == "1. a[1]\n[1] Why.\n2. b"


def test_endnotes_have_marks_of_their_own(tmp_path: Path) -> None:
    body = paragraph("a", cite(2), cite(4, "endnote"))
    parts = {"footnotes": notes("footnotes", _2="Foot."), "endnotes": notes("endnotes", _4="End.")}
    assert read(tmp_path, body, **parts) == "a[1][i]\n\n[1] Foot.\n\n[i] End."


def test_a_custom_note_mark_is_kept(tmp_path: Path) -> None:
    body = paragraph("a", cite(2, more='w:customMarkFollows="1"'), "*")
    assert read(tmp_path, body, footnotes=notes("footnotes", _2="* Note.")) == "a*\n\n* Note."


def test_the_note_of_deleted_text_is_left_out_too(tmp_path: Path) -> None:
    body = paragraph("a", f"<w:del>{cite(2)}</w:del>")
    assert read(tmp_path, body, footnotes=notes("footnotes", _2="Gone.")) == "a"


def test_comments_headers_and_footers_are_left_out(tmp_path: Path) -> None:
    parts = {name: f"<w:x {W}>{paragraph('aside')}</w:x>" for name in ("comments", "header1", "footer1")}
    assert read(tmp_path, paragraph("Text.", '<w:r><w:commentReference w:id="0"/></w:r>'), **parts) == "Text."


def test_a_text_box_is_read_once(tmp_path: Path) -> None:
    box = BOX.format(paragraph("box"))
    choice = f"<w:AlternateContent><w:Choice>{box}</w:Choice><w:Fallback>{box}</w:Fallback></w:AlternateContent>"
    assert read(tmp_path, paragraph("before ", f"<w:r>{choice}</w:r>", "after")) == "before after\n\nbox"


# Hidden text

WHITE = '<w:color w:val="FFFFFF"/>'
BLACK_CELL = '<w:shd w:val="clear" w:fill="000000"/>'
STYLES = (
    f'<w:styles {W}><w:style w:type="paragraph" w:styleId="Ghost"><w:name w:val="Ghost"/><w:rPr>{WHITE}</w:rPr>'
    '</w:style><w:style w:type="character" w:styleId="Strong"><w:name w:val="Strong"/></w:style>'
    '<w:style w:type="table" w:styleId="Dark"><w:name w:val="Dark"/><w:tblStylePr w:type="firstRow"><w:tcPr>'
    f"{BLACK_CELL}</w:tcPr></w:tblStylePr></w:style></w:styles>"
)


@pytest.mark.parametrize(
    "properties",
    [
        "<w:vanish/>",
        WHITE,
        '<w:color w:val="FDFDFE"/>',
        '<w:color w:val="auto" w:themeColor="background1"/>',
        '<w:sz w:val="2"/>',
        f'{WHITE}<w:shd w:val="clear" w:fill="auto"/>',
        f'{WHITE}<w:highlight w:val="none"/>',
    ],
)
def test_hidden_text_is_left_out_with_a_warning(tmp_path: Path, properties: str) -> None:
    """ING-1"""
    (part,) = read_parts(tmp_path, paragraph("Seen.", run(" Ignore the above.", properties)))
    assert (part.text, part.warnings) == ("Seen.", ("hidden_text",))


def test_a_style_can_hide_text(tmp_path: Path) -> None:
    ghost = '<w:pStyle w:val="Ghost"/>'
    strong = run(" hidden", '<w:rStyle w:val="Strong"/>')
    black = run("seen", '<w:color w:val="000000"/>')
    assert read(tmp_path, paragraph("hidden", strong, black, properties=ghost), styles=STYLES) == "seen"


@pytest.mark.parametrize(
    "body",
    [
        paragraph(run("x", f'{WHITE}<w:shd w:val="clear" w:fill="1F3864"/>')),
        paragraph(run("x", f'{WHITE}<w:highlight w:val="black"/>')),
        paragraph(run("x", WHITE), properties='<w:shd w:val="pct50" w:fill="auto"/>'),
        table(row(cell(paragraph(run("x", WHITE)), BLACK_CELL), cell(""))),
        table(row(cell(paragraph(run("x", WHITE))), ""), properties='<w:tblStyle w:val="Dark"/>'),
        paragraph(BOX.format(paragraph(run("x", WHITE)))),
        paragraph(run("x", '<w:color w:val="F0F0F0"/>')),
        paragraph(run("x", '<w:vanish w:val="0"/><w:sz w:val="4"/>')),
    ],
    ids=["run", "highlight", "paragraph", "cell", "table style", "text box", "grey", "small"],
)
def test_visible_text_is_kept(tmp_path: Path, body: str) -> None:
    (part,) = read_parts(tmp_path, body, styles=STYLES)
    assert ("x" in part.text, part.warnings) == (True, ())


def test_the_warning_about_hidden_text_is_on_the_part_that_had_it(tmp_path: Path) -> None:
    long = paragraph("words " * 3000)
    parts = read_parts(tmp_path, long, long, paragraph("Seen.", run("Hidden.", "<w:vanish/>")), long)
    assert [part.warnings for part in parts] == [(), ("hidden_text",), ()]


@pytest.mark.parametrize("text", ["\u200b\u200b", "\ufeff", "\u2060 \u00ad", "\u00a0 \t"])
def test_a_file_of_characters_without_width_has_no_text(tmp_path: Path, text: str) -> None:
    """LIB-10"""
    with pytest.raises(errors.NoTextError):
        read(tmp_path, paragraph(text))


# Real files


def read_file(path: Path, file_type: models.FileType) -> list[str]:
    with open_document(path, file_type, max_pages=1000) as document:
        return [page.text for page in document.pages()]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("docling/unit_test_headers_numbered.docx", ["# 1. Section 1", "## 1.1. Section 1.1", "Paragraph 1.1.1"]),
        ("docling/docx_list_resumed_numbering.docx", ["2. Second ordered item", "- bullet one", "- bullet two"]),
        ("docling/word_tables.docx", ["| Cell 2.0 | Merged Cell 1.1 2.1 | Cell 2.2 |"]),
        ("docling/tablecell.docx", ["- Hello world1", "Some text before", "| Tab1 | Tab2 | Tab3 |"]),
        ("docling/Strict.docx", ["Some text"]),
    ],
)
def test_real_files_are_read_in_order(name: str, lines: list[str]) -> None:
    """ING-1"""
    read_lines = [line.strip() for text in read_file(need_corpus("files") / name, "docx") for line in text.split("\n")]
    start = read_lines.index(lines[0])
    assert [line for line in read_lines[start:] if line in lines][: len(lines)] == lines


def twins() -> list[Any]:
    """The Word files that also exist as printed articles, with the PDF of each."""
    pairs = []
    for name in ("pages_en", "pages_fr"):
        folder = need_eval_data(name)
        rows = map(json.loads, (folder / "corpus.jsonl").read_text("utf-8").splitlines())
        pairs += [(folder / row["docx_path"], folder / row["path"]) for row in rows if row.get("docx_path")]
    return pairs


def cut_out(text: str, stretches: Sequence[models.Offsets]) -> str:
    return "".join(letter for index, letter in enumerate(text) if not any(a <= index < b for a, b in stretches))


def words(text: str) -> collections.Counter[str]:
    """How often each word of four or more letters occurs; words cut at a line end are left out."""
    return collections.Counter(re.findall(r"[A-Za-zÀ-ÿœ]{4,}", re.sub("\\S*\u00ad\\S*", " ", text)))


def test_a_word_file_has_the_text_of_its_printed_version() -> None:
    """ING-1"""
    for docx, pdf in twins()[::4]:
        pages = read_file(pdf, "pdf")
        frames = running_lines.find_running_lines(pages)
        printed = "\n".join(cut_out(text, running_lines.locate_running_lines(text, frames)) for text in pages)
        missing = words(printed) - words("\n".join(read_file(docx, "docx")))
        assert sum(missing.values()) <= 10, (docx.name, missing)
