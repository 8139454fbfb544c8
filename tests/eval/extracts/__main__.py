"""Judges 60 answers without a model: `python -m tests.eval.extracts [--file FILE]`.

There are 15 questions each for prose, tables, definitions and lists, 20 of all in French. Those for prose and tables
are spread evenly over three question sets, those for definitions and lists were written for this project. FILE has each
question, its gold answer, the answer and its faults side by side. 120 questions whose subject is in no document show
how many are refused or answered with "the nearest passages". Of the answers to all questions about XQuAD's and PIAF's
passages, with the right passage given, it prints how many of those with words in bold have the answer in them. Returns
1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from functions.adapters.postgres import search
from functions.adapters.postgres.connection import Database
from functions.core import models, ports
from functions.core.answering import answers, prompts
from functions.core.retrieval import guard, retriever, sentence_similarity
from functions.core.settings import Settings
from functions.core.text import languages
from functions.local.evaluation import command, question_sets
from functions.local.evaluation.library import Library, load_library
from functions.local.evaluation.scores import figure, reach
from functions.runtime.config import Config
from tests.eval.extracts.emphasis import SETS, judge_emphasis
from tests.eval.extracts.judgement import find_faults

QUESTIONS: Final = Path(__file__).with_name("questions.jsonl")
SAMPLES: Final = (
    ("prose", "pages_en", "", "en", 5),
    ("prose", "reports_eu", "text", "en", 5),
    ("prose", "pages_fr", "", "fr", 5),
    ("table", "reports_eu", "table", "en", 10),
    ("table", "reports_eu", "table", "fr", 5),
)
"""Kind here, set, kind in the set, language, and number. A gold answer of one sentence or more is no quotation."""
MAX_GOLD_WORDS: Final = 6
OFF_TOPIC: Final = ("unanswerable_en", "unanswerable_fr")
ACCEPTABLE, NEAREST, EMPHASIS = 0.8, 0.8, 0.8


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the groups of strings that a right answer has one of each, and its document."""

    kind: str
    set_name: str
    text: str
    gold: tuple[tuple[str, ...], ...]
    document: str


