"""Keeps uploaded files in a folder, behind signed URLs of the form that Supabase Storage uses.

The web routes behind those URLs call `receive` and `open_signed`, which check the token before they open a file.
`receive` and `put` write the row of an object in `storage.objects` through their `record`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import quote

from functions.core import errors, models, ports
from functions.core.extraction import file_types

UPLOAD_SECONDS = 7200  # as in Supabase
ABANDONED_SECONDS = 86_400
# Our paths consist of ids and "original.pdf". Other characters are refused, so that no path can leave the folder.
SEGMENT = r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}"
PATH = re.compile(rf"{SEGMENT}(/{SEGMENT}){{0,9}}")

Operation = Literal["upload", "download"]


@dataclass(frozen=True, slots=True)
class ReceivedObject(models.StoredObject):
    """A completely stored upload; `version` is new for each upload, even if it overwrites an object."""

    version: str = ""
    etag: str = ""


Record = Callable[[ReceivedObject], AbstractContextManager[object]]
"""Writes the row of an object around the move of its file; when it raises, the object before it stays."""


class _Upload:
    """An upload in progress: `write` the pieces, then `commit`; without `commit` nothing is stored."""

    def __init__(self, file: BinaryIO, temporary: Path, target: Path, path: str, max_bytes: int) -> None:
        self._file = file
        self._temporary = temporary
        self._target = target
        self._path = path
        self._max_bytes = max_bytes
        self._digest = hashlib.md5(usedforsecurity=False)
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Raises TooLargeError as soon as the limit is passed."""
        self.size += len(piece)
        if self.size > self._max_bytes:
            raise errors.TooLargeError(max_bytes=self._max_bytes)
        with _storage_errors():
            self._file.write(piece)
        self._digest.update(piece)

    def commit(self, record: Record, mime_type: str | None, expected_size: int | None) -> ReceivedObject:
        """Moves the file to its path atomically, inside of `record`, after its bytes have been flushed to the disk."""
        if expected_size is not None and expected_size != self.size:
            raise errors.InvalidInputError(
                f"The upload was cut off: {self.size} of {expected_size} bytes arrived. Send the file again."
            )
        kind = mime_type or file_types.find_media_type(self._path)
        etag, version = self._digest.hexdigest(), str(uuid.uuid4())
        received = ReceivedObject(self._path, self.size, kind, datetime.now(UTC), version=version, etag=etag)
        with _storage_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            with record(received):
                self._target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self._temporary, self._target)
                _sync_folder(self._target.parent)
        return received


