"""Describes the API to programs (/openapi.json) and to people (/docs: one page, without scripts or other hosts)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from functions.web.openapi import describe_api

router = APIRouter(include_in_schema=False)

Json = dict[str, Any]

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
:root { color-scheme: light dark }
h3 { margin: 2rem 0 0 }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #8884; padding: .3rem .5rem; vertical-align: top; overflow-wrap: anywhere }
td:first-child { width: 15rem }
"""
_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@router.get("/openapi.json")
def get_openapi(request: Request) -> Json:
    """The OpenAPI document of every route."""
    return describe_api(request.app)


@router.get("/docs")
def get_docs(request: Request) -> HTMLResponse:
    """The same as a page."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    page = "".join(_write_page(describe_api(request.app)))
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY.format(digest)})


def _write_page(document: Json) -> Iterator[str]:
    title = escape(document["info"]["title"])
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}: API</title><style>{_STYLE}</style>'
    yield f"<h1>{title}</h1><p>{escape(document['info']['description'])} <a href='/openapi.json'>openapi.json</a></p>"
    routes = [
        (operation["tags"][0], f"{method.upper()} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    for tag, members in groupby(sorted(routes, key=lambda route: route[0]), key=lambda route: route[0]):
        yield f"<h2>{escape(tag)}</h2>"
        for _, name, operation in members:
            yield from _write_operation(name, operation)
    yield "<h2>Schemas</h2>"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _write_schema(name, schema)


def _write_operation(name: str, operation: Json) -> Iterator[str]:
    yield f'<h3 id="{operation["operationId"]}"><code>{escape(name)}</code></h3>'
    yield f"<p>{escape(str(operation.get('description', operation['summary'])))}</p><table>"
    for parameter in operation.get("parameters", []):
        facts = _describe_type(parameter["schema"]) + ("" if parameter["required"] else ", optional")
        yield f"<tr><td><code>{escape(parameter['name'])}</code> ({parameter['in']})<td>{facts}"
    for kind, schema in _list_contents(operation.get("requestBody", {})):
        yield f"<tr><td>body<td>{_describe_type(schema)} <code>{escape(kind)}</code>"
    described = {status: _describe_contents(response) for status, response in operation["responses"].items()}
    for contents, statuses in groupby(described, key=described.__getitem__):
        yield f"<tr><td>{escape(', '.join(statuses))}<td>{contents}"
    yield "</table>"


def _describe_contents(response: Json) -> str:
    contents = [f"{_describe_type(schema)} <code>{escape(kind)}</code>" for kind, schema in _list_contents(response)]
    return "<br>".join(contents) or "nothing"


def _list_contents(part: Json) -> list[tuple[str, Json]]:
    return [(kind, content.get("schema", {})) for kind, content in part.get("content", {}).items()]


def _write_schema(name: str, schema: Json) -> Iterator[str]:
    yield f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p><table>'
    for field, described in schema.get("properties", {}).items():
        optional = "" if field in schema.get("required", []) else ", optional"
        yield f"<tr><td><code>{escape(field)}</code><td>{_describe_type(described)}{optional}"
    yield "</table>"


def _describe_type(schema: Json) -> str:
    """The type in words, as HTML."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_describe_type, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_describe_type(schema.get('items', {}))}"
    return escape(" ".join(filter(None, (schema.get("type"), schema.get("format"))))) or "any"
