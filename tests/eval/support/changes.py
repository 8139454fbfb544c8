"""Rewords claims without changing what they say, and changes one name, figure, date, negation or subject of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from functions.local.evaluation import question_sets

_NAME = re.compile(r"(?<=[a-zé,] )[A-ZÉ][a-zéèêï]{3,}(?:[ -][A-ZÉ][a-zéèêï]{2,})*")
_FIGURE = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)?(?![\w])")
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_MONTHS = {
    "en": re.findall(r"\w+", "January February March April June July August September October November December"),
    "fr": re.findall(r"\w+", "janvier février mars avril juin juillet août septembre octobre novembre décembre"),
}
_NEGATIONS: dict[str, list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]] = {
    "en": [
        (re.compile(r"\b(is|are|was|were|can|could|may|must|should|will|would|had|has|have)\b(?! not)"), r"\1 not"),
    ],
    "fr": [
        (
            re.compile(
                r"(?<=\w )(est|sont|était|étaient|fut|a|ont|avait|peut|peuvent|doit|permet|reste)\b(?! pas)(?= \w)"
            ),
            lambda match: f"{'n’' if match[1][0] in 'aeéo' else 'ne '}{match[1]} pas",
        ),
    ],
}
_NOT = {"en": re.compile(r" not\b"), "fr": re.compile(r"\b(?:ne |n['’])(\w+) (?:pas|jamais)\b")}
_FRONTED = {
    "en": re.compile(r"^(?P<rest>.{25,}) (?P<tail>(?:in|on|at|from|for|during) [^,;]{3,40})\.$"),
    "fr": re.compile(r"^(?P<rest>.{25,}) (?P<tail>(?:en|dans|pendant|lors|sur|depuis) [^,;]{3,40})\.$"),
}
_LOWERED = frozenset(
    re.findall(r"\w+", "The A An He She It They This These Le La Les Un Une Il Elle Ils Elles Ce Cette Ces Des")
)
_ASIDE = re.compile(r" \([^)]*\)(?= )|, (?:who|which|qui|où|dont) [^,;]{4,60},(?= )")
_LAST_CLAUSE = re.compile(r"^(?P<rest>.{50,}?)(?:, | ; |; )[^,;]{20,}\.$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a model might say of passage text [start:end)."""

    passage: str
    start: int
    end: int
    text: str
    lang: str
    kind: str


@dataclass(frozen=True)
class Texts:
    """The passages of a set by id, in one language."""

    passages: dict[str, str]
    lang: str

    @classmethod
    def read(cls, path: Path, lang: str) -> Texts:
        return cls({row["passage_id"]: row["text"] for row in question_sets.read_lines(path)}, lang)

    @cached_property
    def by_document(self) -> dict[str, list[str]]:
        documents: dict[str, list[str]] = {}
        for passage in self.passages:
            documents.setdefault(passage.rpartition("-")[0], []).append(passage)
        return documents

    def list_neighbours(self, passage: str, most: int) -> list[str]:
        """The passage, and others of its document."""
        others = [one for one in self.by_document[passage.rpartition("-")[0]] if one != passage]
        return [passage, *others[:most]]

    @cached_property
    def all_names(self) -> list[str]:
        return sorted({match.group() for text in self.passages.values() for match in _NAME.finditer(text)})


def list_rewordings(claim: Claim) -> Iterator[Claim]:
    """The claim with its last words first, and without a clause."""
    text = " ".join(claim.text.split())
    fronted = _FRONTED[claim.lang].match(text)
    if fronted and text.split()[0] in _LOWERED:
        rest = fronted["rest"]
        rest = rest[0].lower() + rest[1:]
        tail = fronted["tail"][0].upper() + fronted["tail"][1:]
        yield replace(claim, text=f"{tail}, {rest}.", kind="reordered")
    shorter = _ASIDE.sub("", text)
    if shorter == text and (clause := _LAST_CLAUSE.match(text)):
        shorter = clause["rest"] + "."
    if shorter != text and len(shorter) > 40 and shorter.count("(") == shorter.count(")"):
        yield replace(claim, text=shorter, kind="shortened")


