"""No regular expression of the code or the page takes time that grows faster than the square of its input's length.

Each one is run, by the methods that its module calls, on repetitions of characters, of words that it names and of pairs
of these, with an end that spoils a match. Those of the page are written in Python for that, whose engine tries the same
alternatives in the same order.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import pytest

from tests.repository.test_architecture import MODULES
from tests.support.requirements import REPOSITORY

CHARACTERS = (" ", "\n", "a", "A", "é", "1", ".", ",", "-", "'", "(", "|", "#", "*", "/", "<", '"', "_", "\u00ad")
ENDS = ("", "\x01", "1")
LENGTHS = (12, 24, 200, 800)
# Expressions that grow faster, and why that does no harm.
KNOWN_SLOW = {
    "functions.core.ingestion.chunking.running_lines._PAGE_NUMBER": "it is used on at most 80 characters",
}
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
SLOW_SECONDS = 0.004
"""Times below it are those of short or linear runs, and too short to be compared."""
MAX_DEGREE = 2.6
"""Between the square and the cube."""
GIVE_UP_SECONDS = 2.0

PAGE = REPOSITORY / "functions" / "web" / "static"
_LITERAL = re.compile(r"(?:[(,=:\[!&|?;{>]|\breturn)\s*/((?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+)/([a-z]*)")
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\[pP]\{\w+\}")
LETTERS = {r"\p{L}": "A-Za-zà-ÿ", r"\p{Lu}": "A-ZÀ-Þ", r"\p{Ll}": "a-zà-ÿ", r"\p{N}": "0-9", r"\p{M}": "\u0300-\u036f"}

Pattern = tuple[str, str, "re.Pattern[str]"]
"""The module with the name or the line of an expression, the method that is called, and the expression."""


def list_patterns() -> Iterator[Pattern]:
    for path in MODULES:
        name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        source = path.read_text(encoding="utf-8")
        if "import re\n" not in source:
            continue
        module = importlib.import_module(name)
        for variable, value in vars(module).items():
            for pattern in find_patterns(value):
                # A pattern in a table, or one that another module uses, is used in an unknown way: `search` is slowest.
                used = set(re.findall(rf"\b{variable}\.({'|'.join(METHODS)})\(", source)) or {"search"}
                yield from ((f"{name}.{variable}", method, pattern) for method in sorted(used))
        for line, method, text in list_inline(ast.parse(source), vars(module)):
            yield f"{name}:{line}", method, re.compile(text)


def list_page_patterns() -> Iterator[Pattern]:
    """The literals of the page's scripts."""
    for path in sorted(PAGE.rglob("*.js")):
        for literal in _LITERAL.finditer(path.read_text(encoding="utf-8")):
            yield f"{path.name}: {literal[1]}", "sub" if "g" in literal[2] else "search", translate(*literal.groups())


def translate(text: str, flags: str) -> re.Pattern[str]:
    """An expression of JavaScript in Python; properties of Unicode become the letters that they stand for here."""
    text = _CLASS.sub(lambda found: _translate_class(found[0]), text.replace("(?<", "(?P<"))
    text = text.replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    with warnings.catch_warnings(action="ignore"):  # "[[" is no nested set in either language
        return re.compile(text, (re.I if "i" in flags else 0) | (re.M if "m" in flags else 0))


def _translate_class(text: str) -> str:
    for name, letters in LETTERS.items():
        text = f"[{letters}]" if text == name else text.replace(name, letters)
    return text


def find_patterns(value: Any) -> Iterator[re.Pattern[str]]:
    """The expressions in a value and in the tables in it."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(find_patterns, value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from itertools.chain.from_iterable(map(find_patterns, value))


def list_inline(tree: ast.Module, names: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """Expressions that are written where they are used: line, method, text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (method := find_function(node)) in METHODS:
            yield node.lineno, method, read_text(node.args[0], names)
        if isinstance(node, ast.FunctionDef):  # no variable of the module has what a function compiles
            for call in filter(is_compilation, ast.walk(node)):
                yield call.lineno, "search", read_text(call.args[0], names)


