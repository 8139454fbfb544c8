"""Finds what a statement denies, so that a claim and its evidence can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from functions.core.text import words

_NEGATORS = frozenset(
    word.key
    for word in words.all_words(
        """not never no none neither nor nothing nobody nowhere without cannot hardly
        pas jamais aucun aucune ni rien sans nul nulle nullement personne guère non"""
    )
)
_LEADING = frozenset({"ne", "n"})
"""Words that only announce a French negation: "ne … que" denies nothing."""
_CONTRACTED = re.compile(r"(?<=\w)n['’]t\b|\bcan['’]t\b", re.IGNORECASE)
_RATHER = re.compile(
    r"\b(?:rather than|instead of|unlike|plut[ôo]t qu(?:e\b|['’])|au lieu d(?:e\b|['’]))", re.IGNORECASE
)
_SET_PHRASES = re.compile(
    r"\b(?:not only|no longer than|no fewer than|no less than|non seulement|sans doute|pas seulement)\b", re.IGNORECASE
)
_NE_QUE = re.compile(r"\bn(?:e |['’])[^.;,]{1,60}?\bqu(?:e\b|['’])", re.IGNORECASE)
_REACH = 2  # content words on each side that a negation may deny

_OPPOSITES = [
    frozenset(word.key for word in words.all_words(f"{one} {other}"))
    for one, other in re.findall(
        r"(\w+)/(\w+)",
        """increase/decrease increase/reduce rise/fall rose/fell grow/shrink largest/smallest larger/smaller
        higher/lower highest/lowest longer/shorter longest/shortest best/worst majority/minority before/after
        north/south northern/southern east/west eastern/western success/failure win/lose won/lost strong/weak
        allow/forbid legal/illegal possible/impossible innocent/guilty accept/reject maximum/minimum include/exclude
        old/new oldest/newest early/late public/private import/export open/closed above/below first/last rich/poor
        augmenter/diminuer hausse/baisse croissance/recul avant/après nord/sud est/ouest longues/courtes
        facilité/difficulté succès/échec victoire/défaite supérieur/inférieur fort/faible majorité/minorité
        permis/interdit accepter/refuser accepter/rejeter ancien/nouveau premier/dernier première/dernière
        meilleur/pire gagner/perdre riche/pauvre début/fin ouvert/fermé public/privé""",
    )
]
_DEGREES = ({"most", "least"}, {"more", "less", "fewer"}, {"plus", "moins"}, {"more", "fewer"})


def is_negated(text: str) -> bool:
    """Whether anything in `text`, English or French, is denied."""
    return any(True for _ in _find_negators(_read_keys(text)))


def differs(statement: str, evidence: str) -> bool:
    """Whether one of the two texts, in the same language, denies what the other says."""
    said, found = _read_keys(statement), _read_keys(evidence)
    denied, denied_there = _find_denied(said), _find_denied(found)
    if denied and not denied_there:
        return True
    all_denied_there = frozenset().union(*denied_there) if denied_there else frozenset()
    shared = frozenset(found)
    if any(group & shared and not group & all_denied_there for group in denied):
        return True
    all_denied = frozenset().union(*denied) if denied else frozenset()
    return any(
        len(group & frozenset(said)) > len(group) / 2 and not group & all_denied for group in denied_there if group
    )


def says_opposite(statement: str, evidence: str) -> bool:
    """Whether one of the two texts has a word and the other its opposite."""
    said, found = frozenset(_read_keys(statement)), frozenset(_read_keys(evidence))
    for pair in (*_OPPOSITES, *map(frozenset, _DEGREES)):
        mine, theirs = pair & said, pair & found
        if mine and theirs and not (mine & found) and not (theirs & said):
            return True
    return False


def _read_keys(text: str) -> list[str]:
    plain = _NE_QUE.sub(" ", _SET_PHRASES.sub(" ", text))
    return [word.key for word in words.all_words(_RATHER.sub(" not ", _CONTRACTED.sub(" not ", plain)))]


def _find_denied(keys: Sequence[str]) -> list[frozenset[str]]:
    """For each negation, the content words next to it."""
    return [frozenset(_find_near(keys, at)) for at in _find_negators(keys)]


def _find_negators(keys: Sequence[str]) -> Iterator[int]:
    return (at for at, key in enumerate(keys) if key in _NEGATORS)


def _find_near(keys: Sequence[str], at: int) -> list[str]:
    after = [key for key in keys[at + 1 : at + 7] if key not in _NEGATORS and words.is_content(key)][:_REACH]
    for place in range(at - 1, max(0, at - 4) - 1, -1):
        if keys[place] in _LEADING:  # the French verb stands between "ne" and "pas"
            return [key for key in keys[place + 1 : at] if words.is_content(key)][-1:] + after
    return after
