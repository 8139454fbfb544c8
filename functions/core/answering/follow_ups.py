"""Rewrites a question that depends on earlier ones ("and in 2019?") as a complete search query.

Only the search uses the rewritten text; the answer is written for the original question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from functions.core import models, ports
from functions.core.answering import short_requests
from functions.core.citations.figures import comparison
from functions.core.citations.figures.units import find_unit
from functions.core.text import languages, words
from functions.core.text.sentences import split_sentences

FEW_WORDS = 3
"""A question with at most this number of content words is rarely complete."""
RESTATED_SHARE = 0.8
"""The share of the content words of a sentence of the last answer from which on a query merely repeats it."""
MIN_KNOWN_SHARE = 0.5
"""The share of a query's content words that the conversation must contain; a reply with fewer is not a query for it."""

_MAX_TURN_CHARS = 500

_RULES = """\
You rewrite the last question of a conversation as one search query that is understood without the conversation.
Replace what it leaves out or points back to by the names and terms of the conversation. Keep its language, its \
question word, its names, its figures and its dates. Add nothing else and do not answer it. A question that is \
complete stays as it is.
Write the query on one line, and nothing but the query."""

_CONJUNCTION = re.compile(
    r"(?<!\W)\W*(?:and|but|so|or|also|then|what about|how about"
    r"|et|mais|donc|alors|ou|aussi|puis|sinon|qu['’]en est-il)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"""\b(?:it|its|itself|they|them|theirs?|this|that|these|those|he|him|his|she|hers?|same|former|latter|above
    |ils?|elles?|lui|eux|leurs?|ce|cet|cette|ces|celui|celles?|ceux|ceci|cela|[cç]a|son|sa|ses|m[eê]mes?
    |pr[eé]c[eé]dente?s?|ci-dessus)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WORD = re.compile(r"\w+")
_QUESTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "who whom whose what which when where why how qui que qu quoi quel quels quelle quelles quand où pourquoi"
        " comment combien lequel laquelle lesquels lesquelles",
    )
)
# Pronouns of a French question that refer to nothing earlier: est-ce que, y a-t-il, ce qui, le bail prévoit-il.
_QUESTION_FORM = re.compile(r"\best[- ]ce\b|\bil y a\b|\bce qu|-(?:t-)?(?:ils?|elles?|ce)\b", re.IGNORECASE)

_YEAR = re.compile(r"(?<![\d.,$€£¥])(?:1[5-9]|20)\d\d(?![\d.,]\d|\d)")
_BEFORE_YEAR = re.compile(
    r"\b(?:in|en|since|depuis|during|durant|until|jusqu['’]en|before|avant|after|apr[eè]s|years?|ann[ée]es?|exercice)\s+\Z",
    re.IGNORECASE,
)
_AFTER_YEAR = re.compile(r"\s*(?:[?!.,;:)/\u2013-]|\Z|\b(?:and|et|or|ou|to|à)\b)", re.IGNORECASE)
_NEXT_YEAR = r"""(?:the\s+)?(?:(?:next|following)\s+year|year\s+(?:after|later))(?:\s+that)?|one\s+year\s+later
    |l['’]ann[ée]e\s+(?:suivante|d['’]apr[eè]s)|un\s+an\s+(?:plus\s+tard|apr[eè]s)"""
_YEAR_BEFORE = r"""(?:the\s+)?(?:(?:previous|preceding|prior)\s+year|year\s+(?:before|earlier))(?:\s+that)?
    |one\s+year\s+earlier|l['’]ann[ée]e\s+(?:pr[eé]c[eé]dente|d['’]avant)|un\s+an\s+(?:plus\s+t[oô]t|avant)"""
