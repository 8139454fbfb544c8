"""No part of a passage is truncated before it is embedded, with the real tokenizers and the real models."""

from __future__ import annotations

import base64
import collections
import random
import re

import pytest

from functions.adapters.laptop import e5, minilm
from functions.adapters.laptop.embedder import LocalEmbedder
from functions.core import models
from functions.core.ingestion.chunking import chunker, page_layout
from functions.core.ingestion.chunking.passages import ChunkSettings

RANDOM = random.Random(256)
PROSE = "The tenant shall pay the rent on the first day of each month. Interest is due on late payments. " * 30
TEXTS = {
    "chinese": "東京は日本の首都である。人口は約千四百万人、世界最大の都市圏を形成する。" * 40,
    "thai": "กรุงเทพมหานครเป็นเมืองหลวงและนครที่มีประชากรมากที่สุด " * 40,
    "arabic": "تعد القاهرة عاصمة جمهورية مصر العربية وأكبر مدنها من حيث عدد السكان. " * 40,
    "emoji": "Great 😀🎉 news 👩‍👩‍👧‍👦 for all 🇫🇷 of us! " * 60,
    "long words": " ".join("".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=90)) for _ in range(60)),
    "base64": base64.b64encode(RANDOM.randbytes(4000)).decode(),
    "addresses": "See https://example.org/a/b-c/d_e?f=1&g=%20x#y and mail first.last@example.org now. " * 40,
    "digits": " ".join(str(RANDOM.randrange(10**12)) for _ in range(300)),
    "one number": "3.14159" + "".join(RANDOM.choices("0123456789", k=3000)),
    "hyphens": "con\u00adtinued and con-\ntinued, ﬁne oﬃce\n" * 80,
    "accents": "Où l’été à Nîmes coûte-t-il 5 € ? Ça dépend du garçon naïf, cœur. " * 40,
    "signs": "a=b+c;{d[e]}//f*g--h!?" * 150,
    "combining": "e\u0301a\u0300o\u0302 " * 400,
    "control": "x\x01y\x02z\ufffd\u200b " * 300,
    "prose": PROSE,
    "markdown": "| name | value |\n| --- | --- |\n" + "| alpha beta | 1,234.56 |\n" * 150,
}
TITLES = [
    "Report",
    "A title that goes on and on about everything there is to say " * 8,
    "x" * 255,
    "年次報告書" * 40,
    None,
]


# The similarity that two different texts stay below: all similarities of e5 lie close to 1.
DIFFERENT = {e5.NAME: 0.95, minilm.NAME: 0.9}


@pytest.fixture(scope="module", params=list(DIFFERENT), ids=["e5", "minilm"])
def embedder(request: pytest.FixtureRequest) -> LocalEmbedder:
    return LocalEmbedder(request.param)


def chunk(embedder: LocalEmbedder, page: models.Page, title: str | None = "Report") -> list[models.Chunk]:
    chunks, _ = chunker.chunk_page(
        page,
        settings=ChunkSettings(target_tokens=240, overlap_tokens=30, max_tokens=embedder.max_input_tokens),
        count_tokens=embedder.count_tokens,
        title=title,
        carry=page_layout.Carry(section="2.1 Section name"),
        first_index=0,
        lang="en",
    )
    return chunks


def make_table(rows: list[tuple[str, ...]], gap: str = " ") -> models.Page:
    """A page whose text is the rows, one line each."""
    text, found = "", []
    for cells in rows:
        line = gap.join(cells)
        found.append(models.TableRow(len(text), len(text) + len(line), cells))
        text += line + "\n"
    return models.Page(1, text, tables=(models.Table(tuple(found)),))


def letters(*texts: str) -> collections.Counter[str]:
    return collections.Counter(letter for text in texts for letter in text if letter.isalnum())


def check_all_reaches_the_model(embedder: LocalEmbedder, chunks: list[models.Chunk]) -> None:
    """Checks that the tokens given to the model, those with an embedding, hold each letter of `search_text`."""
    for found, tokens in zip(chunks, embedder.embed_tokens([found.search_text for found in chunks]), strict=True):
        assert found.token_count == len(tokens.offsets) <= embedder.max_input_tokens
        seen = bytearray(len(found.search_text))
        for start, end in tokens.offsets:
            seen[start:end] = b"\1" * (end - start)
        assert all(seen[index] for index, letter in enumerate(found.search_text) if letter.isalnum())


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_every_letter_of_a_passage_reaches_the_model(embedder: LocalEmbedder, text: str) -> None:
    """ING-5"""
    chunks = chunk(embedder, models.Page(1, text))
    check_all_reaches_the_model(embedder, chunks)
    covered = {index for found in chunks for index in range(found.start_offset, found.end_offset)}
    assert all(index in covered for index, letter in enumerate(text) if letter.isalnum())


@pytest.mark.parametrize("title", TITLES, ids=["short", "long", "one word", "chinese", "none"])
def test_a_long_title_displaces_no_letter_of_the_text(embedder: LocalEmbedder, title: str | None) -> None:
    """ING-5"""
    chunks = chunk(embedder, models.Page(1, PROSE), title)
    check_all_reaches_the_model(embedder, chunks)
    assert all(found.search_text.endswith(found.text) for found in chunks)


@pytest.mark.parametrize(
    "rows",
    [
        [("Year", "Venue", "Position"), *((str(1900 + year), f"Town {year}", f"{year}th") for year in range(120))],
        [("Key", "Text"), ("a", PROSE), ("b", TEXTS["chinese"]), ("c", TEXTS["base64"])],
        [tuple(f"A long column name number {column}" for column in range(60)), tuple(map(str, range(60)))],
        [("One",), (TEXTS["digits"],)],
    ],
    ids=["many rows", "long cells", "many columns", "one column"],
)
def test_every_letter_of_a_table_reaches_the_model(embedder: LocalEmbedder, rows: list[tuple[str, ...]]) -> None:
    """ING-6"""
    chunks = chunk(embedder, make_table(rows))
    check_all_reaches_the_model(embedder, chunks)
    assert not letters(*(cell for cells in rows for cell in cells)) - letters(*(one.search_text for one in chunks))


@pytest.mark.parametrize("text", [PROSE, TEXTS["accents"], TEXTS["addresses"], TEXTS["digits"]])
def test_the_last_word_of_a_passage_changes_its_vector(embedder: LocalEmbedder, text: str) -> None:
    """ING-5"""
    for found in chunk(embedder, models.Page(1, text))[:3]:
        changed = re.sub(r"\w+(\W*)$", r"zebra\1", found.search_text)
        before, after = embedder.embed([found.search_text, changed])
        assert changed != found.search_text
        assert float(before @ after) < 0.9999


def test_the_check_notices_a_truncated_text(embedder: LocalEmbedder) -> None:
    """In a text too long for the model, the last word has no token."""
    (tokens,) = embedder.embed_tokens([PROSE])
    assert tokens.offsets[-1][1] < len(PROSE.rstrip()) - 100


def test_a_very_long_word_reaches_the_model_to_its_end(embedder: LocalEmbedder) -> None:
    """ING-5"""
    assert len(chunk(embedder, models.Page(1, "deadbeef" * 400))) > 5
    one, other = embedder.embed(["word " + "ab" * 60, "word " + "cd" * 60])
    assert float(one @ other) < DIFFERENT[embedder.model]
