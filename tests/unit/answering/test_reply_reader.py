from __future__ import annotations

import json
import random

import pytest

from functions.core.answering.reply_reader import AnswerReader
from functions.core.citations.sections import SECTION_BREAK, WrittenSection

Read = tuple[str, tuple[WrittenSection, ...], bool, bool]


def read(*pieces: str) -> Read:
    reader = AnswerReader()
    shown = "".join(reader.feed(piece) for piece in pieces) + reader.finish()
    return shown, reader.sections, reader.is_complete, reader.says_no_answer


def section(text: str, *ids: str, quotes: tuple[str, ...] = ()) -> WrittenSection:
    return WrittenSection(text, ids, quotes)


SHAPES = {
    "asked": (
        '{"sections":[{"text":"A b.","source_ids":["d:1"],"quotes":["q"]}]}',
        [section("A b.", "d:1", quotes=("q",))],
    ),
    "two": (
        '{"sections":[{"text":"A","source_ids":[]},{"text":"B","source_ids":["d:1"]}]}',
        [section("A"), section("B", "d:1")],
    ),
    "ids-first": ('{"sections":[{"quotes":[],"source_ids":["d:1"],"text":"A"}]}', [section("A", "d:1")]),
    "escapes": (r'{"sections":[{"text":"\u00e9 \ud83d\ude00 \"q\" \\ a\nb"}]}', [section('é 😀 "q" \\ a\nb')]),
    "lone-surrogate": (r'{"sections":[{"text":"a\ud83d b\ude00c\u0000d"}]}', [section("a\ufffd b\ufffdcd")]),
    "bom-and-space": ('\ufeff \n{ "sections" : [ { "text" : " A " } ] } ', [section("A")]),
    "fence": ('```json\n{"sections":[{"text":"A"}]}\n```\nHope this helps!', [section("A")]),
    "preface": ('Here is the JSON:\n\n```json\n{"sections":[{"text":"A"}]}\n```', [section("A")]),
    "thinking": ('<think>{"text":"no"}</think>\n{"sections":[{"text":"A"}]}', [section("A")]),
    "wrapped": (
        '{"response":{"sections":[{"text":"A","source_ids":[{"id":"d:1"}]}]}}',
        [section("A", "d:1")],
    ),
    "list-alone": ('[{"text":"A","ids":["d:1"]}]', [section("A", "d:1")]),
    "one-object": ('{"answer":"A","sources":"d:1"}', [section("A", "d:1")]),
    "object-lines": ('{"text":"A"}\n{"text":"B"}', [section("A"), section("B")]),
    "python": ("{'sections':[{'text':'it\\'s it's','source_ids':['d:1']}]}", [section("it's it's", "d:1")]),
    "bare-keys": ('{sections:[{text:"A", source_ids:["d:1"]}]}', [section("A", "d:1")]),
    "inner-marks": (
        '{"sections":[{"text":"He said "hi", and left","source_ids":["d:1"]}]}',
        [section('He said "hi", and left', "d:1")],
    ),
    "no-comma": ('{"sections":[{"text":"A"\n"source_ids":["d:1"]}]}', [section("A", "d:1")]),
    "tags-in-text": ('{"sections":[{"text":"A [SEG=d:1], b 【SEG=d:2】."}]}', [section("A, b.", "d:1", "d:2")]),
    "marks-in-text": ('{"sections":[{"text":"A [1] [2, 3] [x] (a)"}]}', [section("A (1) (2, 3) [x] (a)")]),
    "repeated": (
        '{"sections":[{"text":"A","ids":["d:1"]},{"text":"AB"},{"text":"A","ids":["d:2"]}]}',
        [section("A", "d:1", "d:2"), section("AB")],
    ),
    "prose": (
        "One [SEG=d:1].\nSame.\n\nTwo {x} `c` [y].",
        [section("One.\nSame.", "d:1"), section("Two {x} `c` [y].")],
    ),
    "prose-then-json": ("x" * 200 + ' {"sections":[{"text":"A"}]}', [section("x" * 200), section("A")]),
    "code-in-prose": ('Use:\n```json\n{"a": 1}\n```', [section('Use:\n```json\n{"a": 1}\n```')]),
    "plain-no": ('{"sections":[{"text":"NO"}]}', [section("NO")]),
    "no-answer-but": ('{"sections":[{"text":"NO_ANSWER: but A."}]}', [section("but A.")]),
    "unknown-json": ('{"error":"no"}', []),
    "nothing": ("  \n", []),
}


@pytest.mark.parametrize(("written", "expected"), SHAPES.values(), ids=SHAPES)
def test_sections_are_read_from_every_shape_of_answer(written: str, expected: list[WrittenSection]) -> None:
    """CHAT-4"""
    shown = SECTION_BREAK.join(section.text for section in expected)
    assert read(written) == (shown, tuple(expected), True, False)


@pytest.mark.parametrize("written", [written for written, _ in SHAPES.values()], ids=list(SHAPES))
def test_sections_do_not_depend_on_how_the_stream_is_cut(written: str) -> None:
    """CHAT-4"""
    whole, chance = read(written), random.Random(written)
    assert read(*written) == whole
    for _ in range(30):
        cuts = sorted(chance.sample(range(len(written) + 1), chance.randint(0, len(written))))
        assert read(*(written[a:b] for a, b in zip([0, *cuts], [*cuts, len(written)], strict=True))) == whole


@pytest.mark.parametrize("written", [written for written, _ in SHAPES.values()], ids=list(SHAPES))
def test_the_shown_text_equals_the_joined_sections_wherever_the_stream_ends(written: str) -> None:
    """CHAT-2"""
    for end in range(len(written)):
        shown, sections, *_ = read(written[:end])
        assert shown == SECTION_BREAK.join(section.text for section in sections)


def test_text_is_streamed_while_it_is_written() -> None:
    """CHAT-2, CHAT-4"""
    reader = AnswerReader()
    assert reader.feed('{"sections":[{"text":"The rate ro') == "The rate ro"
    assert reader.feed("se by 5") == "se by 5"


@pytest.mark.parametrize("missing", range(1, 80, 6))
def test_a_truncated_answer_never_shows_json_or_half_an_id(missing: int) -> None:
    """CHAT-5"""
    written = json.dumps({"sections": [{"text": "Alpha beta.", "source_ids": ["d:12"], "quotes": ["alpha"]}]})
    shown, sections, complete, _ = read(written[:-missing])
    assert "Alpha beta.".startswith(shown)
    assert not complete or not shown
    assert all(section.segment_ids in ((), ("d:12",)) and section.quotes in ((), ("alpha",)) for section in sections)


@pytest.mark.parametrize(
    "written", ["NO_ANSWER", '{"sections":[{"text":"NO_ANSWER."}]}', '{"sections":[{"text":"NO_ANSW']
)
def test_the_sentinel_is_recognized_and_never_shown(written: str) -> None:
    """CHAT-8"""
    shown, sections, _, says_no_answer = read(written)
    assert (shown, sections, says_no_answer) == ("", (), True)


def test_any_garbage_is_read_without_an_error() -> None:
    chance = random.Random(7)
    alphabet = '{}[]",:\\u\'`ab \n1d8SEG=NO_<think>sections"text"'
    for _ in range(2000):
        written = "".join(chance.choice(alphabet) for _ in range(chance.randint(0, 60)))
        shown, sections, *_ = read(written)
        assert shown == SECTION_BREAK.join(section.text for section in sections)
        assert read(*written)[:2] == (shown, sections)
