"""The Supabase adapter with the real client, against a fake that answers like Supabase Storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from functions.adapters import storage_supabase
from functions.core import errors, models, ports
from tests.support.fakes import key_server, storage_refusals, storage_server
from tests.support.fakes.storage_server import Stored

PATH = "6a1c/9b2d/original.pdf"


@pytest.fixture
def server() -> Iterator[storage_server.StorageServer]:
    with storage_server.run() as running:
        yield running


@pytest.fixture
def store(server: storage_server.StorageServer) -> Iterator[storage_supabase.SupabaseObjectStore]:
    with connect(server.url) as store:
        yield store


def connect(url: str, key: str = storage_refusals.KEY) -> closing[storage_supabase.SupabaseObjectStore]:
    return closing(storage_supabase.connect(url, key))


def test_a_client_uploads_to_the_signed_url(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    """LIB-3"""
    signed = store.sign_upload(PATH)
    assert (signed.method, signed.headers, signed.expires_in) == ("PUT", {"content-type": "application/pdf"}, 7200)
    httpx.put(signed.url, content=b"%PDF-1.7", headers=signed.headers).raise_for_status()
    assert [(path, o.content, o.mime_type, o.owner_id) for path, o in server.objects.items()] == [
        (PATH, b"%PDF-1.7", "application/pdf", None)
    ]


def test_a_large_file_gets_a_resumable_upload(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    """LIB-3"""
    signed = store.sign_upload(PATH)
    token = httpx.URL(signed.url).params["token"]
    metadata = {
        "bucketName": "documents",
        "objectName": PATH,
        "contentType": "application/pdf",
        "cacheControl": "3600",
    }
    url = f"{server.url}/storage/v1/upload/resumable/sign"
    assert signed.resumable == ports.ResumableUpload(url, {"x-signature": token}, metadata, 6 * 1024 * 1024)


@pytest.mark.parametrize(
    ("project", "host"),
    [
        ("https://abcdefghijklmnopqrst.supabase.co", "https://abcdefghijklmnopqrst.storage.supabase.co"),
        ("https://files.example.org", "https://files.example.org"),
        ("http://127.0.0.1:54321", "http://127.0.0.1:54321"),
    ],
    ids=["hosted", "own-domain", "local"],
)
def test_large_files_go_to_the_storage_host(project: str, host: str) -> None:
    signed_url = f"{project}/storage/v1/object/upload/sign/documents/a/original.pdf?token=x"
    assert storage_supabase._resumable_url(signed_url) == f"{host}/storage/v1/upload/resumable/sign"


def test_a_project_address_may_end_in_a_slash(server: storage_server.StorageServer) -> None:
    with connect(f"{server.url}/") as store:
        signed = store.sign_upload(PATH)
    assert signed.url.startswith(f"{server.url}/storage/v1/object/upload/sign/documents/{PATH}?token=")
    assert httpx.put(signed.url, content=b"x", headers=signed.headers).is_success


def test_info_describes_the_stored_object(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    created = datetime.fromisoformat("2026-11-21T12:00:00.123456+00:00")
    server.objects[PATH] = Stored(b"12345", "application/pdf", created=created)
    assert store.info(PATH) == models.StoredObject(PATH, 5, "application/pdf", created)
    assert store.info("6a1c/other/original.pdf") is None


def test_a_download_is_streamed_to_a_file(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 20_000
    server.objects[PATH] = Stored(content, "application/pdf")
    store.download(PATH, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


def test_a_download_url_contains_the_file_name(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    server.objects[PATH] = Stored(b"12345", "application/pdf")
    url = httpx.URL(store.sign_download(PATH, "Évaluation & more.pdf"))
    assert url.params["download"] == "Évaluation & more.pdf"
    assert httpx.get(url).content == b"12345"


def test_objects_are_removed_in_batches(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    names = [f"a/{number}/original.txt" for number in range(storage_supabase.REMOVE_BATCH + 1)]
    server.objects.update({name: Stored(b"x", "text/plain") for name in names[1:]})
    assert store.remove(names) == len(names) - 1
    assert server.objects == {}
    assert server.requests == ["DELETE documents"] * 2


def test_removing_nothing_sends_no_request(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    assert store.remove([]) == 0
    assert server.requests == []


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (storage_refusals.refuse(*storage_refusals.NO_OBJECT), errors.NotFoundError),
        (storage_refusals.refuse(*storage_refusals.NO_BUCKET), errors.StorageUnavailableError),
        (storage_refusals.refuse(*storage_refusals.DUPLICATE), errors.ConflictError),
        (storage_refusals.refuse(*storage_refusals.TOO_LARGE), errors.TooLargeError),
        (
            storage_refusals.refuse(*storage_refusals.wrong_type("text/html").args),
            errors.UnsupportedTypeError,
        ),
        (storage_refusals.refuse(*storage_refusals.NO_RIGHT), errors.StorageUnavailableError),
        ((500, {"statusCode": "500", "error": "DatabaseError", "message": "…"}), errors.StorageUnavailableError),
        ((502, {"no": "shape that we know"}), errors.StorageUnavailableError),
    ],
    ids=["object", "bucket", "duplicate", "size", "type", "key", "server", "gateway"],
)
def test_failures_become_our_errors(
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
    with pytest.raises(errors.NotFoundError, match="no longer stored"):
        store.download(PATH, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_wrong_key_is_reported_as_a_misconfiguration(server: storage_server.StorageServer) -> None:
    refused = pytest.raises(errors.StorageUnavailableError, match="refused the secret key")
    with connect(server.url, "sb_secret_other") as store, refused:
        store.sign_upload(PATH)


@pytest.mark.parametrize(
    ("state", "key", "said"),
    [
        ({}, "sb_secret_other", "refused the secret key"),
        ({}, storage_refusals.PUBLISHABLE_KEY, "is a publishable key"),
        ({"has_no_bucket": True}, storage_refusals.KEY, "The storage bucket does not exist. An administrator"),
        ({"is_public": True}, storage_refusals.KEY, "The bucket “documents” is public"),
    ],
    ids=["bad-key", "publishable-key", "no-bucket", "public-bucket"],
)
def test_the_check_says_what_an_administrator_has_to_mend(
    server: storage_server.StorageServer, state: dict[str, bool], key: str, said: str
) -> None:
    """OPS-4"""
    for name, value in state.items():
        setattr(server, name, value)
    with connect(server.url, key) as store, pytest.raises(errors.StorageUnavailableError, match=said):
        store.check()


def test_the_check_leaves_nothing_in_the_storage(
    store: storage_supabase.SupabaseObjectStore, server: storage_server.StorageServer
) -> None:
    store.check()
    assert (server.objects, server.started) == ({}, 0)


def test_the_secret_key_is_not_sent_to_other_hosts() -> None:
    """SEC-5: requests go only to addresses that an administrator has configured."""
    with key_server.serve_keys() as named, key_server.serve_keys() as elsewhere:
        named.status, named.location = 307, f"{elsewhere.url}/"
        named.found_anywhere = elsewhere.found_anywhere = True
        with connect(named.url) as store, pytest.raises(errors.StorageUnavailableError):
            store.info(PATH)
        assert (named.visits, elsewhere.visits) == (1, 0)


def test_an_unreachable_server_is_a_retryable_error() -> None:
    with connect("http://127.0.0.1:9") as store, pytest.raises(errors.StorageUnavailableError) as raised:
        store.info(PATH)
    assert raised.value.retryable
