"""Prints measurements as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functions.local.evaluation import answer_scores, ranking_scores
from functions.local.evaluation.across import Crossed
from functions.local.evaluation.answering import PROFILES, Written
from functions.local.evaluation.asking import Asked
from functions.local.evaluation.refusals import FACTORS, Refusals
from functions.local.evaluation.scores import (
    Evaluation,
    mean_scores,
    measure_refused_share,
    score_answers,
    score_citations,
)

COLUMNS = ("nDCG@10", "MRR@10", "hit@1", "hit@5", "hit@10")


def print_report(found: Evaluation) -> None:
    """Prints a line for each arm and language, and the questions that full text search should have answered."""
    print(f"\n{found.name}: {found.document_count} documents, {found.chunk_count} passages")
    print(
        f"{'arm':9}{'lang':6}{'n':>5}" + "".join(f"{c:>9}" for c in COLUMNS) + f"{'empty':>8}{'p50 ms':>8}{'p95 ms':>8}"
    )
    for arm, asked in found.arms.items():
        languages = sorted({one.question.lang for one in asked})
        for lang in languages if len(languages) == 1 else [*languages, "all"]:
            print(_format_row(arm, lang, [one for one in asked if lang in (one.question.lang, "all")]))
    for answerable, kind in ((True, "answerable"), (False, "unanswerable")):
        share = measure_refused_share(found.arms["hybrid"], answerable=answerable)
        if not math.isnan(share):
            print(f"{kind} questions refused: {share:.3f}")
    precision, recall = score_citations(found.arms["hybrid"])
    print(f"citations of answers without a model: precision {precision:.3f}, recall {recall:.3f}")
    contain, cite = score_answers(found.arms["hybrid"])
    print(f"answers without a model: {contain:.3f} say the gold answer, {cite:.3f} cite evidence")
    for text in found.missed_by_words:
        print(f"no passage by words: {text}")


def _format_row(arm: str, lang: str, asked: Sequence[Asked]) -> str:
    scores = mean_scores(asked)
    times = [one.search_ms for one in asked]
    values = (scores.ndcg, scores.mrr, scores.hit_1, scores.hit_5, scores.hit_10)
    empty = ranking_scores.mean([float(one.is_empty) for one in asked])
    latency = f"{ranking_scores.percentile(times, 0.5):8.1f}{ranking_scores.percentile(times, 0.95):8.1f}"
    return f"{arm:9}{lang:6}{len(asked):5}" + "".join(f"{value:9.4f}" for value in values) + f"{empty:8.3f}{latency}"


def print_difference(ours: Evaluation, theirs: Evaluation) -> None:
    """Prints the paired difference of two configurations, for each language and for all questions."""
    pairs = [
        (mine.question.lang, mine.scores.ndcg, other.scores.ndcg)
        for mine, other in zip(ours.arms["hybrid"], theirs.arms["hybrid"], strict=True)
        if mine.scores and other.scores
    ]
    print("\nhybrid nDCG@10, the first less the second")
    languages = sorted({lang for lang, _, _ in pairs})
    for wanted in languages if len(languages) == 1 else [*languages, "all"]:
        chosen = [pair for pair in pairs if wanted in (pair[0], "all")]
        print(f"{wanted:6}{format_difference([pair[1] for pair in chosen], [pair[2] for pair in chosen])}")


def format_difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Formats the mean paired difference and its 95 % interval."""
    mean, low, high = ranking_scores.paired_difference(ours, theirs)
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def print_crossed(found: Sequence[Crossed]) -> None:
    """Prints a line for the questions of each kind that were asked of documents in another language."""
    print(f"\n{'questions':11}{'':8}{'set':13}{'n':>5}{'nDCG@10':>9}{'hit@8':>9}{'refused':>9}")
    for one in found:
        is_answerable = one.kind != "off-topic"
        scores = mean_scores(one.asked)
        ranks = f"{scores.ndcg:9.4f}{scores.hit_8:9.4f}" if is_answerable else f"{'':18}"
        refused = measure_refused_share(one.asked, answerable=is_answerable)
        print(f"{one.kind:11}{one.direction:8}{one.name:13}{len(one.asked):5}{ranks}{refused:9.3f}")


def print_refusals(found: Sequence[Refusals]) -> None:
    """Prints the refused shares of each case, answerable and not, at fractions and multiples of the threshold."""
    head = "".join(f"{f'× {factor:g}':>14}" for factor in FACTORS)
    print(f"\n{'refused: answerable / not':27}{'lang':6}{'scope':10}{'passages':>9}{head}")
    for one in found:
        shares = "".join(_format_shares(one.refused_shares(factor)) for factor in FACTORS)
        scope = "document" if one.case.in_document else "library"
        print(f"{one.case.name:27}{one.case.lang:6}{scope:10}{one.passage_count:9}{shares}")


def _format_shares(shares: tuple[float, float]) -> str:
    answerable, unanswerable = (" -" if math.isnan(share) else f"{share:.2f}" for share in shares)
    return f"{f'{answerable} / {unanswerable}':>14}"


def print_answers(name: str, written: Sequence[Written]) -> None:
    """Prints a line for each prompt: verdicts, claims and citations, refusals, tokens, and the median first word."""
    verdicts = "".join(f"{verdict:>9}" for verdict in answer_scores.VERDICTS)
    print(
        f"\n{name:14}{'n':>5}{verdicts}{'stand':>9}{'verified':>9}{'recall':>8}{'prompt':>9}{'output':>8}{'word s':>8}"
    )
    for profile in PROFILES:
        own = [one for one in written if one.profile == profile]
        found = answer_scores.score(own)
        counts = "".join(f"{found.verdicts[verdict]:9}" for verdict in answer_scores.VERDICTS)
        stand = f"{found.held}/{found.claims}"
        print(
            f"{profile:14}{len(own):5}{counts}{stand:>9}{found.verified:9}{found.citation_recall:8.3f}"
            f"{found.prompt_tokens:9}{found.output_tokens:8}{found.first_word:8.2f}"
        )
        if found.unanswerable:
            print(f"    unanswerable, refused: {found.unanswerable_refused} of {found.unanswerable}")
        for code, count in found.failures.most_common():
            print(f"    {code}: {count}")


def print_figures(figures: Sequence[dict[str, Any]]) -> None:
    """Prints a line for each figure with its baseline, and whether it reaches its goal."""
    print()
    for row in figures:
        goal = "" if row["goal"] is None else f"  {'ok' if row['ok'] else 'MISSED'}"
        print(f"{row['figure']}: {row['value']} ({row['baseline']}){goal}")
