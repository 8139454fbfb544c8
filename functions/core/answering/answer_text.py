"""Collects the sections of a streamed answer, and decides when their text can be shown to the reader.

Held back until the next characters decide: trailing white space, what may be a passage tag, a section that so far is
the beginning of an earlier one, and `NO_ANSWER`. The shown text always equals the sections joined by `SECTION_BREAK`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.core.answering import prompts
from functions.core.citations.sections import SECTION_BREAK, WrittenSection

_OPENERS = {"[": "]", "【": "】", "(": ")"}
_ID = re.compile(r"[\w.-]+:\d+")
_NUMBERS = re.compile(r"[\d\s,;\u2013-]{0,24}")  # a prefix of a mark like [1] or [2, 3]
_NUMBER_MARK = re.compile(r"\s*\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*\s*")
_LABEL_WORDS = ("passages", "sources", "documents")  # of marks like [passage 1], and their singular
_LABEL_MARK = re.compile(r"\s*\^?(?:[a-z]+\s*:?\s*)?\d{1,3}(?:\s*(?:[,;&\u2013-]|and|et)\s*\d{1,3})*\s*", re.IGNORECASE)
_LABEL_START = re.compile(  # a prefix of such a mark
    r"\s*+\^?(?P<word>[a-z]*+)\s*+(?::\s*+)?(?:\d[\d\s,;&\u2013-]{0,16}(?:(?:and|an|a|et|e)[\d\s,;&\u2013-]{0,16})?)?",
    re.IGNORECASE,
)
_MAX_TAG = 400
_CLOSES_UP = frozenset(".,;:!?)]»")


@dataclass(slots=True)
class Evidence:
    """The passage ids and quotations of a section, as the model wrote them."""

    ids: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Draft:
    text: str
    evidence: list[Evidence]  # mutable, because the ids may follow the text

    def freeze(self, labels: Mapping[str, str]) -> WrittenSection:
        names = (name for evidence in self.evidence for name in evidence.ids)
        ids = dict.fromkeys(labels.get(name.strip(" []"), name) for name in names)
        quotes = dict.fromkeys(quote for evidence in self.evidence for quote in evidence.quotes)
        return WrittenSection(self.text, tuple(ids), tuple(quotes))


class AnswerText:
    """The text of an answer, written one character at a time and read as far as it can be shown.

    `says_no_answer` becomes true when the model writes `NO_ANSWER`.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        """`labels` are the ids of the passages by their numbers in the prompt, if it numbers them."""
        self.says_no_answer = False
        self._labels = labels
        self._done: list[_Draft] = []
        self._current: _Draft | None = None
        self._splits_at_blank_lines = False
        self._is_shown = False  # whether a part of the current section was shown
        self._pending_space = ""
        self._tag = ""
        self._after_tag = False
        self._out: list[str] = []

    @property
    def sections(self) -> tuple[WrittenSection, ...]:
        """The finished sections, each text once."""
        return tuple(draft.freeze(self._labels) for draft in self._done)

    def take_readable(self) -> str:
        """The text that became ready to be shown since the last call."""
        text = "".join(self._out)
        self._out.clear()
        return text

    def open(self, evidence: Evidence, *, splits_at_blank_lines: bool = False) -> None:
        """Begins a section; with `splits_at_blank_lines`, blank lines begin further ones."""
        self.close()
        self._current = _Draft("", [evidence])
        self._splits_at_blank_lines, self._is_shown = splits_at_blank_lines, False
        self._pending_space, self._tag, self._after_tag = "", "", False

    def write(self, char: str) -> None:
        """Writes one character of the open section."""
        char = _replace_unstorable(char)
        if self._tag:
            self._tag += char
            self._check_tag(char)
        elif char in _OPENERS:
            self._tag = char
        else:
            self._append(char)

    def close(self) -> None:
        """Ends the open section, if any; one that repeats an earlier one only adds its evidence to it."""
        if self._current is None:
            return
        self._resolve_open_tag()
        draft, self._current = self._current, None
        if not self._is_shown and self._is_no_answer(draft.text):
            self.says_no_answer = True
        elif twin := next((done for done in self._done if done.text == draft.text), None):
            twin.evidence += draft.evidence
        elif draft.text:
            if not self._is_shown:
                self._show(draft.text)
            self._done.append(draft)

    def _append(self, char: str) -> None:
        """Adds a character that belongs to no tag; white space waits for the character that follows it."""
        draft = self._current
        if draft is None or char == "":
            return
        if char.isspace():
            self._pending_space += "" if self._after_tag and self._pending_space and char == " " else char
            return
        gap, self._pending_space = self._pending_space, ""
        if self._splits_at_blank_lines and draft.text and gap.count("\n") >= 2:
            self.open(Evidence(), splits_at_blank_lines=True)
            self._append(char)
            return
        if not draft.text or (self._after_tag and char in _CLOSES_UP):
            gap = ""
        self._after_tag = False
        draft.text += gap + char
        if self._is_shown:
            self._out.append(gap + char)
        elif self._can_be_shown(draft):
            self._show(draft.text)

    def _show(self, text: str) -> None:
        self._out += [SECTION_BREAK, text] if self._done else [text]
        self._is_shown = True

    def _can_be_shown(self, draft: _Draft) -> bool:
        """Whether the section differs by now from `NO_ANSWER` and from the beginning of every earlier section.

        Removes a `NO_ANSWER` that other text follows.
        """
        if prompts.NO_ANSWER.startswith(draft.text):
            return False
        if draft.text.startswith(prompts.NO_ANSWER) and not draft.text[len(prompts.NO_ANSWER)].isalnum():
            self.says_no_answer = True
            draft.text = draft.text[len(prompts.NO_ANSWER) :].lstrip(" .:;,-\u2013\u2014\n")
        return draft.text != "" and not any(done.text.startswith(draft.text) for done in self._done)

    @staticmethod
    def _is_no_answer(text: str) -> bool:
        """Whether `text` is `NO_ANSWER`, perhaps cut off; a plain "NO" is an answer."""
        return len(text) >= 3 and prompts.NO_ANSWER.startswith(text)

    def _check_tag(self, char: str) -> None:
        inner = self._tag[1:-1]
        if char == _OPENERS[self._tag[0]]:
            self._end_tag(inner)
        elif not (_may_become_tag(self._tag) or (self._labels and _may_become_label(self._tag))):
            self._write_as_text(self._tag)

    def _end_tag(self, inner: str) -> None:
        if _is_passage_tag(inner) and self._current is not None:
            self._current.evidence[-1].ids += _ID.findall(inner)
            self._after_tag = True
            self._tag = ""
        elif self._labels and self._current is not None and (numbers := _read_labels(self._tag)):
            self._current.evidence[-1].ids += [number for number in numbers if number in self._labels]
            self._after_tag = True
            self._tag = ""
        elif self._tag[0] != "(" and _NUMBER_MARK.fullmatch(inner):
            self._write_as_text(f"({inner})")  # in an answer, numbers in square brackets are citation marks
        else:
            self._write_as_text(self._tag)

    def _write_as_text(self, text: str) -> None:
        """Writes text that proved to be no tag; a later character of it may still begin one."""
        self._tag = ""
        self._append(text[0])
        for char in text[1:]:
            self.write(char)

    def _resolve_open_tag(self) -> None:
        while self._tag:
            if self._tag[1:].strip().lower().startswith("seg"):
                self._tag = ""
            else:
                self._write_as_text(self._tag)


