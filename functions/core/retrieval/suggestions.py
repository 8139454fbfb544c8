"""Suggests questions that passages answer: those printed in them, and what a document says under a heading.

No model is asked, so a suggestion costs nothing. Where passages have neither, there is none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Final

from functions.core import models
from functions.core.text import titles, words
from functions.core.text.sentences import split_sentences

MAX_SUGGESTIONS: Final = 3
_LONGEST_QUESTION, _LONGEST_HEADING = 120, 70
_LEAST_TEXT: Final = 80  # characters below a heading that may say something

_NUMBER = re.compile(
    r"^(?:(?:chapter|chapitre|part|partie|section|appendix|annexe)\s+)?(?:(?:[\divxlc]+[.)]|\d[\d.]*)\s*)+[–—:-]?\s*",
    re.IGNORECASE,
)
_SAYS_LITTLE: Final = frozenset(
    re.findall(
        r"\w+",
        """
    acknowledgements acknowledgments aim appendix bibliographie bibliography but credits description example examples
    exemple exemples general général note notes objectif objective observation observations options procedure procédure
    purpose rationale remarks remarques remerciements requirements specific thanks tip tips usage warning
    """,
    )
)
"""Words of headings that stand in many sections, and so ask for none of them."""
_QUESTION = re.compile(r"[A-ZÀ-ÖØ-Þ¿][^?!\n]{10,}\?")
_ASKED: Final[Mapping[str, str]] = {
    "en": "What does “{source}” say about “{heading}”?",
    "fr": "Que dit « {source} » à propos de « {heading} » ?",
}


@dataclass(frozen=True, slots=True)
class Passage:
    """What a suggestion is read from: `source` is the name of the file or note, `heading` that of the section."""

    source: str
    heading: str | None
    text: str
    lang: str


def suggest_questions(passages: Iterable[Passage], lang: str, known: str = "") -> list[str]:
    """At most MAX_SUGGESTIONS questions in a language, of different sources first.

    None asks for words that are all in `known`: what was asked and answered already.
    """
    by_source: dict[str, list[str]] = defaultdict(list)
    seen = [words.keys(known)]
    for passage in passages:
        for topic, question in _read_questions(passage, lang):
            # Running headers differ in the number of the page.
            keys = frozenset(key for key in words.keys(topic) if not key.isdigit())
            if keys and not any(keys <= others for others in seen):
                seen.append(keys)
                by_source[passage.source].append(question)
    ranked = chain.from_iterable(zip_longest(*by_source.values()))
    return [question for question in ranked if question][:MAX_SUGGESTIONS]


def suggest_follow_ups(
    question: str, answer: models.Answer, hits: Sequence[models.SearchHit], lang: str
) -> tuple[str, ...]:
    """Questions that passages found for a question answer, other than those that its answer cites."""
    if answer.mode == "guard" or not answer.sources:
        return ()
    cited = {(source.source_id, source.chunk_index) for source in answer.sources}
    others = [hit for hit in hits if (hit.source_id, hit.chunk_index) not in cited]
    passages = [Passage(hit.file_name or hit.title or "", hit.section_title, hit.text, hit.lang) for hit in others]
    headings = " ".join(source.section_title or "" for source in answer.sources)
    return tuple(suggest_questions(passages, lang, f"{question} {headings}"))


def _read_questions(passage: Passage, lang: str) -> Iterable[tuple[str, str]]:
    """Each question with its topic: the one that stands in the passage, and the one for its heading."""
    if passage.lang == lang:
        yield from ((printed, printed) for printed in _find_printed(passage))
    heading = _NUMBER.sub("", " ".join((passage.heading or "").split())).rstrip(" .:!")
    if passage.source and _can_ask_for(heading) and len(passage.text) >= _LEAST_TEXT:
        shown = heading.capitalize() if heading.isupper() else heading
        yield heading, _ASKED.get(lang, _ASKED["en"]).format(source=passage.source, heading=shown)


def _find_printed(passage: Passage) -> Iterable[str]:
    """Questions of the document itself that a sentence follows, as in a list of frequent questions."""
    sentences = [" ".join(passage.text[start:end].split()) for start, end in split_sentences(passage.text)]
    for sentence, following in pairwise(sentences):
        if len(sentence) <= _LONGEST_QUESTION and _QUESTION.fullmatch(sentence) and not following.endswith("?"):
            yield sentence


def _can_ask_for(heading: str) -> bool:
    says_something = not _SAYS_LITTLE.issuperset(heading.lower().split())
    return (
        3 < len(heading) <= _LONGEST_HEADING
        and says_something
        and not heading.endswith("?")
        and titles.is_title(heading)
    )
