"""Whether a passage bears out a claim is apart from whether its quotation stands on the page."""

from __future__ import annotations

import pytest

from functions.core.citations.cite import cite_extracts, cite_sections
from functions.core.citations.sections import Quotation, WrittenSection
from tests.support.fakes.search_hits import make_hit

BATTLE = make_hit("Harald of Norway defeated Edmund near Dover on 14 March 1066 with 300 ships. He did not pursue him.")
TOWNS = make_hit(
    "Ashford has 4,200 houses. Brighton has 9,100 houses and a harbour for fishing boats.", index=1, offset=400
)
LAKE = make_hit(
    "Le lac de Morand a été vidé en juin 1931 par la société Verdet. Il n'a jamais été rempli.",
    document="lac",
    lang="fr",
)
HITS = [BATTLE, TOWNS, LAKE]
WON = "Harald of Norway defeated Edmund near Dover on 14 March 1066 with 300 ships."
DRAINED = "Le lac de Morand a été vidé en juin 1931 par la société Verdet."


def cite(text: str, *ids: str, quoted: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    """The citations of one section as (passage, check, support)."""
    _, sources = cite_sections([WrittenSection(text, ids, quoted)], HITS)
    return [(f"{source.source_id}:{source.chunk_index}", source.check, source.support) for source in sources]


@pytest.mark.parametrize(
    ("text", "passage", "quote"),
    [
        pytest.param(WON, "doc:0", WON, id="verbatim"),
        pytest.param("Near Dover, Edmund was defeated by Harald of Norway in 1066.", "doc:0", WON, id="passive"),
        pytest.param("With 300 ships, Harald beat and defeated Edmund.", "doc:0", WON, id="reordered"),
        pytest.param("Harald did not pursue Edmund.", "doc:0", "He did not pursue him.", id="pronoun-resolved"),
        pytest.param("La société Verdet a vidé le lac de Morand en juin 1931.", "lac:0", DRAINED, id="french"),
        pytest.param("Verdet emptied the lake of Morand in June 1931.", "lac:0", DRAINED, id="translated"),
    ],
)
def test_a_claim_in_other_words_is_borne_out(text: str, passage: str, quote: str) -> None:
    """CHAT-5"""
    assert cite(text, passage, quoted=(quote,)) == [(passage, "exact", "high")]


@pytest.mark.parametrize(
    ("text", "passage", "quote"),
    [
        pytest.param("Canute of Norway defeated Edmund near Dover in 1066.", "doc:0", WON, id="other-name"),
        pytest.param("Edmund of Norway defeated Harald near Dover in 1066.", "doc:0", WON, id="swapped-subject"),
        pytest.param("Harald of Norway was defeated by Edmund near Dover.", "doc:0", WON, id="swapped-by-passive"),
        pytest.param("Harald of Norway defeated Edmund near Dover in 1067.", "doc:0", WON, id="other-year"),
        pytest.param("Harald defeated Edmund near Dover on 14 June 1066.", "doc:0", WON, id="other-month"),
        pytest.param("Harald defeated Edmund near Dover with 400 ships.", "doc:0", WON, id="other-figure"),
        pytest.param("Harald defeated Edmund near Dover with four ships.", "doc:0", WON, id="other-number-word"),
        pytest.param("Harald of Norway did not defeat Edmund near Dover.", "doc:0", WON, id="denied"),
        pytest.param("Penguins live on the ice shelf.", "doc:0", WON, id="unrelated-quote"),
        pytest.param("Le lac de Morand n'a pas été vidé en juin 1931.", "lac:0", DRAINED, id="denied-in-french"),
        pytest.param("Le lac de Morand a été vidé en mai 1931 par Verdet.", "lac:0", DRAINED, id="french-month"),
        pytest.param("Verdet emptied the lake of Morand in 1932.", "lac:0", DRAINED, id="translated-other-year"),
        pytest.param("Verdet did not empty the lake of Morand in 1931.", "lac:0", DRAINED, id="translated-denied"),
        pytest.param("The lake was emptied by a company.", "lac:0", DRAINED, id="translated-without-names"),
    ],
)
def test_a_changed_claim_has_low_support_though_its_quote_is_exact(text: str, passage: str, quote: str) -> None:
    """CHAT-5, LANG-4"""
    assert cite(text, passage, quoted=(quote,)) == [(passage, "exact", "low")]


def test_dropping_a_denial_is_a_change() -> None:
    """CHAT-5"""
    quote = "Il n'a jamais été rempli."
    assert cite("Le lac de Morand a été rempli.", "lac:0", quoted=(quote,)) == [("lac:0", "exact", "low")]


def test_figures_that_change_places_between_names_are_a_change() -> None:
    """CHAT-5"""
    said = "Ashford has 9,100 houses and Brighton has 4,200 houses."
    assert cite(said, "doc:1", quoted=(TOWNS.text,)) == [("doc:1", "exact", "low")]


def test_a_figure_of_another_given_passage_is_cited_from_there() -> None:
    """CHAT-5"""
    [section], sources = cite_sections([WrittenSection("Ashford has 4,200 houses.", ("doc:0",))], HITS)
    assert (section.segment_ids, section.unsupported_numbers, sources[0].support) == (("doc:1",), (), "high")


def test_a_wrong_passage_is_replaced_by_a_given_one_that_bears_the_claim_out() -> None:
    """CHAT-5"""
    assert cite("Edmund was defeated by Harald near Dover.", "doc:1") == [("doc:0", "fuzzy", "high")]


def test_no_passage_without_the_names_of_a_claim_replaces_a_wrong_one() -> None:
    """CHAT-5"""
    assert cite("Canute has 4,200 houses there.", "doc:0") == [("doc:0", "unverified", "low")]


@pytest.mark.parametrize("written", ["1", "p. 1", "doc", "[2]", "page 1"])
def test_a_number_or_document_in_place_of_a_passage_is_matched_by_the_words(written: str) -> None:
    """CHAT-5"""
    assert cite("Brighton has 9,100 houses and a harbour.", written) == [("doc:1", "exact", "high")]


def test_a_place_that_is_quoted_once_and_cited_twice_shows_the_better_check() -> None:
    """CHAT-5"""
    written = [WrittenSection(WON, ("doc:0",), (WON,)), WrittenSection("In 1066 Harald defeated Edmund.", ("doc:0",))]
    sections, sources = cite_sections(written, HITS)
    assert [section.citations for section in sections] == [(1,), (1,)]
    assert [(source.check, source.support) for source in sources] == [("exact", "high")]


def test_a_true_and_a_false_claim_about_one_place_have_a_mark_each() -> None:
    """CHAT-5"""
    written = [WrittenSection(WON, ("doc:0",), (WON,)), WrittenSection("Canute beat Edmund.", ("doc:0",), (WON,))]
    sections, sources = cite_sections(written, HITS)
    assert [section.citations for section in sections] == [(1,), (2,)]
    assert [source.support for source in sources] == ["high", "low"]


def test_two_passages_bear_out_a_claim_together() -> None:
    """CHAT-5"""
    text = "Harald defeated Edmund near Dover, and Brighton has 9,100 houses."
    assert cite(text, quoted=(WON, "Brighton has 9,100 houses")) == [
        ("doc:0", "exact", "high"),
        ("doc:1", "exact", "high"),
    ]


@pytest.mark.parametrize(
    ("question", "support"), [("Who defeated Edmund near Dover?", "high"), ("Capital of Mars?", "low")]
)
def test_an_extract_is_supported_if_its_passage_bears_on_the_question(question: str, support: str) -> None:
    """CHAT-6"""
    hit = make_hit(BATTLE.text) if support == "high" else make_hit(BATTLE.text, similarity=0.3, coverage=0.1)
    _, [source] = cite_extracts([Quotation(hit, ((0, len(WON)),), WON)], question, "en", least_evidence=0.24)
    assert (source.check, source.support) == ("exact", support)