_RELATIVE_YEAR = re.compile(
    rf"\b(?:(?P<next>{_NEXT_YEAR})|(?P<before>{_YEAR_BEFORE}))(?!\w)", re.IGNORECASE | re.VERBOSE
)
_YEAR_ALONE = re.compile(
    # Possessive, so that no run of signs is tried in more than one way.
    rf"""\W*+(?:(?:and|et|ou|or|what\ about|how\ about|qu['’]en\ est-il)\b\W*+)?
    (?:(?:in|for|en|pour|de)\b\W*+)?(?:(?P<year>\d{{4}})|{_RELATIVE_YEAR.pattern})\W*+""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The text to search instead of the question, None to search the question itself, and the tokens it cost."""

    search_query: str | None = None
    usage: models.Usage = field(default_factory=models.Usage)


def find_language(question: str, history: Sequence[models.Turn]) -> models.Lang:
    """The language of the question; if it is too short to detect one, the language of the earlier questions."""
    texts = [question, *reversed(_list_questions(history))]
    found: models.Lang | None = next(filter(None, map(languages.detect_certain_language, texts)), None)
    return found or languages.guess_language(question)


def rewrite(question: str, history: Sequence[models.Turn], chat_model: ports.ChatModel | None) -> Rewriting:
    """Asks the model for the complete query that a follow-up means; without a model, only a bare year is understood.

    Never raises: if the model is slow, fails, or writes something else, the question is searched unchanged.
    """
    if not depends_on_history(question, history):
        return Rewriting()
    fallback = replace_year(question, history)
    if chat_model is None:
        return Rewriting(fallback)
    messages = build_messages(question, history)
    reply, usage = short_requests.request_line(messages, chat_model, "rewrite a follow-up question")
    return Rewriting(read_reply(reply, question, history) or fallback, usage)


def depends_on_history(question: str, history: Sequence[models.Turn]) -> bool:
    """Whether the question may need earlier ones: it is short, begins with a conjunction, or has a pronoun.

    A wrong yes costs one short request to the model, which is told to leave complete questions unchanged. A wrong no
    means that the search misses the passages. So words that are not always pronouns ("that") count too.
    """
    return bool(history) and refers_back(question)


def refers_back(question: str) -> bool:
    """Whether the question may need earlier ones, if there are any."""
    if len(question) > short_requests.MAX_QUERY_CHARS:
        return False
    if _CONJUNCTION.match(question) or len(words.keys(question)) <= FEW_WORDS:
        return True
    return _REFERENCE.search(_QUESTION_FORM.sub(" ", question)) is not None


def build_messages(question: str, history: Sequence[models.Turn]) -> list[ports.ChatMessage]:
    """The prompt: the shortened conversation, with earlier follow-ups as they were rewritten, then the question."""
    turns = []
    for turn in history:
        speaker = "Question" if turn.role == "user" else "Answer"
        turns.append(f"{speaker}: {_shorten(turn.search_query or turn.content)}")
    conversation = "\n".join(turns)
    request = f"Conversation\n{conversation}\n\nLast question: {_shorten(question)}\nQuery:"
    return [ports.ChatMessage("system", _RULES), ports.ChatMessage("user", request)]


def read_reply(reply: str, question: str, history: Sequence[models.Turn]) -> str | None:
    """The search query in a model's reply; None if it equals the question or is not a query for it.

    A valid query keeps the question's figures, language and question word, adds no figure of its own, shares most of
    its words with the conversation, and does not repeat the last answer.
    """
    search_query = short_requests.read_line(reply)
    if search_query is None:
        return None
    query_words = words.keys(search_query)
    conversation = "\n".join([*(turn.content for turn in history), *_list_questions(history), question])
    if len(query_words & words.keys(conversation)) < MIN_KNOWN_SHARE * len(query_words):
        return None
    if _asks(question) and _QUESTION_WORDS.isdisjoint(_WORD.findall(search_query.lower())):
        return None
    if _restates_answer(search_query, history):
        return None
    if not short_requests.has_figures_of(question, search_query):
        return None
    allowed_values = comparison.find_values(conversation) | _find_relative_years(question, conversation)
    if comparison.find_unsupported(search_query, comparison.AllowedFigures(allowed_values)):
        return None
    if not _is_same_language(search_query, [question, *reversed(_list_questions(history))]):
        return None
    return None if search_query.casefold() == " ".join(question.split()).casefold() else search_query


def _asks(text: str) -> bool:
    """Whether one of the first three words is a question word, not counting a conjunction such as "what about"."""
    first_words = _WORD.findall(_CONJUNCTION.sub("", text, count=1).lower())[:3]
    return not _QUESTION_WORDS.isdisjoint(first_words)


def _restates_answer(search_query: str, history: Sequence[models.Turn]) -> bool:
    """Whether the query repeats a sentence of the last answer that says more than the earlier questions."""
    answer = next((turn.content for turn in reversed(history) if turn.role == "assistant"), "")
    query_words, asked_words = words.keys(search_query), words.keys("\n".join(_list_questions(history)))
    for start, end in split_sentences(answer):
        stated = words.keys(answer[start:end])
        shared = stated & query_words
        if len(stated) > FEW_WORDS and len(shared) >= RESTATED_SHARE * len(stated) and not shared <= asked_words:
            return True
    return False


def replace_year(question: str, history: Sequence[models.Turn]) -> str | None:
    """The previous question with another year, if `question` is only a year and the previous one contains exactly one.

    "The year after" and similar words also name a year, relative to that of the previous question.
    """
    previous_question = next(reversed(_list_questions(history)), "")
    bare_year, years = _YEAR_ALONE.fullmatch(question), _find_years(previous_question)
    if bare_year is None or len(years) != 1:
        return None
    (replaced,) = years
    year = bare_year["year"] or str(int(replaced.group()) + _read_year_step(bare_year))
    if not _YEAR.fullmatch(year) or year == replaced.group():
        return None
    return previous_question[: replaced.start()] + year + previous_question[replaced.end() :]


def _find_years(text: str) -> list[re.Match[str]]:
    """The four-digit numbers that are years, which those of "for 2000 euros" and "2000 pages" are not."""
    return [
        match
        for match in _YEAR.finditer(text)
        if find_unit(text, match.start(), match.end()) is None
        and (
            _AFTER_YEAR.match(text, match.end())
            or _BEFORE_YEAR.search(text[max(0, match.start() - 20) : match.start()])
        )
    ]


def _find_relative_years(question: str, conversation: str) -> frozenset[str]:
    """The years that "the year after" in a question may mean: those after each year of the conversation."""
    if (relative_year := _RELATIVE_YEAR.search(question)) is None:
        return frozenset()
    step = _read_year_step(relative_year)
    return frozenset(str(int(match.group()) + step) for match in _YEAR.finditer(conversation))


def _read_year_step(match: re.Match[str]) -> int:
    return 1 if match["next"] else -1


def _list_questions(history: Sequence[models.Turn]) -> list[str]:
    """The earlier questions, oldest first, each as it was rewritten if it was a follow-up."""
    return [turn.search_query or turn.content for turn in history if turn.role == "user"]


def _is_same_language(search_query: str, texts: Sequence[str]) -> bool:
    """Whether the query has the language of the first of `texts` whose language is certain; true without evidence."""
    expected = next(filter(None, map(languages.detect_certain_language, texts)), None)
    return languages.detect_certain_language(search_query) in (None, expected) or expected is None


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TURN_CHARS else f"{line[: _MAX_TURN_CHARS - 1]}…"
