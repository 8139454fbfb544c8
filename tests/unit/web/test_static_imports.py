"""The page's files: each is used, each import finds what it names, and folders import only the folders below them."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import PurePosixPath

from tests.support.requirements import REPOSITORY

STATIC = REPOSITORY / "functions" / "web" / "static"
IMPORT = re.compile(r'^import (?:\{([^}]+)\} from )?"(\.[^"]+)";', re.MULTILINE)
PART = re.compile(r'new URL\("(\.[^"]+\.js)", import\.meta\.url\)')
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)

# Which folders each folder imports; `page` is app.js. Nothing below imports anything above it.
ARROWS: dict[str, set[str]] = {
    "page": {"chat", "language", "library", "loading", "sample", "session", "shared", "source"},
    "library": {"chat", "language", "notebooks", "notes", "shared"},
    "notebooks": {"language", "shared"},
    "notes": {"chat", "language", "shared"},
    "source": {"chat", "language", "shared"},
    "chat": {"language", "shared"},
    "session": {"language", "shared"},
    "shared": {"language", "loading"},
    "language": {"loading"},
    "loading": set(),
    "sample": set(),
}


def modules() -> dict[str, str]:
    """The text of every module, by its path below the static folder."""
    return {path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8") for path in STATIC.rglob("*.js")}


def imports(text: str, module: str) -> dict[str, set[str]]:
    """What a module imports: the imported names by the path of the file that is to export them."""
    folder = (STATIC / module).parent
    return {
        (folder / target).resolve().relative_to(STATIC).as_posix(): {
            name.split(" as ")[0].strip() for name in names.split(",")
        }
        for names, target in IMPORT.findall(text)
    }


def parts(text: str, module: str) -> set[str]:
    """The modules that a module loads when they are needed."""
    folder = (STATIC / module).parent
    return {(folder / target).resolve().relative_to(STATIC).as_posix() for target in PART.findall(text)}


def needs(text: str, module: str) -> set[str]:
    return imports(text, module).keys() | parts(text, module)


def folder_of(module: str) -> str:
    return PurePosixPath(module).parts[0] if "/" in module else "page"


def test_every_import_names_something_that_its_file_exports() -> None:
    exported = {module: set(EXPORT.findall(text)) for module, text in modules().items()}
    missing = {
        (module, target, name)
        for module, text in modules().items()
        for target, names in imports(text, module).items()
        for name in names - exported.get(target, set())
    }
    assert missing == set()


def test_no_import_takes_a_form_that_these_tests_cannot_read() -> None:
    statement = re.compile(r"^import\b.*|^export (?:\{|\*).*|.*\bimport\(.*", re.MULTILINE)
    found = [line for text in modules().values() for line in statement.findall(text)]
    loader = "      return await import(attempt ? `${address}?attempt=${Date.now()}` : address);"  # in loading/parts.js
    assert [line for line in found if not IMPORT.match(line)] == [loader]


def test_every_exported_name_is_used_outside_its_file() -> None:
    used = {
        (file, name)
        for module, text in modules().items()
        for file, names in imports(text, module).items()
        for name in names
    }
    used |= {
        (part, name)
        for module, text in modules().items()
        for part in parts(text, module)
        for name in EXPORT.findall(modules()[part])
        if f".{name}(" in text
    }
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests" / "browser").glob("*.py"))
    exported = {(module, name) for module, text in modules().items() for name in EXPORT.findall(text)}
    assert {(module, name) for module, name in exported - used if f"m.{name}" not in tests} == set()


def test_every_file_is_used_by_the_page() -> None:
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    used = {
        "index.html",
        *re.findall(r'(?:rel="(?:icon|stylesheet)" href|script type="module" src)="/static/([^"]+)"', html),
    }
    texts, unread = modules(), [name for name in used if name.endswith(".js")]
    while unread:
        module = unread.pop()
        unread += needs(texts[module], module) - used
        used |= needs(texts[module], module)
    assert {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()} == used


def test_folders_import_only_lower_folders() -> None:
    found: dict[str, set[str]] = {folder: set() for folder in ARROWS}
    for module, text in modules().items():
        found[folder_of(module)] |= {folder_of(file) for file in needs(text, module)} - {folder_of(module)}
    assert found == ARROWS


def test_the_arrows_between_folders_make_no_circle() -> None:
    TopologicalSorter(ARROWS).prepare()
