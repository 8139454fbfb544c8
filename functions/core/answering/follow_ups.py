"""A question that leans on the ones before it ("and in 2019?") becomes one that can be searched by itself.

What is found this way is only searched for. The answer is written to the question as it was asked.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from functions.core import errors, models, ports
from functions.core.citations.figures import comparison
from functions.core.citations.figures.units import find_unit
from functions.core.text import languages, words

MAX_QUERY_CHARS = 300
MAX_REPLY_TOKENS = 120
"""Room for MAX_QUERY_CHARS in a language that takes many tokens."""
LONGEST_SILENCE_SECONDS = 4.0
TIME_LIMIT_SECONDS = 6.0
"""A reader waits for this before anything is searched: a slow model is not waited for."""
FEW_WORDS = 3
"""Questions of so few content words rarely say all that they ask."""
KNOWN_SHARE = 0.5
"""The share of a query's content words that come from the conversation; replies below it are something else."""

_MAX_REPLY_CHARS = 4_000
_MAX_TURN_CHARS = 500

_RULES = """\
You rewrite the last question of a conversation as one search query that is understood without the conversation.
Replace what it leaves out or points back to by the names and terms of the conversation. Keep its language, its names, \
its figures and its dates. Add nothing else and do not answer it. A question that is complete stays as it is.
Write the query on one line, and nothing but the query."""

