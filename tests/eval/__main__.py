"""Measures every question set in IBID_EVAL_DATA, or the sets named as arguments: `make eval`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from functions.local.evaluation import across, command, question_sets, refusals
from tests.eval import bm25
from tests.eval.goals import GOALS

TRANSLATIONS: Final = Path(__file__).with_name("translated_questions.jsonl")
"""Questions of the sets, translated for this project."""


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        names = question_sets.list_sets(question_sets.data_root())
        if not names:
            print(f"MISSING: IBID_EVAL_DATA: no question sets in {question_sets.data_root()}", file=sys.stderr)
            return 2
        arguments = [*names, across.NAME, refusals.NAME, *arguments]
    return command.main(arguments, command.Standards(GOALS, {"bm25s": bm25.measure_ndcg}, TRANSLATIONS))


if __name__ == "__main__":
    sys.exit(main())
