"""Escapes text for Markdown files (CommonMark with GitHub's tables), so that it cannot turn into other markup."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_MARK = r"\[\d{1,4}(?:[ ]*,[ ]*\d{1,4})*\](?![(:])"  # before `(` or `:` it could be a link or its definition
_PLAIN = re.compile(
    rf"(?P<mark>{_MARK})|[\\`*\[\]<>#|~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)"  # inside a word, `_` means nothing
)
_START = re.compile(r"(\d{1,9}(?=[.)](?: |$))|(?=-(?:[-: ]|$)|\+(?: |$)|=+$|:-))")  # begins a list, a rule or a table
_RICH = re.compile(rf"(?P<mark>{_MARK})|(?P<escaped>\\[!-/:-@\[-`{{-~])|[<\[]|`{{3,}}|~{{3,}}")
_FENCE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_NESTED_HEADING = re.compile(r"([ \t>*+\-\d.)]+)(?=#{1,6}(?:[ \t]|$))")
_UNDERLINE = re.compile(r"([ \t>]*)(=+|-+)[ \t]*")


def escape_line(text: str, marks: Collection[int] = ()) -> str:
    """The text as one line that renders literally; citation marks like `[2]` stay if their numbers are in `marks`."""
    line = _PLAIN.sub(lambda match: _escape(match, marks), " ".join(text.split()))
    start = _START.match(line)
    return f"{start[0]}\\{line[start.end() :]}" if start else line


def escape_text(text: str, marks: Collection[int] = ()) -> str:
    """The same as `escape_line`, with line breaks and paragraphs kept."""
    paragraphs = re.split(r"\n[^\S\n]*\n\s*", _join_line_ends(text).strip())
    return "\n\n".join("\\\n".join(escape_line(line, marks) for line in p.split("\n")) for p in paragraphs)


def confine_markdown(text: str, marks: Collection[int] = ()) -> str:
    """Makes Markdown that somebody else wrote safe as a part of a larger file.

    Emphasis, lists, tables and code stay. Headings are lowered to the fourth level, an open fence is closed, and HTML,
    links and images become plain text.
    """
    return "\n".join(_contain_lines(_join_line_ends(text).strip("\n").split("\n"), marks))


def quote(text: str) -> str:
    """The text as a block quote."""
    return "\n".join(f"> {line}".rstrip() for line in escape_text(text).split("\n"))


def indent(text: str, width: int) -> str:
    """The text indented for a list item whose marker is `width` characters wide."""
    return "\n".join(" " * width + line if line else line for line in text.split("\n"))


def _contain_lines(lines: list[str], marks: Collection[int]) -> Iterator[str]:
    fence = ""
    for line in lines:
        if fence:
            yield line
            if re.fullmatch(f" {{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*", line):
                fence = ""
        # Only at the margin: an indented fence also ends with its list item, whose end is not tracked here.
        elif match := _FENCE.fullmatch(line):
            fence = match[1] or match[2]
            yield line
        else:
            yield _contain_line(_RICH.sub(lambda match: _escape(match, marks), line))
    if fence:
        yield fence


def _contain_line(line: str) -> str:
    if match := _HEADING.match(line):
        return "####" + line[match.end() :]
    if match := _NESTED_HEADING.match(line):
        return f"{line[: match.end()]}\\{line[match.end() :]}"
    if match := _UNDERLINE.fullmatch(line):  # would turn the line above into a heading
        return f"{match[1]}***" if len(match[2]) >= 3 and match[2][0] == "-" else f"{match[1]}\\{match[2]}"
    return line


def _escape(match: re.Match[str], marks: Collection[int]) -> str:
    text = match[0]
    groups = match.groupdict()
    if groups.get("escaped"):
        return text
    if groups["mark"]:
        is_citation = all(int(number) in marks for number in re.findall(r"\d+", text))
        return text if is_citation else text.replace("[", "\\[").replace("]", "\\]")
    return "".join(f"\\{character}" for character in text)


def _join_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
