"""Numbers in an answer that its passages do not contain, in both languages and every notation."""

from __future__ import annotations

import pytest

from functions.core.citations.figures import comparison


def find_missing(answer: str, passage: str) -> tuple[str, ...]:
    return comparison.find_unsupported(answer, comparison.AllowedFigures(comparison.find_values(passage)))


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Il vaut 1 234,5 €.", "It is worth 1,234.5 euros."),
        ("It is worth €1,234.50.", "Il vaut 1\u202f234,5 €."),
        ("10'000 francs", "10\u00a0000 francs"),
        ("1,234,567 tons", "1.234.567 Tonnen"),
        ("1234 tons", "1.234 tons"),
        ("12.5 %", "12,5 pour cent"),
        ("12.5 %", "12.500 %"),
        ("0,125", "0.125"),
        ("10–12 jours", "de 10 à 12 jours"),
        ("from 10 to 12 days", "10-12 days"),
        ("2019–20", "l'exercice 2019-2020"),
        ("2019-2020", "the year 2019/20"),
        ("le 3e étage", "the 3rd floor"),
        ("the 3rd floor", "le troisième étage"),
        ("1er mai", "1 mai"),
        ("17 mai 2019", "2019-05-17"),
        ("2019-05-17", "May 17, 2019"),
        ("17/05/2019", "le 17 mai 2019"),
        ("05/17/2019", "17 May 2019"),
        ("17.05.2019", "17/05/19"),
        ("−5 °C", "-5 °C"),
        ("-5 °C", "moins 5 degrés"),
        ("-1,234", "(1 234)"),
        ("a fall of 5 %", "-5 %"),
        ("-10 to -5", "-10--5"),
        ("3,2 millions d'euros", "3 200 000 €"),
        ("12 000 000 €", "12 M€"),
        ("25 et 97", "vingt-cinq et quatre-vingt-dix-sept"),
        ("4 kW", "four kilowatts"),
        ("12 kg", "douze kilos"),
        ("345 at Lyon", "Lyon 12 345 678"),
        ("12 345 678", "Lyon 12 345 678"),
        ("3, 2 and 1", "3,2,1"),
        ("version 4.2.1", "4.2.1"),
        ("١٢", "12"),
        ("11 members", "eleven members"),
        ("23 membres", "vingt-trois membres"),
        ("250 sheep and 1,984 cows", "two hundred and fifty sheep, mille neuf cent quatre-vingt-quatre vaches"),
        ("1984", "nineteen eighty-four"),
        ("500 to 600", "between five hundred and six hundred"),
        ("12 million euros", "twelve million euros"),
        ("3rd, 3e and 3ème", "third"),
        ("the 21st", "le vingt et unième"),
        ("le 21e siècle", "le XXIe siècle"),
        ("chapter 4 of Louis 14", "Chapter IV of Louis XIV"),
        ("article 5", "Article V"),
        ("clause 3", "(iii) the tenant"),
        ("20 personnes, 12 œufs, 10 ans", "une vingtaine de personnes, une douzaine d'œufs, une dizaine d'années"),
        ("30 millions", "une trentaine de millions"),
        ("0.5, 50 %", "½"),
        ("2.5 years", "two and a half years"),
        ("2,5 ans", "deux ans et demi"),
        ("2½ cups", "2.5 cups"),
        ("33 %", "un tiers"),
        ("3/4 of it", "0.75 of it"),
        ("0.75", "3/4"),
        ("the 90s", "the 1990s"),
        ("les années 90", "the 1990s"),
        ("the 1990s", "les années 90"),
        ("in the 1990s", "in the nineties"),
        ("5:30 pm", "17h30"),
        ("17h30", "5:30 p.m."),
        ("17:30", "5:30 pm"),
        ("17 h", "5 pm"),
        ("at 5:30", "17h30"),
        ("at 5:30", "5:30 pm"),
        ("5 pm", "17:00"),
        ("17:30", "17.30"),
        ("17 heures 30", "17:30"),
        ("0.5 %", "5 ‰"),
        ("5 ‰", "0,5 %"),
        ("12 %", "a share of 0.12"),
        ("0.12", "12 per cent"),
        ("12k users", "12,000 users"),
        ("$12m", "12 million dollars"),
        ("12 million", "in millions | 12 | 15"),
        ("12 millions", "entre 12 et 15 millions"),
        ("1,2 milliard", "1 200 millions d'euros"),
        ("1.2 million", "in thousands of euros | 1 200"),
        ("12,345,000 euros", "Sales, k€: 12 345"),
        ("une perte de -1,2 milliard", "en millions d'euros | -1 200"),
        ("about 12 million", "12,034,567"),
        ("environ 5 %", "4,8 %"),
        ("USD9,999", "$9,999"),
        ("a loss of (5)", "-5"),
    ],
)
def test_a_number_is_recognized_in_another_notation(answer: str, passage: str) -> None:
    assert find_missing(answer, passage) == ()