def list_changes(claim: Claim, texts: Texts) -> Iterator[Claim]:
    """The claim with one thing changed, once for each kind of change that it allows."""
    chance = random.Random(claim.text)
    passage = texts.passages[claim.passage]
    changes = {
        "name": _change_name(claim.text, passage, texts.all_names, chance),
        "local name": _change_name(claim.text, claim.text, _list_names(passage), chance),
        "figure": _replace(_FIGURE, claim.text, lambda found: _change_figure(found, passage, chance), chance),
        "date": _change_date(claim, passage, chance),
        "negation": _change_negation(claim, chance),
        "swapped": _swap_names(claim.text),
    }
    for kind, text in changes.items():
        if text and text != claim.text:
            yield replace(claim, text=text, kind=kind)


def _list_names(text: str) -> list[str]:
    return sorted({match.group() for match in _NAME.finditer(text)})


def _change_name(text: str, known: str, names: list[str], chance: random.Random) -> str | None:
    found = list(_NAME.finditer(text))
    others = [name for name in names if not any(word in known for word in re.split("[ -]", name))]
    if not found or not others:
        return None
    name = chance.choice(found)
    return text[: name.start()] + chance.choice(others) + text[name.end() :]


def _replace(pattern: re.Pattern[str], text: str, change: Callable[[str], str], chance: random.Random) -> str | None:
    found = list(pattern.finditer(text))
    if not found:
        return None
    match = chance.choice(found)
    return text[: match.start()] + change(match.group()) + text[match.end() :]


def _change_figure(figure: str, passage: str, chance: random.Random) -> str:
    digits = [at for at, char in enumerate(figure) if char.isdigit()]
    for _ in range(20):
        at = chance.choice(digits)
        changed = figure[:at] + chance.choice("123456789") + figure[at + 1 :]
        if changed not in passage:
            return changed
    return figure


def _change_date(claim: Claim, passage: str, chance: random.Random) -> str | None:
    months = _MONTHS[claim.lang]
    pattern = re.compile(rf"\b(?:{'|'.join(months)})\b(?= \d)|(?<=\d )\b(?:{'|'.join(months)})\b")
    if pattern.search(claim.text):
        other = chance.choice([month for month in months if month not in passage])
        return _replace(pattern, claim.text, lambda _: other, chance)
    return _replace(_YEAR, claim.text, lambda year: str(int(year) + chance.choice((-30, -7, 2, 11))), chance)


def _change_negation(claim: Claim, chance: random.Random) -> str | None:
    negated = _NOT[claim.lang]
    if negated.search(claim.text):
        return negated.sub(lambda match: f"{match[1]}" if match.groups() else "", claim.text, count=1)
    pattern, change = _NEGATIONS[claim.lang][0]
    found = list(pattern.finditer(claim.text))
    if not found:
        return None
    match = chance.choice(found)
    denied = change(match) if callable(change) else match.expand(change)
    return claim.text[: match.start()] + denied + claim.text[match.end() :]


def _swap_names(text: str) -> str | None:
    """The first name of the sentence and the next in each other's place, unless a list or a date joins them."""
    found = list(re.finditer(r"(?<![\w’'])[A-ZÉ][a-zéèêï]{3,}(?: [A-ZÉ][a-zéèêï]{2,})*", text))
    found = [
        match
        for match in found
        if not re.match(r"(?:The|This|That|These|They|When|Dans|Cette|Elle|Pour|Avec|Après|Selon)\b", match.group())
    ]
    found = [match for match in found if match.start() or match.group().count(" ")]
    if len(found) < 2:
        return None
    one, other = found[0], found[1]
    between = text[one.end() : other.start()]
    if one.group() == other.group() or not re.search(r"\w{3,}.*\w{3,}", between):
        return None
    return text[: one.start()] + other.group() + between + one.group() + text[other.end() :]
