"""The text of an answer on its way to the reader, section by section.

Held back until they are understood: whitespace at the end, passage tags, a section that begins like an earlier one,
and the word that says there is no answer. What was shown, joined, is always the sections joined by `SECTION_BREAK`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from functions.core.answering import prompts
from functions.core.citations.sections import SECTION_BREAK, WrittenSection

_OPENERS = {"[": "]", "【": "】", "(": ")"}
_ID = re.compile(r"[\w.-]+:\d+")
_NUMBERS = re.compile(r"[\d\s,;\u2013-]{0,24}")  # a prefix of a mark like [1] or [2, 3]
_NUMBER_MARK = re.compile(r"\s*\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*\s*")
_MAX_TAG = 400
_CLOSES_UP = frozenset(".,;:!?)]»")


@dataclass(slots=True)
class Evidence:
    """What a section says it rests on, as the model wrote it."""

    ids: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Draft:
    text: str
    evidence: list[Evidence]  # these still grow when the ids come after the text

    def freeze(self) -> WrittenSection:
        ids = dict.fromkeys(name for evidence in self.evidence for name in evidence.ids)
        quotes = dict.fromkeys(quote for evidence in self.evidence for quote in evidence.quotes)
        return WrittenSection(self.text, tuple(ids), tuple(quotes))


class AnswerText:
    """Takes characters, gives readable text; `insufficient` is set when the model said that there is no answer."""

    def __init__(self) -> None:
        self.insufficient = False
        self._done: list[_Draft] = []
        self._current: _Draft | None = None
        self._splits = False
        self._shown = False  # whether the current section has begun to appear
        self._gap = ""
        self._tag = ""
        self._after_tag = False
        self._out: list[str] = []

    @property
    def sections(self) -> tuple[WrittenSection, ...]:
        """The finished sections, each text once."""
        return tuple(draft.freeze() for draft in self._done)

    def take(self) -> str:
        """The text that became readable since the last call."""
        text = "".join(self._out)
        self._out.clear()
        return text

    def open(self, evidence: Evidence, *, splits: bool = False) -> None:
        """Begins a section; with `splits`, blank lines begin further ones."""
        self.close()
        self._current = _Draft("", [evidence])
        self._splits, self._shown = splits, False
        self._gap, self._tag, self._after_tag = "", "", False

    def write(self, char: str) -> None:
        """One character of the open section."""
        char = _storable(char)
        if self._tag:
            self._tag += char
            self._settle_tag(char)
        elif char in _OPENERS:
            self._tag = char
        else:
            self._put(char)

    def close(self) -> None:
        """Ends the open section, if any; one that repeats an earlier one only adds its evidence to it."""
        if self._current is None:
            return
        self._drop_or_put_open_tag()
        draft, self._current = self._current, None
        if not self._shown and self._is_no_answer(draft.text):
            self.insufficient = True
        elif twin := next((done for done in self._done if done.text == draft.text), None):
            twin.evidence += draft.evidence
        elif draft.text:
            if not self._shown:
                self._show(draft.text)
            self._done.append(draft)

    def _put(self, char: str) -> None:
        draft = self._current
        if draft is None or char == "":
            return
        if char.isspace():
            self._gap += "" if self._after_tag and self._gap and char == " " else char
            return
        gap, self._gap = self._gap, ""
        if self._splits and draft.text and gap.count("\n") >= 2:
            self.open(Evidence(), splits=True)
            self._put(char)
            return
        if not draft.text or (self._after_tag and char in _CLOSES_UP):
            gap = ""
        self._after_tag = False
        draft.text += gap + char
        if self._shown:
            self._out.append(gap + char)
        elif self._is_news(draft):
            self._show(draft.text)

    def _show(self, text: str) -> None:
        self._out += [SECTION_BREAK, text] if self._done else [text]
        self._shown = True

    def _is_news(self, draft: _Draft) -> bool:
        """Whether the section is neither the beginning of "no answer" nor that of an earlier section."""
        if prompts.NO_ANSWER.startswith(draft.text):
            return False
        if draft.text.startswith(prompts.NO_ANSWER) and not draft.text[len(prompts.NO_ANSWER)].isalnum():
            self.insufficient = True
            draft.text = draft.text[len(prompts.NO_ANSWER) :].lstrip(" .:;,-\u2013\u2014\n")
        return draft.text != "" and not any(done.text.startswith(draft.text) for done in self._done)

    @staticmethod
    def _is_no_answer(text: str) -> bool:
        """Also when it was cut short, but not a plain "NO"."""
        return len(text) >= 3 and prompts.NO_ANSWER.startswith(text)

    def _settle_tag(self, char: str) -> None:
        inner = self._tag[1:-1]
        if char == _OPENERS[self._tag[0]]:
            self._end_tag(inner)
        elif not _may_become_tag(self._tag):
            self._put_literally(self._tag)

    def _end_tag(self, inner: str) -> None:
        if _is_passage_tag(inner) and self._current is not None:
            self._current.evidence[-1].ids += _ID.findall(inner)
            self._after_tag = True
            self._tag = ""
        elif self._tag[0] != "(" and _NUMBER_MARK.fullmatch(inner):
            self._put_literally(f"({inner})")  # in an answer, a number in square brackets is one of our marks
        else:
            self._put_literally(self._tag)

    def _put_literally(self, text: str) -> None:
        """Lets `text` through; only what follows its first character may still begin a tag."""
        self._tag = ""
        self._put(text[0])
        for char in text[1:]:
            self.write(char)

    def _drop_or_put_open_tag(self) -> None:
        while self._tag:
            if self._tag[1:].strip().lower().startswith("seg"):
                self._tag = ""
            else:
                self._put_literally(self._tag)


def _is_passage_tag(inner: str) -> bool:
    return re.match(r"\s*seg\s*[=:]", inner, re.IGNORECASE) is not None


def _may_become_tag(tag: str) -> bool:
    inner = tag[1:].lstrip().lower()
    if len(tag) <= _MAX_TAG and "\n" not in tag and ("seg".startswith(inner) or re.match(r"seg\s*([=:]|$)", inner)):
        return True
    return tag[0] != "(" and _NUMBERS.fullmatch(tag[1:]) is not None


def _storable(char: str) -> str:
    """`char`, or what can stand for it in a database and on a page."""
    kind = unicodedata.category(char)
    if kind == "Cs":
        return "\ufffd"
    if kind == "Cc" and char not in "\n\t":
        return "\n" if char == "\r" else ""
    return "" if char == "\ufeff" else char
