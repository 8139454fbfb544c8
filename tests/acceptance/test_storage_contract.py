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
from contextlib import closing
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
def project(request: pytest.FixtureRequest, server: StorageServer, module_database: str) -> Iterator[Project]:
    url, key, dsn = (server.url, KEY, module_database) if request.param == "fake" else REAL
    with closing(storage_supabase.connect(url, key)) as store:
        yield Project(store, dsn, server if request.param == "fake" else None)


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


@pytest.mark.parametrize("is_put_first", [True, False], ids=["after-a-put", "after-itself"])
def test_the_signed_resumable_route_overwrites_although_the_ticket_says_that_it_does_not(
    project: Project, path: str, is_put_first: bool
) -> None:
    """This is why rag.refuse_second_upload exists; here no document has the path."""
    signed = project.store.sign_upload(path)
    assert signed.resumable is not None
    if is_put_first:
        project.put(signed)
    else:
        send_resumable(signed.resumable, CONTENT)
    ((old_id, old_version, *_),) = project.rows(path)
    send_resumable(signed.resumable, CONTENT * 2)
    ((new_id, new_version, _, size, _),) = project.rows(path)
    assert (new_id == old_id, new_version == old_version, size) == (True, False, 2 * len(CONTENT))


def send_resumable(resumable: ports.ResumableUpload, content: bytes) -> None:
    with ResumableClient.of(resumable) as client:
        client.create(len(content))
        client.send(content)


def test_pieces_of_a_resumable_upload_may_have_any_size_and_a_finished_one_is_still_found(
    project: Project, path: str
) -> None:
    resumable = project.store.sign_upload(path).resumable
    assert resumable is not None
    with ResumableClient.of(resumable) as client:
        client.create(len(CONTENT))
        assert [client.send(CONTENT[:7]), client.send(CONTENT[7:])] == [7, len(CONTENT)]
        assert client.ask_offset() == len(CONTENT)
        refused = [client.request("PATCH", b"x"), client.request("DELETE")]
    assert [answer.status_code for answer in refused] == [413, 400]
    assert all("json" not in answer.headers.get("content-type", "") for answer in refused)


def test_an_unfinished_resumable_upload_can_be_deleted(project: Project, path: str) -> None:
    resumable = project.store.sign_upload(path).resumable
    assert resumable is not None
    with ResumableClient.of(resumable) as client:
        client.create(len(CONTENT))
        client.send(CONTENT[:7])
        assert client.request("DELETE").status_code == 204
    assert project.rows(path) == []


def test_a_refusal_names_its_reason_in_four_fields(project: Project, path: str) -> None:
    signed = project.store.sign_upload(path)
    answer = httpx.put(signed.url.replace("token=", "token=x"), content=CONTENT)
    assert set(answer.json()) == {"statusCode", "error", "message", "code"}
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidJWT")


# Only the fake can be made to do this


@pytest.fixture
def fake(server: StorageServer, module_database: str) -> Iterator[Project]:
    limits = server.max_bytes, server.mime_types, server.elapsed
    with closing(storage_supabase.connect(server.url, KEY)) as store:
        yield Project(store, module_database, server)
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


def test_a_body_of_no_announced_length_passes_the_limit_of_the_bucket(fake: Project, server: StorageServer) -> None:
    """This is why a file larger than announced is refused by us."""
    server.max_bytes = 10
    signed = fake.store.sign_upload("a/chunked/original.txt")
    answer = httpx.put(signed.url, content=iter([CONTENT]), headers=signed.headers)
    assert (answer.status_code, fake.rows("a/chunked/original.txt")[0][3]) == (200, len(CONTENT))


def test_triggers_run_three_times_for_an_upload_and_twice_in_vain(fake: Project, module_database: str) -> None:
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute("create sequence public.seen")
        connection.execute(
            "grant all on sequence public.seen to public; create function public.count_row() returns trigger"
            " language plpgsql as $$ begin perform nextval('public.seen'); return new; end $$;"
            " create trigger count_row after insert on storage.objects for each row execute function public.count_row()"
        )
        fake.put(fake.store.sign_upload("a/thrice/original.txt"))
        counted = connection.execute("select last_value from public.seen").fetchone()
        connection.execute("drop function public.count_row() cascade; drop sequence public.seen")
    assert (counted, len(fake.rows("a/thrice/original.txt"))) == ((3,), 1)


def test_a_missing_bucket_has_another_name_for_each_request(fake: Project, server: StorageServer) -> None:
    server.has_no_bucket = True
    try:
        with pytest.raises(errors.StorageUnavailableError, match="bucket does not exist"):
            fake.store.sign_upload("a/bucket/original.txt")
        with pytest.raises(errors.NotFoundError):
            fake.store.sign_download("a/bucket/original.txt", "boiler.txt")
        assert fake.store.remove(["a/bucket/original.txt"]) == 0
    finally:
        server.has_no_bucket = False


def test_a_trigger_that_fails_fails_the_upload_and_even_its_signing(fake: Project, module_database: str) -> None:
    """Our trigger must therefore never fail."""
    signed = fake.store.sign_upload("a/trigger/original.txt")
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute(
            "create function public.refuse() returns trigger language plpgsql as"
            " $$ begin raise exception 'no'; end $$; create trigger refuse after insert on storage.objects"
            " for each row execute function public.refuse()"
        )
        answer = fake.put(signed)
        with pytest.raises(errors.StorageUnavailableError):
            fake.store.sign_upload("a/trigger/other.txt")
        connection.execute("drop function public.refuse() cascade")
    assert statuses_of(answer) == (500, "500")
    assert fake.rows("a/trigger/original.txt") == []
    assert fake.store.info("a/trigger/original.txt") is None
