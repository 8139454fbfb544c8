from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from functions.core.answering.extracts import choice
from functions.core.text import words
from functions.core.text.markdown_tables import render_markdown
from tests.support import requirements
from tests.support.fakes.search_hits import make_hit

LYON = make_hit(
    "The company was founded in 1998. It employs 420 people in Lyon. Its canteen is good. Nobody minds the rain."
)
BOARD = make_hit("The board meets on Mondays. People of the board come from Lyon.", document="other")


def test_the_answering_sentence_comes_first_with_the_one_it_leans_on() -> None:
    """CHAT-6"""
    first, *_ = choice.extract_answer("How many people does the company employ in Lyon?", [LYON, BOARD])
    assert first.text == "The company was founded in 1998. It employs 420 people in Lyon."
    assert [first.hit.text[start:end] for start, end in first.spans] == [first.text]


def test_at_most_three_sentences_are_quoted() -> None:
    """CHAT-6"""
    hit = make_hit(" ".join(f"Sentence {name} speaks of the harbour." for name in ("one", "two", "three", "four")))
    [extract] = choice.extract_answer("harbour", [hit])
    assert extract.text.count("harbour") == choice.MAX_UNITS


def test_every_document_that_answers_as_well_as_the_best_one_is_quoted() -> None:
    """CHAT-6"""
    hits = [
        make_hit(f"The boiler burns {fuel} in winter.", document=fuel) for fuel in ("wood", "peat", "coal", "straw")
    ]
    quoted = choice.extract_answer("What does the boiler burn in winter?", [*hits, BOARD])
    assert [quotation.hit for quotation in quoted] == hits


def test_a_sentence_in_two_overlapping_passages_is_extracted_once() -> None:
    """CHAT-6"""
    text = "The harbour was rebuilt by the city in 1921."
    twins = [make_hit(text, index=0, offset=20), make_hit(f"Before this here. {text}", index=1, offset=2)]
    quoted = " ".join(extract.text for extract in choice.extract_answer("Who rebuilt the harbour?", twins))
    assert quoted.count("rebuilt") == 1


def test_a_question_in_another_language_still_gets_the_best_passage() -> None:
    """LANG-4"""
    extracts = choice.extract_answer("Wie viele Leute?", [LYON, BOARD])
    assert extracts[0].hit is LYON


def test_an_answer_from_passages_in_another_language_spreads_over_the_best_of_them() -> None:
    """LANG-4, CHAT-6"""
    hits = [
        make_hit(" ".join(f"The {name} speaks of the harbour." for name in ("mayor", "pilot", "sailor")), document=d)
        for d in "abc"
    ]
    extracts = choice.extract_answer("Qui évoque le port ?", hits, lang="fr")
    assert [(extract.hit.source_id, extract.text.count("harbour")) for extract in extracts] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Que dit Marta Olsen du port ?", "Marta Olsen spoke of the harbour."),
        ("Combien de pilotes travaillent au port ?", "There were 35 pilots."),
        ("Que s'est-il passé en 1921 ?", "The city rebuilt it in 1921."),
    ],
    ids=["name", "figure-wanted", "figure-given"],
)
def test_names_and_figures_choose_the_sentence_of_a_foreign_passage(question: str, sentence: str) -> None:
    """LANG-4, CHAT-6"""
    others = "Nobody minds the rain. The weather was pleasant."
    told = ["Marta Olsen spoke of the harbour.", "There were 35 pilots.", "The city rebuilt it in 1921."]
    passage = " ".join(f"{sentence} {others}" for sentence in told)
    extracts = choice.extract_answer(question, [make_hit(passage)], lang="fr")
    assert extracts[0].text.startswith(sentence)


def test_a_passage_in_the_language_of_the_question_comes_before_better_ranked_foreign_ones() -> None:
    """LANG-4, CHAT-6"""
    french = make_hit("Le port emploie 35 pilotes depuis 1921.", document="fr", lang="fr")
    foreign = make_hit("The harbour lies in the north. It is deep.", document="en")
    extracts = choice.extract_answer("Combien de pilotes le port emploie-t-il ?", [foreign, french], lang="fr")
    assert [extract.hit.source_id for extract in extracts] == ["fr"]


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("How much is the rent?", "Rent: 900 EUR", "Rent: 900 EUR"),
        ("What is the capital of Oman?", "- Peru: Lima\n- Chad: N'Djamena\n- Oman: Muscat", "- Oman: Muscat"),
        ("What does quince cost?", "| Fruit | Price |\n|---|---|\n| Apple | 3 |\n| Quince | 11 |", "| Quince | 11 |"),
    ],
    ids=["line", "list", "table"],
)
def test_a_line_with_few_letters_can_be_the_answer(question: str, text: str, answer: str) -> None:
    """CHAT-6"""
    other = make_hit("- Chad: N'Djamena has a long name", document="other")
    assert choice.extract_answer(question, [make_hit(text), other])[0].text.endswith(answer)


def test_a_question_in_the_text_is_answered_by_the_following_sentence() -> None:
    """CHAT-6"""
    hit = make_hit("Q: Is smoking allowed in the building? A: No. The garden has a bench.")
    [extract] = choice.extract_answer("Is smoking allowed in the building?", [hit])
    assert extract.text.startswith("Q: Is smoking allowed in the building? A: No.")


