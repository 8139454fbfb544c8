"""Asks a model for one line before the search, under strict limits, because a reader waits for it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from contextlib import closing

from functions.core import errors, models, ports
from functions.core.citations.figures import comparison
from functions.core.text import words

MAX_QUERY_CHARS = 300
MAX_REPLY_TOKENS = 120
"""Enough for MAX_QUERY_CHARS in a language that needs many tokens per character."""
LONGEST_SILENCE_SECONDS = 4.0
TIME_LIMIT_SECONDS = 6.0
"""A reader waits for the reply before anything is searched, so a slow model is given up."""

_MAX_REPLY_CHARS = 4_000

_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffd]")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"""\A(?:
        (?:(?:rewritten|standalone|search|last|translated|english|french)\s+)*(?:query|question|translation|phrases)
      | (?:requ[eê]te|question|traduction)[^:?]{0,20}
      | (?:in\s+)?(?:english|french) | (?:en\s+)?(?:anglais|fran[cç]ais)
    )(?:\s*\*\*)?\s*:""",
    re.IGNORECASE | re.VERBOSE,
)
# What a model writes instead of the line asked for: an excuse, or that it does not know.
_EXCUSE = re.compile(
    r"""\b(?:sorry|apologi[sz]e|as\ an\ ai|en\ tant\ qu['’]ia|d[ée]sol[ée]e?|excuse[zr])\b
    |\bI(?:\ am|['’]m)?\ (?:unable|do\ not|don['’]t|cannot|can['’]t|can\ not)\b
    |\bje\ (?:ne\ (?:peux|sais|suis|dispose|comprends)|regrette)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WRAPPING = " \t\"'`*«»“”\u00a0\u202f"

_log = logging.getLogger(__name__)


def request_line(
    messages: Sequence[ports.ChatMessage], chat_model: ports.ChatModel, purpose: str
) -> tuple[str, models.Usage]:
    """The model's reply and its usage; an empty reply if the model fails or exceeds the limits of time or length.

    `purpose` says in the log what the request was for.
    """
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    reply = ""
    try:
        stream = chat_model.stream(messages)
        with closing(stream):
            for piece in stream:
                reply += piece
                if time.monotonic() > deadline or len(reply) > _MAX_REPLY_CHARS:
                    reply = ""
                    break
            return reply, stream.usage
    except errors.IbidError as exc:
        _log.info("The model could not %s: %s", purpose, exc.code)
        return "", models.Usage()


def read_line(reply: str) -> str | None:
    """The query in a reply, without thoughts, label and quotation marks; None if there is none, or it is too long.

    "Here is the query:" on a line of its own is skipped, and so is whatever follows the query.
    """
    if _UNPRINTABLE.search(reply):
        return None
    lines = [line for line in map(_unwrap, _THOUGHTS.sub("", reply).splitlines()) if line]
    line = next((line for line in lines if not line.endswith(":")), "")
    if not words.keys(line) or len(line) > MAX_QUERY_CHARS or line[0] in "{[<":
        return None
    return line


def has_figures_of(text: str, source: str) -> bool:
    """Whether `source` contains every figure of `text`, in whatever notation."""
    return not comparison.find_unsupported(text, comparison.AllowedFigures(comparison.find_values(source)))


def is_excuse(text: str) -> bool:
    """Whether a reply says that the model cannot or does not know, in English or French."""
    return _EXCUSE.search(text) is not None


def _unwrap(line: str) -> str:
    return " ".join(_LABEL.sub("", line.strip(_WRAPPING)).strip(_WRAPPING).split())