def list_questions(root: Path) -> list[Asked]:
    """The 60 questions."""
    found = []
    for kind, set_name, kind_there, lang, count in SAMPLES:
        rows = [row for path in sorted((root / set_name).glob("queries*")) for row in question_sets.read_lines(path)]
        fitting = [row for row in rows if row["lang"] == lang and row.get("kind", "") == kind_there]
        fitting = [row for row in fitting if row["evidence"] and len(row["answer"].split()) <= MAX_GOLD_WORDS]
        for at in range(count):
            row = fitting[(2 * at + 1) * len(fitting) // (2 * count)]
            forms = tuple(row.get("answers") or [row["answer"]])
            found.append(Asked(kind, set_name, row["question"], (forms,), row["evidence"][0]["doc_id"]))
    for row in question_sets.read_lines(QUESTIONS):
        gold = tuple((answer,) for answer in row["answers"])
        found.append(Asked(row["kind"], row["set"], row["question"], gold, row["doc_id"]))
    return found


@dataclass(slots=True)
class Spent:
    """Processor seconds of answers, and in them of comparing sentences with the question, and how often that was."""

    whole: float = 0.0
    comparing: float = 0.0
    comparisons: int = 0


@dataclass(frozen=True, slots=True)
class _Answerer:
    """Answers questions as the product does without a chat model; `spent` adds up what it costs, the database apart."""

    database: Database
    library: Library
    embedder: ports.Embedder
    spent: Spent = field(default_factory=Spent)

    def answer(self, text: str) -> models.Answer | None:
        """None if the guard refuses the question."""
        began = time.process_time()
        try:
            return self._answer(text)
        finally:
            self.spent.whole += time.process_time() - began

    def _compare(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        began = time.process_time()
        compare = sentence_similarity.make_compare(self.library.server, lambda _: self.embedder)
        similarities = compare(question, texts)
        self.spent.comparing += time.process_time() - began
        self.spent.comparisons += 1
        return similarities

    def _answer(self, text: str) -> models.Answer | None:
        settings, server = Settings(), self.library.server
        lang = languages.guess_language(text)
        found = retriever.retrieve(
            text,
            lang,
            models.Scope("library"),
            servers=(server,),
            embedder_of=lambda _: self.embedder,
            search=partial(search.hybrid_search, self.database, self.library.user),
            settings=settings,
        )
        threshold = guard.find_threshold(lang, (server,), settings, found.ranking.candidate_chunks)
        if not guard.is_answerable(found.versions, found.ranking.hits, threshold):
            return None
        rules = answers.QuoteRules(self._compare, guard.find_threshold(lang, (server,), settings, guard.MEDIUM_SCOPE))
        stream = answers.answer_question(text, found.context, lang=lang, history=(), chat_model=None, quote_rules=rules)
        with closing(stream):
            *_, ready = stream
        assert isinstance(ready, answers.AnswerReady)
        return ready.answer


def judge(answerer: _Answerer, questions: Sequence[Asked]) -> list[dict[str, Any]]:
    """A row for each question with its answer and its faults."""
    names = dict(answerer.library.names)
    judged = []
    for asked in questions:
        answer = answerer.answer(asked.text)
        faults = ["refused"] if answer is None else find_faults(answer, asked.gold, asked.document, names)
        shown = "" if answer is None else answer.answer
        judged.append({"asked": asked, "answer": shown, "faults": faults})
    return judged


def count_unanswered(answerer: _Answerer, questions: Sequence[question_sets.Question]) -> float:
    """The share of questions that are refused or answered with the nearest passages."""
    found = [answerer.answer(question.text) for question in questions]
    notes = (*prompts.NEAREST.values(), *prompts.NOT_ENOUGH.values())
    unanswered = [answer is None or answer.answer.startswith(notes) for answer in found]
    return sum(unanswered) / len(unanswered)


def write_file(path: Path, judged: Sequence[dict[str, Any]]) -> None:
    parts = []
    for row in judged:
        asked = row["asked"]
        gold = " + ".join(" | ".join(forms) for forms in asked.gold)
        verdict = ", ".join(row["faults"]) or "acceptable"
        parts.append(
            f"## {asked.text}\n\n{asked.kind}, {asked.set_name}; gold: {gold}; **{verdict}**\n\n{row['answer']}\n"
        )
    path.write_text("\n".join(parts), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", type=Path, help="where to write the answers side by side")
    options = parser.parse_args()
    by_set: dict[str, list[Asked]] = defaultdict(list)
    for asked in list_questions(question_sets.data_root()):
        by_set[asked.set_name].append(asked)
    judged: list[dict[str, Any]] = []
    figures = []
    spent = Spent()
    with command.open_database() as database, command.open_embedder(Config().home) as embedder:
        for name in (*by_set, *OFF_TOPIC):
            whole = question_sets.read_set(name)
            library = load_library(database, replace(whole, questions=()), embedder, Settings())
            answerer = _Answerer(database, library, embedder, spent)
            judged += judge(answerer, by_set.get(name, ()))
            if name in OFF_TOPIC:
                share = count_unanswered(answerer, [one for one in whole.questions if not one.gold])
                figures.append(reach(f"{name}: refused or nearest passages", share, NEAREST))
    for kind in dict.fromkeys(row["asked"].kind for row in judged):
        verdicts = [not row["faults"] for row in judged if row["asked"].kind == kind]
        print(f"{kind:12}{len(verdicts):4}{sum(verdicts) / len(verdicts):8.3f}")
    accepted = [not row["faults"] for row in judged]
    figures.append(reach("acceptable answers", sum(accepted) / len(accepted), ACCEPTABLE))
    figures.append(
        figure(
            "processor time of answers, to that without comparing sentences",
            spent.whole,
            spent.whole - spent.comparing,
            None,
        )
    )
    print(f"{1000 * spent.comparing / max(spent.comparisons, 1):.0f} ms of processor time a comparison")
    every, emphasized, right = judge_emphasis([question_sets.read_set(name) for name in SETS])
    print(f"{emphasized} of {every} answers have words in bold")
    figures.append(reach("words in bold that are the answer", right / max(emphasized, 1), EMPHASIS))
    if options.file:
        write_file(options.file, judged)
    print(json.dumps({"name": "extracts", "figures": figures}))
    return 0 if all(row["ok"] for row in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