def test_a_sentence_that_shares_one_common_word_is_left_out() -> None:
    """CHAT-6"""
    lease = make_hit("The lease of the flat ends on 31 March. The key lies under the mat.")
    report = make_hit("The society had 412 members at the end of 2019.", document="report")
    extracts = choice.extract_answer("When does the lease end?", [lease, report])
    assert [extract.text for extract in extracts] == ["The lease of the flat ends on 31 March."]


COSTS = "Table 2: Costs\nItem 2001 2002\nFuel 10 12\nStaff 20 25\nRent 5 6"
COSTS_TABLE = render_markdown(
    [("Item", "2001", "2002")],
    [("Energy", "", ""), ("Fuel", "10", "12"), ("Staff", "20", "25"), ("Rent", "5", "6")],
)


def test_a_row_is_quoted_below_the_caption_the_header_and_the_title_of_its_group() -> None:
    """CHAT-6"""
    hit = make_hit(COSTS, markdown=COSTS_TABLE)
    first, *_ = choice.extract_answer("What did fuel cost in 2002?", [hit])
    head = "Table 2: Costs\n\n| Item | 2001 | 2002 |\n| --- | --- | --- |\n| Energy |  |  |\n"
    assert first.text.startswith(f"{head}| Fuel | 10 | 12 |")
    assert hit.text[slice(*first.spans[0])] == "Fuel 10 12"


def test_the_headings_and_line_breaks_of_a_page_are_left_out() -> None:
    """CHAT-6"""
    hit = make_hit(
        "Annual report\nThe har-\nbour was re-\nbuilt by the well-\nknown city.\nIt is a well-known place.",
        title="Annual report",
    )
    [extract] = choice.extract_answer("Who rebuilt the harbour?", [hit])
    assert extract.text == "The harbour was rebuilt by the well-known city."


def test_a_list_is_quoted_whole_with_what_announces_it() -> None:
    """CHAT-6"""
    hit = make_hit("Nobody minds.\nThe member states are:\n• France\n• Malta\n• Spain\n\nThe rest of the text is long.")
    [extract] = choice.extract_answer("Which are the member states?", [hit])
    assert extract.text == "The member states are:\n- France\n- Malta\n- Spain"


def test_a_definition_has_its_term() -> None:
    """CHAT-6"""
    hit = make_hit("Demurrage\n\nA sum that is paid when a ship leaves late.\n\nDraught\n\nThe depth of a ship's keel.")
    first, *_ = choice.extract_answer("What is demurrage?", [hit])
    assert first.text == "Demurrage A sum that is paid when a ship leaves late."


def test_the_sentence_that_is_nearest_in_meaning_comes_first() -> None:
    """CHAT-6"""
    others = "Other gases follow in the next part. " * 8
    hit = make_hit(f"The gas is measured each year. Nitrous oxide is reported from 10 tonnes on. {others}")
    extracts = choice.extract_answer(
        "From when on is laughing gas reported?", [hit], compare=lambda _, texts: ["Nitrous" in text for text in texts]
    )
    assert extracts[0].text.startswith("Nitrous oxide")


def test_captions_and_cut_sentences_give_way_to_whole_ones() -> None:
    """CHAT-6"""
    hit = make_hit(
        "of the fish exports of Norway in 2001.\n\nTable 3: Fish exports of Norway\n\nNorway sold fish abroad."
    )
    assert choice.extract_answer("What are the fish exports of Norway?", [hit])[0].text == "Norway sold fish abroad."


def test_without_passages_there_are_no_sentences() -> None:
    assert choice.extract_answer("Anything?", []) == []


@pytest.mark.parametrize(("name", "goal"), [("xquad_en", 0.93), ("piaf", 0.72)])
def test_the_answer_is_among_the_sentences_for_most_real_questions(name: str, goal: float) -> None:
    """CHAT-6"""
    folder = requirements.need_eval_data(f"passages/{name}")
    passages = {row["passage_id"]: row for row in _rows(folder / "corpus.jsonl")}
    questions = _rows(folder / "queries.dev.jsonl")[::10]
    texts = {key: words.keys(f"{row['title']} {row['text']}") for key, row in passages.items()}
    spread = Counter(key for held in texts.values() for key in held)
    answered = 0
    for question in questions:
        wanted = words.keys(question["question"])
        ranked = sorted(texts, key=lambda key: -sum(1 / spread[word] ** 0.5 for word in wanted & texts[key]))
        gold = question["evidence"][0]["passage_id"]
        near = ranked[:8] if gold in ranked[:8] else [*ranked[:7], gold]
        hits = [make_hit(passages[key]["text"], document=key) for key in near]
        quoted = " ".join(
            quotation.hit.text[start:end]
            for quotation in choice.extract_answer(question["question"], hits)
            for start, end in quotation.spans
        )
        answered += any(answer.lower() in quoted.lower() for answer in question.get("answers") or [question["answer"]])
    assert answered / len(questions) >= goal


def _rows(path: object) -> list[dict[str, Any]]:
    with open(str(path), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
