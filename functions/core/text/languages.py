"""Tells English, French and other languages apart by their function words, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from functions.core import models

OTHER_LANGUAGE: Final[Mapping[str, models.Lang]] = {"en": "fr", "fr": "en"}
"""For each language that has a pipeline of its own, the other one."""

_WORD = re.compile(r"[^\W\d_]+")
# Single letters say nothing (tables are full of them), except before an apostrophe, where they are French.
_NAME = re.compile(r"\b(?:(?:de|du|des|la|le|les)\s+|[dl]['’])?[A-ZÀ-ÖØ-Þ][\w'’-]*")
_ELISION = re.compile(r"\b[dljnsctm]'(?=\w)")
_FRENCH_LETTERS = re.compile("[éèêëàâçùûîïôœ]")
_OTHER_LETTERS = re.compile("[ßäöüñ¿¡ãõåøłąęśżźčšžőű]")
_SAMPLE_CHARACTERS = 4000
_MIN_SCORE = 3
_MIN_UNRIVALLED_SCORE = 2


def _profile(two_points: str, one_point: str = "") -> dict[str, int]:
    return dict.fromkeys(_WORD.findall(one_point), 1) | dict.fromkeys(_WORD.findall(two_points), 2)


# Words that are frequent in one language and rare in the other; words of both ("a", "on", "or", "son") are left out.
# A word scores two points, or one if other languages have it too.
_ENGLISH: Final = _profile(
    """the and that which what when where who whom whose why how this these those there their they them his her its
    with from have has had been being was were would could should will does did doing about into between because
    through during before after while our your you she not also than then each other such only both more some any
    many much most doesn don isn tell please explain show""",
    "of to is are be by for if as at an it we he in my me can do all but so no up out over list name",
)
_FRENCH: Final = _profile(
    """les des une du au aux et est sont était étaient été être avoir ont avait dans pour sur avec sans sous chez
    entre que qui quoi dont où quel quelle quels quelles quand comment pourquoi combien lequel laquelle lesquels ce
    cet cette ces leur leurs nous vous ils elles elle je sa ses nos vos mes notre votre pas ne ni mais donc aussi
    ainsi alors très depuis pendant lors après avant celui celle ceux fait peut doit même tous toutes tout puis comme
    afin selon quelqu lorsqu puisqu jusqu qu aujourd expliquez donnez résumez résumé cela ça""",
    "la le de un par en il se plus si y lui à cite me",
)
_OTHER: Final = _profile(
    """der die das und ist nicht ein eine mit von dem den auf für sich auch wird sind werden wurde bei zum zur
    el los las una del por con para como está pero más sus fue son qué cuál y es al
    il gli della delle di che è per sono nel nella dei alla anche più cosa questo
    o os não uma em um dos das ao na no mais foi são pelo pela
    het een van niet zijn voor aan wordt deze ook naar bij
    och att det som är på av för inte till med om ett
    jest nie się do że oraz przez"""
)


def detect_language(
    text: str, default: models.Lang = "en", *, min_unrivalled: float = _MIN_UNRIVALLED_SCORE
) -> models.Lang:
    """`en`, `fr`, `simple` for any other language, or `default` if too few words point to one.

    `min_unrivalled` is the score that suffices if nothing points to another language.
    """
    sample = unicodedata.normalize("NFC", text[:_SAMPLE_CHARACTERS]).lower().replace("’", "'")
    words = _WORD.findall(sample)
    if _is_not_latin("".join(words)):
        return "simple"
    scores: dict[models.Lang, float] = {
        "en": sum(_ENGLISH.get(word, 0) for word in words),
        "fr": sum(_FRENCH.get(word, 0) for word in words)
        + len(_ELISION.findall(sample))
        + min(3, 0.5 * len(_FRENCH_LETTERS.findall(sample))),
        "simple": sum(_OTHER.get(word, 0) for word in words) + min(3, len(_OTHER_LETTERS.findall(sample))),
    }
    ranked = sorted(scores, key=lambda lang: scores[lang], reverse=True)
    best, second = scores[ranked[0]], scores[ranked[1]]
    # The profile of "other" mixes several languages, so it has to win by a wider margin.
    margin = 1.3 if ranked[0] == "simple" else 1.1
    min_score = min_unrivalled if second == 0 else _MIN_SCORE
    return ranked[0] if best >= min_score and best >= margin * second else default


def are_foreign(lang: str, other: str) -> bool:
    """Whether one is English and the other French; nothing is known about `simple`."""
    return OTHER_LANGUAGE.get(lang) == other


def guess_language(query: str) -> models.Lang:
    """The language of a query, also of a few keywords ("taux de chômage"), where one small French word has to suffice.

    Names are left out then, because those of one language occur in queries of the other ("De Gaulle biography").
    """
    if certain := detect_certain_language(query):
        return certain
    return "fr" if detect_language(_NAME.sub(" ", query), min_unrivalled=1) == "fr" else "en"


@lru_cache(maxsize=64)  # each statement of an answer is compared with all its passages
def detect_certain_language(text: str) -> models.Lang | None:
    """The language of `text`; None if too few words point to one."""
    lang = detect_language(text, "en")
    return lang if lang == detect_language(text, "fr") else None


def _is_not_latin(letters: str) -> bool:
    foreign = sum(character > "\u024f" and not "\u1e00" <= character <= "\u1eff" for character in letters)
    return len(letters) > 0 and foreign > len(letters) / 2
