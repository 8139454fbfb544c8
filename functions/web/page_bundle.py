"""Joins the page's ES modules and styles into a few files, whose address changes with their contents.

`app.js` holds every module that the page needs at its start. A part, which a module names as
`new URL("./file.js", import.meta.url)`, becomes a file of its own, with the modules that no other part needs. Each
module becomes a function that is called once and returns what the module exports, so their names never meet.
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

APP: Final = "app.js"
PAGE: Final = "index.html"
STYLES: Final = "page.css"

_MEDIA_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}
_IMPORT = re.compile(r'^import \{([^}]+)\} from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_PART = re.compile(r'new URL\("(\.[^"]+\.js)", import\.meta\.url\)')
_UNKNOWN = re.compile(r"^(?:import|export)\b.*|\bimport\(\s*[\"'`].*", re.MULTILINE)
_STYLE_LINK = re.compile(r' *<link rel="stylesheet" href="/static/([^"]+)">\n')
_STYLE_LINKS = re.compile(f"(?:{_STYLE_LINK.pattern})+")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


class BundleError(Exception):
    """A file of the page has a form that cannot be joined; the message names it."""


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent, with its media type and an ETag that holds for both encodings."""

    body: bytes
    media_type: str

    @cached_property
    def gzipped(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    @cached_property
    def etag(self) -> str:
        return f'W/"{_digest([self.body])}"'


@dataclass(frozen=True)
class Module:
    """A source file; `imports` and `parts` are the paths of other modules below the static folder."""

    path: str
    text: str
    imports: frozenset[str]
    parts: frozenset[str]

    @property
    def name(self) -> str:
        """The constant that holds the module's exports: `chat_answer` for chat/answer.js."""
        return self.path.removesuffix(".js").replace("/", "_")

    @property
    def exports(self) -> list[str]:
        return _EXPORT.findall(self.text)


def bundle(static: Path) -> dict[str, PageFile]:
    """Returns the files of the page: `index.html`, and the others by their path below /static/.

    Raises BundleError for a statement that it cannot rewrite, and CycleError when modules import each other.
    """
    modules = _read_modules(static)
    html = _COMMENT.sub("", (static / PAGE).read_text(encoding="utf-8"))
    styles = "".join((static / name).read_text(encoding="utf-8") for name in _STYLE_LINK.findall(html))
    texts = {STYLES: styles, **_join_modules(modules)}
    folder = _digest(text.encode() for text in texts.values())
    files = {f"{folder}/{name}": text for name, text in texts.items()}
    files[PAGE] = _link(html, folder, (static / "icon.svg").read_text(encoding="utf-8"))
    return {name: PageFile(text.encode(), _MEDIA_TYPES[PurePosixPath(name).suffix]) for name, text in files.items()}


def _read_modules(static: Path) -> dict[str, Module]:
    """Reads app.js and every module that it needs now or later."""
    modules: dict[str, Module] = {}
    unread = [APP]
    while unread:
        path = unread.pop()
        if path not in modules:
            modules[path] = _parse(path, (static / path).read_text(encoding="utf-8"))
            unread += modules[path].imports | modules[path].parts
    return modules


def _parse(path: str, text: str) -> Module:
    unknown = _UNKNOWN.search(_EXPORT.sub("", _IMPORT.sub("", text)))
    if unknown:
        raise BundleError(f"{path}: cannot be bundled: {unknown[0]}")
    imports = frozenset(_resolve(path, target) for _, target in _IMPORT.findall(text))
    return Module(path, text, imports, frozenset(_resolve(path, target) for target in _PART.findall(text)))


def _resolve(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _join_modules(modules: Mapping[str, Module]) -> dict[str, str]:
    """Returns the text of app.js and of each part, by file name."""
    needed = {path: _find_needed(path, modules) for path in {APP}.union(*(it.parts for it in modules.values()))}
    users = Counter(path for part, paths in needed.items() if part != APP for path in paths)
    in_app = needed[APP] | {path for path, count in users.items() if count > 1}
    order = list(TopologicalSorter({path: sorted(modules[path].imports) for path in sorted(modules)}).static_order())
    shared: set[str] = set()
    files: dict[str, str] = {}
    for part in sorted(needed.keys() - {APP}):
        own = [modules[path] for path in order if path in needed[part] - in_app]
        taken = {path for module in own for path in module.imports} | {part}
        shared |= taken & in_app
        files[_name_file(part, files)] = _write_part(modules[part], own, [modules[path] for path in taken & in_app])
    app = [modules[path] for path in order if path in in_app]
    return {APP: _write(app) + _write_exports(modules[path] for path in shared), **files}


def _find_needed(path: str, modules: Mapping[str, Module]) -> set[str]:
    """The module and everything that it imports, directly or not."""
    found: set[str] = set()
    unread = [path]
    while unread:
        path = unread.pop()
        if path not in found:
            found.add(path)
            unread += modules[path].imports
    return found


def _name_file(part: str, taken: Iterable[str]) -> str:
    name = PurePosixPath(part).name
    if name in {APP, *taken}:
        raise BundleError(f"{part}: another part has the same file name")
    return name


def _write_part(part: Module, own: list[Module], shared: list[Module]) -> str:
    names = ", ".join(sorted(module.name for module in shared))
    imports = f'import {{ {names} }} from "./{APP}";\n' if names else ""
    return f"{imports}{_write(own)}export const {{ {', '.join(part.exports)} }} = {part.name};\n"


def _write_exports(modules: Iterable[Module]) -> str:
    names = sorted(module.name for module in modules)
    return f"export {{ {', '.join(names)} }};\n" if names else ""


def _write(modules: Iterable[Module]) -> str:
    return "".join(f"const {module.name} = (() => {{\n{_rewrite(module)}}})();\n" for module in modules)


def _rewrite(module: Module) -> str:
    """The module as the body of a function: imports become constants, and exports what the function returns."""

    def take(found: re.Match[str]) -> str:
        source = _resolve(module.path, found[2]).removesuffix(".js").replace("/", "_")
        return f"const {{{found[1].replace(' as ', ': ')}}} = {source};"

    def move(found: re.Match[str]) -> str:
        return f'new URL("./{PurePosixPath(found[1]).name}", import.meta.url)'

    body = _PART.sub(move, _EXPORT.sub("", _IMPORT.sub(take, module.text)))
    return f"{body.rstrip()}\nreturn {{ {', '.join(module.exports)} }};\n"


def _link(html: str, folder: str, icon: str) -> str:
    """Replaces the links to the sources by links to the joined files, and holds the icon itself."""
    html = _STYLE_LINKS.sub(f'  <link rel="stylesheet" href="/static/{folder}/{STYLES}">\n', html)
    html = html.replace('src="/static/app.js"', f'src="/static/{folder}/{APP}"')
    return html.replace('href="/static/icon.svg"', f'href="data:image/svg+xml,{quote(icon)}"')


def _digest(texts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.hexdigest()[:16]
