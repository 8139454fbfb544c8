"""What Ibid relies on in Supabase Storage, tested against the fake and, if one is configured, a real project.

SUPABASE_TEST_URL, SUPABASE_TEST_KEY (a secret key) and SUPABASE_TEST_DATABASE_URL name a project with our migrations;
the tests create objects in new folders of its bucket `documents` and remove them.
"""

from __future__ import annotations

import http.client
import os
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import psycopg
import pytest

from functions.adapters import storage_supabase
from functions.adapters.storage_supabase import CHUNK_BYTES, SupabaseObjectStore
from functions.core import errors, ports
from tests.acceptance.support.resumable import ResumableClient
from tests.support.fakes import storage_server
from tests.support.fakes.storage_refusals import KEY
from tests.support.fakes.storage_server import StorageServer

# Read before the environment of tests is cleaned.
REAL = tuple(os.environ.get(f"SUPABASE_TEST_{name}", "") for name in ("URL", "KEY", "DATABASE_URL"))
CONTENT = b"The boiler burns wood chips in winter."


@dataclass(frozen=True)
class Project:
    """A storage and its table; `fake` is set for the fake."""

    store: SupabaseObjectStore
    dsn: str
    fake: StorageServer | None = None

    def rows(self, path: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(
                "select id::text, version, owner_id, (metadata ->> 'size')::int, metadata ->> 'mimetype'"
                " from storage.objects where bucket_id = 'documents' and name = %s",
                (path,),
            ).fetchall()

    def put(self, signed: ports.SignedUpload, content: bytes = CONTENT) -> httpx.Response:
        return httpx.put(signed.url, content=content, headers=signed.headers)


@pytest.fixture(scope="module")
def server(module_database: str) -> Iterator[StorageServer]:
    with storage_server.run(module_database) as running:
        yield running


@pytest.fixture(scope="module", params=["fake", "project"] if all(REAL) else ["fake"])
def project(request: pytest.FixtureRequest, server: StorageServer, module_database: str) -> Project:
    if request.param == "fake":
        return Project(storage_supabase.connect(server.url, KEY, "documents"), module_database, server)
    url, key, dsn = REAL
    return Project(storage_supabase.connect(url, key, "documents"), dsn)


@pytest.fixture
def path(project: Project) -> Iterator[str]:
    path = f"{uuid.uuid4()}/{uuid.uuid4()}/original.txt"
    yield path
    project.store.remove([path])


def statuses_of(response: httpx.Response) -> tuple[int, str]:
    """The HTTP status of a refusal and the status in its body."""
    return response.status_code, response.json()["statusCode"]


def test_a_signed_upload_writes_one_row_once_its_bytes_are_stored(project: Project, path: str) -> None:
    signed = project.store.sign_upload(path)
    assert project.rows(path) == []
    assert project.put(signed).status_code == 200
    ((_, version, owner, size, mime_type),) = project.rows(path)
    assert (bool(version), owner, size, mime_type) == (True, None, len(CONTENT), "text/plain")


def test_an_empty_file_is_an_object(project: Project, path: str) -> None:
    assert project.put(project.store.sign_upload(path), b"").status_code == 200
    assert [row[3] for row in project.rows(path)] == [0]


def test_a_signed_upload_url_is_valid_for_two_hours_and_its_path_only(project: Project, path: str) -> None:
    signed = project.store.sign_upload(path)
    token = httpx.URL(signed.url).params["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - time.time() == pytest.approx(storage_supabase.UPLOAD_SECONDS, abs=60)
    elsewhere = httpx.put(signed.url.replace("original.txt", "other.txt"), content=CONTENT)
    assert elsewhere.status_code == 400
    assert project.rows(path.replace("original.txt", "other.txt")) == []


def test_a_second_upload_to_a_path_is_a_duplicate(project: Project, path: str) -> None:
    signed = project.store.sign_upload(path)
    project.put(signed)
    before = project.rows(path)
    assert statuses_of(project.put(signed, b"other")) == (400, "409")
    assert project.rows(path) == before


def test_a_signed_upload_url_is_valid_again_after_its_object_was_removed(project: Project, path: str) -> None:
    """This is why the sweeper removes late uploads to the path of a deleted document."""
    signed = project.store.sign_upload(path)
    project.put(signed)
    ((old, *_),) = project.rows(path)
    assert project.store.remove([path]) == 1
    assert project.rows(path) == []
    assert project.put(signed).status_code == 200
    assert [row[0] == old for row in project.rows(path)] == [False]


@pytest.mark.parametrize("upsert", [False, True], ids=["update", "upsert"])
def test_overwriting_keeps_the_row_and_changes_its_version(project: Project, path: str, upsert: bool) -> None:
    project.put(project.store.sign_upload(path))
    ((old_id, old_version, *_),) = project.rows(path)
    if upsert:
        project.store._bucket.upload(path, b"others", {"content-type": "text/plain", "upsert": "true"})
    else:
        project.store._bucket.update(path, b"others", {"content-type": "text/plain"})
    ((new_id, new_version, _, size, mime_type),) = project.rows(path)
    assert (new_id == old_id, new_version == old_version, size, mime_type) == (True, False, 6, "text/plain")


def test_concurrent_uploads_to_one_path_all_succeed(project: Project, path: str) -> None:
    """An upload without `upsert` does not lock its path."""
    signed = project.store.sign_upload(path)

    def put_slowly(number: int) -> int:
        def pieces() -> Iterator[bytes]:
            yield b"x"
            time.sleep(0.4)
            yield str(number).encode()

        headers = {**signed.headers, "content-length": "2"}
        return httpx.put(signed.url, content=pieces(), headers=headers).status_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(put_slowly, range(4))) == [200] * 4
    assert len(project.rows(path)) == 1


def test_an_upload_that_is_cut_off_leaves_nothing(project: Project, path: str) -> None:
    address = urlsplit(project.store.sign_upload(path).url)
    make = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = make(address.netloc, timeout=10)
    connection.putrequest("PUT", f"{address.path}?{address.query}")
    connection.putheader("content-type", "text/plain")
    connection.putheader("content-length", "1000")
    connection.endheaders(b"only so much")
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    time.sleep(0.3)
    assert project.rows(path) == []
    assert project.store.info(path) is None


def test_rows_cannot_be_deleted_directly(project: Project, path: str) -> None:
    project.put(project.store.sign_upload(path))
    with psycopg.connect(project.dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("delete from storage.objects where name = %s", (path,))
    assert len(project.rows(path)) == 1


def test_a_missing_object_is_reported_as_missing(project: Project, path: str) -> None:
    assert project.store.info(path) is None
    assert project.store.remove([path]) == 0
    with pytest.raises(errors.NotFoundError):
        project.store.sign_download(path, "boiler.txt")


# Resumable uploads


def test_a_resumable_upload_writes_one_row_after_its_last_piece(project: Project, path: str) -> None:
    resumable = project.store.sign_upload(path).resumable
    assert resumable is not None
    content = b"0123456789" * (CHUNK_BYTES // 10 + 1)
    with ResumableClient.of(resumable) as client:
        client.create(len(content))
        assert client.send(content[:CHUNK_BYTES]) == CHUNK_BYTES
        assert (project.rows(path), client.ask_offset()) == ([], CHUNK_BYTES)
        client.send(content[CHUNK_BYTES:])
    assert [row[3:] for row in project.rows(path)] == [(len(content), "text/plain")]


def test_a_resumable_upload_is_limited_to_the_signed_path(project: Project, path: str) -> None:
    resumable = project.store.sign_upload(path).resumable
    assert resumable is not None
    metadata = resumable.metadata | {"objectName": path.replace("original", "other")}
    with ResumableClient(resumable.url, resumable.headers, metadata) as client, pytest.raises(httpx.HTTPStatusError):
        client.create(10)


def test_the_unsigned_address_refuses_signatures(project: Project, path: str) -> None:
    """This is why our upload address ends in /sign."""
    resumable = project.store.sign_upload(path).resumable
    assert resumable is not None
    url = resumable.url.removesuffix("/sign")
    with ResumableClient(url, resumable.headers, resumable.metadata) as client, pytest.raises(httpx.HTTPStatusError):
        client.create(10)


# Only the fake can be made to do this


@pytest.fixture
def fake(server: StorageServer, module_database: str) -> Iterator[Project]:
    limits = server.max_bytes, server.mime_types, server.elapsed
    yield Project(storage_supabase.connect(server.url, KEY, "documents"), module_database, server)
    server.max_bytes, server.mime_types, server.elapsed = limits


def test_a_download_url_is_refused_after_two_hours(fake: Project, server: StorageServer) -> None:
    signed = fake.store.sign_upload("a/late/original.txt")
    server.elapsed = storage_supabase.UPLOAD_SECONDS + 1
    assert statuses_of(fake.put(signed)) == (400, "400")
    assert fake.rows("a/late/original.txt") == []


@pytest.mark.parametrize(
    ("limits", "status"),
    [({"max_bytes": 10}, "413"), ({"mime_types": ("application/pdf",)}, "415")],
    ids=["too-large", "wrong-type"],
)
def test_the_limits_of_the_bucket_also_apply_to_signed_uploads(
    fake: Project, server: StorageServer, limits: dict[str, Any], status: str
) -> None:
    for name, value in limits.items():
        setattr(server, name, value)
    signed = fake.store.sign_upload("a/limits/original.txt")
    assert statuses_of(fake.put(signed)) == (400, status)
    assert fake.rows("a/limits/original.txt") == []
    resumable = signed.resumable
    assert resumable is not None
    with ResumableClient.of(resumable) as client, pytest.raises(httpx.HTTPStatusError):
        client.create(len(CONTENT))


def test_a_trigger_that_fails_fails_the_upload(fake: Project, module_database: str) -> None:
    """Our trigger must therefore never fail."""
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute(
            "create function public.refuse() returns trigger language plpgsql as"
            " $$ begin raise exception 'no'; end $$; create trigger refuse after insert on storage.objects"
            " for each row execute function public.refuse()"
        )
        answer = fake.put(fake.store.sign_upload("a/trigger/original.txt"))
        connection.execute("drop function public.refuse() cascade")
    assert statuses_of(answer) == (500, "500")
    assert fake.rows("a/trigger/original.txt") == []
    assert fake.store.info("a/trigger/original.txt") is None
