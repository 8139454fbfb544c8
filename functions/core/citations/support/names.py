"""Compares the proper names of a claim with those of its evidence, and the parts that they play there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations

from functions.core.citations.figures.number_words import find_word_values
from functions.core.text import words

_DETERMINERS = frozenset(
    re.findall(r"\w+", "the a an le la les l un une this that his her its their son sa ses leur cette ce")
)
_GOVERNORS = {
    word.key: kind
    for kind, line in {
        "of": "of de du des d",
        "by": "by par",
        "to": "to au aux towards vers",
        "from": "from depuis",
        "in": "in at on en dans sur within inside a",
        "with": "with avec",
        "for": "for pour",
        "against": "against contre",
        "than": "than que",
        "as": "as comme",
    }.items()
    for word in words.all_words(line)
}
_OPENERS = frozenset(
    re.findall(
        r"\S+",
        """because although though despite however since during according after before
        following when while whereas unlike
    like along among within without soon later today today's today’s both neither either instead thus therefore hence
    moreover finally first second third next then still yet many most several some few other another such these those
    here there yes no not only even once until unless if as at by from in on with under over up for to toward
    vers selon depuis pendant lors lorsque apres avant durant malgre grace enfin ainsi alors aujourd puis aussi
    toutefois cependant neanmoins certains certaines plusieurs quelques chaque aucun aucune dont chez contre entre
    dans sans sous sur par pour avec comme quand si parce puisque bien tandis jusque oui non ici la suite""",
    )
)
_JOINTS = frozenset(re.findall(r"\w+", "of de du des d von van di da la le the"))
_ORDINARY_ENDINGS = ("ly", "ment", "ing", "ed", "tion", "tions", "ment", "ments")
_SAME_NAME = 0.8  # of the letters: Gengis and Genghis


@dataclass(frozen=True, slots=True)
class Name:
    """One word of a proper name: its place among all words, and the preposition that governs it ("" for none)."""

    key: str
    at: int
    governor: str
    run: int = 0  # where the whole name begins
    has_joined: bool = False  # only "and" or a comma stand between it and the name before
    before: tuple[str, ...] = ()  # up to two words on each side of the whole name
    after: tuple[str, ...] = ()


def find_names(text: str, ordinary: frozenset[str] = frozenset()) -> list[Name]:
    """The capitalised words of `text`; the first of a sentence only if `ordinary`, words in small letters, lacks it."""
    found: list[Name] = []
    tokens = words.all_words(text)
    for at, word in enumerate(tokens):
        shown = text[word.start : word.end]
        if not shown[0].isupper() or not words.is_content(word.key) or _is_month(shown):
            continue
        if _opens_sentence(text, word.start) and (
            word.key in ordinary
            or shown.lower() in _OPENERS
            or word.key in _OPENERS
            or (shown.lower().endswith(_ORDINARY_ENDINGS) and not shown.isupper())
        ):
            continue
        found.append(_describe(text, tokens, at, found))
    return _add_neighbours(found, [word.key for word in tokens])


def find_ordinary(text: str) -> frozenset[str]:
    """The words of `text` that stand in it in small letters."""
    return frozenset(word.key for word in words.all_words(text) if text[word.start].islower())


def list_missing(names: Sequence[Name], texts: Sequence[str], *, is_foreign: bool) -> frozenset[str]:
    """The names that none of `texts` has; abbreviations stand for their words, and translations may be spelt anew."""
    known = frozenset().union(*(frozenset(word.key for word in words.all_words(text)) for text in texts))
    missing = {name.key for name in names} - known
    if not missing:
        return frozenset()
    initials = "".join(name.key[0] for text in texts for name in find_names(text))
    missing = {key for key in missing if not (2 <= len(key) <= 6 and key in initials)}
    if is_foreign:
        missing = {key for key in missing if not any(_resembles(key, other) for other in known)}
    return frozenset(missing)


def have_swapped(claim: Sequence[Name], evidence: Sequence[Name]) -> bool:
    """Whether two names have changed places or parts: "A beat B" and "B beat A", "A's son B" and "B's son A"."""
    mine, theirs = _index(claim), _index(evidence)
    shared = [key for key in mine if key in theirs]
    return any(
        _are_swapped(mine[one], mine[other], theirs[one], theirs[other]) for one, other in combinations(shared, 2)
    )


def is_substituted(claim: Sequence[Name], evidence: Sequence[Name]) -> bool:
    """Whether a name of the claim stands between the words between which another name stands in the evidence."""
    said = {name.key for name in claim}
    for name in claim:
        whole = {other.key for other in claim if other.run == name.run}
        own_runs = {other.run for other in evidence if other.key in whole}
        if any(_stand_alike(name, other) for other in evidence if other.run in own_runs):
            continue
        others = [other for other in evidence if other.run not in own_runs]
        if any(_stand_between_same(name, other) for other in others):
            return True
        if any(_stand_alike(name, other) for other in others if other.key not in said):
            return True
    return False


def _stand_between_same(one: Name, other: Name) -> bool:
    return one.before[:1] == other.before[:1] != () and one.after[:1] == other.after[:1] != ()


def _stand_alike(one: Name, other: Name) -> bool:
    """Whether the same word stands on both sides, or on one side two words of which one carries meaning."""
    return _stand_between_same(one, other) or any(
        near == near_other and len(near) == 2 and any(map(words.is_content, near))
        for near, near_other in ((one.before, other.before), (one.after, other.after))
    )


def _are_swapped(one: Name, other: Name, one_there: Name, other_there: Name) -> bool:
    is_inverted = (one.at < other.at) != (one_there.at < other_there.at)
    here, there = (one.governor, other.governor), (one_there.governor, other_there.governor)
    if here == there:
        is_list = _adjoin(one, other) or _adjoin(one_there, other_there)
        return is_inverted and here[0] == here[1] and not is_list
    if here == there[::-1]:
        return not (is_inverted and "by" not in here) or "" in here
    first, second = (0, 1) if one.at < other.at else (1, 0)
    return not is_inverted and not (here[first] or there[first]) and {here[second], there[second]} == {"", "by"}


def have_figures_swapped(claim: str, evidence: str, named: Sequence[Name], named_there: Sequence[Name]) -> bool:
    """Whether two figures have changed places although two names beside them have not; years often move."""
    order, order_there = ([key for key in _list_figures(text)] for text in (claim, evidence))
    mine, theirs = _index(named), _index(named_there)
    runs = {mine[key].run: theirs[key].run for key in mine if key in theirs}
    keeps_names = len(runs) >= 2 and list(runs.values()) == sorted(runs.values())
    shared = [key for key in order if order_there.count(key) == order.count(key) == 1]
    places = [order_there.index(key) for key in shared]
    return keeps_names and places != sorted(places)


def _list_figures(text: str) -> list[str]:
    keys = [word.key for word in words.all_words(text) if word.is_number]
    return [key for key in keys if not re.fullmatch(r"(?:1\d|20)\d\d", key)]


def _adjoin(one: Name, other: Name) -> bool:
    return abs(one.at - other.at) <= 3 and (one if one.at > other.at else other).has_joined


def _index(names: Sequence[Name]) -> Mapping[str, Name]:
    """The names that occur once, by key."""
    counts = Counter(name.key for name in names)
    return {name.key: name for name in names if counts[name.key] == 1}


def _describe(text: str, tokens: Sequence[words.Word], at: int, found: Sequence[Name]) -> Name:
    before = found[-1] if found else None
    is_run = (
        before is not None and before.at == at - 1 and text[tokens[at - 1].end : tokens[at].start] in (" ", "-", "–")
    )
    joint = text[tokens[before.at].end : tokens[at].start] if before else ""
    has_joined = re.fullmatch(r"[\s,;&-]*(?:\b(?:and|et|or|ou|the|la|le|les|l['’])\b[\s,]*)*", joint) is not None
    if re.match(r"['’]s?\b", text[tokens[at].end :]):
        governor = "of"
    elif is_run and before:
        governor = before.governor
    else:
        governor = _find_governor(tokens, at)
        if not governor and has_joined and before and not is_run:
            governor = before.governor
    return Name(tokens[at].key, at, governor, has_joined=has_joined)


def _add_neighbours(found: Sequence[Name], keys: Sequence[str]) -> list[Name]:
    places = {name.at for name in found}
    complete = []
    for name in found:
        first = last = name.at
        while (before := _find_joined(first, -1, places, keys)) is not None:
            first = before
        while (after := _find_joined(last, 1, places, keys)) is not None:
            last = after
        left, right = keys[max(0, first - 2) : first], keys[last + 1 : last + 3]
        complete.append(replace(name, before=tuple(reversed(left)), after=tuple(right), run=first))
    return complete


def _find_joined(at: int, step: int, places: set[int], keys: Sequence[str]) -> int | None:
    """The place of the next word of the same name: the next word, or the one after "of" (Harald of Norway)."""
    if at + step in places:
        return at + step
    is_joined = at + 2 * step in places and keys[at + step] in _JOINTS
    return at + 2 * step if is_joined else None


def _find_governor(tokens: Sequence[words.Word], at: int) -> str:
    for word in reversed(tokens[max(0, at - 3) : at]):
        if word.key in _GOVERNORS:
            return _GOVERNORS[word.key]
        if word.key not in _DETERMINERS:
            break
    return ""


def _is_month(word: str) -> bool:
    return any(value.startswith("month") for value in find_word_values(word))


def _opens_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \n\t\"'“«‘([*_#-•")
    return not before or before[-1] in ".!?…:;|"


def _resembles(one: str, other: str) -> bool:
    return (
        min(len(one), len(other)) >= 4
        and one[0] == other[0]
        and SequenceMatcher(None, one, other).ratio() >= _SAME_NAME
    )
