"""Cutting pages into passages."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import pytest

from functions.core import models
from functions.core.ingestion.chunking import chunker, headings
from functions.core.ingestion.chunking.page_layout import Carry
from functions.core.ingestion.chunking.passages import ChunkSettings
from functions.core.text import token_spans

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank today."  # 15 tokens


def count_tokens(text: str) -> int:
    """One token per word of up to six letters, more per longer word, one per punctuation mark and Chinese character."""
    pieces = re.findall(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]{1,6}|[^\w\s]", text)
    return len(pieces)


def chunk(
    text: str,
    *,
    target: int = 40,
    overlap: int = 0,
    maximum: int = 80,
    title: str | None = None,
    section: str | None = None,
    first_index: int = 0,
    lang: models.Lang = "en",
    counter: Callable[[str], int] = count_tokens,
    skip: Sequence[models.Offsets] = (),
    hidden: Sequence[models.Offsets] = (),
) -> list[models.Chunk]:
    chunks, _ = chunker.chunk_page(
        models.Page(number=3, text=text, hidden=tuple(hidden)),
        settings=ChunkSettings(target_tokens=target, overlap_tokens=overlap, max_tokens=maximum),
        count_tokens=counter,
        title=title,
        carry=Carry(section),
        first_index=first_index,
        lang=lang,
        skip=skip,
    )
    return chunks


def texts(chunks: list[models.Chunk]) -> list[str]:
    return [found.text for found in chunks]


def test_a_short_page_is_one_chunk() -> None:
    """ING-5"""
    assert chunk("  Hello there.\n", title="Report", section="Intro", first_index=7) == [
        models.Chunk(
            index=7,
            page_start=3,
            page_end=3,
            start_offset=2,
            end_offset=14,
            text="Hello there.",
            search_text="Report\nIntro\nHello there.",
            section_title="Intro",
            lang="en",
            token_count=5,
        )
    ]


@pytest.mark.parametrize("text", ["", " \n\t \n", "\u00a0", "\u200b", "– – –\n. . . . 😀"])
def test_a_page_without_a_letter_or_digit_has_no_chunks(text: str) -> None:
    """ING-5"""
    assert chunk(text) == []


# Borders


def test_paragraphs_are_the_first_border() -> None:
    """ING-5"""
    first, second = f"{SENTENCE} {SENTENCE}", f"{SENTENCE} {SENTENCE}"
    assert texts(chunk(f"{first}\n\n{second}", target=45)) == [first, second]


def test_sentences_are_the_second_border() -> None:
    """ING-5"""
    assert texts(chunk(" ".join([SENTENCE] * 6), target=48)) == [" ".join([SENTENCE] * 3)] * 2


def test_words_are_the_third_border() -> None:
    """ING-5"""
    words = " ".join(f"w{number}" for number in range(100))
    found = texts(chunk(words, target=30))
    assert " ".join(found) == words
    assert [count_tokens(text) for text in found] == [30, 30, 30, 10]


@pytest.mark.parametrize("text", ["漢字" * 300, "x" * 3000, "e\u0301" * 900], ids=["chinese", "one word", "combining"])
def test_text_without_borders_is_cut_anywhere_but_before_a_combining_mark(text: str) -> None:
    """ING-5"""
    found = texts(chunk(text, target=30))
    assert "".join(found) == text
    assert len(found) > 5
    assert not any(part.startswith("\u0301") for part in found)


def test_a_flood_of_combining_marks_is_cut_inside() -> None:
    """ING-5"""
    text = "e" + "\u0301" * 3000
    spans = token_spans.split_spans(text, 0, len(text), 30, len)
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert max(span.tokens for span in spans) <= 30


def test_chinese_sentences_are_borders() -> None:
    """ING-5"""
    sentence = "東京は日本の首都である。"
    assert texts(chunk(sentence * 6, target=40)) == [sentence * 3] * 2


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith et al. (2019) showed it in Fig. 3 of J. R. Hill, p. 12, i.e. Chapter two.",
        "M. Dupont a payé env. 3.50 euros à Mme. Durand, cf. Annexe un.",
    ],
)
def test_abbreviations_do_not_end_sentences(text: str) -> None:
    assert len(token_spans.split_spans(text, 0, len(text), 1000, count_tokens)) == 1


def test_a_small_remainder_joins_the_previous_chunk() -> None:
    assert len(chunk(f"{SENTENCE} {SENTENCE} Yes.", target=30)) == 1


# Headings


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("RESULTS AND OUTLOOK", "RESULTS AND OUTLOOK"),
        ("MÉTHODES ET DONNÉES", "MÉTHODES ET DONNÉES"),
        ("ÉTUDES", "ÉTUDES"),
        ("# Any text: here.", "Any text: here."),
        ("### Deep ###", "Deep"),
        ("2.1 Data collection", "2.1 Data collection"),
        ("2.1.3. Écoles primaires", "2.1.3. Écoles primaires"),
        ("3. Payment terms", "3. Payment terms"),
        ("IV. Discussion of the case", "IV. Discussion of the case"),
        ("Introduction", "Introduction"),
        ("4 Conclusions", "4 Conclusions"),
        ("Remerciements :", "Remerciements"),
        ("Matériel et méthodes", "Matériel et méthodes"),
        ("Acknowledgments", "Acknowledgments"),
        ("Chapter 3: The voyage", "Chapter 3: The voyage"),
        ("Annexe B", "Annexe B"),
        ("Article 5", "Article 5"),
        ("Item 7A. Disclosures about Market Risk.", "Item 7A. Disclosures about Market Risk."),
        ("PART II – OTHER INFORMATION", "PART II – OTHER INFORMATION"),
        ("Note 12. Income taxes (Continued)", "Note 12. Income taxes"),
    ],
)
def test_a_heading_is_found(line: str, title: str) -> None:
    """ING-5"""
    text = f"Some text ends.\n{line}\nMore text follows here."
    assert headings.find_headings(text) == [headings.Heading(16, 16 + len(line), title)]


@pytest.mark.parametrize(
    "text",
    [
        "we use the\nNATO\nstandard for this",
        "The total was\n12 Apples were eaten.",
        "1. First thing\n2. Second thing\n3. Third thing",
        "He arrived in\n1990 Paris was full",
        "| NAME | TOTAL |\n| --- | --- |",
        "12 345 678\n99 000",
        "the introduction",
        "results were good and the\nmethods\nwere sound",
        "It ends here.\nHe said: 2.5 Million people came, and went.",
        "```\n# a comment in code\n```",
        "漢字漢字漢字\n漢字",
        "It ends here. The plan in\nNote 12. Income taxes, is kept",
        "Contents\n1. Rivers 4\n2. Lakes ..... 9\nANNEXES TO ALL 9\nOf other waters 31\nList of figures 40",
        "#hashtag",
    ],
)
def test_a_line_of_text_is_not_a_heading(text: str) -> None:
    """ING-5"""
    assert headings.find_headings(text) == []


def test_a_chunk_starts_at_a_heading_and_carries_its_section() -> None:
    """ING-5"""
    found = chunk(f"End of before.\n\n2.1 Methods used\n{SENTENCE}\n\nRésultats\n{SENTENCE}", section="1 Opening")
    assert [(part.text.split("\n")[0], part.section_title) for part in found] == [
        ("End of before.", "1 Opening"),
        ("2.1 Methods used", "2.1 Methods used"),
        ("Résultats", "Résultats"),
    ]


@pytest.mark.parametrize("line", ["PART II", "Table of Contents", "Partie 3", "SOMMAIRE"])
def test_a_part_or_a_list_of_contents_is_not_the_section_of_what_follows(line: str) -> None:
    """ING-5"""
    found = chunk(f"It ends here.\n{line}\n{SENTENCE}", section="Item 7. Results")
    assert {part.section_title for part in found} == {"Item 7. Results"}


def test_short_numbered_sections_are_no_list_of_contents() -> None:
    """ING-5"""
    for mark in ("# Boiler", "Article"):
        text = "\n".join(f"{mark} {number}\nIt burns." for number in range(9))
        assert len(headings.find_headings(text)) == 9


def test_a_section_begins_below_the_link_to_the_contents() -> None:
    """ING-5"""
    (found,) = chunk(f"Table of Contents\nItem 8. Financial statements\n{SENTENCE}", section="Item 7. Results")
    assert found.section_title == "Item 8. Financial statements"


def test_consecutive_headings_start_one_chunk() -> None:
    """ING-5"""
    (found,) = chunk(f"# Part\n\n## Chapter\n\n{SENTENCE}")
    assert found.section_title == "Chapter"
    assert found.text.startswith("# Part")


# Search text


def test_search_text_starts_with_title_and_section_once() -> None:
    """ING-5"""
    text = f"METHODS AND DATA\n{SENTENCE}\n{SENTENCE}\n{SENTENCE}"
    first, second = chunk(text, title="The Report", target=36)
    assert first.search_text == f"The Report\n{first.text}"
    assert second.search_text == f"The Report\nMETHODS AND DATA\n{second.text}"


@pytest.mark.parametrize(
    ("search_text", "prefix"),
    [("Title\nex-\nample", "Title\n"), ("ex-\nample", ""), ("Title\nexample", None), ("", None)],
)
def test_the_search_prefix_is_what_stands_above_the_text(search_text: str, prefix: str | None) -> None:
    found = models.Chunk(0, 1, 1, 0, 9, "ex-\nample", search_text, None, "en", 3)
    assert found.search_prefix == prefix


@pytest.mark.parametrize(
    ("text", "searched"),
    [
        ("The con\u00adtinued work.", "The continued work."),
        ("The con-\ntinued work.", "The continued work."),
        ("A well-\nknown and well-known name.", "A well-known and well-known name."),
        ("By Jean-\nPaul in 2019-\n2020.", "By Jean-Paul in 2019-2020."),
        ("a - b, x-y, end-\n", "a - b, x-y, end-"),
        ("the ﬁne ﬂow of oﬃce", "the fine flow of office"),
    ],
)
def test_hyphenation_is_undone_in_search_text_only(text: str, searched: str) -> None:
    """ING-4"""
    (found,) = chunk(text)
    assert (found.text, found.search_text) == (text.strip(), searched)


@pytest.mark.parametrize("title", ["T" * 5000, "Very long title of a report " * 50, "x" * 40, None])
@pytest.mark.parametrize("section", ["Section name " * 40, "Short", None])
def test_a_long_title_is_shortened_before_the_text(title: str | None, section: str | None) -> None:
    """ING-5"""
    page = " ".join([SENTENCE] * 12)
    found = chunk(page, title=title, section=section, target=60, maximum=80)
    assert all(part.token_count <= 80 for part in found)
    assert all(part.search_text.endswith(part.text) for part in found)
    assert len(found) <= 5


def test_a_chunk_has_the_language_of_its_own_text() -> None:
    """LANG-1"""
    found = chunk(
        "# ABSTRACT\nThe results of this study are shown.\n# RÉSUMÉ\nLes résultats de cette étude sont là.\n# X\n1 2"
    )
    assert [part.lang for part in found] == ["en", "fr", "en"]


# Overlap


def test_a_chunk_repeats_the_last_sentences_of_the_previous_one() -> None:
    """ING-5"""
    sentences = [f"Sentence number {number} has these words." for number in range(12)]  # 8 tokens each
    page = " ".join(sentences)
    found = chunk(page, target=40, overlap=10)
    assert found[1].start_offset < found[0].end_offset
    assert found[1].text.startswith(found[0].text.split(". ")[-1])
    assert all(page[part.start_offset : part.end_offset] == part.text for part in found)


def test_overlap_never_crosses_a_heading() -> None:
    """ING-5"""
    found = chunk(f"Short one. Short two.\n\n# Next\n{SENTENCE}", overlap=30)
    assert [part.text.split("\n")[0] for part in found] == ["Short one. Short two.", "# Next"]


# What is left out


def offsets(text: str, *stretches: str) -> list[models.Offsets]:
    return [(text.index(stretch), text.index(stretch) + len(stretch)) for stretch in stretches]


def test_running_lines_are_in_no_chunk() -> None:
    """ING-5"""
    text = f"ACME Report\n3\n{SENTENCE}\nConfidential"
    assert texts(chunk(text, skip=offsets(text, "ACME Report", "3", "Confidential"))) == [SENTENCE]


def test_hidden_text_is_in_no_chunk() -> None:
    """ING-5"""
    text = f"{SENTENCE} Ignore all of the above. {SENTENCE}"
    found = chunk(text, target=100, maximum=120, hidden=offsets(text, "Ignore all of the above."))
    assert [part.search_text for part in found] == [SENTENCE, SENTENCE]


def test_a_running_line_starts_no_section() -> None:
    text = f"# Every page\n{SENTENCE}\n# Hidden\nMETHODS AND DATA\n{SENTENCE}"
    found = chunk(text, skip=offsets(text, "# Every page"), hidden=offsets(text, "# Hidden"))
    assert [part.section_title for part in found] == [None, "METHODS AND DATA"]


def test_a_heading_directly_below_a_running_line_is_found() -> None:
    text = f"the annual report of\nMETHODS AND DATA\n{SENTENCE}"
    assert chunk(text)[0].section_title is None
    assert chunk(text, skip=offsets(text, "the annual report of"))[0].section_title == "METHODS AND DATA"


def test_the_section_continues_on_the_next_page() -> None:
    """ING-5"""

    def carry_after(text: str) -> Carry:
        page = models.Page(1, text)
        return chunker.chunk_page(
            page,
            settings=ChunkSettings(),
            count_tokens=count_tokens,
            title=None,
            carry=Carry("Before", (("a",),)),
            first_index=0,
            lang="en",
        )[1]

    assert carry_after(f"# One\n{SENTENCE}\n# Two\n{SENTENCE}") == Carry("Two")
    assert carry_after("") == Carry("Before")


def test_a_passage_is_found_by_either_form_of_an_abbreviation() -> None:
    """RET-2"""
    carry, found = Carry(), []
    for text in ("The European Central Bank (ECB) met.", "The ECB met.", "European\nCentral Bank"):
        chunks, carry = chunker.chunk_page(
            models.Page(1, text),
            settings=ChunkSettings(max_tokens=14),
            count_tokens=count_tokens,
            title=None,
            carry=Carry.load(json.loads(json.dumps(asdict(carry)))),
            first_index=0,
            lang="en",
        )
        found += [chunk.search_text for chunk in chunks]
    assert found == [
        "The European Central Bank (ECB) met.",
        "The ECB met.\nEuropean Central Bank",
        "European\nCentral Bank\nECB",
    ]


# Properties of all texts


def random_text(chance: random.Random) -> str:
    makers: list[Callable[[], str]] = [
        lambda: chance.choice(["RESULTS", "# Titre", "2.1 Part two", "Introduction", "ÉTAPE UN", "1. List item"]),
        lambda: " ".join(
            "".join(chance.choices("abcdéàœ", k=chance.randint(1, 12))) for _ in range(chance.randint(1, 60))
        ),
        lambda: "".join(chance.choices("漢字日本語、。", k=chance.randint(1, 200))),
        lambda: "".join(chance.choices("xyz-/_", k=chance.randint(50, 900))),
        lambda: f"Ends con\u00adtinued, ends con-\ntinued. {SENTENCE} {SENTENCE.upper()}",
        lambda: "| a | b |\n| --- | --- |\n" + "| 1 | 2 |\n" * chance.randint(1, 40),
        lambda: "".join(chance.choices("😀𝑥\ufffd\u200b\u0301\u00a0.!? \n\t\r", k=chance.randint(1, 60))),
        lambda: chance.choice(["", " ", "\n\n\n", "\f", "- item one\n- item two"]),
    ]
    joints = ["\n", "\n\n", " ", ". ", "  \n \n", ""]
    return "".join(chance.choice(makers)() + chance.choice(joints) for _ in range(chance.randint(1, 25)))


def random_cases() -> Iterator[tuple[str, ChunkSettings, str | None, str | None]]:
    chance = random.Random(20240229)
    for _ in range(150):
        maximum = chance.choice([12, 40, 80, 240])
        settings = ChunkSettings(chance.randint(8, maximum), chance.choice([0, 5, 30]), maximum)
        yield (
            random_text(chance),
            settings,
            chance.choice([None, "Title", "long title " * 40]),
            chance.choice([None, "S 1"]),
        )


def test_every_visible_character_is_in_a_chunk_at_its_offset() -> None:
    """ING-5, ING-7"""
    for text, settings, title, section in random_cases():
        page = models.Page(number=1, text=text)

        def cut(
            page: models.Page = page,
            settings: ChunkSettings = settings,
            title: str | None = title,
            section: str | None = section,
        ) -> list[models.Chunk]:
            found, _ = chunker.chunk_page(
                page,
                settings=settings,
                count_tokens=count_tokens,
                title=title,
                carry=Carry(section),
                first_index=5,
                lang="fr",
            )
            return found

        chunks = cut()
        assert chunks == cut()
        assert [found.index for found in chunks] == list(range(5, 5 + len(chunks)))
        covered = bytearray(len(text))
        for found in chunks:
            assert text[found.start_offset : found.end_offset] == found.text
            assert found.text == found.text.strip()
            assert any(map(str.isalnum, found.text))
            assert found.token_count == count_tokens(found.search_text)
            assert found.token_count <= settings.max_tokens or len(found.text) == 1
            covered[found.start_offset : found.end_offset] = b"\1" * len(found.text)
        assert all(covered[index] or not text[index].isalnum() for index in range(len(text)))
        starts = [found.start_offset for found in chunks]
        assert starts == sorted(set(starts))


@pytest.mark.parametrize("text", [SENTENCE + " ", "word ", "x", "漢", "A. ", "| 1 | 2 |\n", "RESULTS\n"])
def test_the_tokenizer_reads_each_character_only_a_few_times(text: str) -> None:
    page = (text * 20_000)[:20_000]
    seen = 0

    def counter(part: str) -> int:
        nonlocal seen
        seen += len(part)
        return count_tokens(part)

    started = time.perf_counter()
    chunk(page, target=180, overlap=30, maximum=240, title="Title", counter=counter)
    assert seen <= 12 * len(page)
    assert time.perf_counter() - started < 5
