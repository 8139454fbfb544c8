"""Keeps uploaded files in a bucket of Supabase Storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.core import errors, models, ports
from functions.core.extraction import file_types

# `supabase` and its httpx take 400 ms to import, and most requests need no file: they load on first use.
if TYPE_CHECKING:
    from storage3 import SyncStorageClient

    from supabase import Client

UPLOAD_SECONDS = 7200  # fixed by Supabase
TIMEOUT_SECONDS = 20
CHUNK_BYTES = 6 * 1024 * 1024  # what Supabase asks for; its server takes any size
PROBE = "ready/probe.txt"
REMOVE_BATCH = 500  # paths in one request


def connect(url: str, secret_key: str, bucket: str = ports.BUCKET) -> SupabaseObjectStore:
    """The bucket of a project. The secret key bypasses row level security, so its client is used for storage alone."""

    def open_client() -> Client:
        import httpx

        import supabase

        options = supabase.ClientOptions(
            # Following a redirect would send the secret key to whatever address the redirect names.
            httpx_client=httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False),
            auto_refresh_token=False,
            persist_session=False,
        )
        return supabase.create_client(url, secret_key, options)

    return SupabaseObjectStore(open_client, bucket)


class SupabaseObjectStore(ports.ObjectStore):
    """One bucket of Supabase Storage; the client is opened on first use."""

    def __init__(self, open_client: Callable[[], Client], bucket: str) -> None:
        self._open_client = open_client
        self._bucket_name = bucket

    @cached_property
    def _storage(self) -> SyncStorageClient:
        return self._open_client().storage

    @property
    def _bucket(self) -> Any:
        return self._storage.from_(self._bucket_name)

    def check(self) -> None:
        """Signs an upload that nobody makes: the only request for which the storage checks key, right and bucket."""
        self.sign_upload(PROBE)
        with _storage_errors():
            is_public = self._storage.get_bucket(self._bucket_name).public
        if is_public:
            raise errors.StorageUnavailableError(
                f"The bucket “{self._bucket_name}” is public: whoever knows the address of a file can read it."
                " An administrator has to make the bucket private."
            )

    def sign_upload(self, path: str) -> ports.SignedUpload:
        with _storage_errors():
            signed = self._bucket.create_signed_upload_url(path)
        mime_type = file_types.find_media_type(path)
        metadata = {
            "bucketName": self._bucket_name,
            "objectName": path,
            "contentType": mime_type,
            "cacheControl": "3600",
        }
        resumable = ports.ResumableUpload(
            _resumable_url(signed["signed_url"]), {"x-signature": signed["token"]}, metadata, CHUNK_BYTES
        )
        return ports.SignedUpload(signed["signed_url"], "PUT", {"content-type": mime_type}, UPLOAD_SECONDS, resumable)

    def sign_download(self, path: str, file_name: str, expires_in: int = 300) -> str:
        with _storage_errors():
            signed = self._bucket.create_signed_url(path, expires_in, {"download": file_name})
        return str(signed["signedURL"])

    def info(self, path: str) -> models.StoredObject | None:
        try:
            with _storage_errors():
                info = self._bucket.info(path)
        except errors.NotFoundError:
            return None
        return _read_info(path, info)

    def download(self, path: str, target: Path) -> None:
        """Streams through a short-lived signed URL, because the client's own download holds the file in memory."""
        import httpx

        try:
            with _storage_errors():
                url = self._bucket.create_signed_url(path, 60)["signedURL"]
                with httpx.stream("GET", url, timeout=TIMEOUT_SECONDS) as response:
                    _raise_for_status(response)
                    with target.open("wb") as file:
                        for piece in response.iter_bytes(1 << 20):
                            file.write(piece)
        except errors.NotFoundError as exc:
            raise errors.NotFoundError(ports.NO_LONGER_STORED) from exc

    def remove(self, paths: Sequence[str]) -> int:
        removed = 0
        for start in range(0, len(paths), REMOVE_BATCH):
            with _storage_errors():
                removed += len(self._bucket.remove(list(paths[start : start + REMOVE_BATCH])))
        return removed

    def close(self) -> None:
        if "_storage" in vars(self):
            self._storage.session.close()


def _resumable_url(signed_url: str) -> str:
    """The TUS endpoint that accepts the token of a signed upload URL, on Supabase's host for large files."""
    base, _, _ = signed_url.partition("/object/upload/sign/")
    return re.sub(r"^(https://[a-z0-9]+)\.supabase\.co/", r"\1.storage.supabase.co/", f"{base}/upload/resumable/sign")


def _read_info(path: str, info: Mapping[str, Any]) -> models.StoredObject:
    """Reads snake case and camel case, which older storage servers send."""
    created = info.get("created_at") or info.get("createdAt")
    return models.StoredObject(
        path,
        int(info.get("size") or 0),
        info.get("content_type") or info.get("contentType"),
        datetime.fromisoformat(created) if created else None,
    )


def _raise_for_status(response: Any) -> None:
    """Raises StorageApiError with the status in the body: the storage sends HTTP 400 for nearly every error."""
    if response.is_success:
        return
    from storage3.exceptions import StorageApiError

    response.read()
    try:
        body = response.json()
        raise StorageApiError(str(body["message"]), str(body["error"]), body["statusCode"])
    except (ValueError, KeyError, TypeError):
        raise StorageApiError(response.reason_phrase, "Unknown", response.status_code) from None


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Turns the client's errors into ours, by the status in the response body."""
    import httpx
    from storage3.exceptions import StorageApiError
    from storage3.utils import StorageException

    try:
        yield
    except StorageApiError as exc:
        raise _translate(str(exc.status), exc.message) from exc
    except (httpx.HTTPError, StorageException) as exc:
        raise errors.StorageUnavailableError from exc


def _translate(status: str, message: str) -> errors.IbidError:
    if status == "404" and "related resource" in message:  # what the storage says of a missing bucket
        return errors.StorageUnavailableError("The storage bucket does not exist. An administrator has to create it.")
    if status == "404" and "bucket" in message.lower():
        return errors.StorageUnavailableError(
            "The storage bucket does not exist, or the secret key is wrong. An administrator has to check both."
        )
    if status == "403" and "row-level security" in message:
        return errors.StorageUnavailableError(
            "SUPABASE_SECRET_KEY is a publishable key, which may not write. An administrator has to set a secret one."
        )
    if status in ("401", "403"):
        return errors.StorageUnavailableError(
            "The file storage refused the secret key. An administrator has to check it."
        )
    by_status = {
        "404": errors.NotFoundError,
        "409": errors.ConflictError,
        "413": errors.TooLargeError,
        "415": errors.UnsupportedTypeError,
    }
    return by_status.get(status, errors.StorageUnavailableError)()