@pytest.mark.parametrize(
    ("answer", "passage", "found"),
    [
        ("42 % of them", "41 % of them", ("42 %",)),
        ("Il vaut 1\u202f234,5\u00a0€.", "1 235,5 €", ("1\u202f234,5\u00a0€",)),
        ("It cost $1,000.", "It cost $1,500.", ("$1,000",)),
        ("10 %", "10,5 %", ("10 %",)),
        ("10.5 %", "105 %", ("10.5 %",)),
        ("-5 °C", "5 °C", ("-5 °C",)),
        ("10-12 jours", "de 10 à 13 jours", ("12",)),
        ("2019-05-17", "17 June 2019", ("2019-05-17",)),
        ("in 2019", "in 2018 and 2020", ("2019",)),
        ("the 4th of 5kg", "the 3rd of 6 kg", ("4th", "5kg")),
        ("3.2 million", "3.1 million", ("3.2 million",)),
        ("7 %, then 7 %", "", ("7 %",)),
        ("mid-2019", "", ("2019",)),
        ("12 million", "12 thousand", ("12 million",)),
        ("12 millions", "douze mille", ("12 millions",)),
        ("$12bn", "$12 million", ("$12bn",)),
        ("Revenue (12) rose by (3).", "Revenue (13) rose by (4).", ("12", "3")),
        ("USD9,999", "USD9,998", ("9,999",)),
        ("5:30 am", "17h30", ("5:30 am",)),
        ("17h30", "17h00", ("17h30",)),
        ("6 pm", "17 h", ("6 pm",)),
        ("about 13 million", "12,034,567", ("13 million",)),
        ("12 million", "12,034,567", ("12 million",)),
        ("1990s", "the 1980s", ("1990s",)),
        ("100 sheep", "two hundred sheep", ("100",)),
        ("1.3 million", "in thousands of euros | 1 200", ("1.3 million",)),
        ("1.2 million", "1 200 sheep", ("1.2 million",)),
        ("1 of them", "I am the one that M. Dupont knows. C'est V.", ()),
        ("3/4", "3/5", ("3/4",)),
        ("2½", "2.25", ("2½",)),
        ("0.5 %", "50 ‰", ("0.5 %",)),
        ("12 %", "1.2", ("12 %",)),
    ],
)
def test_a_changed_number_is_reported_as_written(answer: str, passage: str, found: tuple[str, ...]) -> None:
    assert find_missing(answer, passage) == found


@pytest.mark.parametrize(
    "text",
    [
        "1. First\n2) Second\n(3) Third",
        "- 1. First\n- **2.** Second\n**3. Third**",
        "## 2.1 Scope\n### 3) Method",
        "First (1), then (2, 3).",
        "(1) first and (2) second",
        "CO2, H1N1, Q3, v1.2 and A320",
    ],
)
def test_list_numbers_heading_numbers_and_names_are_ignored(text: str) -> None:
    assert find_missing(text, "") == ()


def test_only_the_number_of_a_list_item_is_ignored() -> None:
    assert find_missing("1. It rose by 7 % in\n2019. Later\n5.5 % more", "") == ("7 %", "2019", "5.5 %")


@pytest.mark.parametrize(
    "text",
    [
        "From 5:30 pm on 17 May 2019 (page 12) 3/4 of 1,234.5 million euros, i.e. −5 %, were lost in the 1990s.",
        "Le 17/05/2019 à 17h30, 12 ‰ des 1 234 567 habitants (environ 2½ par foyer) avaient 90 ans ; no 4.2.1.",
        "| 2018 | 12 345 | (3) |\n|---|---|---|\n| 2019–20 | USD9,999 | $12bn |",
        "1. Article 12\n2) 12k, 12 M€, 0.5 h, 2/3, 1:30, ٣٤ and 10'000",
    ],
)
def test_a_text_supports_all_its_own_numbers(text: str) -> None:
    assert find_missing(text, text) == ()


# Numbers of the question


