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
    assert guard.find_threshold(lang, servers, SETTINGS) == pytest.approx(threshold)


def test_the_evidence_of_a_search_is_that_of_its_best_passage() -> None:
    """RET-8"""
    hits = [replace(make_hit("x"), similarity=s, coverage=c) for s, c in ((0.8, 0.0), (0.5, 0.7), (-0.2, 1.0))]
    assert guard.find_evidence(hits) == pytest.approx(0.58)
    assert guard.find_evidence([]) == 0.0


def test_words_count_less_in_a_passage_of_another_language() -> None:
    """LANG-4"""
    hit = replace(make_hit("x"), similarity=0.8, coverage=0.1)
    assert guard.weigh_evidence(hit) == pytest.approx(0.52)
    assert guard.weigh_evidence(replace(hit, is_foreign=True)) == pytest.approx(0.625)
