"""The tokenizer of multilingual-e5-small against the `tokenizers` library with the same vocabulary."""

from __future__ import annotations

import functools
import itertools
import random
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import tokenizers

from functions.adapters.laptop import e5_weights, unigram_tokenizer
from functions.adapters.laptop.unigram_tokenizer import UnigramTokenizer
from functions.local.evaluation import question_sets
from tests.support.requirements import need_eval_data

HOSTILE = {
    "combining": "Cafe\u0301 a\u0327\u0301 b\u0301\u0327 \u0344 x\u0300\u0301\u0302y",
    "leading mark": "\u0300abc \u20dd",
    "compositions": "\u2126 \u0958 \u0b47\u0b3e \u1fc1",
    "jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af \uac00\u11a8 \u1161\u11a8 한글",
    "right-to-left": "שלום \u202eabc\u202c عليكم",
    "emoji": "👩‍👩‍👧‍👦🏽🇫🇷 ❤️‍🔥 🙂🙂x🙂",
    "ligatures": "ﬁn oﬃce ½ ㎞ ﷺﷺ … ™",
    "wide": "１２３ＡＢＣ　ｶﾞ",
    "control": "a\0b\x01c\x1cd\x7fe\x85f\tg\r\nh\x0b",
    "zero width": "a\u200bb\u00adc\ufeffd\u2060e",
    "spaces": "  a \u00a0\u3000\u2003 b\n\n ",
    "only spaces": " \n\u00a0",
    "empty": "",
    "markers": "▁▁a▁b ▁",
    "special tokens": "<s> </s> <pad> <unk> <mask>",
    "surrogates": "a \ud800 b\udfff \ud83d\ude42",
    "private use": "\ue000\ue001a\U0010fffd",
    "long run": "x" * 5_000,
    "long run of marks": "e" + "\u0301\u0327" * 3_000 + "f",
    "chinese": "東京は日本の首都である。公司在二零一九年确认了收入。" * 20,
    "thai": "กรุงเทพมหานครเป็นเมืองหลวง",
}


@functools.cache
def vocabulary() -> e5_weights.Vocabulary:
    return e5_weights.read_weights(e5_weights.find_weights()).vocabulary


@functools.cache
def tokenizer() -> UnigramTokenizer:
    found = vocabulary()
    return UnigramTokenizer(found.pieces, found.scores.tolist(), found.unknown, found.replacements)


class Normalizer:
    """NFC and the table of the file, on the library's own strings, which follow each character to its origin."""

    def normalize(self, text: Any) -> None:
        table = vocabulary().replacements
        text.nfc()
        for character in sorted({character for character in str(text.normalized) if ord(character) in table}):
            text.replace(character, table[ord(character)])


@functools.cache
def reference() -> Any:
    """Special tokens are named by characters for private use, because no text may contain them."""
    found = vocabulary()
    names = [piece or f"\U00100000{number}" for number, piece in enumerate(found.pieces)]
    model = tokenizers.models.Unigram(list(zip(names, found.scores.tolist(), strict=True)), unk_id=found.unknown)
    library = tokenizers.Tokenizer(model)
    library.normalizer = tokenizers.normalizers.Normalizer.custom(Normalizer())
    cut = tokenizers.pre_tokenizers
    library.pre_tokenizer = cut.Sequence([cut.Split(" ", "removed"), cut.Metaspace("▁", "always", True)])
    return library


