"""Measures questions that ask two things: `python -m tests.eval.question_parts [--limit N]`.

Two questions of a set become one ("When … and who …?"), of one document or of two. Searched for each part or only as a
whole, both have their page or passage among those that the model reads, or among the four of the compact prompt.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from unittest import mock

from functions.core.answering.prompts import COMPACT_PASSAGES
from functions.core.retrieval import question_forms
from functions.core.settings import Settings
from functions.local.evaluation import asking, command, question_sets, ranking_scores
from functions.local.evaluation.library import load_library
from functions.runtime.config import Config

SETS: Final = {"passages/xquad_en": "and", "pages_en": "and", "passages/piaf": "et"}
LIMIT: Final = 40
_BEGINNING = re.compile(r"(?:who|what|which|when|where|why|how|qui|quel\w*|quand|où|pourquoi|comment|combien)\b", re.I)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions as one."""

    first: question_sets.Question
    second: question_sets.Question
    conjunction: str

    @property
    def text(self) -> str:
        second = self.second.text[0].lower() + self.second.text[1:]
        return f"{self.first.text.rstrip(' ?')} {self.conjunction} {second}"


def list_pairs(questions: Sequence[question_sets.Question], conjunction: str, *, same: bool) -> Iterator[Pair]:
    """Pairs of questions with evidence of their own, of the same document or of two, each question in one pair."""
    left = [one for one in questions if one.gold and _BEGINNING.match(one.text)]
    while left:
        first = left.pop(0)
        for second in left:
            is_pair = (first.documents == second.documents) == same and not first.gold & second.gold
            if is_pair and first.lang == second.lang:
                left.remove(second)
                yield Pair(first, second, conjunction)
                break


def measure(pairs: Sequence[Pair], found: Sequence[asking.Found]) -> list[float]:
    """The shares of pairs of which both are among the passages read, and among the four of the compact prompt."""
    shares = []
    for count in (None, COMPACT_PASSAGES):
        units = [{one.units[hit.segment_id] for hit in one.context[:count]} for one in found]
        both = [
            bool(pair.first.gold & read) and bool(pair.second.gold & read)
            for pair, read in zip(pairs, units, strict=True)
        ]
        shares.append(ranking_scores.mean([float(one) for one in both]))
    return shares


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=LIMIT, help="pairs of each kind and set")
    limit = parser.parse_args().limit
    print(f"{'set':12}{'documents':>10}{'pairs':>7}{'split':>7}   searched as a whole: read, first 4   for each part")
    settings = Settings()
    with command.open_database() as database, command.open_embedder(Config().home) as embedder:
        for name, conjunction in SETS.items():
            asked = question_sets.read_set(name)
            library = load_library(database, asked, embedder, settings)
            cut = sum(bool(question_forms.split_question(one.text)) for one in asked.questions)
            print(f"{asked.name}: {cut} of its own {len(asked.questions)} questions are cut")
            for same in (True, False):
                pairs = list(list_pairs(asked.questions, conjunction, same=same))
                pairs = [pairs[place * len(pairs) // limit] for place in range(limit)] if len(pairs) > limit else pairs
                questions = [replace(pair.first, text=pair.text) for pair in pairs]
                split = sum(bool(question_forms.split_question(one.text)) for one in questions)
                shares: list[float] = []
                for parts in ((), None):
                    with _searched_as(parts):
                        found = asking.find_passages(database, library, questions, embedder, settings)
                    shares += measure(pairs, found)
                columns = "".join(f"{share:8.3f}" for share in shares)
                print(f"{asked.name:12}{'same' if same else 'two':>10}{len(pairs):7}{split:7}   {columns}", flush=True)
    return 0


def _searched_as(parts: Mapping[str, str] | tuple[str, ...] | None) -> mock._patch[object]:
    whole = mock.Mock(return_value=parts) if parts is not None else question_forms.split_question
    return mock.patch.object(question_forms, "split_question", whole)


if __name__ == "__main__":
    sys.exit(main())
