"""How much evidence a question needs, and how it is measured; more in test_retriever.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core import models
from functions.core.retrieval import guard
from functions.core.settings import Settings
from functions.runtime import policy
from tests.support.fakes.search_hits import make_hit

ENGLISH = policy.MINILM_SERVER
MULTILINGUAL = policy.LOCAL_SERVER
MEASURED = replace(ENGLISH, guard_threshold=0.2)
SETTINGS = Settings(similarity_threshold=0.4)


@pytest.mark.parametrize(
    ("lang", "servers", "threshold"),
    [
        pytest.param("en", [ENGLISH], 0.4, id="language-of-the-model"),
        pytest.param("fr", [ENGLISH], 0.36, id="other-language"),
        pytest.param("fr", [MULTILINGUAL], 0.4, id="multilingual-model"),
        pytest.param("fr", [MULTILINGUAL, ENGLISH], 0.36, id="one-of-two-has-the-language"),
        pytest.param("en", [], 0.18, id="no-server-answered"),
        pytest.param("en", [MEASURED], 0.2, id="own-threshold"),
        pytest.param("fr", [MEASURED, MULTILINGUAL], 0.18, id="own-and-default-threshold"),
    ],
)
def test_less_evidence_is_needed_where_similarity_is_less_reliable(
    lang: str, servers: list[models.EmbeddingServer], threshold: float
) -> None:
    """RET-8, RET-5"""
    assert guard.find_threshold(lang, servers, SETTINGS, guard.MEDIUM_SCOPE) == pytest.approx(threshold)


@pytest.mark.parametrize(("passages", "threshold"), [(0, 0.2), (40, 0.2), (400, 0.4), (1265, 0.5), (10**6, 0.54)])
def test_more_evidence_is_needed_where_more_passages_are_searched(passages: int, threshold: float) -> None:
    """RET-8: the best of many unrelated passages is more similar to a question than the best of few."""
    assert guard.find_threshold("en", [ENGLISH], SETTINGS, passages) == pytest.approx(threshold, abs=0.001)


@pytest.mark.parametrize(
    ("circumstances", "threshold"),
    [
        ({"has_model": True}, 0.24),
        ({"names_documents": True}, 0.32),
        ({"has_model": True, "names_documents": True}, 0.192),
    ],
    ids=["a-model-reads-the-passages", "documents-were-chosen", "both"],
)
def test_less_evidence_is_needed_where_a_refusal_is_more_likely_wrong(
    circumstances: dict[str, bool], threshold: float
) -> None:
    """RET-8"""
    required = guard.find_threshold("en", [ENGLISH], SETTINGS, guard.MEDIUM_SCOPE, **circumstances)
    assert required == pytest.approx(threshold)


def test_the_evidence_of_a_search_is_that_of_its_best_passage() -> None:
    """RET-8"""
    hits = [replace(make_hit("x"), similarity=s, coverage=c) for s, c in ((0.8, 0.0), (0.5, 0.7), (-0.2, 1.0))]
    assert guard.find_evidence([("why?", "en")], hits) == pytest.approx(0.58)
    assert guard.find_evidence([("why?", "en")], []) == 0.0


@pytest.mark.parametrize(
    ("question", "evidence"),
    [
        pytest.param("When did Marie Curie leave Paris?", 0.48 - 0.15 / 3, id="Paris-is-missing"),
        pytest.param("When did Ernest Rutherford arrive in 1898?", 0.48 - 0.15, id="all-missing"),
        pytest.param("What is NARL?", 0.48, id="abbreviation"),
        pytest.param("when did rutherford arrive?", 0.48, id="no-capitals"),
        pytest.param("What Is The Name Of The Town", 0.48, id="headline"),
    ],
)
def test_names_that_a_document_lacks_are_evidence_against_it(question: str, evidence: float) -> None:
    """RET-8"""
    hit = replace(make_hit("Marie Curie left in May."), similarity=0.8, coverage=0.0)
    assert guard.find_evidence([(question, "en")], [hit]) == pytest.approx(evidence)


def test_names_may_stand_elsewhere_in_the_document_found_or_in_its_title() -> None:
    """RET-8"""
    hit = replace(make_hit("Sales rose."), similarity=0.8, coverage=0.0, title="Report 2018", file_name="acme_corp.pdf")
    other = replace(hit, text="The board of Grainger met.", similarity=0.1)
    question = [("What did Acme sell in 2018 to Grainger?", "en")]
    assert guard.find_evidence(question, [hit, other]) == pytest.approx(0.48)
    assert guard.find_evidence(question, [hit, replace(other, source_id="another")]) == pytest.approx(0.43)


def test_only_names_and_figures_count_in_a_passage_of_another_language() -> None:
    """LANG-4"""
    hit = replace(make_hit("The NASA chose Kennedy in 1961."), similarity=0.5, coverage=0.9, lang="en", is_foreign=True)
    assert guard.find_evidence([("Qui a été choisi par la NASA en 1961 ?", "fr")], [hit]) == pytest.approx(0.7)
    assert guard.find_evidence([("Qui a choisi Johnson en 1961 ?", "fr")], [hit]) == pytest.approx(0.5)


def test_a_translation_is_compared_with_the_passages_of_its_language() -> None:
    """LANG-4"""
    hit = replace(make_hit("Germany signed."), similarity=0.5, coverage=0.0, lang="en")
    versions = [("Quand l'Allemagne a-t-elle signé ?", "fr"), ("When did Germany sign?", "en")]
    assert guard.find_evidence(versions, [hit]) == pytest.approx(0.3)
    assert guard.find_evidence(versions[:1], [hit]) == pytest.approx(0.15)


def test_words_count_less_in_a_passage_of_another_language() -> None:
    """LANG-4"""
    hit = replace(make_hit("x"), similarity=0.8, coverage=0.1)
    assert guard.weigh_evidence(hit) == pytest.approx(0.52)
    assert guard.weigh_evidence(replace(hit, is_foreign=True)) == pytest.approx(0.625)
