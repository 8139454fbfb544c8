from __future__ import annotations

import random

import pytest

from functions.core import models
from functions.core.citations import quotes
from functions.core.citations.cite import cite_extracts, cite_sections, mark_answer
from functions.core.citations.sections import Quotation, WrittenSection
from tests.support.fakes.search_hits import make_hit

REVENUE = make_hit(
    "Intro words here. Revenue rose by 5 % to 1,234.5 million euros in 2003. The board was not pleased.", offset=100
)
STAFF = make_hit("The company employs 420 people in Lyon. Most of them work in research.", index=1, offset=400)
OTHER = make_hit("Penguins breed on the ice shelf during winter.", document="other", page=9)
NAMED = make_hit("The chimney is tall.", document="report_00012_2019")
HITS = [REVENUE, STAFF, OTHER, NAMED]


def cite(text: str, *ids: str, quoted: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """The citations of one section as (passage, quote, check)."""
    _, sources = cite_sections([WrittenSection(text, ids, quoted)], HITS)
    return [(f"{source.source_id}:{source.chunk_index}", source.quote, source.check) for source in sources]


def test_a_citation_has_its_place_and_quote() -> None:
    """CHAT-5"""
    sections, sources = cite_sections([WrittenSection("Up 5 %.", ("doc:0",), ("revenue rose by 5 %",))], HITS)
    assert sections == (models.CitedSection("Up 5 %.", ("doc:0",), (1,)),)
    assert sources == (
        models.Citation(
            number=1,
            source_id="doc",
            chunk_index=0,
            source="document",
            file_name="doc.pdf",
            file_type="pdf",
            page_start=1,
            page_end=1,
            start_offset=118,
            end_offset=137,
            quote="Revenue rose by 5 %",
            snippet_preview="Revenue rose by 5 %",
            section_title=None,
            score=0.52,
            check="exact",
            support="high",
        ),
    )


@pytest.mark.parametrize(
    "written",
    ["doc:1", " DOC:1 ", "[SEG=doc:1]", "SEG=doc:1", "seg = doc:1", "`doc:1`", "doc:0x, doc:1"],
)
def test_an_id_is_recognized_in_any_wrapping(written: str) -> None:
    """CHAT-5"""
    assert cite("It employs 420 people in Lyon.", written) == [
        ("doc:1", "The company employs 420 people in Lyon.", "fuzzy")
    ]


@pytest.mark.parametrize("unknown", ["doc:7", "doc:", "1", "", "secret:0", "oc:1", "doc:1:1", "doc:11"])
def test_ids_that_are_not_in_the_context_are_dropped(unknown: str) -> None:
    """CHAT-5"""
    assert cite("Nothing here is supported at all.", unknown) == []


@pytest.mark.parametrize(
    ("text", "ids", "quoted", "expected"),
    [
        pytest.param(
            "Sales grew.", ["doc:0"], ["Revenue rose by 5 % to 1 234,5 million"], "fuzzy", id="other-notation"
        ),
        pytest.param("Sales grew.", ["doc:0"], ["Revenue climbed 5 % to 1,234.5 million euros"], "fuzzy", id="similar"),
        pytest.param("Sales grew 6 %.", ["doc:0"], ["Revenue rose by 5 %"], "exact", id="unknown-figure"),
        pytest.param("Revenue rose by 5 % in 2003.", ["doc:0"], [], "fuzzy", id="every-word"),
        pytest.param("In 2003 revenue rose strongly by 5 %.", ["doc:0"], [], "fuzzy", id="most-words"),
        pytest.param("Revenue rose by 7 % in 2003.", ["doc:0"], [], "unverified", id="wrong-figure"),
        pytest.param("Revenue did not rise by 5 % in 2003 euros.", ["doc:0"], [], "fuzzy", id="denied"),
        pytest.param("Le chiffre progresse.", ["doc:0"], [], "unverified", id="other-language"),
    ],
)
def test_the_check_says_how_well_the_page_supports_a_section(
    text: str, ids: list[str], quoted: list[str], expected: str
) -> None:
    """CHAT-5"""
    assert [check for *_, check in cite(text, *ids, quoted=tuple(quoted))] == [expected]


@pytest.mark.parametrize(
    ("text", "ids", "question", "unsupported"),
    [
        pytest.param("Revenue rose by 5 % to 1 234,5 million.", ["doc:0"], "", (), id="other-notation"),
        pytest.param("Revenue rose by 7 % in 2003.", ["doc:0"], "", ("7 %",), id="changed"),
        pytest.param("It employs 421 people.", ["doc:0"], "", ("421",), id="in-no-passage"),
        pytest.param("Not by 7 % but by 5 %.", ["doc:0"], "Did it rise by 7 %?", (), id="asked"),
        pytest.param("Yes, it rose by 7 % in 2003.", ["doc:0"], "Did it rise by 7 %?", ("7 %",), id="agreed-to"),
        pytest.param("You asked about 7 %. It did not rise by 7 %.", ["doc:0"], "By 7 %?", (), id="denied-after"),
        pytest.param("After 30 days it ends.", ["doc:0"], "What is after 30 days?", (), id="no-rival"),
        pytest.param("In 2019 it rose by 5 %.", ["doc:0"], "And in 2019?", (), id="year-asked"),
        pytest.param("As doc.pdf says on page 1.", ["doc:0"], "", (), id="page"),
        pytest.param("As p. 1 and pages 1-1 say, 1 of them fell.", ["doc:0"], "", ("1",), id="page-number-elsewhere"),
        pytest.param("report_00012_2019.pdf of 2019 says 12.", ["report_00012_2019:0"], "", ("12",), id="file-name"),
        pytest.param("Volcanoes erupt 12 times.", [], "", ("12",), id="no-passage"),
        pytest.param("1. It rose by 5 %\n2. It rose by 6 %", ["doc:0"], "", ("6 %",), id="list"),
    ],
)
def test_a_number_in_no_cited_passage_is_listed_as_unsupported(
    text: str, ids: list[str], question: str, unsupported: tuple[str, ...]
) -> None:
    [section], _ = cite_sections([WrittenSection(text, tuple(ids), ())], HITS, question)
    assert section.unsupported_numbers == unsupported


def test_a_quote_is_cited_from_the_passage_that_contains_it() -> None:
    """CHAT-5"""
    assert cite("Many work there.", "other:0", quoted=("employs 420 people in Lyon",)) == [
        ("doc:1", "employs 420 people in Lyon", "exact")
    ]


def test_an_invented_quote_is_never_shown() -> None:
    """CHAT-5"""
    [(_, quote, check)] = cite("It was sold.", "doc:1", quoted=("The company was sold to a fund in Delaware",))
    assert (quote in STAFF.text, check) == (True, "unverified")


@pytest.mark.parametrize("ids", [(), ("nobody:1",)], ids=["none", "invented"])
def test_without_usable_ids_the_passage_is_chosen_by_its_words(ids: tuple[str, ...]) -> None:
    """CHAT-5"""
    text = "It employs 420 people in Lyon. Unrelated claims about volcanoes erupting follow."
    assert cite(text, *ids) == [("doc:1", "The company employs 420 people in Lyon.", "fuzzy")]


def test_the_clauses_of_a_sentence_may_cite_different_passages() -> None:
    """CHAT-5"""
    text = "By 5 %, to 1,234.5 million euros, the revenue rose; in Lyon it employs 420 people."
    assert [(passage, check) for passage, _, check in cite(text, "doc:0", "doc:1")] == [
        ("doc:0", "fuzzy"),
        ("doc:1", "fuzzy"),
    ]


def test_a_clause_of_two_words_is_no_evidence() -> None:
    text = "The turnover of the group fell sharply in the autumn; most people work."
    assert [check for *_, check in cite(text, "doc:1")] == ["unverified"]


def test_unrelated_citations_are_dropped_when_another_fits() -> None:
    """CHAT-5"""
    assert [passage for passage, *_ in cite("It employs 420 people in Lyon.", "other:0", "doc:1", "doc:0")] == ["doc:1"]


def test_sources_are_numbered_by_first_appearance_and_once_per_place() -> None:
    """CHAT-5"""
    written = [
        WrittenSection("Staff.", ("doc:1",), ("employs 420 people",)),
        WrittenSection("Sales.", ("doc:0",), ("Revenue rose by 5 %",)),
        WrittenSection("Both.", ("doc:0", "doc:1"), ("employs 420 people", "Revenue rose by 5 %")),
    ]
    sections, sources = cite_sections(written, HITS)
    assert [section.citations for section in sections] == [(1,), (2,), (1, 2)]
    assert [source.number for source in sources] == [1, 2]


def test_a_place_shared_by_overlapping_passages_is_one_citation() -> None:
    """CHAT-5"""
    text = "Alpha beta gamma delta epsilon."
    twins = [make_hit(text, index=0, offset=50), make_hit(f"Before it. {text}", index=1, offset=39)]
    _, sources = cite_sections([WrittenSection("Claim.", ("doc:0", "doc:1"), ("beta gamma delta",))] * 2, twins)
    assert [(source.start_offset, source.end_offset) for source in sources if source.check == "exact"] == [(56, 72)]


def test_marks_follow_each_section_and_no_other_number_looks_like_one() -> None:
    """CHAT-5"""
    sections = [
        models.CitedSection("See [12] and [1, 2].", (), (1, 3)),
        models.CitedSection("| a |\n| b |", (), (2,)),
        models.CitedSection("Uncited.", (), ()),
    ]
    assert mark_answer(sections) == "See (12) and (1, 2). [1][3]\n\n| a |\n| b |\n\n[2]\n\nUncited."


def test_the_preview_is_at_most_200_characters_of_one_line() -> None:
    """CHAT-5"""
    hit = make_hit("several words\n" * 60)
    _, [source] = cite_extracts([Quotation(hit, ((0, len(hit.text)),), hit.text)])
    assert (len(source.snippet_preview) <= 200, "\n" in source.snippet_preview) == (True, False)
    assert source.quote == hit.text


def test_every_citation_is_page_text_of_a_passage_in_the_context() -> None:
    """CHAT-5"""
    chance = random.Random(3)
    page = "x" * 100 + REVENUE.text + "y" * (400 - 100 - len(REVENUE.text)) + STAFF.text
    pages = {"doc": page, "other": OTHER.text}
    vocabulary = [*page.split(), *OTHER.text.split(), "doc:0", "other:0", "else:3", "5", "…", "[1]", '"']

    def words(most: int) -> str:
        return " ".join(chance.choices(vocabulary, k=chance.randint(0, most)))

    for _ in range(400):
        written = [
            WrittenSection(words(25), tuple(words(2) for _ in range(3)), tuple(words(8) for _ in range(2)))
            for _ in range(3)
        ]
        sections, sources = cite_sections(written, HITS)
        assert [source.number for source in sources] == list(range(1, len(sources) + 1))
        assert {number for section in sections for number in section.citations} == set(range(1, len(sources) + 1))
        for source in sources:
            assert pages[source.source_id][source.start_offset : source.end_offset] == source.quote != ""


PAGE = (
    "The ﬁrst infor-\nmation was “well-\nknown”: it cost 1 234,5 €  in\n2003 — co\u00adoperation. "
    "Re\u0301sume\u0301 of the party."
)


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ('first information was "well-known"', "ﬁrst infor-\nmation was “well-\nknown”"),
        ("IN 2003 - cooperation", "in\n2003 — co\u00adoperation"),
        ("Résumé of the party!", "Re\u0301sume\u0301 of the party"),
        ("it cost 1 234,5 €", "it cost 1 234,5 €"),
        ("“well-known” … 2003 - cooperation", "“well-\nknown”: it cost 1 234,5 €  in\n2003 — co\u00adoperation"),
        ("Résumé of the part", None),
        ("it cost 1 234", None),
        ("the", None),
        ("in 2003 … was well-known", None),
    ],
)
def test_a_quote_is_found_despite_typography_but_not_inside_a_word(quote: str, expected: str | None) -> None:
    """CHAT-5"""
    span = quotes.find_exact(quote, PAGE, quotes.fold(PAGE))
    assert (PAGE[slice(*span)] if span else None) == expected


