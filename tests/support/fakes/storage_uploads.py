"""Resumable uploads of the fake storage: TUS 1.0.0 as Supabase implements it, with the signed endpoint.

The signed endpoint checks the token of a signed upload URL and nothing else: it overwrites an existing object, whatever
`upsert` the token says. Refusals are plain text with the actual status. Chunks may have any size.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from typing import TYPE_CHECKING

from tests.support.fakes.storage_refusals import BAD_KEY, KEY, NO_BUCKET, OTHER_URL, Refusal

if TYPE_CHECKING:
    from tests.support.fakes.storage_server import StorageServer

_SIGNED, _UNSIGNED = "upload/resumable/sign", "upload/resumable"
_OPERATIONS = {"POST": "storage.tus.upload.create", "PATCH": "storage.tus.upload.part"}
Reply = tuple[int, dict[str, str], str]


class CutOffError(Exception):
    """The client disconnected in the middle of a body; `received` is what had arrived."""

    def __init__(self, received: bytes) -> None:
        super().__init__(f"cut off after {len(received)} bytes")
        self.received = received


@dataclass
class Upload:
    """The received part of one file; a finished one is kept, so that HEAD finds it."""

    path: str
    mime_type: str
    length: int
    received: bytearray = field(default_factory=bytearray)

    @property
    def is_finished(self) -> bool:
        return len(self.received) == self.length


Uploads = dict[str, Upload]


def serve(state: StorageServer, method: str, path: str, headers: Message, read_body: Callable[[], bytes]) -> Reply:
    """Status, headers and text of the response to one request. Raises CutOffError."""
    if headers.get("tus-resumable") != "1.0.0":
        return 412, {}, "Tus-Resumable Required\n"
    try:
        if method == "POST":
            return _create(state, path, headers)
        return _continue(state, method, path, headers, read_body)
    except Refusal as exc:
        status, _, message, _ = exc.args
        return int(status), {"tus-resumable": "1.0.0"}, message


def _create(state: StorageServer, path: str, headers: Message) -> Reply:
    facts = _read_metadata(headers.get("upload-metadata", ""))
    name, mime_type = facts["objectName"], facts.get("contentType", "application/octet-stream")
    _authorize(state, path, name, headers)
    if facts["bucketName"] != state.bucket or state.has_no_bucket:
        raise Refusal(*NO_BUCKET)
    length = int(headers["upload-length"])
    state.check_limits(length, mime_type)
    if path.rstrip("/") == _UNSIGNED:
        state.begin(name, upsert=headers.get("x-upsert") == "true", operation="storage.tus.upload.create")
    upload_id = uuid.uuid4().hex
    state.uploads[upload_id] = Upload(name, mime_type, length)
    return _reply(201, location=f"{state.url}/storage/v1/{path.rstrip('/')}/{upload_id}")


def _continue(state: StorageServer, method: str, path: str, headers: Message, read_body: Callable[[], bytes]) -> Reply:
    folder, _, upload_id = path.rpartition("/")
    upload = state.uploads.get(upload_id)
    if upload is None:
        raise Refusal("404", "", "The file for this url was not found\n", "")
    _authorize(state, folder, upload.path, headers)
    if method == "HEAD":
        facts = {"upload-offset": str(len(upload.received)), "upload-length": str(upload.length)}
        return _reply(200, **facts, **{"cache-control": "no-store"})
    if method == "DELETE":
        if upload.is_finished:
            raise Refusal("400", "", "Cannot terminate an already completed upload", "")
        del state.uploads[upload_id]
        return _reply(204)
    if headers.get("content-type") != "application/offset+octet-stream":
        raise Refusal("415", "", "Invalid Content-Type header\n", "")
    if upload.is_finished:
        raise Refusal("413", "", "Upload's size exceeded\n", "")
    if int(headers["upload-offset"]) != len(upload.received):
        raise Refusal("409", "", "Upload-Offset conflict\n", "")
    return _append(state, upload, f"{_OPERATIONS[method]}{'_signed' if folder == _SIGNED else ''}", read_body)


def _append(state: StorageServer, upload: Upload, operation: str, read_body: Callable[[], bytes]) -> Reply:
    try:
        content = read_body()
    except CutOffError as exc:  # HEAD then reports how much of the piece has arrived
        upload.received += exc.received
        raise
    if len(upload.received) + len(content) > upload.length:
        raise Refusal("413", "", "Upload's size exceeded\n", "")
    upload.received += content
    if upload.is_finished:
        state.complete(upload.path, bytes(upload.received), upload.mime_type, operation)
    return _reply(204, **{"upload-offset": str(len(upload.received))})


def _reply(status: int, **headers: str) -> Reply:
    return status, {"tus-resumable": "1.0.0"} | headers, ""


def _authorize(state: StorageServer, folder: str, name: str, headers: Message) -> None:
    """The signed endpoint accepts the token of a signed upload URL; the other one does not."""
    if folder.rstrip("/") == _SIGNED:
        if "x-signature" not in headers:
            raise Refusal(*OTHER_URL)
        state.verify(headers["x-signature"], name, "upload")
    elif headers.get("apikey") != KEY:
        raise Refusal(*BAD_KEY)


def _read_metadata(header: str) -> dict[str, str]:
    pairs = (pair.split(" ") for pair in header.split(","))
    return {name: base64.b64decode(value).decode() for name, value in pairs}
