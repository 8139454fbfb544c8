"""The OpenAPI document of an app: FastAPI's, with the names that API.md uses, our errors and the bearer token."""

from __future__ import annotations

import copy
import re
from typing import Any, Final

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from functions.web.errors import OPENAI_PREFIX, TITLES
from functions.web.schemas.answers import OpenAIError, Problem

Json = dict[str, Any]

_REF: Final = "#/components/schemas/{model}"
_TITLE: Final = "Ibid"
_DESCRIPTION: Final = "Ask your own documents a question. API.md explains uploads, citations, limits and errors."
_HEADERS: Final = {
    401: {"WWW-Authenticate": {"required": True, "schema": {"type": "string"}}},
    429: {
        "Retry-After": {
            "required": True,
            "schema": {"type": "integer"},
            "description": "Seconds until the next attempt",
        }
    },
}
_UNUSED: Final = ("HTTPValidationError", "ValidationError")  # of FastAPI's own response to an invalid request


def describe_api(app: FastAPI) -> Json:
    """The document of all routes of `app` that are part of the API."""
    document = copy.deepcopy(app.openapi())
    document["info"] |= {"title": _TITLE, "description": _DESCRIPTION, "version": "1"}
    schemas = document["components"]["schemas"]
    for name in _UNUSED:
        schemas.pop(name, None)
    _, errors = models_json_schema([(Problem, "serialization"), (OpenAIError, "serialization")], ref_template=_REF)
    schemas |= errors["$defs"]
    for schema in schemas.values():
        _use_snake_case(schema)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _describe_operation(path, operation)
    return document


def _use_snake_case(schema: Json) -> None:
    """Renames the fields of a request body, which also accepts the names in camelCase that FastAPI describes."""
    if schema.get("additionalProperties") is False:
        schema["properties"] = {_snake(name): field for name, field in schema.get("properties", {}).items()}
        schema["required"] = [_snake(name) for name in schema.get("required", [])]


def _describe_operation(path: str, operation: Json) -> None:
    parts = path.strip("/").split("/")
    operation["tags"] = [parts[2] if parts[:2] == ["api", "rag"] else parts[0]]
    for parameter in operation.get("parameters", []):
        parameter["name"] = _snake(parameter["name"])
    is_openai = path.startswith(OPENAI_PREFIX)
    name, kind = ("OpenAIError", "application/json") if is_openai else ("Problem", "application/problem+json")
    content = {kind: {"schema": {"$ref": _REF.format(model=name)}}}
    responses = operation["responses"]
    if _UNUSED[0] in str(responses.get("422")):  # FastAPI's own; we answer 400
        del responses["422"]
    for status in _list_refusals(path, operation):
        declared = responses.setdefault(str(status), {})
        declared |= {"description": TITLES[status], "content": content | declared.get("content", {})}
        if status in _HEADERS:
            declared["headers"] = _HEADERS[status]
    operation["responses"] = dict(sorted(responses.items()))
    operation["responses"]["default"] = {"description": "Another error", "content": content}


def _list_refusals(path: str, operation: Json) -> set[int]:
    """The statuses of errors that a request can meet, by what the operation takes; its route declares others.

    `default` covers what is no fault of the request: a service that does not answer, a body that arrives too slowly.
    """
    refusals = {int(status) for status in operation["responses"] if status.startswith("4")}
    refusals |= {401, 403, 429} if "security" in operation else set()
    refusals |= {404} if "{" in path else set()
    refusals |= {413} if "requestBody" in operation else set()
    is_checked = "requestBody" in operation or any(map(_is_checked, operation.get("parameters", [])))
    return refusals | ({400} if is_checked else set())


def _is_checked(parameter: Json) -> bool:
    """Whether some values are not valid; an id in a path is only known or unknown."""
    return parameter["in"] == "query" or parameter["schema"].get("type") != "string" or "enum" in parameter["schema"]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0].lower()}", name)
