"""The OpenAPI document of an app: FastAPI's, with the names that API.md uses, our errors and the bearer token."""

from __future__ import annotations

import copy
import re
from typing import Any, Final

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from functions.web.errors import OPENAI_PREFIX
from functions.web.schemas.answers import OpenAIError, Problem

Json = dict[str, Any]

_REF: Final = "#/components/schemas/{model}"
_TITLE: Final = "Ibid"
_DESCRIPTION: Final = "Ask your own documents a question. API.md explains uploads, citations, limits and errors."
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
    operation["responses"].pop("422", None)
    operation["responses"]["default"] = {
        "description": "An error",
        "content": {kind: {"schema": {"$ref": _REF.format(model=name)}}},
    }


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0].lower()}", name)
