"""Tells a title from what often stands in its place: names of files, forms, authorities, parts, placeholders."""

from __future__ import annotations

import re
from typing import Final

from functions.core.text import dates, words

TITLE_LENGTH: Final = 80
_DIVISION: Final = r"part|partie|chapter|chapitre|section|article|appendix|annexe?|exhibit|schedule|volume|item|page"
_NOT_TITLES: Final = (
    # what programs write when nobody wrote a title
    r"\(?(untitled|no title|sans titre|title|titre|document title|documente?|pdf document"
    r"|doc|layout|slide|print"
    r"|printmgr file|blank page|cover|scan\w*|image|logo|présentation|presentation)\W*\d*",
    r"untitled.*|microsoft \w+ - .*|(adobe )?(photoshop|indesign|illustrator|acrobat)\b.*|.* - none - [\d.]+ ?s",
    r"(présentation |microsoft )*power ?point( presentation)?",
    # files, addresses, identifiers
    r"\S+ \d+\.\.\d+|(doi:)?10\.\d{4,9}/\S+|<[\da-f]+>|https?:\S+|www\.\S+|\w:\\.*",
    r".*\.(docx?|od[tpsg]|rtf|txt|tex|dvi|indd|qxd|pdf|pptx?|xlsx?|csv|jpe?g|png|gif|svg|tiff?|e?ps|ai|html?|xml)",
    r"(?=\S*[^\W\d])(?=\S*\d)\S+|\w+_\w+|[\W\d_]*",
    # forms and those who receive or publish them
    r"(u\.?s\.? )?form [a-z]{0,3}[ -]?\d{1,4}(-?[a-z]{1,3})?(/a)?"
    r"(\W+(\(?mark one\)?|(annual|quarterly|current) report).*)?",
    r"(annual|quarterly|transition|current) report (pursuant to|under) .*|(\W*mark one\W*)",
    r"(united states( of america)?\W*)?securities and exchange commission\b.*|united states( of america)?"
    r"|washington,? d\.? ?c\.?.*|european (union|commission|parliament|central bank)|commission européenne"
    r"|république française|federal register|official journal.*",
    # kinds, which say nothing of this one
    r"((annual|quarterly|interim|financial|final|half-year) )?report|rapport( (annuel|financier|final))?"
    r"|financial statements|états financiers|(press|news) release|communiqué de presse|working paper|manual|notice",
    # parts
    r"(table of )?contents( \(?continued\)?)?|index|sommaire|table des matières",
    rf"({_DIVISION}|figure|table|tableau|note)[\s_.]*(no\.?|n°)?\s*(\w{{0,3}}\d[\d.]*\w?|[ivxlc]+|[a-z])",
    r"([\divx]+[\d.]*\.?\s+)?(abstract|(executive )?summary|introduction|background|foreword|preface|overview"
    r"|conclusions?|references|résumé|synthèse|contexte|avant-propos|préface|disclaimer|highlights)",
    # notices
    r"((strictly|private and|company) )?confidential\b.*|(©|\(c\)|copyright\b).*|.*all rights reserved.*|draft"
    r"|embargo.*|tous droits réservés.*|for immediate release.*|(for )?internal use only"
    r"|back to (the )?(contents|top).*",
    r"[•▪●◦·*–—-]\s.*",
)
_NOT_A_TITLE: Final = re.compile("|".join(_NOT_TITLES), re.I)
_SAYS_SOMETHING: Final = re.compile(r"[^\W\d_]{2}")
_DATE_WORDS: Final = re.compile(r"\w+")

_BORDER: Final = re.compile(
    r"[\W_]+|(?<=[a-zà-þ])(?=[A-ZÀ-Þ])|(?<=(?:19|20)\d\d)(?=[A-Z])|(?<=[A-Za-z])(?=(?:19|20)\d\d)"
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_WORD: Final = re.compile(r"[^\W\d_]{2,}|([^\W\d_]{3,})\d{1,4}")
_MIXED: Final = re.compile(r"\d{1,2}[A-Z]|[QHTS][1-4]|FY\d\d(?:\d\d)?")
_EMPTY_WORDS: Final = frozenset(
    {
        "copy",
        "copie",
        "final",
        "draft",
        "scan",
        "scanned",
        "document",
        "doc",
        "file",
        "img",
        "untitled",
        "download",
        "new",
    }
)


def is_title(text: str) -> bool:
    """Whether a text may name a document: it is no placeholder, form, authority, part, date or notice."""
    tidied = " ".join(text.split())
    if not _SAYS_SOMETHING.search(tidied) or _NOT_A_TITLE.fullmatch(tidied):
        return False
    return not all(word.isdigit() or dates.parse_date(f"{word} 2000") for word in _DATE_WORDS.findall(tidied))


def name_of_file(stem: str) -> str:
    """The words, years and periods of a file name without its extension; empty if they say nothing."""
    pieces = [piece for piece in _BORDER.split(stem) if piece]
    kept = [_capitalize(piece) for piece in pieces if _says_something(piece)]
    return " ".join(kept) if any(len(piece) > 3 for piece in kept) else ""


def _says_something(piece: str) -> bool:
    if _YEAR.fullmatch(piece) or _MIXED.fullmatch(piece):
        return True
    word = _WORD.fullmatch(piece)
    return word is not None and (word[1] or piece).casefold() not in _EMPTY_WORDS


def _capitalize(piece: str) -> str:
    """A word as a name is written, which embedding models know better than ACME or acme; short ones may be initials."""
    return piece.capitalize() if len(piece) > 3 and (piece.isupper() or piece.islower()) else piece


def adds_words(name: str, known: str) -> bool:
    """Whether a name has a content word that the known text lacks."""
    return not words.keys(name) <= words.keys(known)


def join_names(*names: str) -> str:
    """The names in one line, each only if it adds a word to those before it."""
    joined = ""
    for name in filter(None, names):
        if not joined or adds_words(name, joined):
            joined = f"{joined} – {name}" if joined else name
    return joined


def make_title(text: str) -> str:
    """A text as a title: one line of at most TITLE_LENGTH characters, cut after a word."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0] + "…"