def is_compilation(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and find_function(node) == "compile"


def find_function(call: ast.Call) -> str:
    """The function of the module `re` that is called, if it is one."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=name):
            return name
    return ""


def read_text(node: ast.expr, names: dict[str, Any]) -> str:
    """The text of an expression; "a" stands for what only the running function knows."""
    if isinstance(node, ast.JoinedStr):
        return "".join(read_text(part, names) for part in node.values)
    value = node.value if isinstance(node, ast.FormattedValue) else node
    try:
        return str(eval(compile(ast.Expression(value), "pattern", "eval"), dict(names)))
    except (AttributeError, NameError):
        return "a"


def list_units(pattern: re.Pattern[str]) -> list[str]:
    """What is repeated: characters, the first words that the expression names, and pairs of both."""
    words = list(dict.fromkeys(re.findall(r"(?<!\\)[a-zà-ÿ]{2,}", pattern.pattern)))[:3]
    parts = [*CHARACTERS, *words]
    return [*parts, *map("".join, itertools.permutations([*CHARACTERS[:6], *words], 2))]


def measure(run: Callable[[str], object], text: str, enough: float = 0.0) -> float:
    """The better time of two runs, or that of the first if it is below `enough`."""
    best = math.inf
    for _ in range(2):
        began = time.thread_time()
        run(text)
        best = min(best, time.thread_time() - began)
        if best < enough:
            break
    return best


def find_slow_input(method: str, pattern: re.Pattern[str]) -> str | None:
    """A unit and an end on which the time grows too fast."""
    run = {
        "sub": lambda text: pattern.sub("", text),
        "subn": lambda text: pattern.subn("", text),
        "finditer": lambda text: list(pattern.finditer(text)),
    }.get(method, getattr(pattern, method))
    for unit, end in itertools.product(list_units(pattern), ENDS):
        with time_limit() as limit:
            for length in LENGTHS:
                text = unit * (length // len(unit))
                if measure(run, text + end, SLOW_SECONDS) > SLOW_SECONDS:
                    if (degree := _find_degree(run, text, end)) > MAX_DEGREE:
                        return f"{unit!r} repeated, then {end!r}: degree {degree:.1f}"
                    break
        if limit.is_reached:
            return f"{unit!r} repeated, then {end!r}: more than {GIVE_UP_SECONDS} s"
    return None


def _find_degree(run: Callable[[str], object], text: str, end: str) -> float:
    """The least of three measurements, or the first one within `MAX_DEGREE`."""
    quarter = text[: len(text) // 4]
    least = math.inf
    for _ in range(3):
        least = min(least, math.log(measure(run, text + end) / measure(run, quarter + end), 4))
        if least <= MAX_DEGREE:
            break
    return least


class Limit:
    is_reached = False


class TimeUpError(BaseException):
    pass


@contextmanager
def time_limit() -> Iterator[Limit]:
    """Ends the block after `GIVE_UP_SECONDS`; a running expression can be interrupted."""

    def stop(*_: object) -> None:
        raise TimeUpError

    limit, before = Limit(), signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVE_UP_SECONDS)
    try:
        yield limit
    except TimeUpError:
        limit.is_reached = True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_the_time_of_every_regular_expression_grows_with_the_square_at_most() -> None:
    """LIM-1"""
    patterns = {(pattern, method): name for name, method, pattern in list_patterns()}
    found = {name: find_slow_input(method, pattern) for (pattern, method), name in patterns.items()}
    assert len(patterns) > 200
    assert {name: slow for name, slow in found.items() if slow and name not in KNOWN_SLOW} == {}


def test_the_time_of_every_regular_expression_of_the_page_grows_with_the_square_at_most() -> None:
    """LIM-1: the page runs them over what documents and models write."""
    found = {name: find_slow_input(method, pattern) for name, method, pattern in list_page_patterns()}
    assert len(found) > 60
    assert {name: slow for name, slow in found.items() if slow} == {}


def test_every_expression_of_the_code_is_listed() -> None:
    """One in a class, or compiled by a module that imports `re` in another way, would not be measured."""
    sources = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    compiled = {
        (path, node.lineno) for path, tree in sources.items() for node in filter(is_compilation, ast.walk(tree))
    }
    listed = {(path, line) for path, tree in sources.items() for line in list_lines(tree)}
    assert compiled - listed == set()
    assert [path for path, tree in sources.items() if imports_otherwise(tree)] == []


def list_lines(tree: ast.Module) -> Iterator[int]:
    """The lines of what modules assign to variables and what functions do."""
    assignments = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in (*assignments, *functions):
        yield from range(node.lineno, (node.end_lineno or 0) + 1)


def imports_otherwise(tree: ast.Module) -> bool:
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return any(re.match(r"from (re|regex) |import (regex|re\b.+)", line) for line in imports)


@pytest.mark.parametrize(
    ("pattern", "method"), [(r"\W*\W*(?:in)?\W*\d{4}", "fullmatch"), (r"(a+)+b", "match"), (r"\s*,?\s*$", "search")]
)
def test_an_expression_that_grows_faster_is_found(pattern: str, method: str) -> None:
    assert find_slow_input(method, re.compile(pattern)) is not None


@pytest.mark.parametrize(("pattern", "method"), [(r"\s+$", "search"), (r"[a-z]+ [a-z]+", "findall")])
def test_an_expression_that_grows_with_the_square_is_not_found(pattern: str, method: str) -> None:
    assert find_slow_input(method, re.compile(pattern)) is None
