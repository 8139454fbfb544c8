from __future__ import annotations

import pytest

from functions.core.text.sentences import MAX_CHARS, split_sentences
from functions.core.text.token_spans import split_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("It rose. It fell.", ["It rose.", "It fell."], id="two"),
        pytest.param("Dr. Smith paid $3.5 million. He left.", ["Dr. Smith paid $3.5 million.", "He left."], id="en"),
        pytest.param("J. R. R. Tolkien wrote it.", ["J. R. R. Tolkien wrote it."], id="initials"),
        pytest.param("M. Dupont a 3,5 %. Cf. p. 12.", ["M. Dupont a 3,5 %.", "Cf. p. 12."], id="fr"),
        pytest.param("« Quoi ? » dit-il. Fin.", ["« Quoi ? » dit-il.", "Fin."], id="question-inside"),
        pytest.param('He said "No." She left.', ['He said "No."', "She left."], id="closing-quotation-mark"),
        pytest.param("Proved.[12] Next one.", ["Proved.[12]", "Next one."], id="footnote-mark"),
        pytest.param("今天很好。明天呢？好！", ["今天很好。", "明天呢？", "好！"], id="cjk"),
        pytest.param("The rate rose\nby 5 %. It was\ngood.", ["The rate rose\nby 5 %.", "It was\ngood."], id="lines"),
        pytest.param("No stop\n\nNew block", ["No stop", "New block"], id="blank-line"),
        pytest.param("Intro:\n- one\n- two", ["Intro:", "- one", "- two"], id="bullets"),
        pytest.param("# Title\nText here", ["# Title", "Text here"], id="heading"),
        pytest.param("RESULTS\nIt rose.", ["RESULTS", "It rose."], id="capitals"),
        pytest.param("Méthodes\nOn a mesuré.", ["Méthodes", "On a mesuré."], id="section-name"),
        pytest.param("| a | b |\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"], id="table-rows"),
        pytest.param("1. First. 2. Second.", ["1. First.", "2. Second."], id="numbered"),
        pytest.param("Menu Police. . . et choix. Fin.", ["Menu Police. . . et choix.", "Fin."], id="spaced-ellipsis"),
        pytest.param("Préférences. . . , puis l’onglet.", ["Préférences. . . , puis l’onglet."], id="ellipsis-comma"),
        pytest.param("And so on. . . Then it fell.", ["And so on. . .", "Then it fell."], id="ellipsis-end"),
        pytest.param("Smith & Co. Ltd. paid. Tab. 3 says so.", ["Smith & Co. Ltd. paid.", "Tab. 3 says so."], id="co"),
        pytest.param(" \n ", [], id="blank"),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith paid $3.5 million in Jan. 2020. He left.",
        "J. R. R. Tolkien wrote it. 1. First. 2. Second.",
        "« Quoi ? » dit-il. Cf. p. 12. Fin.",
        'He said "No." She left. Proved.[12] Next one.',
        "今天很好。明天呢？好！",
        "The rate rose\nby 5 %. It was\ngood.\n\nno stop\n- one\n- two",
    ],
)
def test_token_spans_end_where_sentences_end(text: str) -> None:
    spans = split_spans(text, 0, len(text), 100, len)
    assert [text[span.start : span.end].rstrip() for span in spans] == sentences(text)
    assert "".join(text[span.start : span.end] for span in spans) == text


def test_every_visible_character_is_in_exactly_one_sentence() -> None:
    text = "# A\nOne. Two e.g. three!\n\n• x\n| t |\n1. y… z 今天。 end " + "word " * 400
    covered = [at for start, end in split_sentences(text) for at in range(start, end)]
    assert len(covered) == len(set(covered))
    assert {at for at, char in enumerate(text) if not char.isspace()} <= set(covered)


def test_text_without_full_stops_is_cut_to_a_displayable_length() -> None:
    assert all(end - start <= MAX_CHARS for start, end in split_sentences("lorem ipsum " * 500))
