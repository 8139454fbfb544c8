"""Refusals of Supabase Storage: status 400 with the actual status in the body; only internal errors have status 500.

A body has `statusCode`, `error`, `message` and, since version 1.70, `code`.
"""

from __future__ import annotations

from typing import Any

import psycopg

KEY = "sb_secret_test"
PUBLISHABLE_KEY = "sb_publishable_test"

Reply = tuple[int, Any]


class Refusal(Exception):
    """The fields of the body: status, error, message, code."""


NO_OBJECT = ("404", "not_found", "Object not found", "NoSuchKey")
NO_BUCKET = ("404", "Bucket not found", "Bucket not found", "NoSuchBucket")
NO_RELATION = ("404", "InvalidRequest", "The related resource does not exist", "InvalidRequest")
DUPLICATE = ("409", "Duplicate", "The resource already exists", "ResourceAlreadyExists")
TOO_LARGE = ("413", "Payload too large", "The object exceeded the maximum allowed size", "EntityTooLarge")
BAD_KEY = ("403", "Unauthorized", "Invalid Compact JWS", "InvalidJWT")
NO_RIGHT = ("403", "Unauthorized", "new row violates row-level security policy", "AccessDenied")
BAD_TOKEN = ("400", "InvalidJWT", "Invalid Compact JWS", "InvalidJWT")
EXPIRED = ("400", "InvalidJWT", '"exp" claim timestamp check failed', "InvalidJWT")
OTHER_URL = ("400", "InvalidSignature", "The url do not match the signature", "InvalidSignature")


def wrong_type(mime_type: str) -> Refusal:
    return Refusal("415", "invalid_mime_type", f"mime type {mime_type} is not supported", "InvalidMimeType")


def of_database(error: psycopg.Error) -> Refusal:
    """What the server makes of an error of its database, also of one that a trigger of ours raises."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return Refusal(*DUPLICATE)
    if isinstance(error, psycopg.errors.ForeignKeyViolation):
        return Refusal(*NO_RELATION)
    return Refusal("500", "DatabaseError", str(error), "DatabaseError")


def refuse(status: str, error: str, message: str, code: str) -> Reply:
    body = {"statusCode": status, "error": error, "message": message, "code": code}
    return 500 if status == "500" else 400, body