# Answers in another language than their passages


EMISSIONS = make_hit(
    "E-PRTR plants emitted 1,234.5 tonnes of ammonia in 2010. Mr Dupont of Eurostat wrote the report.", document="en"
)


def cite_translated(text: str, *quoted: str) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The citations of a French section about EMISSIONS as (quote, check), and its unsupported figures."""
    sections, sources = cite_sections([WrittenSection(text, ("en:0",), quoted)], [EMISSIONS])
    return [(source.quote, source.check) for source in sources], sections[0].unsupported_numbers


def test_a_translated_section_is_checked_by_its_quotation() -> None:
    """LANG-4, CHAT-5"""
    said = "Les usines du registre ont émis 1 234,5 tonnes d'ammoniac en 2010."
    quote = "E-PRTR plants emitted 1,234.5 tonnes of ammonia in 2010"
    assert cite_translated(said, quote) == ([(quote, "exact")], ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "Les usines du registre ont émis 1 234,5 tonnes d'ammoniac en 2010.",
            ("E-PRTR plants emitted 1,234.5 tonnes of ammonia in 2010.", "fuzzy"),
            id="figures",
        ),
        pytest.param(
            "Les usines du registre ont émis 1 234,5 tonnes d'ammoniac en 2011.",
            ("E-PRTR plants emitted 1,234.5 tonnes of ammonia in 2010.", "unverified"),
            id="changed-figure",
        ),
        pytest.param(
            "C'est ce que les auteurs de ce rapport ont écrit sur les usines.",
            (EMISSIONS.text, "unverified"),
            id="nothing-that-is-kept",
        ),
    ],
)
def test_a_translated_section_without_quotation_is_checked_by_its_names_and_figures(
    text: str, expected: tuple[str, str]
) -> None:
    """LANG-4, CHAT-5"""
    citations, unsupported = cite_translated(text)
    assert (citations, unsupported) == ([expected], ("2011",) if "2011" in text else ())


def test_a_single_figure_does_not_support_a_translated_section_that_names_no_passage() -> None:
    """LANG-4, CHAT-5"""
    _, sources = cite_sections([WrittenSection("Les ventes de la maison ont doublé en 2010.", (), ())], [EMISSIONS])
    assert sources == ()
