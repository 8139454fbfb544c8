"""Reads numbers that are written in English or French words, or in Roman numerals, as the values they may stand for.

A word that may mean a number counts as that number: `half` is 0.5 and 50, `IV` is 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

PLAIN = "plain "
"""Prefix of the values of figures without a word for thousands or millions after them.

In a table "in millions", the cell 12 supports "12 million".
"""

_CARDINALS = {
    word: value
    for value, line in {
        1: "one first un une premier première premiers premières",
        2: "two second deux second seconde both twice couple pair paire double",
        3: "three third trois tiers triple",
        4: "four quatre",
        5: "five fifth cinq",
        6: "six",
        7: "seven sept",
        8: "eight eighth huit",
        9: "nine ninth neuf",
        10: "ten dix decade décennie",
        11: "eleven onze",
        12: "twelve twelfth dozen douze",
        13: "thirteen treize",
        14: "fourteen quatorze fortnight",
        15: "fifteen quinze",
        16: "sixteen seize",
        17: "seventeen",
        18: "eighteen",
        19: "nineteen",
        20: "twenty vingt vingts score twentieth",
        30: "thirty trente thirtieth",
        40: "forty fourty quarante fortieth",
        50: "fifty cinquante fiftieth",
        60: "sixty soixante sixtieth",
        70: "seventy septante seventieth",
        80: "eighty huitante octante eightieth",
        90: "ninety nonante ninetieth",
        100: "hundred cent cents century siècle",
        1_000: "thousand mille millier",
        1_000_000: "million",
        1_000_000_000: "billion milliard",
        1_000_000_000_000: "trillion",
    }.items()
    for word in line.split()
}
_MONTHS = {
    word: number
    for number, line in {
        1: "january jan janvier janv",
        2: "february feb février fevrier févr",
        3: "march mar mars",
        4: "april apr avril avr",
        5: "may mai",
        6: "june jun juin",
        7: "july jul juillet juil",
        8: "august aug août aout",
        9: "september sept sep septembre",
        10: "october oct octobre",
        11: "november nov novembre",
        12: "december dec décembre decembre déc",
    }.items()
    for word in line.split()
}
MONTH_NUMBERS = frozenset(map(str, _MONTHS.values()))
_FRACTIONS = {
    word: values.split()
    for words, values in {
        "half halves halved moitié moitiés demi demie": "0.5 50",
        "third thirds tiers": "0.33 0.333 33 33.3",
        "quarter quarters quart quarts": "0.25 25",
        "fifth fifths cinquième": "0.2 20",
        "tenth tenths dixième": "0.1 10",
    }.items()
    for word in words.split()
}
_NEAR = 15  # characters
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d[ \u00a0\u202f]")
_MAX_WORDS = 24  # no number has more; bounds the work for a text made of number words
_JOINED = re.compile(r"[\s-]*(?:\b(?:and|et)\b[\s-]*)?")

_ROMAN = re.compile(r"\b(?=[IVXLCDM])(M{0,3})(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?=(?:er|e|ème)?\b)")
_SMALL_ROMAN = re.compile(r"\(([ivx]{1,5})\)|\b(ii|iii|iv|vi{1,3}|ix|xi{0,3})\b")
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_NUMBERED = re.compile(
    r"\b(?:article|chapter|part|section|title|book|volume|appendix|annex|phase|stage|type|class|table|figure|schedule"
    r"|chapitre|partie|titre|livre|tome|annexe|étape|classe|tableau)\s+$",
    re.IGNORECASE,
)


def find_word_values(text: str) -> set[str]:
    """The values of number words and of groups of them, of Roman numerals, and of month names ("month 5")."""
    return {*_read_words(text.casefold()), *_read_roman(text)}


def _read_words(text: str) -> Iterator[str]:
    chain: list[int] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        if word in _MONTHS:
            yield f"month {_MONTHS[word]}"
        yield from _FRACTIONS.get(word, ())
        if chain and "0.5" in _FRACTIONS.get(word, ()) and match.start() - end < _NEAR:
            yield f"{chain[-1]}.5"  # two and a half, deux ans et demi
        if word.endswith("ties") and (tens := _CARDINALS.get(f"{word[:-3]}y")):  # the nineties: 90 and 1990
            yield from (str(tens), str(1900 + tens))
        if word in ("century", "siècle"):  # the nineteenth century: 19, besides 1900
            yield from map(str, [*_form_numbers(chain)][-1:])
        count = _read_cardinal(word)
        # The scale word of "12 million" is read together with its digits.
        if count is None or (count >= 100 and _DIGIT.match(text, max(0, match.start() - 2))):
            continue
        if chain and (len(chain) == _MAX_WORDS or not _JOINED.fullmatch(text, end, match.start())):
            yield from _read_chain(chain)
            chain = []
        chain.append(count)
        end = match.end()
    yield from _read_chain(chain)


@lru_cache(maxsize=20_000)  # a text repeats its words, and most stand for none
def _read_cardinal(word: str) -> int | None:
    """The cardinal that a word stands for: itself, its plural, an ordinal (sixth, onzième) or a group (vingtaine)."""
    for name in (word, word.removesuffix("s")):
        if name in _CARDINALS:
            return _CARDINALS[name]
        for ending in ("ième", "ieme", "aine", "th"):
            base = name.removesuffix(ending)
            if base != name and base:
                forms = (base, f"{base}e", {"neuv": "neuf", "cinqu": "cinq", "diz": "dix"}.get(base, ""))
                return next((_CARDINALS[form] for form in forms if form in _CARDINALS), None)
    return None


def _read_chain(counts: Sequence[int]) -> Iterator[str]:
    """The values of consecutive number words; the part before "million" also alone, as table cells state it."""
    numbers = list(_form_numbers(counts))
    for number, after in zip(numbers, [*numbers[1:], 0], strict=False):
        yield from (str(number), PLAIN + str(number))
        if number in range(11, 21) and after in range(10, 100):  # nineteen eighty-four is 1984
            yield str(100 * number + after)
    for at, count in enumerate(counts):
        if count >= 1000:
            yield from map(str, [*_form_numbers(counts[:at])][-1:])


def _form_numbers(counts: Sequence[int]) -> Iterator[int]:
    """The numbers that consecutive cardinals form: 2, 100, 50 form 250, and 5, 6 form two numbers."""
    done = group = scale = 0
    for at, count in enumerate(counts):
        if at and not _continues_number(group, count):
            yield done + group
            done = group = scale = 0
        if count == 100 and group > 100:  # five hundred and six | hundred: six begins another number
            yield done + group - group % 10
            done, group, scale = 0, group % 10, 0
        if count >= 1000:
            if scale and count >= scale:  # two thousand | three thousand: a second number
                yield done
                done = 0
            done, group, scale = done + (group or 1) * count, 0, count
        elif count == 100:
            group = (group or 1) * 100
        else:
            group += 76 if count == 20 and group % 100 == 4 else count  # quatre-vingt is 80, not 24
    if counts:
        yield done + group


def _continues_number(group: int, count: int) -> bool:
    """Whether `count` adds to the number `group` or multiplies it, rather than beginning another number."""
    last = group % 100
    if count >= 100 or (count == 20 and last == 4):
        return True
    return last == 0 or (last == 10 and 6 < count < 10) or (last in range(20, 100, 10) and count < 20)


def _read_roman(text: str) -> Iterator[str]:
    """The values of Roman numerals; single letters and words like MIX or CD count only after "chapter" and its like."""
    for match in _ROMAN.finditer(text):
        numeral = match.group()
        is_unmistakable = len(numeral) > 1 and set(numeral) <= set("IVX")
        if numeral and (
            is_unmistakable or len(numeral) > 3 or _NUMBERED.search(text[max(0, match.start() - 12) : match.start()])
        ):
            yield str(_read_numeral(numeral))
    for match in _SMALL_ROMAN.finditer(text):
        yield str(_read_numeral((match[1] or match[2]).upper()))


def _read_numeral(numeral: str) -> int:
    values = [_ROMAN_DIGITS[letter] for letter in numeral]
    return sum(-value if value < max(values[at:]) else value for at, value in enumerate(values))
