"""The Supabase adapter through the real client, against a server that answers as the real one does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from functions.adapters import storage_supabase
from functions.core import errors, models
from tests.fakes import storage_server

PATH = "6a1c/9b2d/original.pdf"


@pytest.fixture
def server() -> Iterator[storage_server.StorageServer]:
    with storage_server.run() as running:
        yield running


@pytest.fixture
def store(server: storage_server.StorageServer) -> storage_supabase.SupabaseObjectStore:
    return storage_supabase.connect(server.url, storage_server.KEY, "documents")


def test_a_client_uploads_to_the_signed_url(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    """LIB-3"""
    signed = store.sign_upload(PATH)
    assert (signed.method, signed.headers, signed.expires_in) == ("PUT", {"content-type": "application/pdf"}, 7200)
    httpx.put(signed.url, content=b"%PDF-1.7", headers=signed.headers).raise_for_status()
    assert server.objects == {PATH: (b"%PDF-1.7", "application/pdf")}


def test_says_what_is_stored(store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer) -> None:
    server.objects[PATH] = (b"12345", "application/pdf")
    created = datetime.fromisoformat(storage_server.CREATED)
    assert store.info(PATH) == models.StoredObject(PATH, 5, "application/pdf", created)
    assert store.info("6a1c/other/original.pdf") is None


def test_streams_a_download_to_a_file(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 20_000
    server.objects[PATH] = (content, "application/pdf")
    store.download(PATH, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


def test_a_download_url_carries_the_name_of_the_file(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    server.objects[PATH] = (b"12345", "application/pdf")
    url = httpx.URL(store.sign_download(PATH, "Évaluation & more.pdf"))
    assert url.params["download"] == "Évaluation & more.pdf"
    assert httpx.get(url).content == b"12345"


def test_removes_what_there_is_in_batches(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    names = [f"a/{number}/original.txt" for number in range(storage_supabase.REMOVE_AT_ONCE + 1)]
    server.objects.update({name: (b"x", "text/plain") for name in names[1:]})
    assert store.remove(names) == len(names) - 1
    assert server.objects == {}
    assert server.requests == ["DELETE documents"] * 2


def test_removing_nothing_asks_nobody(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    assert store.remove([]) == 0
    assert server.requests == []


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (storage_server.NO_OBJECT, errors.NotFoundError),
        (storage_server.NO_BUCKET, errors.StorageUnavailableError),
        (storage_server.refuse("409", "Duplicate", "The resource already exists"), errors.ConflictError),
        (storage_server.refuse("413", "Payload too large", "The object exceeded…"), errors.TooLargeError),
        (
            storage_server.refuse("415", "invalid_mime_type", "mime type … is not supported"),
            errors.UnsupportedTypeError,
        ),
        (storage_server.refuse("403", "Unauthorized", "new row violates…"), errors.StorageUnavailableError),
        ((500, {"statusCode": "500", "error": "DatabaseError", "message": "…"}), errors.StorageUnavailableError),
        ((502, {"no": "shape that we know"}), errors.StorageUnavailableError),
    ],
    ids=["object", "bucket", "duplicate", "size", "type", "key", "server", "gateway"],
)
def test_failures_become_ours(
    store: storage_supabase.SupabaseObjectStore,
    server: storage_server.StorageServer,
    failure: tuple[int, dict[str, str]],
    error: type[errors.IbidError],
) -> None:
    server.failure = failure
    with pytest.raises(error) as raised:
        store.sign_upload(PATH)
    assert type(raised.value) is error


def test_a_missing_object_cannot_be_downloaded(store: storage_supabase.SupabaseObjectStore, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError):
        store.download(PATH, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_wrong_key_is_the_administrators_matter(server: storage_server.StorageServer) -> None:
    with pytest.raises(errors.StorageUnavailableError, match="administrator"):
        storage_supabase.connect(server.url, "sb_secret_other", "documents").sign_upload(PATH)


def test_an_unreachable_server_may_be_tried_again() -> None:
    store = storage_supabase.connect("http://127.0.0.1:9", storage_server.KEY, "documents")
    with pytest.raises(errors.StorageUnavailableError) as raised:
        store.info(PATH)
    assert raised.value.retryable
