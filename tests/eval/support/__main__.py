"""Measures which claims keep `support: high`: `python -m tests.eval.support [--half dev] [--show]`.

The claims are sentences of the passages in IBID_EVAL_DATA, as they are and reordered, and the restatements in
restatements.jsonl, which were written for this project. Each is also changed in one name, figure, date or negation, or
its subject is swapped. The documents are split into two halves; limits are chosen on `dev`, and `test` is reported.
Prints a table and, as the last line, a JSON object; returns 1 when a goal is missed, and 2 without the passages.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from functions.core.citations.cite import cite_sections
from functions.core.citations.sections import WrittenSection
from functions.core.text import languages
from functions.core.text.sentences import split_sentences
from functions.local.evaluation import question_sets
from functions.local.evaluation.scores import reach
from tests.eval.support.changes import Claim, Texts, list_changes, list_rewordings
from tests.support.fakes.search_hits import make_hit
from tests.support.requirements import report_missing

SETS: Final = {"en": "xquad_en", "fr": "piaf"}
RESTATEMENTS: Final = Path(__file__).with_name("restatements.jsonl")
SENTENCES: Final = 150
"""Of each language, one sentence of a passage each."""
KEPT, LOST = 0.95, 0.90
NEIGHBOURS: Final = 4  # other passages of the same document that the model is given as well


def list_claims(texts: Texts, lang: str) -> Iterator[Claim]:
    """One sentence of each of many passages, the ways to reword it, and the restatements written by hand."""
    chance = random.Random(7)
    passages = sorted(texts.passages)
    for passage in chance.sample(passages, min(SENTENCES, len(passages))):
        text = texts.passages[passage]
        spans = [(start, end) for start, end in split_sentences(text) if 60 <= end - start <= 260]
        if spans:
            start, end = chance.choice(spans)
            claim = Claim(passage, start, end, text[start:end], lang, "verbatim")
            yield claim
            yield from list_rewordings(claim)


def list_restatements(texts: Texts, lang: str) -> Iterator[tuple[Claim, Claim | None]]:
    """The restatements written by hand of the passages of a set, each with its changed form, if it has one."""
    for row in question_sets.read_lines(RESTATEMENTS):
        if text := texts.passages.get(row["passage_id"]):
            end = next(end for start, end in split_sentences(text) if start == row["start"])
            place = (row["passage_id"], row["start"], end)
            changed = Claim(*place, row["changed"], lang, "by hand") if row["changed"] else None
            said_in = languages.detect_language(row["claim"], "fr" if lang == "fr" else "en")
            yield Claim(*place, row["claim"], said_in, "restated"), changed


def is_supported(claim: Claim, texts: Texts, *, with_quote: bool) -> bool:
    """Whether any citation of a section that says this, and names the right passage, has high support."""
    ids = texts.list_neighbours(claim.passage, NEIGHBOURS)
    hits = [make_hit(texts.passages[one], document=one, lang=texts.lang) for one in ids]
    quote = (texts.passages[claim.passage][claim.start : claim.end],) if with_quote else ()
    _, sources = cite_sections([WrittenSection(claim.text, (f"{claim.passage}:0",), quote)], hits)
    return any(source.support == "high" for source in sources)


def in_test_half(passage: str) -> bool:
    return zlib.crc32(passage.rpartition("-")[0].encode()) % 2 == 1


def measure(half: str, root: Path, *, shows: bool) -> Counter[tuple[str, str, bool, bool]]:
    """Counts of (language, kind, is changed, is as it should be), over claims with and without a quotation."""
    counts: Counter[tuple[str, str, bool, bool]] = Counter()
    for lang, name in SETS.items():
        texts = Texts.read(root / "passages" / name / "corpus.jsonl", lang)
        true = list(list_claims(texts, lang))
        changed = [change for claim in true for change in list_changes(claim, texts)]
        for restated, false in list_restatements(texts, lang):
            true.append(restated)
            changed += [replace(change, kind=f"{change.kind}, restated") for change in list_changes(restated, texts)]
            changed += [false] if false else []
        for is_changed, claims in ((False, true), (True, changed)):
            for number, claim in enumerate(claims):
                if in_test_half(claim.passage) != (half == "test"):
                    continue
                is_right = is_supported(claim, texts, with_quote=number % 2 == 0) != is_changed
                counts[lang, claim.kind, is_changed, is_right] += 1
                if shows and not is_right:
                    said = texts.passages[claim.passage][claim.start : claim.end]
                    print(f"{claim.kind}\t{is_changed}\t{claim.text}\n\t{said}")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("dev", "test"), default="test")
    parser.add_argument("--show", action="store_true", help="print each claim that is judged wrongly")
    options = parser.parse_args()
    root = question_sets.data_root()
    if not (root / "passages").is_dir():
        report_missing(f"IBID_EVAL_DATA: no passages in {root}")
        return 2
    counts = measure(options.half, root, shows=options.show)
    for lang, kind, is_changed in sorted({key[:3] for key in counts}, key=lambda key: (key[0], key[2], key[1])):
        right, wrong = counts[lang, kind, is_changed, True], counts[lang, kind, is_changed, False]
        print(f"{lang}  {'changed' if is_changed else 'true':8} {kind:20} {right:4} of {right + wrong:4}")
    figures = []
    for lang in SETS:
        for is_changed, goal, word in ((False, KEPT, "keep"), (True, LOST, "lose")):
            rows = {key: n for key, n in counts.items() if key[0] == lang and key[2] == is_changed}
            share = sum(n for key, n in rows.items() if key[3]) / max(sum(rows.values()), 1)
            claims = "changed" if is_changed else "true"
            figures.append(reach(f"{options.half}, {lang}: {claims} claims that {word} high support", share, goal))
    total = sum(n for key, n in counts.items() if key[2])
    print(json.dumps({"name": "support", "changed_claims": total, "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
