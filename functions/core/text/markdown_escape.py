"""Text put into a Markdown file (CommonMark with GitHub's tables) without becoming more than it may be there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_MARK = r"\[\d{1,4}(?:[ ]*,[ ]*\d{1,4})*\](?![(:])"  # followed by either, it could be a link or its definition
_PLAIN = re.compile(
    rf"(?P<mark>{_MARK})|[\\`*\[\]<>#|~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)"  # inside a word, `_` means nothing
)
_START = re.compile(r"(\d{1,9}(?=[.)](?: |$))|(?=-(?:[-: ]|$)|\+(?: |$)|=+$|:-))")  # of a list, a rule, a table
_RICH = re.compile(rf"(?P<mark>{_MARK})|(?P<escaped>\\[!-/:-@\[-`{{-~])|[<\[]|`{{3,}}|~{{3,}}")
_FENCE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_NESTED_HEADING = re.compile(r"([ \t>*+\-\d.)]+)(?=#{1,6}(?:[ \t]|$))")
_UNDERLINE = re.compile(r"([ \t>]*)(=+|-+)[ \t]*")


def escape_line(text: str, marks: Collection[int] = ()) -> str:
    """The text as one line that says just this; citation marks like `[2]` stay for numbers in `marks`."""
    line = _PLAIN.sub(lambda found: _escape(found, marks), " ".join(text.split()))
    start = _START.match(line)
    return f"{start[0]}\\{line[start.end() :]}" if start else line


def escape_text(text: str, marks: Collection[int] = ()) -> str:
    """The same for a text whose line breaks and paragraphs are kept."""
    paragraphs = re.split(r"\n[^\S\n]*\n\s*", _join_line_ends(text).strip())
    return "\n\n".join("\\\n".join(escape_line(line, marks) for line in p.split("\n")) for p in paragraphs)


def confine_markdown(text: str, marks: Collection[int] = ()) -> str:
    """Somebody else's Markdown as a part of a larger file.

    Emphasis, lists, tables and code stay. Headings become those of the fourth level, a fence left open is closed, and
    HTML, links and images become text.
    """
    return "\n".join(_contain_lines(_join_line_ends(text).strip("\n").split("\n"), marks))


def quote(text: str) -> str:
    """The text as a block quote, which ends with it."""
    return "\n".join(f"> {line}".rstrip() for line in escape_text(text).split("\n"))


def indent(text: str, width: int) -> str:
    """The text as a part of a list item whose marker is `width` characters wide."""
    return "\n".join(" " * width + line if line else line for line in text.split("\n"))


def _contain_lines(lines: list[str], marks: Collection[int]) -> Iterator[str]:
    fence = ""
    for line in lines:
        if fence:
            yield line
            if re.fullmatch(f" {{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*", line):
                fence = ""
        # At the margin only: an indented fence ends with the list item around it, wherever that ends.
        elif found := _FENCE.fullmatch(line):
            fence = found[1] or found[2]
            yield line
        else:
            yield _contain_line(_RICH.sub(lambda found: _escape(found, marks), line))
    if fence:
        yield fence


def _contain_line(line: str) -> str:
    if found := _HEADING.match(line):
        return "####" + line[found.end() :]
    if found := _NESTED_HEADING.match(line):
        return f"{line[: found.end()]}\\{line[found.end() :]}"
    if found := _UNDERLINE.fullmatch(line):  # would make a heading of the line above
        return f"{found[1]}***" if len(found[2]) >= 3 and found[2][0] == "-" else f"{found[1]}\\{found[2]}"
    return line


def _escape(found: re.Match[str], marks: Collection[int]) -> str:
    text = found[0]
    kinds = found.groupdict()
    if kinds.get("escaped"):
        return text
    if kinds["mark"]:
        known = all(int(number) in marks for number in re.findall(r"\d+", text))
        return text if known else text.replace("[", "\\[").replace("]", "\\]")
    return "".join(f"\\{character}" for character in text)


def _join_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
