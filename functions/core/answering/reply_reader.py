"""Reads a model's answer while the model writes it, even if it is not the JSON that the prompt asks for.

The prompt asks for `{"sections": [{"text", "source_ids", "quotes"}]}`, or small models for text with the numbers of
passages, `It burns wood [1].` The reader also accepts JSON inside fences or
after a preface, keys in any order or under other names, broken or truncated JSON, and plain prose. It never shows JSON
syntax as text, and drops a truncated id or quote. The result does not depend on how the stream is split into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from functions.core.answering.answer_text import AnswerText, Evidence
from functions.core.citations.sections import WrittenSection

_TEXT_KEYS = frozenset({"text", "content", "answer"})
_ID_KEYS = frozenset({"source_ids", "sourceids", "source_id", "sources", "ids", "citations"})
_QUOTE_KEYS = frozenset({"quotes", "quote"})
_FIRST_KEYS = _TEXT_KEYS | _ID_KEYS | _QUOTE_KEYS | {"sections"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": "\n", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_PREFACE_CHARS = 160
_THINKING = "<think>"


@dataclass(slots=True)
class _Container:
    """An open object or array of the JSON, with the key whose value comes next and the evidence of its section."""

    is_object: bool
    key: str | None = None
    has_bare_keys: bool = False  # without quotation marks
    evidence: Evidence = field(default_factory=Evidence)


class AnswerReader:
    """Reads one streamed answer: `feed` takes each piece, `finish` ends it, and both return the text to show next."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        """`labels` are the ids of the passages by their numbers, if the prompt asks for text with numbers."""
        self._text = AnswerText(labels or {})
        self._step: Callable[[str], None] = self._before_answer
        self._held = ""
        self._preface: str | None = None if labels else ""  # text that was asked for is shown from its first word
        self._json = _JsonSections(self._text)

    @property
    def sections(self) -> tuple[WrittenSection, ...]:
        return self._text.sections

    @property
    def says_no_answer(self) -> bool:
        """Whether the model wrote only that the passages do not contain the answer."""
        return self._text.says_no_answer and not self.sections

    @property
    def is_closed(self) -> bool:
        """Whether the answer is JSON that has been closed, so that no later text belongs to it."""
        return self._step == self._json.step and self._json.is_closed

    @property
    def is_complete(self) -> bool:
        """Whether the answer may end here: always for prose, for JSON only once it is closed."""
        return self._step != self._json.step or self._json.is_closed

    def feed(self, piece: str) -> str:
        for char in piece:
            self._step(char)
        return self._text.take_readable()

    def finish(self) -> str:
        if self._step == self._json.step:
            self._json.finish()
        elif self._step != self._in_thinking:
            self._finish_prose()
        self._text.close()
        return self._text.take_readable()

    def _before_answer(self, char: str) -> None:
        """Skips what may precede an answer: whitespace, fences, the model's <think> block."""
        self._held = (self._held + char).lstrip(" \t\r\n\ufeff")
        if self._held.startswith("{") or re.match(r"\[\s*[{\]]", self._held):
            self._switch_to(self._json.step)
        elif self._held == _THINKING:
            self._held, self._step = "", self._in_thinking
        elif re.fullmatch(r"```\w*[ \t]*\r?\n", self._held):
            self._held = ""
        elif not re.fullmatch(r"|\[\s*|`{1,2}|```\w*[ \t]*\r?", self._held) and not _THINKING.startswith(self._held):
            self._text.open(Evidence(), splits_at_blank_lines=True)
            self._switch_to(self._in_prose)

    def _in_thinking(self, char: str) -> None:
        self._held = (self._held + char)[-len("</think>") :]
        if self._held == "</think>":
            self._held, self._step = "", self._before_answer

    def _in_prose(self, char: str) -> None:
        self._held += char
        starts = _starts_json(self._held) if self._held[0] in "{[`" else False
        if starts is None:
            return
        if starts:
            self._preface = None  # "Here is the JSON:" does not belong to the answer
            self._text.close()
            self._switch_to(self._json.step)
        else:
            held, self._held = self._held, ""
            self._write_prose(held[0])
            for later in held[1:]:
                self._in_prose(later)

    def _write_prose(self, char: str) -> None:
        """Writes prose; holds its first words back, because they may only announce JSON."""
        if self._preface is None:
            self._text.write(char)
            return
        self._preface += char
        if len(self._preface) > _PREFACE_CHARS:
            self._write_preface()

    def _write_preface(self) -> None:
        preface, self._preface = self._preface or "", None
        for char in preface:
            self._text.write(char)

    def _finish_prose(self) -> None:
        if self._step == self._before_answer:
            self._text.open(Evidence(), splits_at_blank_lines=True)
        self._write_preface()
        if not re.fullmatch(r"(?:```\w+\s*)?[\[{\s]*", self._held):
            for char in self._held:
                self._text.write(char)

    def _switch_to(self, step: Callable[[str], None]) -> None:
        held, self._held = self._held, ""
        self._step = step
        for char in held:
            self._step(char)