_CONNECTIVE = re.compile(
    r"\W*(?:and|but|so|or|also|then|what about|how about|et|mais|donc|alors|ou|aussi|puis|sinon|qu['’]en est-il)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"""\b(?:it|its|itself|they|them|theirs?|this|that|these|those|he|him|his|she|hers?|same|former|latter|above
    |ils?|elles?|lui|eux|leurs?|ce|cet|cette|ces|celui|celles?|ceux|ceci|cela|[cç]a|son|sa|ses|m[eê]mes?
    |pr[eé]c[eé]dente?s?|ci-dessus)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Words of a French question that point to nothing: est-ce que, y a-t-il, ce qui, le bail prévoit-il.
_FORM = re.compile(r"\best[- ]ce\b|\bil y a\b|\bce qu|-(?:t-)?(?:ils?|elles?|ce)\b", re.IGNORECASE)

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
_OTHER_YEAR = re.compile(rf"\b(?:(?P<next>{_NEXT_YEAR})|(?P<before>{_YEAR_BEFORE}))(?!\w)", re.IGNORECASE | re.VERBOSE)
_YEAR_ALONE = re.compile(
    rf"""\W*(?:(?:and|et|ou|or|what\ about|how\ about|qu['’]en\ est-il)\b)?
    \W*(?:(?:in|for|en|pour|de)\b)?\W*(?:(?P<year>\d{{4}})|{_OTHER_YEAR.pattern})\W*""",
    re.IGNORECASE | re.VERBOSE,
)

_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffd]")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"\A(?:(?:(?:rewritten|standalone|search|last)\s+)*(?:query|question)\s*:|(?:requ[eê]te|question)[^:?]{0,20}:)",
    re.IGNORECASE,
)
_WRAPPING = " \t\"'`*«»“”\u00a0\u202f"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What is searched in place of the question, None where it stands for itself, and what finding it took."""

    query_text: str | None = None
    usage: models.Usage = field(default_factory=models.Usage)


def find_language(question: str, history: Sequence[models.Turn]) -> models.Lang:
    """The language of the question; where it is too short to tell, that of the questions before it."""
    lang: models.Lang = "en"
    for text in [*_questions(history), question]:
        lang = languages.detect_language(text, lang)
    return lang


def rewrite(question: str, history: Sequence[models.Turn], chat_model: ports.ChatModel | None) -> Rewriting:
    """Asks the model for the query that a follow-up means; without one, only another year is put in its place.

    Never fails: the question is searched as it is where the model is slow, breaks off, or writes something else.
    """
    if not leans_on_history(question, history):
        return Rewriting()
    plain = swap_year(question, history)
    if chat_model is None:
        return Rewriting(plain)
    reply, usage = _ask(build_messages(question, history), chat_model)
    return Rewriting(read_reply(reply, question, history) or plain, usage)


def leans_on_history(question: str, history: Sequence[models.Turn]) -> bool:
    """Whether the question may need the ones before it: it is short, goes on with "and", or points back.

    A wrong yes costs one short request to the model, which is told to leave complete questions alone; a wrong no, the
    passages. So words that only may point back count, too.
    """
    if not history or len(question) > MAX_QUERY_CHARS:
        return False
    if _CONNECTIVE.match(question) or len(words.keys(question)) <= FEW_WORDS:
        return True
    return _REFERENCE.search(_FORM.sub(" ", question)) is not None


def build_messages(question: str, history: Sequence[models.Turn]) -> list[ports.ChatMessage]:
    """The conversation in short, with earlier follow-ups as they were understood, then the question."""
    said = []
    for turn in history:
        speaker = "Question" if turn.role == "user" else "Answer"
        said.append(f"{speaker}: {_shorten(turn.search_query or turn.content)}")
    conversation = "\n".join(said)
    request = f"Conversation\n{conversation}\n\nLast question: {_shorten(question)}\nQuery:"
    return [ports.ChatMessage("system", _RULES), ports.ChatMessage("user", request)]


def read_reply(reply: str, question: str, history: Sequence[models.Turn]) -> str | None:
    """The query in a model's reply; None where it is the question itself, or no query for it.

    A query keeps every figure of the question and its language, and speaks of what the conversation is about.
    """
    if _UNPRINTABLE.search(reply):
        return None
    lines = [line for line in _THOUGHTS.sub("", reply).splitlines() if line.strip()]
    query = " ".join(_LABEL.sub("", lines[0].strip(_WRAPPING)).strip(_WRAPPING).split()) if lines else ""
    if not words.keys(query) or len(query) > MAX_QUERY_CHARS or query[0] in "{[<":
        return None
    conversation = "\n".join([*(turn.content for turn in history), *_questions(history), question])
    own = words.keys(query)
    if len(own & words.keys(conversation)) < KNOWN_SHARE * len(own):
        return None
    if comparison.find_unsupported(question, comparison.AllowedFigures(comparison.find_values(query))):
        return None
    known = comparison.find_values(conversation) | _other_years(question, conversation)
    if comparison.find_unsupported(query, comparison.AllowedFigures(known)):
        return None
    if not _same_language(query, [question, *reversed(_questions(history))]):
        return None
    return None if query.casefold() == " ".join(question.split()).casefold() else query


def swap_year(question: str, history: Sequence[models.Turn]) -> str | None:
    """The last question with the year of this one, where this one is no more than a year and the last had one.

    "The year after" and its like are a year, too: counted from that of the last question.
    """
    asked = next(reversed(_questions(history)), "")
    alone, years = _YEAR_ALONE.fullmatch(question), _find_years(asked)
    if alone is None or len(years) != 1:
        return None
    (last,) = years
    year = alone["year"] or str(int(last.group()) + _count_years(alone))
    if not _YEAR.fullmatch(year) or year == last.group():
        return None
    return asked[: last.start()] + year + asked[last.end() :]


def _find_years(text: str) -> list[re.Match[str]]:
    """Numbers of four digits that are years: "for 2000 euros" and "2000 pages" are none."""
    return [
        match
        for match in _YEAR.finditer(text)
        if find_unit(text, match.start(), match.end()) is None
        and (
            _AFTER_YEAR.match(text, match.end())
            or _BEFORE_YEAR.search(text[max(0, match.start() - 20) : match.start()])
        )
    ]


def _other_years(question: str, conversation: str) -> frozenset[str]:
    """The years that a question for "the year after" may mean."""
    if (found := _OTHER_YEAR.search(question)) is None:
        return frozenset()
    return frozenset(str(int(match.group()) + _count_years(found)) for match in _YEAR.finditer(conversation))


def _count_years(match: re.Match[str]) -> int:
    return 1 if match["next"] else -1


def _ask(messages: Sequence[ports.ChatMessage], chat_model: ports.ChatModel) -> tuple[str, models.Usage]:
    """What the model has written when it ends, fails, or its time is up."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    reply = ""
    try:
        stream = chat_model.stream(messages)
        with closing(stream):
            for piece in stream:
                reply += piece
                if time.monotonic() > deadline or len(reply) > _MAX_REPLY_CHARS:
                    break
            return reply, stream.usage
    except errors.IbidError as exc:
        _log.info("a follow-up is searched as it is: %s", exc.code)
        return "", models.Usage()


def _questions(history: Sequence[models.Turn]) -> list[str]:
    """The earlier questions as they were understood, oldest first."""
    return [turn.search_query or turn.content for turn in history if turn.role == "user"]


def _same_language(query: str, texts: Sequence[str]) -> bool:
    """Whether the query is in the language of the first of `texts` that tells one; short texts tell none."""
    wanted = next(filter(None, map(_certain_language, texts)), None)
    return _certain_language(query) in (None, wanted) or wanted is None


def _certain_language(text: str) -> models.Lang | None:
    lang = languages.detect_language(text, "en")
    return lang if lang == languages.detect_language(text, "fr") else None


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TURN_CHARS else f"{line[: _MAX_TURN_CHARS - 1]}…"
