"""Follow-up questions: which questions they are, and which rewritings by a model are accepted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from functions.core import errors, models, ports, settings
from functions.core.answering import follow_ups, short_requests

HISTORY = [
    models.Turn("user", "What was the revenue of Dupont in 2018?"),
    models.Turn("assistant", "The revenue of Dupont was 12 million euros in 2018. [1]"),
]
FRENCH = [
    models.Turn("user", "Quel était le chiffre d'affaires de Dupont en 2018 ?"),
    models.Turn("assistant", "Il était de 12 millions d'euros. [1]"),
]
REWRITTEN = "What was the revenue of Dupont in 2019?"


class Model:
    """A chat model that sends its pieces and may fail at the end."""

    takes_tools = False

    def __init__(self, *pieces: str, failure: errors.IbidError | None = None) -> None:
        self.pieces, self.failure = pieces, failure
        self.asked: list[Sequence[ports.ChatMessage]] = []
        self.usage = models.Usage(40, 9, "fake")
        self.tool_calls: tuple[ports.ToolCall, ...] = ()

    def stream(self, messages: Sequence[ports.ChatMessage], **_: Any) -> Model:
        self.asked.append(messages)
        return self

    def __iter__(self) -> Iterator[str]:
        yield from self.pieces
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """There is nothing to close."""


def rewrite(question: str, *pieces: str, history: Sequence[models.Turn] = HISTORY) -> str | None:
    return follow_ups.rewrite(question, history, Model(*pieces)).search_query


# Which questions are follow-ups


@pytest.mark.parametrize(
    "question",
    [
        "And in 2019?",
        "et en 2019 ?",
        "Why?",
        "Pourquoi ?",
        "What was the total cost?",
        "How does it compare with the revenue of the other three companies?",
        "Et si le locataire ne paie pas son loyer à temps, que se passe-t-il ?",
        "Quels étaient leurs principaux clients dans le nord de la France ?",
        "Does that apply to tenants of the second building as well?",
        "Le même calcul vaut-il pour la filiale de Lyon en 2019 ?",
    ],
)
def test_short_connected_and_pointing_questions_are_follow_ups(question: str) -> None:
    """CHAT-7"""
    assert follow_ups.depends_on_history(question, HISTORY)


@pytest.mark.parametrize(
    "question",
    [
        "How fast does the turbine of the Lyon plant turn in winter?",
        "Quelle est la vitesse de la turbine de Lyon en hiver ?",
        "Est-ce que le bail commercial de la société Martin prévoit un préavis ?",
        "Le bail de la société Martin prévoit-il un préavis de trois mois ?",
        "Y a-t-il une clause de préavis dans le bail commercial de Martin ?",
        "And it says all that it asks. " * 20,
    ],
)
def test_complete_questions_are_not_rewritten(question: str) -> None:
    """CHAT-7"""
    model = Model(REWRITTEN)
    assert follow_ups.rewrite(question, HISTORY, model) == follow_ups.Rewriting()
    assert model.asked == []


def test_a_first_question_is_not_a_follow_up() -> None:
    """CHAT-7"""
    assert rewrite("And in 2019?", REWRITTEN, history=[]) is None


# The request to the model


def test_the_model_gets_a_short_history_with_follow_ups_as_rewritten() -> None:
    """CHAT-7"""
    history = [
        models.Turn("user", "And in 2019?", "What was the revenue of Dupont in 2019?"),
        models.Turn("assistant", "It was\n13 million. " + "x" * 2000),
    ]
    _, request = follow_ups.build_messages("And profit?", history)
    lines = request.content.splitlines()
    assert lines[1] == "Question: What was the revenue of Dupont in 2019?"
    assert lines[2].startswith("Answer: It was 13 million. xxx")
    assert (len(lines[2]) < 520, lines[-2:]) == (True, ["Last question: And profit?", "Query:"])


# Accepted replies


@pytest.mark.parametrize(
    "reply",
    [
        REWRITTEN,
        f"\n  {REWRITTEN}\nI hope this helps.",
        f'"{REWRITTEN}"',
        f"Query: {REWRITTEN}",
        f"**Standalone question:** {REWRITTEN}",
        f"Question autonome : {REWRITTEN}",
        f"<think>The user means\nrevenue.</think>\n{REWRITTEN}",
    ],
)
def test_the_query_is_extracted_from_its_wrapping(reply: str) -> None:
    """CHAT-7"""
    assert follow_ups.read_reply(reply, "And in 2019?", HISTORY) == REWRITTEN


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        pytest.param("And in 2019?", "", id="nothing"),
        pytest.param("And in 2019?", "?!", id="no-word"),
        pytest.param("And in 2019?", "And in  2019?", id="the-question"),
        pytest.param("And in 2019?", '{"sections": []}', id="json"),
        pytest.param("And in 2019?", "<think>The user means the revenue of", id="thoughts-alone"),
        pytest.param("And in 2019?", "I am sorry, I cannot help you with 2019.", id="refusal"),
        pytest.param("And in 2019?", "Revenue of Dupont", id="year-lost"),
        pytest.param("And in 2019?", "Revenue of Dupont in 2019 and 2023", id="year-invented"),
        pytest.param("And the revenue?", "The revenue was 14 million euros", id="answer"),
        pytest.param("And in 2019?", "Le revenue de Dupont est quoi pour 2019 dans les euros ?", id="other-language"),
        pytest.param("And in 2019?", "revenue of Dupont in 2019 " * 20, id="long"),
        pytest.param("And in 2019?", "revenue of Dupont\0 in 2019", id="nul"),
        pytest.param("And in 2019?", "revenue of Dupont in 2019 \ud83d", id="half-an-emoji"),
    ],
)
def test_a_reply_that_is_not_a_query_for_the_question_is_ignored(question: str, reply: str) -> None:
    """CHAT-7"""
    assert follow_ups.read_reply(reply, question, HISTORY) is None


@pytest.mark.parametrize(
    ("question", "reply", "is_taken"),
    [
        ("And when was it sold?", "When was Dupont sold?", True),
        ("And when was it sold?", "Dupont was sold", False),
        ("Since when does it grow?", "The revenue of Dupont does grow", False),
        ("What about its profit?", "Profit of Dupont", True),
        ("And the profit?", "What was the profit of Dupont?", True),
    ],
)
def test_a_rewriting_keeps_the_question_word(question: str, reply: str, is_taken: bool) -> None:
    """CHAT-7"""
    assert follow_ups.read_reply(reply, question, HISTORY) == (reply if is_taken else None)


@pytest.mark.parametrize(
    ("reply", "is_taken"),
    [
        ("Marta Olsen built the boiler in the cellar", False),
        ("Did Marta Olsen build the boiler in the cellar?", False),
        ("Did Marta Olsen build it alone?", True),
        ("Boiler of the house alone", True),
    ],
)
def test_a_rewriting_that_repeats_the_last_answer_is_ignored(reply: str, is_taken: bool) -> None:
    """CHAT-7"""
    history = [
        models.Turn("user", "Who built the boiler of the house?"),
        models.Turn("assistant", "Marta Olsen built the boiler in the cellar. [1]"),
    ]
    assert follow_ups.read_reply(reply, "And alone?", history) == (reply if is_taken else None)


def test_the_time_to_read_a_bare_year_grows_with_its_length_alone() -> None:
    """CHAT-7: three runs of signs side by side once took cubic time."""
    started = time.monotonic()
    assert follow_ups.replace_year("?" * 100_000, HISTORY) is None
    assert follow_ups.replace_year(f"and{' ' * 50_000}in{' ' * 50_000}2019", HISTORY) == REWRITTEN
    assert time.monotonic() - started < 1.0


def test_a_french_follow_up_is_rewritten_in_french() -> None:
    """CHAT-7"""
    query = "Quel était le chiffre d'affaires de Dupont en 2019 ?"
    assert rewrite("et en 2019 ?", f"Requête : {query}", history=FRENCH) == query


@pytest.mark.parametrize(
    ("question", "history", "reply", "is_taken"),
    [
        ("And the year after?", HISTORY, REWRITTEN, True),
        ("And the year before?", HISTORY, "What was the revenue of Dupont in 2017?", True),
        ("Et l'année suivante ?", FRENCH, "Quel était le chiffre d'affaires de Dupont en 2019 ?", True),
        ("And the year after?", HISTORY, "What was the revenue of Dupont in 2020?", False),
        ("And the profit?", HISTORY, "What was the profit of Dupont in 2019?", False),
    ],
)
def test_a_year_computed_from_the_history_is_accepted(
    question: str, history: list[models.Turn], reply: str, is_taken: bool
) -> None:
    """CHAT-7"""
    assert follow_ups.read_reply(reply, question, history) == (reply if is_taken else None)


def test_a_rewriting_reports_its_usage() -> None:
    """OPS-3"""
    assert follow_ups.rewrite("And in 2019?", HISTORY, Model(REWRITTEN)) == follow_ups.Rewriting(
        REWRITTEN, models.Usage(40, 9, "fake")
    )


# Without a usable reply


@pytest.mark.parametrize(
    "failure", [errors.ModelUnavailableError(), errors.ModelRateLimitedError(), errors.ModelRejectedError()]
)
def test_a_failing_model_leaves_the_question_unchanged(failure: errors.IbidError) -> None:
    """CHAT-7"""
    model = Model("What was the profit of Dup", failure=failure)
    assert follow_ups.rewrite("And the profit?", HISTORY, model) == follow_ups.Rewriting()


def test_a_slow_rewriting_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """CHAT-7"""
    monkeypatch.setattr(short_requests, "TIME_LIMIT_SECONDS", -1.0)
    assert rewrite("And the profit?", "What was ", "the profit of Dupont in 2018?") is None


@pytest.mark.parametrize(
    ("question", "history", "query"),
    [
        ("And in 2019?", HISTORY, REWRITTEN),
        ("2019?", HISTORY, REWRITTEN),
        ("et en 2019 ?", FRENCH, "Quel était le chiffre d'affaires de Dupont en 2019 ?"),
        ("And before 2019?", HISTORY, None),
        ("And in 2018?", HISTORY, None),
        ("And the profit in 2019?", HISTORY, None),
        ("And in 1200?", HISTORY, None),
        ("And in 2019?", [models.Turn("user", "What grew between 2010 and 2012?")], None),
        ("And in 2020?", [models.Turn("user", "And in 2019?", REWRITTEN)], "What was the revenue of Dupont in 2020?"),
        ("And the year after?", HISTORY, REWRITTEN),
        ("the following year?", HISTORY, REWRITTEN),
        ("And one year earlier?", HISTORY, "What was the revenue of Dupont in 2017?"),
        ("Et l'année suivante ?", FRENCH, "Quel était le chiffre d'affaires de Dupont en 2019 ?"),
        ("et un an avant ?", FRENCH, "Quel était le chiffre d'affaires de Dupont en 2017 ?"),
        ("And the year after the war?", HISTORY, None),
        ("And in 2019?", [models.Turn("user", "What can I buy for 2000 euros?")], None),
        ("And in 2019?", [models.Turn("user", "Who wrote 2000 pages?")], None),
        ("And in 2019?", [models.Turn("user", "Who wrote 2000 pages in 2018?")], "Who wrote 2000 pages in 2019?"),
        ("And in 2019?", [models.Turn("user", "What cost $2000 then?")], None),
    ],
)
def test_without_a_model_a_bare_year_replaces_the_last_year(
    question: str, history: list[models.Turn], query: str | None
) -> None:
    """CHAT-7"""
    assert follow_ups.rewrite(question, history, None).search_query == query


# Language


@pytest.mark.parametrize(("question", "lang"), [("2019?", "fr"), ("et en 2019 ?", "fr"), ("And what in 2019?", "en")])
def test_a_very_short_question_has_the_language_of_the_conversation(question: str, lang: str) -> None:
    """LANG-1"""
    assert (follow_ups.find_language(question, FRENCH), follow_ups.find_language("2019?", [])) == (lang, "en")


# The setting


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_the_setting_is_true_or_false(value: object) -> None:
    """SET-3"""
    with pytest.raises(errors.InvalidSettingsError) as caught:
        settings.validate_changes({"rewrite_follow_ups": value})
    assert caught.value.details["faults"] == [{"key": "rewrite_follow_ups", "message": "This must be true or false."}]
    assert settings.load_settings({"rewrite_follow_ups": False}).rewrite_follow_ups is False