def find_missing_when_asked(answer: str, passage: str, question: str) -> tuple[str, ...]:
    allowed = comparison.AllowedFigures(
        comparison.find_values(passage),
        question_values=comparison.find_values(question),
        measures=comparison.find_measures(passage),
    )
    return comparison.find_unsupported(answer, allowed)


@pytest.mark.parametrize(
    ("answer", "passage", "question"),
    [
        ("No: it rose by 5 %.", "It rose by 5 %.", "Did it rise by 7 %?"),
        ("It rose by 5 %, not 7 %.", "It rose by 5 %.", "Did it rise by 7 %?"),
        ("18 °C lies between 15 and 20 °C.", "between 15 °C and 20 °C", "Is 18 °C allowed?"),
        ("After 30 days the lease ends.", "after one month", "What happens after 30 days?"),
        ("In 2019 it was 12 million euros.", "Revenue: 12 million euros", "And in 2019?"),
        ("Article 12 says so.", "Obligations of tenants", "What does article 12 say?"),
        ("The documents do not say what 400 € buys.", "A ticket costs 15 €.", "What can I buy for 400 €?"),
    ],
)
def test_an_answer_may_repeat_numbers_of_the_question(answer: str, passage: str, question: str) -> None:
    assert find_missing_when_asked(answer, passage, question) == ()


@pytest.mark.parametrize(
    ("answer", "passage", "question", "found"),
    [
        ("Yes, it rose by 7 % in 2019.", "In 2019 it rose by 5 %.", "Did it rise by 7 % in 2019?", ("7 %",)),
        ("Oui, il vaut 1 200 €.", "Il vaut 1 300 euros.", "Vaut-il 1 200 € ?", ("1 200 €",)),
        ("It cost $12 million.", "It cost 13 million dollars.", "Did it cost $12 million?", ("$12 million",)),
        ("The notice is 30 days.", "The notice is 60 days.", "Is the notice 30 days?", ("30",)),
    ],
)
def test_an_answer_that_agrees_with_a_wrong_number_is_reported(
    answer: str, passage: str, question: str, found: tuple[str, ...]
) -> None:
    assert find_missing_when_asked(answer, passage, question) == found


def test_a_page_number_is_supported_only_after_the_word_page() -> None:
    allowed = comparison.AllowedFigures(frozenset({"5"}), pages=frozenset({"12"}))
    assert comparison.find_unsupported("See page 12, p. 12 and pages 5 to 12.", allowed) == ()
    assert comparison.find_unsupported("It employs 12 people.", allowed) == ("12",)


def test_years_in_a_file_name_are_supported() -> None:
    assert comparison.find_years("report_2019-2020_v3_00012.pdf") == frozenset({"2019", "2020"})


@pytest.mark.parametrize("name", ["Dr. Smith", "J. Smith", "Smith et al. 2019"])
def test_an_abbreviation_does_not_end_the_sentence_that_denies_a_figure(name: str) -> None:
    text = f"The passages do not say that {name} pays 900 euros."
    assert find_missing_when_asked(text, "The rent was 800 euros in 2019.", "Is the rent 900 euros?") == ()


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("1 234,5 millions d'euros", "€1,234.5 million"),
        ("€1,234.5 million", "1 234,5 millions d'euros"),
        ("12 345 678 habitants", "12,345,678 inhabitants"),
        ("12,345 euros", "12 345 €"),
        ("5,2 milliards de dollars", "$5.2 billion"),
        ("5,2 Md$", "$5.2bn"),
        ("1 200 milliards d'euros", "€1.2 trillion"),
        ("300 000 personnes", "300k people"),
        ("soit 0,05 %", "0.05 per cent"),
        ("une baisse de -3,5 %", "a fall of −3.5%"),
        ("de 5 à 10 %", "5-10%"),
        ("2007-2008", "2007/08"),
        ("le 31 mars 2020", "March 31, 2020"),
        ("le 31/03/2020", "31 March 2020"),
        ("January 1, 2021", "le 1er janvier 2021"),
        ("à 14 h 15", "at 2:15 p.m."),
        ("8 pm", "20h"),
        ("3 mois", "three months"),
        ("12", "une douzaine"),
        ("au 19e siècle", "in the nineteenth century"),
        ("the 19th century", "le dix-neuvième siècle"),
        ("50 % des usines", "half of the plants"),
    ],
)
def test_a_translated_number_is_recognized(answer: str, passage: str) -> None:
    """LANG-4, CHAT-5"""
    assert find_missing(answer, passage) == ()
    assert find_missing(answer.translate(str.maketrans("1234589", "7676776")), passage) != ()
