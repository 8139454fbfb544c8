"""Refusals of Supabase Storage: status 400 with the actual status in the body; only internal errors have status 500."""

from __future__ import annotations

from typing import Any

KEY = "sb_secret_test"

Reply = tuple[int, Any]


class Refusal(Exception):
    """The fields of the body: status, error, message."""


NO_OBJECT = ("404", "not_found", "Object not found")
NO_BUCKET = ("404", "Bucket not found", "Bucket not found")
DUPLICATE = ("409", "Duplicate", "The resource already exists")
TOO_LARGE = ("413", "Payload too large", "The object exceeded the maximum allowed size")
BAD_KEY = ("403", "Unauthorized", "Invalid Compact JWS")


def refuse(status: str, error: str, message: str) -> Reply:
    return 500 if status == "500" else 400, {"statusCode": status, "error": error, "message": message}