def _starts_json(held: str) -> bool | None:
    """Whether `held`, in the middle of prose, begins the JSON of an answer; None if more characters are needed."""
    fence = re.match(r"```\w*[ \t]*\r?\n\s*", held)
    if fence is None and held[0] == "`":
        return None if re.fullmatch(r"`{1,2}|```\w*[ \t]*\r?", held) else False
    opening = re.compile(r"(?:\[\s*)?(\{\s*)?").match(held, fence.end() if fence else 0)
    rest = held[opening.end() :] if opening else held
    if not rest:
        return None
    if opening is None or not opening[1]:
        return False
    word = re.match(r"[\"']?(\w*)", rest)
    name = word[1] if word else ""
    if word and word.end() < len(rest):
        return name in _FIRST_KEYS
    return None if any(key.startswith(name) for key in _FIRST_KEYS) else False


class _JsonSections:
    """A lenient JSON parser that takes one character at a time."""

    def __init__(self, text: AnswerText) -> None:
        self._text = text
        self._stack: list[_Container] = []
        self._word = ""
        self._quote = ""  # the quotation mark that opened the current string, and should end it
        self._role = ""  # of the current string: key, id, quote, text, or "" for any other
        self._role_evidence = Evidence()
        self._string = ""
        self._escape = ""
        self._high_surrogate = 0  # waits for the second half of its pair
        self._after_closing_mark: str | None = None  # what followed a mark that may have ended the string

    @property
    def is_closed(self) -> bool:
        return not self._stack

    def step(self, char: str) -> None:
        if self._after_closing_mark is not None:
            self._after_quote(char)
        elif self._quote:
            self._in_string(char)
        else:
            self._outside_string(char)

    def finish(self) -> None:
        """Ends a string whose closing mark was read; an id or quote that is still open is dropped."""
        if self._after_closing_mark is not None:
            self._end_string()

    def _outside_string(self, char: str) -> None:
        if char in "\"'" and self._stack:
            self._quote, self._string = char, ""
            self._choose_role()
        elif char in "{[":
            self._stack.append(_Container(char == "{"))
        elif char in "}]" and self._stack:
            self._stack.pop()
            self._end_value()
        elif char == ":" and self._word and self._stack:
            self._stack[-1].key, self._stack[-1].has_bare_keys = self._word, True
        elif char == ",":
            self._end_value()
        elif not char.isspace():
            self._word += char
            return
        self._word = self._word if char.isspace() else ""

    def _end_value(self) -> None:
        """Ends a value; the next string of an object is then a key, even if the comma is missing."""
        if self._stack and self._stack[-1].is_object:
            self._stack[-1].key = None

    def _choose_role(self) -> None:
        """Decides from the keys around an opening string whether it is a key, an id, a quote or text."""
        objects = [container for container in self._stack if container.is_object]
        if self._stack[-1].is_object and self._stack[-1].key is None:
            self._role = "key"
            return
        self._role = ""
        for container in objects:
            key = (container.key or "").lower()
            if key in _ID_KEYS or key in _QUOTE_KEYS:
                self._role, self._role_evidence = ("id" if key in _ID_KEYS else "quote"), container.evidence
                return
        if objects and (objects[-1].key or "").lower() in _TEXT_KEYS:
            self._role = "text"
            self._text.open(objects[-1].evidence)

    def _in_string(self, char: str) -> None:
        if self._escape:
            self._unescape(char)
        elif char == "\\":
            self._escape = char
        elif char == self._quote:
            self._after_closing_mark = ""
        else:
            self._add(char)

    def _after_quote(self, char: str) -> None:
        """Decides whether a quotation mark ended the string: not if valid JSON cannot continue as the text does."""
        seen = self._after_closing_mark or ""
        if char.isspace() or (char == "," and "," not in seen):
            self._after_closing_mark = seen + char
            return
        ends = char in "\"'{[}]" if "," in seen else char in "}]:\"'"
        if self._role != "text" or ends or (self._stack and self._stack[-1].has_bare_keys):
            self._end_string()
            for later in seen + char:
                self.step(later)
            return
        self._after_closing_mark = None
        for later in self._quote + seen:
            self._add(later)
        self._in_string(char)

    def _end_string(self) -> None:
        if self._role == "key":
            self._stack[-1].key, self._stack[-1].has_bare_keys = self._string.strip(), False
        elif self._role == "id":
            self._role_evidence.ids.append(self._string)
        elif self._role == "quote":
            self._role_evidence.quotes.append(self._string)
        elif self._role == "text":
            self._text.close()
        if self._role != "key":
            self._end_value()
        self._quote, self._after_closing_mark, self._escape, self._high_surrogate = "", None, "", 0

    def _unescape(self, char: str) -> None:
        self._escape += char
        if self._escape[1] != "u":
            escaped, self._escape = self._escape, ""
            for plain in _ESCAPES.get(char, escaped):
                self._add(plain)
        elif not re.fullmatch(r"[0-9a-fA-F]{0,4}", self._escape[2:]):
            self._escape = ""
            self._add("\ufffd")
            self._in_string(char)
        elif len(self._escape) == 6:
            code, self._escape = int(self._escape[2:], 16), ""
            self._add_code_unit(code)

    def _add_code_unit(self, code: int) -> None:
        if 0xDC00 <= code < 0xE000 and self._high_surrogate:
            high, self._high_surrogate = self._high_surrogate, 0
            self._add(chr(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)))
        elif 0xD800 <= code < 0xDC00:
            self._add("")
            self._high_surrogate = code
        else:
            self._add("\ufffd" if 0xDC00 <= code < 0xE000 else chr(code))

    def _add(self, char: str) -> None:
        if self._high_surrogate:
            self._high_surrogate = 0
            self._add("\ufffd")
        if self._role == "text":
            for plain in char:
                self._text.write(plain)
        else:
            self._string += char
