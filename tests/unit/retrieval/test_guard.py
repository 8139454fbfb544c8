"""How much evidence a question takes, and how much there is; more in test_retrieval.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.core.retrieval import guard
from functions.core.settings import Settings
from functions.runtime import policy
from tests.support.fakes.search_hits import make_hit

ENGLISH = policy.LOCAL_SERVER
EVERY = replace(ENGLISH, languages=())
MEASURED = replace(ENGLISH, guard_threshold=0.2)
SETTINGS = Settings(similarity_threshold=0.4)


@pytest.mark.parametrize(
    ("lang", "servers", "threshold"),
    [
        pytest.param("en", [ENGLISH], 0.4, id="spoken"),
        pytest.param("fr", [ENGLISH], 0.36, id="foreign"),
        pytest.param("fr", [EVERY], 0.4, id="a-model-of-every-language"),
        pytest.param("fr", [EVERY, ENGLISH], 0.36, id="one-of-two-speaks-it"),
        pytest.param("en", [], 0.16, id="no-server-answered"),
        pytest.param("en", [MEASURED], 0.2, id="a-threshold-of-its-own"),
        pytest.param("fr", [MEASURED, EVERY], 0.18, id="a-threshold-of-its-own-beside-the-usual-one"),
    ],
)
def test_less_evidence_is_asked_for_where_similarity_says_less(lang: str, servers: list, threshold: float):
    """RET-8, RET-5"""
    assert guard.find_threshold(lang, servers, SETTINGS) == pytest.approx(threshold)


def test_evidence_is_that_of_the_best_passage():
    """RET-8"""
    hits = [replace(make_hit("x"), similarity=s, coverage=c) for s, c in ((0.8, 0.0), (0.5, 0.7), (-0.2, 1.0))]
    assert guard.find_evidence(hits) == pytest.approx(0.6)
    assert guard.find_evidence([]) == 0.0
