"""Translates a search query into the library's other language, so that passages in both languages are found.

Only the search uses the translation; the answer is written for the original question, in its language.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from functions.core import models, ports
from functions.core.answering import short_requests
from functions.core.text import languages

_NAMES: Final = {"en": "English", "fr": "French (français)"}
_MAX_GROWTH = 3  # of the length, either way: between English and French it hardly changes by a third
_SPARE_CHARS = 20  # by which a short query may grow as well

_RULES = """\
You translate search queries. Write the query in {language}. Keep its names, figures, dates and abbreviations, leave \
nothing out, add nothing, and do not answer it.
Write the translation on one line, and nothing but the translation."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The query in another language, None to search only the original, and the tokens it cost."""

    text: str | None = None
    lang: models.Lang = "en"
    usage: models.Usage = field(default_factory=models.Usage)

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """What is searched besides the query."""
        return () if self.text is None else ((self.text, self.lang),)


def translate(query: str, lang: models.Lang, chat_model: ports.ChatModel) -> Translation:
    """Asks the model for the query in `lang`, English or French.

    Never raises: if the model is slow, fails, or writes something else, only the query itself is searched. A query of
    more than MAX_QUERY_CHARS characters is not translated.
    """
    if len(query) > short_requests.MAX_QUERY_CHARS:
        return Translation(lang=lang)
    reply, usage = short_requests.request_line(build_messages(query, lang), chat_model, "translate a query")
    return Translation(read_reply(reply, query, lang), lang, usage)


def build_messages(query: str, lang: models.Lang) -> list[ports.ChatMessage]:
    return [
        ports.ChatMessage("system", _RULES.format(language=_NAMES[lang])),
        ports.ChatMessage("user", f"Query: {' '.join(query.split())}\nTranslation:"),
    ]


def read_reply(reply: str, query: str, lang: models.Lang) -> str | None:
    """The translation in a model's reply; None if it is no translation of the query into `lang`.

    A translation has the figures of the query and no others, about its length, and no words of another language.
    """
    text = short_requests.read_line(reply)
    if text is None or text.casefold() == " ".join(query.split()).casefold():
        return None
    if len(text) > _MAX_GROWTH * len(query) + _SPARE_CHARS or len(query) > _MAX_GROWTH * len(text):
        return None
    if languages.detect_certain_language(text) not in (None, lang):
        return None
    if short_requests.is_excuse(text) and not short_requests.is_excuse(query):
        return None
    has_same_figures = short_requests.has_figures_of(text, query) and short_requests.has_figures_of(query, text)
    return text if has_same_figures else None


def hash_query(query: str) -> str:
    """The key under which a translation is kept: the SHA-256, in hexadecimal digits, of the query in one line."""
    return hashlib.sha256(" ".join(query.split()).encode("utf-8", "replace")).hexdigest()