class LocalObjectStore(ports.ObjectStore):
    """One bucket as a folder; `secret` signs URLs, and clients reach the web routes at `base_url`.

    `on_removed` is called with the removed paths, so that the caller can delete their rows.
    """

    def __init__(
        self,
        root: Path,
        secret: bytes,
        base_url: str,
        *,
        bucket: str = ports.BUCKET,
        max_bytes: int = 100_000_000,
        on_removed: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self.bucket = bucket
        self.max_bytes = max_bytes
        self._on_removed = on_removed
        self._base_url = base_url.rstrip("/")
        # A derived key, so that a token for a file is never valid as a bearer token signed with the same secret.
        self._key = hmac.digest(secret, b"ibid storage", "sha256")
        self._root = root.resolve() / bucket
        self._incoming = root.resolve() / ".incoming"

    def check(self) -> None:
        with _storage_errors():
            self._incoming.mkdir(parents=True, exist_ok=True)
        if not os.access(self._incoming, os.W_OK | os.X_OK):
            raise errors.StorageUnavailableError(f"Ibid may not write to {self._incoming}. Change its permissions.")

    def close(self) -> None:
        """Keeps no connections."""

    def sign_upload(self, path: str) -> ports.SignedUpload:
        self._locate(path)
        token = self._sign("upload", path, UPLOAD_SECONDS)
        url = f"{self._base_url}/storage/v1/object/upload/sign/{self.bucket}/{quote(path)}?token={token}"
        headers = {"content-type": file_types.find_media_type(path)}
        return ports.SignedUpload(url, "PUT", headers, UPLOAD_SECONDS)

    def sign_download(self, path: str, file_name: str, expires_in: int = 300) -> str:
        self._locate(path)
        token = self._sign("download", path, expires_in)
        name = quote(file_name, safe="")
        return f"{self._base_url}/storage/v1/object/sign/{self.bucket}/{quote(path)}?token={token}&download={name}"

    def info(self, path: str) -> models.StoredObject | None:
        with _storage_errors():
            try:
                status = self._locate(path).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        created = datetime.fromtimestamp(status.st_mtime, UTC)
        return models.StoredObject(path, status.st_size, file_types.find_media_type(path), created)

    def download(self, path: str, target: Path) -> None:
        file = self._locate(path)
        if not file.is_file():
            raise errors.NotFoundError(ports.NO_LONGER_STORED)
        with _storage_errors(), file.open("rb") as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)

    def remove(self, paths: Sequence[str]) -> int:
        removed = 0
        for path in paths:
            file = self._locate(path)
            with _storage_errors():
                try:
                    file.unlink()
                except (FileNotFoundError, NotADirectoryError):
                    continue
                removed += 1
                with suppress(OSError):  # the folder is not empty, or another upload is creating a file in it
                    for folder in file.relative_to(self._root).parents[:-1]:
                        (self._root / folder).rmdir()
        if self._on_removed is not None:
            self._on_removed(paths)
        return removed

    def verify(self, path: str, token: str, operation: Operation) -> None:
        """Raises NotAllowedError unless `token` is an unexpired one of ours for this path and operation."""
        body, _, signature = token.partition(".")
        try:
            if not hmac.compare_digest(_decode(signature), self._mac(body)):
                raise ValueError
            claims = json.loads(_decode(body))
            allowed, expires = (claims["do"], claims["path"]), float(claims["exp"])
        except (ValueError, KeyError, TypeError) as exc:
            raise errors.NotAllowedError("The link is not valid. Ask for a new one.") from exc
        if allowed != (operation, path):
            raise errors.NotAllowedError("The link is for another file or operation. Ask for a new one.")
        if expires < time.time():
            raise errors.NotAllowedError("The link has expired. Ask for a new one.")

    def receive(
        self,
        path: str,
        token: str,
        pieces: Iterable[bytes],
        *,
        max_bytes: int | None = None,
        mime_type: str | None = None,
        expected_size: int | None = None,
        record: Record = nullcontext,
    ) -> ReceivedObject:
        """Stores an object like `put`, after checking the token of its signed upload URL."""
        self.verify(path, token, "upload")
        return self.put(
            path, pieces, max_bytes=max_bytes, mime_type=mime_type, expected_size=expected_size, record=record
        )

    def put(
        self,
        path: str,
        pieces: Iterable[bytes],
        *,
        max_bytes: int | None = None,
        mime_type: str | None = None,
        expected_size: int | None = None,
        record: Record = nullcontext,
    ) -> ReceivedObject:
        """Stores an object atomically: a reader sees either the old bytes or the new ones.

        Raises TooLargeError as soon as the limit is passed, InvalidInputError unless `expected_size` bytes arrived.
        """
        with self._open_upload(path, self.max_bytes if max_bytes is None else max_bytes) as upload:
            for piece in pieces:
                upload.write(piece)
            return upload.commit(record, mime_type, expected_size)

    def open_signed(self, path: str, token: str) -> Path:
        """The file behind a signed download URL; raises NotAllowedError or NotFoundError."""
        self.verify(path, token, "download")
        file = self._locate(path)
        if not file.is_file():
            raise errors.NotFoundError
        return file

    @contextmanager
    def _open_upload(self, path: str, max_bytes: int) -> Iterator[_Upload]:
        target = self._locate(path)
        temporary = self._incoming / uuid.uuid4().hex
        with ExitStack() as stack:
            with _storage_errors():
                self._incoming.mkdir(parents=True, exist_ok=True)
                self._remove_abandoned()
                file = stack.enter_context(open(temporary, "xb", opener=_open_private))
            stack.callback(temporary.unlink, missing_ok=True)
            yield _Upload(file, temporary, target, path, max_bytes)

    def _locate(self, path: str) -> Path:
        """The file of an object; raises NotFoundError for a path that is not one of ours or leaves the folder."""
        if not PATH.fullmatch(path):
            raise errors.NotFoundError
        file = self._root / path
        if not file.resolve().is_relative_to(self._root):  # a symbolic link in the folder
            raise errors.NotFoundError
        return file

    def _remove_abandoned(self) -> None:
        """Removes temporary files of uploads whose process was killed."""
        oldest = time.time() - ABANDONED_SECONDS
        for path in self._incoming.iterdir():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _sign(self, operation: Operation, path: str, expires_in: int) -> str:
        body = _encode(json.dumps({"do": operation, "path": path, "exp": time.time() + expires_in}).encode())
        return f"{body}.{_encode(self._mac(body))}"

    def _mac(self, body: str) -> bytes:
        return hmac.digest(self._key, body.encode(), "sha256")


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise errors.StorageUnavailableError(f"The file storage failed: {exc.strerror}.") from exc


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as exc:
        raise ValueError from exc


def _sync_folder(folder: Path) -> None:
    """Flushes a folder to the disk: a rename survives a power failure only after that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
