"""Resumable uploads of the fake storage: TUS 1.0.0 as Supabase implements it, with the signed endpoint."""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass, field
from email.message import Message
from io import BufferedIOBase
from typing import TYPE_CHECKING

from tests.support.fakes.storage_refusals import BAD_KEY, KEY, Refusal

if TYPE_CHECKING:
    from tests.support.fakes.storage_server import StorageServer

CHUNK_BYTES = 6 * 1024 * 1024
_SIGNED, _UNSIGNED = "upload/resumable/sign", "upload/resumable"
Reply = tuple[int, dict[str, str]]


class CutOffError(Exception):
    """The client disconnected in the middle of a body."""


@dataclass
class Upload:
    """The received part of one file."""

    path: str
    mime_type: str
    length: int
    received: bytearray = field(default_factory=bytearray)


Uploads = dict[str, Upload]


def read_whole(headers: Message, body: BufferedIOBase) -> bytes:
    """Reads a body to its announced length. Raises CutOffError."""
    length = int(headers.get("content-length") or 0)
    content = body.read(length)
    if len(content) < length:
        raise CutOffError
    return content


def serve(state: StorageServer, method: str, path: str, headers: Message, body: BufferedIOBase) -> Reply:
    """Serves one request; unlike the rest of the storage API, this protocol answers with the actual status codes."""
    if headers.get("tus-resumable") != "1.0.0":
        read_whole(headers, body)
        return 412, {}
    try:
        if method == "POST":
            status, answer = _create(state, path, headers)
        else:
            status, answer = _continue(state, method, path, headers, body)
    except Refusal as exc:
        status, answer = (409 if exc.args[0] == "409" else 413 if exc.args[0] == "413" else 400), {}
    return status, {"tus-resumable": "1.0.0"} | answer


def _create(state: StorageServer, path: str, headers: Message) -> Reply:
    facts = _read_metadata(headers.get("upload-metadata", ""))
    name = facts["objectName"]
    _authorize(state, path, name, headers)
    if facts["bucketName"] != state.bucket:
        return 404, {}
    length = int(headers["upload-length"])
    state.check_limits(length, facts.get("contentType", "application/octet-stream"))
    state.begin(name, upsert=headers.get("x-upsert") == "true")
    upload_id = uuid.uuid4().hex
    state.uploads[upload_id] = Upload(name, facts.get("contentType", "application/octet-stream"), length)
    return 201, {"location": f"{state.url}/storage/v1/{path.rstrip('/')}/{upload_id}"}


def _continue(state: StorageServer, method: str, path: str, headers: Message, body: BufferedIOBase) -> Reply:
    folder, _, upload_id = path.rpartition("/")
    upload = state.uploads.get(upload_id)
    if upload is None:
        return 404, {}
    _authorize(state, folder, upload.path, headers)
    if method == "HEAD":
        facts = {"upload-offset": str(len(upload.received)), "upload-length": str(upload.length)}
        return 200, facts | {"cache-control": "no-store"}
    if headers.get("content-type") != "application/offset+octet-stream":
        return 415, {}
    if int(headers["upload-offset"]) != len(upload.received):
        return 409, {}
    announced = int(headers["content-length"])
    is_last = len(upload.received) + announced == upload.length
    if announced != CHUNK_BYTES and not is_last:
        return 400, {}
    content = body.read(announced)
    upload.received += content  # also from an interrupted request, whose offset HEAD then reports
    if len(content) < announced:
        raise CutOffError
    if is_last:
        state.complete(upload.path, bytes(upload.received), upload.mime_type)
        del state.uploads[upload_id]
    return 204, {"upload-offset": str(len(upload.received))}


def _authorize(state: StorageServer, folder: str, name: str, headers: Message) -> None:
    """The signed endpoint accepts the token of a signed upload URL; the other one does not."""
    if folder.rstrip("/") == _SIGNED:
        state.verify(headers.get("x-signature", ""), name, "upload")
    elif headers.get("apikey") != KEY:
        raise Refusal(*BAD_KEY)


def _read_metadata(header: str) -> dict[str, str]:
    pairs = (pair.split(" ") for pair in header.split(","))
    return {name: base64.b64decode(value).decode() for name, value in pairs}
