"""A client made of an OpenAPI document alone, as a generator makes one: a function for each operation."""

from __future__ import annotations

import copy
import re
from typing import Any

import httpx
import jsonschema

from tests.support.local_server import Json


class GeneratedClient:
    """Calls operations by their id, and checks each request and response against the document.

    `called` are the operations that have succeeded. A response may have no field that the document lacks.
    """

    def __init__(self, document: Json, http: httpx.Client) -> None:
        self.document = document
        self.http = http
        self.called: set[str] = set()
        self._strict = forbid_other_fields(document)
        self._operations = {
            operation["operationId"]: (method, path, operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        }

    @property
    def operation_ids(self) -> list[str]:
        """Every operation; an id that stands twice in the document is here twice, too."""
        return [o["operationId"] for operations in self.document["paths"].values() for o in operations.values()]

    def call(self, operation_id: str, body: Any = None, **parameters: Any) -> Any:
        """The body of a response, which must be a success: JSON if it is JSON, else bytes."""
        method, path, operation = self._operations[operation_id]
        self._check_request(operation, body, parameters)
        names = re.findall(r"\{(\w+)\}", path)
        query = {name: value for name, value in parameters.items() if name not in names}
        answer = self.http.request(method, path.format_map(parameters), params=query, json=body)
        assert answer.is_success, (operation_id, answer.text)
        found = self._check_response(operation, answer)
        self.called.add(operation_id)
        return found

    def refuse(self, operation_id: str, body: Any = None, **parameters: Any) -> str:
        """The code of an error, which must have the form that the document describes."""
        method, path, operation = self._operations[operation_id]
        answer = self.http.request(method, path.format_map(parameters), json=body)
        assert answer.is_error
        error = self._check_response(operation, answer)
        return str(error["error"]["code"] if "error" in error else error["code"])

    def _check_request(self, operation: Json, body: Any, parameters: Json) -> None:
        known = {parameter["name"]: parameter for parameter in operation.get("parameters", [])}
        assert set(parameters) <= set(known), (operation["operationId"], set(parameters) - set(known))
        assert {name for name, parameter in known.items() if parameter["required"]} <= set(parameters)
        if "requestBody" in operation:
            self._validate(body, operation["requestBody"]["content"]["application/json"]["schema"], self.document)
        else:
            assert body is None

    def _check_response(self, operation: Json, answer: httpx.Response) -> Any:
        responses = operation["responses"]
        described = responses.get(str(answer.status_code), responses["default"])
        if not answer.content:
            assert "content" not in described
            return None
        kind = answer.headers["content-type"].partition(";")[0]
        kinds = {name.partition(";")[0]: content for name, content in described["content"].items()}
        assert kind in kinds, (operation["operationId"], answer.status_code, kind, list(kinds))
        if not kind.endswith("json"):
            return answer.content
        assert kinds[kind]["schema"] not in ({}, {"type": "object"}), "the schema says nothing"
        self._validate(answer.json(), kinds[kind]["schema"], self._strict)
        return answer.json()

    def _validate(self, value: Any, schema: Json, document: Json) -> None:
        validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
        faults = [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(value)]
        assert not faults, faults


def forbid_other_fields(document: Json) -> Json:
    strict = copy.deepcopy(document)
    for schema in strict["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return strict