def _is_passage_tag(inner: str) -> bool:
    return re.match(r"\s*seg\s*[=:]", inner, re.IGNORECASE) is not None


def _may_become_tag(tag: str) -> bool:
    """Whether more characters could complete `tag`: "[se" could become a passage tag, "[1" a citation mark."""
    inner = tag[1:].lstrip().lower()
    if len(tag) <= _MAX_TAG and "\n" not in tag and ("seg".startswith(inner) or re.match(r"seg\s*([=:]|$)", inner)):
        return True
    return tag[0] != "(" and _NUMBERS.fullmatch(tag[1:]) is not None


def _may_become_label(tag: str) -> bool:
    """Whether more characters could complete `tag` as the mark of a numbered passage: "[pass", "[1, 2"."""
    start = _LABEL_START.fullmatch(tag, 1)
    if start is None or (tag[0] == "(" and tag[1:2].isdigit()):
        return False
    return any(known.startswith(start["word"].lower()) for known in _LABEL_WORDS)


def _read_labels(tag: str) -> list[str]:
    """The numbers of a complete mark like [1], [passage 1, 2] or (source 3); none if it is another text or a year."""
    word = re.match(r"[\s^]*([a-z]*)", tag[1:], re.IGNORECASE)
    assert word is not None
    name = word[1].lower()
    is_known = name in _LABEL_WORDS or f"{name}s" in _LABEL_WORDS if name else tag[0] != "("
    return re.findall(r"\d+", tag) if is_known and _LABEL_MARK.fullmatch(tag[1:-1]) else []


def _replace_unstorable(char: str) -> str:
    """`char`, or a replacement that a database can store and a page can show."""
    kind = unicodedata.category(char)
    if kind == "Cs":
        return "\ufffd"
    if kind == "Cc" and char not in "\n\t":
        return "\n" if char == "\r" else ""
    return "" if char == "\ufeff" else char
