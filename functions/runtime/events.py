"""Reads the events of the platform: HTTP requests (API Gateway, Function URLs), queue messages, database webhooks."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from functions.core import errors, ports
from functions.core.text.storable import clean_text


@dataclass(frozen=True, slots=True)
class StoredObjectEvent:
    """A row of storage.objects that was inserted or updated."""

    path: str
    version: str
    size: int | None


def is_http(event: dict[str, Any]) -> bool:
    """Whether the event is an HTTP request (payload format 2.0) and not a schedule."""
    return "http" in event.get("requestContext", {})


def has_secret(event: dict[str, Any], header: str, expected: SecretStr | None) -> bool:
    """Compares a header with a secret in constant time; False if no secret is configured."""
    given = {key.lower(): value for key, value in event.get("headers", {}).items()}.get(header, "")
    return expected is not None and hmac.compare_digest(given.encode(), expected.get_secret_value().encode())


def has_bearer(event: dict[str, Any], expected: SecretStr | None) -> bool:
    """Compares the bearer token with a secret, like `has_secret`."""
    bearer = None if expected is None else SecretStr(f"Bearer {expected.get_secret_value()}")
    return has_secret(event, "authorization", bearer)


def read_stored_object(event: dict[str, Any]) -> StoredObjectEvent | None:
    """The object in a database webhook on storage.objects; None for deletions and for other buckets.

    The payload is `{type, table, schema, record, old_record}` (https://supabase.com/docs/guides/database/webhooks).
    Raises InvalidInputError for anything else.
    """
    payload = _read_body(event)
    try:
        record = payload["record"]
        if payload["schema"] != "storage" or payload["table"] != "objects":
            raise errors.InvalidInputError("This webhook accepts changes of storage.objects only.")
        if payload["type"] not in ("INSERT", "UPDATE") or record["bucket_id"] != ports.BUCKET:
            return None
        size = (record["metadata"] or {}).get("size")
        return StoredObjectEvent(
            clean_text(record["name"]), clean_text(record["version"]), None if size is None else _read_size(size)
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as exc:
        raise errors.InvalidInputError("The body is not a database webhook.") from exc


def _read_size(value: Any) -> int:
    """A size in bytes that fits a bigint; raises ValueError, TypeError or OverflowError."""
    size = int(value)
    if not 0 <= size < 1 << 63:
        raise ValueError("the size of a file must be between 0 and 2^63 - 1")
    return size


def read_job_id(record: dict[str, Any]) -> int:
    """The job id of a queue message; raises InvalidInputError."""
    try:
        return int(json.loads(record["body"])["job_id"])
    except (KeyError, TypeError, ValueError) as exc:
        raise errors.InvalidInputError("The message has no job id.") from exc


def read_translation(record: dict[str, Any]) -> int | None:
    """The generation that a queue message wants translated; None if it is of another kind."""
    try:
        generation = json.loads(record["body"]).get("translation")
    except (KeyError, AttributeError, ValueError):
        return None
    return generation if isinstance(generation, int) else None


def respond(status: int, body: dict[str, Any], content_type: str = "application/json") -> dict[str, Any]:
    """An HTTP response in payload format 2.0."""
    return {"statusCode": status, "headers": {"content-type": content_type}, "body": json.dumps(body)}


def refuse(event: dict[str, Any]) -> dict[str, Any]:
    """401 for a missing or wrong secret, as a problem."""
    return _problem(401, errors.NotSignedInError("The secret for this address is missing or wrong."), event)


def reject(event: dict[str, Any], error: errors.IbidError) -> dict[str, Any]:
    """503 for a retryable error, else 400, as a problem."""
    return _problem(503 if error.retryable else 400, error, event)


def _problem(status: int, error: errors.IbidError, event: dict[str, Any]) -> dict[str, Any]:
    body = {
        "type": f"urn:ibid:error:{error.code}",
        "title": {401: "Not signed in", 503: "Unavailable"}.get(status, "Not valid"),
        "status": status,
        "detail": error.message,
        "code": error.code,
        "request_id": event.get("requestContext", {}).get("requestId"),
    }
    return respond(status, body, "application/problem+json")


def _read_body(event: dict[str, Any]) -> dict[str, Any]:
    body = event.get("body") or ""
    try:
        text = base64.b64decode(body).decode() if event.get("isBase64Encoded") else body
        payload = json.loads(text)
    except (ValueError, binascii.Error) as exc:
        raise errors.InvalidInputError("The body is not JSON.") from exc
    if not isinstance(payload, dict):
        raise errors.InvalidInputError("The body is not a JSON object.")
    return payload
