"""A library whose embedding server is of unknown scale and gives high cosines refuses what it is not about."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from functions.adapters.postgres.connection import Database
from functions.local.evaluation import command, question_sets
from tests.eval import lifted_server
from tests.support.fakes.lifted_embeddings import serve_lifted

TEXTS = {
    "en": "The harbour of Velmar was built in 1874 to export timber. A storm destroyed its lighthouse in 1911.",
    "fr": "Le pain lève parce que la levure transforme le sucre en gaz carbonique. Le sel ralentit la levure.",
}
ANSWERED = {"en": "Why was the harbour of Velmar built?", "fr": "Pourquoi le pain lève-t-il ?"}
OFF_TOPIC = {
    "en": ["How is a broken wrist treated?", "Who composed the opera Carmen?", "What does a compiler do?"],
    "fr": [
        "Comment soigne-t-on un poignet cassé ?",
        "Qui a composé l'opéra Carmen ?",
        "À quoi sert un compilateur ?",
    ],
}


def make_set(lang: str) -> question_sets.QuestionSet:
    """A set of one short document with a question that it answers and three that it does not."""
    questions = (
        question_sets.Question("answered", ANSWERED[lang], lang, frozenset({"text"})),
        *(question_sets.Question(text, text, lang, frozenset()) for text in OFF_TOPIC[lang]),
    )
    return question_sets.QuestionSet("small", (question_sets.Passage("text", None, TEXTS[lang]),), (), questions)


@pytest.mark.parametrize("name", ["en-minilm", "en-e5", "fr-e5"])
def test_one_short_document_is_enough_to_refuse_what_it_is_not_about(
    database: str, pytestconfig: pytest.Config, name: str
) -> None:
    """RET-8: without the scale that is measured in it, every question would pass."""
    case = lifted_server.CASES[name]
    with closing(Database(database)) as store:
        found = lifted_server.measure(store, make_set(case.lang), case, pytestconfig.cache.mkdir("ibid"))
    assert (found.off_topic, found.answerable, found.without_scale) == (1.0, 0.0, 0.0)
    assert lifted_server.LEAST < found.scale.floor < found.scale.ceiling < lifted_server.MOST


@pytest.mark.parametrize("name", ["en-minilm", "fr-e5"])
def test_lifted_cosines_are_high(pytestconfig: pytest.Config, name: str) -> None:
    case = lifted_server.CASES[name]
    with (
        command.open_embedder(pytestconfig.cache.mkdir("ibid"), case.local) as local,
        serve_lifted(local, case.lift) as (_, embedder),
    ):
        plain, lifted = (
            np.asarray(each.embed([TEXTS[case.lang], *OFF_TOPIC[case.lang]])) for each in (local, embedder)
        )
    assert lifted @ lifted.T == pytest.approx(case.lift + (1 - case.lift) * (plain @ plain.T), abs=1e-4)
