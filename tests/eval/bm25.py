"""Full text search by bm25s with Snowball stemming, to which the lexical arm is compared."""

from __future__ import annotations

from collections.abc import Sequence

from functions.local.evaluation import asking, question_sets, ranking_scores, scores
from tests.eval.goals import GOALS

LANGUAGES = {"en": "english", "fr": "french"}


def assert_ranks_as_well(questions: question_sets.QuestionSet, asked: Sequence[asking.Asked]) -> None:
    """RET-2: the nDCG@10 of the lexical arm reaches its goal beside that of bm25s, which ranks whole passages."""
    least = GOALS.reference[questions.name] * measure_ndcg(questions)
    assert scores.mean_scores(asked).ndcg >= least


def measure_ndcg(asked: question_sets.QuestionSet) -> float:
    """Measures nDCG@10 on a set of passages in one language, each indexed with its title."""
    import bm25s
    import Stemmer

    language = LANGUAGES[asked.questions[0].lang]
    stemmer = Stemmer.Stemmer(language)

    def tokenize(texts: list[str]) -> list[list[str]]:
        return bm25s.tokenize(texts, stopwords=language, stemmer=stemmer, return_ids=False, show_progress=False)

    index = bm25s.BM25()
    texts = ["\n".join(filter(None, (passage.title, passage.text))) for passage in asked.passages]
    index.index(tokenize(texts), show_progress=False)
    questions = [question for question in asked.questions if question.gold]
    places, _ = index.retrieve(tokenize([one.text for one in questions]), k=ranking_scores.DEPTH, show_progress=False)
    ids = [passage.id for passage in asked.passages]
    rankings = [[ids[place] for place in row] for row in places]
    return ranking_scores.mean_scores(
        [ranking_scores.score_ranking(row, question.gold) for row, question in zip(rankings, questions, strict=True)]
    ).ndcg