def without_spaces(ids: list[int], offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The offsets of the pieces that are more than the space before a word, to which the library gives a character."""
    return [place for id_, place in zip(ids, offsets, strict=True) if vocabulary().pieces[id_] != "▁"]


def check(text: str) -> None:
    got, expected = tokenizer().encode(text), reference().encode(text, add_special_tokens=False)
    assert (got.ids, tokenizer().count(text)) == (expected.ids, len(expected.ids))
    assert without_spaces(*got) == without_spaces(expected.ids, expected.offsets)


def test_passages_of_both_languages_have_the_tokens_and_offsets_of_the_library() -> None:
    root = need_eval_data("passages")
    sets = [question_sets.read_set(name, root=root) for name in question_sets.list_sets(root)]
    texts = [passage.text for found in sets for passage in found.passages]
    texts += [question.text for found in sets for question in found.questions]
    assert len(texts) >= 5_000
    for text in texts[:: len(texts) // 5_000]:
        check(text)


# The library gives a composed character the offsets of its first part only, refuses lone surrogates, and sorts any
# number of combining marks.
COMPOSED = {"combining", "compositions", "jamo"}
OTHER = {"surrogates", "long run of marks"}


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - COMPOSED - OTHER))
def test_hostile_texts_have_the_tokens_and_offsets_of_the_library(name: str) -> None:
    check(HOSTILE[name])


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_composed_characters_have_the_tokens_of_the_library(name: str) -> None:
    expected = reference().encode(HOSTILE[name], add_special_tokens=False)
    assert tokenizer().encode(HOSTILE[name]).ids == expected.ids


def test_a_lone_surrogate_counts_as_an_unknown_character() -> None:
    assert tokenizer().encode("a \ud800 b").ids == tokenizer().encode("a \U0010fffd b").ids


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_offsets_run_forward_inside_the_text_and_cover_every_letter(text: str) -> None:
    offsets = tokenizer().encode(text).offsets
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    assert all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(offsets))
    covered = {place for start, end in offsets for place in range(start, end)}
    assert all(place in covered for place, letter in enumerate(text) if letter.isalnum())


def test_offsets_slice_the_original_text_at_its_words() -> None:
    text = "  Cafe\u0301 — nai\u0308ve ﬁn revenue\0!"
    pieces = [text[start:end] for start, end in tokenizer().encode(text).offsets if start < end]
    assert pieces == ["Cafe\u0301", "—", "na", "i\u0308", "ve", "ﬁn", "revenue", "\0", "!"]


def test_parts_of_a_text_compose_as_the_whole_does() -> None:
    draw = random.Random(7)
    alphabet = [
        chr(code) for code in [*range(0x61, 0x66), *range(0x300, 0x330), 0x1100, 0x1161, 0x11A8, 0xAC00, 0x9C7, 0x9BE]
    ]
    for _ in range(2_000):
        text = "".join(draw.choices(alphabet, k=draw.randrange(30)))
        borders = itertools.pairwise(unigram_tokenizer._segment(text))
        parts = [unicodedata.normalize("NFC", text[start:end]) for start, end in borders]
        assert "".join(parts) == unicodedata.normalize("NFC", text)


def test_every_character_that_composes_backwards_continues_a_part() -> None:
    seconds = [unicodedata.decomposition(chr(code)).split() for code in range(0x110000)]
    composing = {chr(int(parts[1], 16)) for parts in seconds if len(parts) == 2 and not parts[0].startswith("<")}
    assert len(composing) > 50
    assert all(
        unigram_tokenizer._continues(c)
        for c in composing | {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    )


def test_the_first_tokens_of_a_text_are_a_prefix_of_all() -> None:
    text = "one two three " * 50
    tokens = tokenizer().encode(text)
    assert tokenizer().encode(text, 7) == (tokens.ids[:7], tokens.offsets[:7])


def test_the_cache_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unigram_tokenizer, "CACHED_WORDS", 100)
    small = UnigramTokenizer(["", "▁", "a", "b"], [0.0, -1.0, -2.0, -3.0], 0, {})
    for number in range(500):
        small.count(f"{number:b}".replace("0", "a").replace("1", "b") + " " + "ab" * number)
    info = small._cut_cached.cache_info()
    assert (info.currsize, info.maxsize) == (100, 100)


def test_many_threads_share_one_tokenizer() -> None:
    texts = [*HOSTILE.values(), "A plain sentence."] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(tokenizer().encode, texts))
    assert found == [tokenizer().encode(text) for text in texts]
