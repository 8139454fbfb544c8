"""LIB-3, ING-10: a document with Supabase's storage and sign-in over HTTP, from the signed URL to its removal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx
import psycopg
import pytest
from pydantic import SecretStr

import supabase
from functions import sweeper
from functions.adapters.storage_supabase import CHUNK_BYTES
from tests.acceptance.support import stored_state
from tests.acceptance.support.resumable import ResumableClient
from tests.support.fakes import key_server, storage_server
from tests.support.fakes.storage_refusals import KEY, Refusal
from tests.support.fakes.storage_server import StorageServer
from tests.support.local_server import Json, LocalServer, Person, problem_of, run_local_server

JWT_SECRET = "the legacy secret of a project, 40 bytes"
METRICS_TOKEN = "metrics-token-of-the-tests"
FACT = b"The boiler burns wood chips in winter."
LARGE = b"The boiler burns wood chips in winter. " * (CHUNK_BYTES * 2 // 39 + 1)


@pytest.fixture(scope="module")
def storage(module_database: str) -> Iterator[StorageServer]:
    with storage_server.run(module_database) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    module_database: str, storage: StorageServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    secrets = {
        "supabase_secret_key": SecretStr(KEY),
        "supabase_jwt_secret": SecretStr(JWT_SECRET),
        "metrics_token": SecretStr(METRICS_TOKEN),
    }
    home = tmp_path_factory.mktemp("home")
    with run_local_server(module_database, home, worker=False, supabase_url=storage.url, **secrets) as running:
        yield running


@pytest.fixture
def ada(server: LocalServer, storage: StorageServer) -> Iterator[Person]:
    with server.person("Ada") as person:
        claims = key_server.claims(f"{storage.url}/auth/v1", sub=person.id)
        person.http.headers["Authorization"] = f"Bearer {key_server.sign(claims, JWT_SECRET, 'HS256')}"
        yield person


@dataclass(frozen=True)
class Table:
    """The rows of one document in the database."""

    dsn: str

    def __call__(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(statement.encode(), parameters).fetchall()

    def jobs(self, ticket: Json) -> list[str]:
        statement = "select status from rag.ingest_jobs where document_id = %s order by id"
        return [row[0] for row in self(statement, ticket["document"]["id"])]

    def objects(self, ticket: Json) -> int:
        return int(
            self("select count(*) from storage.objects where name like %s", f"%/{ticket['document']['id']}/%")[0][0]
        )


@pytest.fixture
def table(module_database: str) -> Table:
    return Table(module_database)


def run_due_jobs(server: LocalServer) -> None:
    while server.services.make_worker().ingest_next() is not None:
        pass


def test_a_document_is_uploaded_to_supabase_indexed_and_removed(
    server: LocalServer, ada: Person, storage: StorageServer, table: Table
) -> None:
    """LIB-3, LIB-8, LIB-9"""
    ticket = ada.announce("Heizung & Kühlung.txt", FACT).json()
    document_id = ticket["document"]["id"]
    assert ticket["upload"]["url"].startswith(f"{storage.url}/storage/v1/object/upload/sign/documents/{ada.id}/")
    assert ticket["upload"]["resumable"] is None
    assert ada.put(ticket, FACT).status_code == 200
    assert ada.get(f"/documents/{document_id}")["status"] == "uploaded"
    run_due_jobs(server)
    assert ada.get(f"/documents/{document_id}")["status"] == "indexed"
    link = ada.get(f"/documents/{document_id}/download")["url"]
    assert httpx.URL(link).params["download"] == "Heizung & Kühlung.txt"
    assert httpx.get(link).content == FACT
    receipt = ada.http.delete(f"/api/rag/documents/{document_id}").json()
    assert (receipt["removed"]["objects"], table.objects(ticket), table.jobs(ticket)) == (1, 0, [])


@pytest.fixture
def program(server: LocalServer, ada: Person, table: Table) -> Iterator[Person]:
    """A program with an API key of Ada, who has an account in Supabase Auth."""
    table("insert into auth.users (id, email) values (%s, %s) returning id", ada.id, f"{ada.id}@example.org")
    key = ada.post("/keys", name="script", scopes=["read", "write"])["key"]
    with server.person("Ada's program") as person:
        person.id = ada.id
        person.http.headers["Authorization"] = f"Bearer {key}"
        yield person


def test_supabases_client_uploads_what_an_api_key_has_announced(
    server: LocalServer, program: Person, storage: StorageServer
) -> None:
    """KEY-1, LIB-3"""
    ticket = program.announce("boiler.txt", FACT).json()
    signed = httpx.URL(ticket["upload"]["url"])
    path = signed.path.partition("/sign/documents/")[2]
    with httpx.Client() as http:
        client = supabase.create_client(storage.url, "sb_publishable_test", supabase.ClientOptions(httpx_client=http))
        client.storage.from_("documents").upload_to_signed_url(path, signed.params["token"], FACT)
    run_due_jobs(server)
    assert program.get(f"/documents/{ticket['document']['id']}")["status"] == "indexed"


@pytest.mark.parametrize(
    "change",
    ["update auth.users set banned_until = now() + interval '1 hour'", "delete from auth.users"],
    ids=["banned", "deleted"],
)
def test_a_key_stops_with_the_account_of_its_owner(program: Person, table: Table, change: str) -> None:
    """KEY-1"""
    assert program.http.get("/api/rag/documents").status_code == 200
    table(f"{change} where id = %s returning id", program.id)
    assert problem_of(program.http.get("/api/rag/documents")) == (401, "not_signed_in")


def test_finalize_after_the_trigger_creates_no_second_job(ada: Person, table: Table) -> None:
    ticket = ada.announce("boiler.txt", FACT).json()
    ada.put(ticket, FACT)
    for _ in range(2):
        ada.post(f"/documents/{ticket['document']['id']}/finalize")
    assert table.jobs(ticket) == ["queued"]


def test_finalize_before_the_upload_is_refused(ada: Person, table: Table) -> None:
    ticket = ada.announce("boiler.txt", FACT).json()
    answer = ada.http.post(f"/api/rag/documents/{ticket['document']['id']}/finalize")
    assert (problem_of(answer), table.jobs(ticket)) == ((409, "conflict"), [])


def test_an_upload_after_the_document_was_deleted_is_swept(
    server: LocalServer, ada: Person, storage: StorageServer, table: Table
) -> None:
    """LIB-8: the storage accepts a signed URL again once its object was removed."""
    ticket = ada.announce("boiler.txt", FACT).json()
    ada.put(ticket, FACT)
    ada.http.delete(f"/api/rag/documents/{ticket['document']['id']}")
    assert ada.put(ticket, FACT).status_code == 200
    assert (table.objects(ticket), table.jobs(ticket)) == (1, [])
    sweeper.sweep(server.services)
    assert (table.objects(ticket), [path for path in storage.objects if ticket["document"]["id"] in path]) == (0, [])


def test_a_file_larger_than_announced_is_neither_read_nor_kept(
    server: LocalServer, ada: Person, storage: StorageServer, table: Table
) -> None:
    """LIB-4: otherwise a small announcement could bypass a quota."""
    ticket = ada.announce("boiler.txt", FACT).json()
    address = f"/documents/{ticket['document']['id']}"
    assert ada.put(ticket, FACT * 2).status_code == 200
    found = ada.get(address)
    assert (found["status"], found["error_code"], table.jobs(ticket)) == ("failed", "larger_than_announced", [])
    assert found["error"].startswith(f"{2 * len(FACT)} bytes arrived where {len(FACT)} were announced.")
    assert problem_of(ada.http.post(f"/api/rag{address}/retry")) == (409, "conflict")
    sweeper.sweep(server.services)
    assert (table.objects(ticket), [path for path in storage.objects if ticket["document"]["id"] in path]) == (0, [])
    assert ada.put(ticket, FACT).status_code == 200
    assert (ada.get(address)["status"], table.jobs(ticket)) == ("uploaded", ["queued"])


def test_without_a_trigger_finalize_reports_a_file_larger_than_announced(
    server: LocalServer, ada: Person, module_database: str, table: Table
) -> None:
    """LIB-3"""
    ticket = ada.announce("boiler.txt", FACT).json()
    with stored_state.trigger_disabled(module_database):
        ada.put(ticket, FACT * 2)
    answer = ada.http.post(f"/api/rag/documents/{ticket['document']['id']}/finalize")
    assert answer.json()["detail"].startswith(f"{2 * len(FACT)} bytes arrived")
    assert ada.get(f"/documents/{ticket['document']['id']}")["status"] == "failed"


# Resumable uploads


def resumable_of(ticket: Json) -> ResumableClient:
    advice = ticket["upload"]["resumable"]
    return ResumableClient(advice["url"], advice["headers"], advice["metadata"])


def test_a_resumable_upload_is_advised_for_a_large_file(ada: Person, storage: StorageServer) -> None:
    """LIB-3"""
    ticket = ada.announce("large.txt", LARGE).json()
    advice = ticket["upload"]["resumable"]
    assert (set(advice), advice["chunk_size"]) == ({"url", "headers", "metadata", "chunk_size"}, CHUNK_BYTES)
    assert advice["url"] == f"{storage.url}/storage/v1/upload/resumable/sign"
    assert advice["metadata"]["objectName"] == f"{ada.id}/{ticket['document']['id']}/original.txt"
    assert KEY not in str(ticket)


@pytest.mark.parametrize(("size", "is_advised"), [(CHUNK_BYTES, False), (CHUNK_BYTES + 1, True)])
def test_a_resumable_upload_is_advised_for_more_than_one_piece(ada: Person, size: int, is_advised: bool) -> None:
    answer = ada.http.post("/api/rag/documents", json={"file_name": "a.txt", "size": size}).json()
    assert (answer["upload"]["resumable"] is not None) == is_advised


def test_an_interrupted_upload_resumes_where_it_stopped_and_creates_one_job(
    server: LocalServer, ada: Person, table: Table
) -> None:
    """ING-10"""
    ticket = ada.announce("large.txt", LARGE).json()
    with resumable_of(ticket) as client:
        client.create(len(LARGE))
        client.send(LARGE[:CHUNK_BYTES])
        location = client.location
    assert (table.objects(ticket), table.jobs(ticket)) == (0, [])
    with resumable_of(ticket) as client:
        client.location = location
        offset = client.ask_offset()
        while offset < len(LARGE):
            offset = client.send(LARGE[offset : offset + CHUNK_BYTES])
    assert (table.objects(ticket), table.jobs(ticket)) == (1, ["queued"])
    (size,) = table("select size_bytes from rag.documents where id = %s", ticket["document"]["id"])[0]
    assert size == len(LARGE)
    assert ada.http.delete(f"/api/rag/documents/{ticket['document']['id']}").is_success


@pytest.mark.parametrize("is_indexed", [False, True], ids=["queued", "indexed"])
def test_a_ticket_takes_one_file_although_the_resumable_route_would_overwrite_it(
    server: LocalServer, ada: Person, storage: StorageServer, table: Table, is_indexed: bool
) -> None:
    """LIB-3, OPS-5: else it would take files of any size for two hours, each a new ingestion."""
    ticket = ada.announce("large.txt", LARGE).json()
    assert ada.put(ticket, FACT).status_code == 200
    if is_indexed:
        run_due_jobs(server)
    before = table.jobs(ticket)
    with resumable_of(ticket) as client:
        client.create(len(LARGE) + 1)
        client.send(LARGE)
        assert client.request("PATCH", b"x").status_code == 409
    assert (table.jobs(ticket), table.objects(ticket)) == (before, 1)
    assert storage.objects[f"{ada.id}/{ticket['document']['id']}/original.txt"].content == FACT


def test_a_piece_at_the_wrong_offset_is_refused(ada: Person, table: Table) -> None:
    ticket = ada.announce("large.txt", LARGE).json()
    with resumable_of(ticket) as client:
        client.create(len(LARGE))
        client.offset = 7
        with pytest.raises(httpx.HTTPStatusError, match="409"):
            client.send(LARGE[:CHUNK_BYTES])
    assert table.jobs(ticket) == []


# Failures of the storage


def test_a_file_that_is_no_longer_stored_fails_its_document_in_words(
    server: LocalServer, ada: Person, storage: StorageServer
) -> None:
    """ING-11"""
    ticket = ada.announce("boiler.txt", FACT).json()
    ada.put(ticket, FACT)
    del storage.objects[f"{ada.id}/{ticket['document']['id']}/original.txt"]
    run_due_jobs(server)
    found = ada.get(f"/documents/{ticket['document']['id']}")
    assert (found["status"], found["error_code"], found["error"]) == (
        "failed",
        "not_found",
        "The file is no longer stored. Delete the document and upload the file again.",
    )


@pytest.mark.parametrize(
    ("fault", "said"),
    [("has_no_bucket", "The storage bucket does not exist."), ("is_public", "The bucket “documents” is public")],
)
def test_readiness_says_what_is_wrong_with_the_bucket(
    server: LocalServer, storage: StorageServer, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    """OPS-4"""
    monkeypatch.setattr(storage, fault, True)
    server.app.state.readiness = None  # a check is fresh for a second
    operator = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    check = server.http.get("/ready", headers=operator).json()["checks"]["storage"]
    assert (check["ok"], check["detail"].startswith(said)) == (False, True)


@pytest.mark.parametrize(
    "act",
    [lambda ada, ticket: ada.announce("b.txt", FACT), lambda ada, ticket: download(ada, ticket)],
    ids=["announce", "download"],
)
def test_a_failing_storage_is_reported_as_the_cause(
    ada: Person, storage: StorageServer, act: Callable[[Person, Json], httpx.Response]
) -> None:
    """SEC-6"""
    ticket = ada.announce("boiler.txt", FACT).json()
    ada.put(ticket, FACT)
    with failing(storage):
        answer = act(ada, ticket)
    assert problem_of(answer) == (503, "storage_unavailable")
    assert storage.url not in answer.text


@pytest.mark.parametrize(
    ("within", "address"),
    [
        (None, "/documents/{document}"),
        ("note", "/notes/{place}"),
        ("notebook", "/notebooks/{place}?contents=delete"),
    ],
    ids=["document", "note", "notebook"],
)
def test_what_is_deleted_while_the_storage_fails_is_gone_at_once_and_its_file_later(
    server: LocalServer, ada: Person, storage: StorageServer, table: Table, within: str | None, address: str
) -> None:
    """LIB-8, OPS-2: the rows are gone before the files, so an error would be false, and another attempt a 404."""
    place = ada.post(f"/{within}s", title="Heating")["id"] if within else None
    ticket = ada.announce("boiler.txt", FACT, **({f"{within}_id": place} if within else {})).json()
    ada.put(ticket, FACT)
    document_id = ticket["document"]["id"]
    with failing(storage):
        receipt = ada.http.delete(f"/api/rag{address.format(document=document_id, place=place)}").json()
    assert (receipt["removed"]["documents"], receipt["removed"]["objects"], receipt["files_pending"]) == (1, 0, True)
    assert problem_of(ada.http.get(f"/api/rag/documents/{document_id}")) == (404, "not_found")
    assert (table.objects(ticket), table.jobs(ticket)) == (1, [])
    sweeper.sweep(server.services)
    assert (table.objects(ticket), [path for path in storage.objects if document_id in path]) == (0, [])


def test_a_duplicate_found_while_the_storage_fails_is_one_and_its_file_goes_later(
    server: LocalServer, ada: Person, storage: StorageServer, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIB-5, OPS-2"""

    def refuse_to_remove(paths: list[str]) -> NoReturn:
        raise Refusal("500", "Internal", "Internal Server Error", "InternalError")

    run_due_jobs(server)  # those of other tests
    tickets = [ada.announce(name, FACT).json() for name in ("first.txt", "second.txt")]
    for ticket in tickets:
        ada.put(ticket, FACT)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "remove", refuse_to_remove)
        outcomes = [server.services.make_worker().ingest_next() for _ in tickets]
    assert [outcome and outcome.status for outcome in outcomes] == ["done", "duplicate"]
    assert [table.objects(ticket) for ticket in tickets] == [1, 1]
    sweeper.sweep(server.services)
    assert [table.objects(ticket) for ticket in tickets] == [1, 0]


@contextmanager
def failing(storage: StorageServer) -> Iterator[None]:
    storage.failure = (502, {})
    try:
        yield
    finally:
        storage.failure = None


def download(person: Person, ticket: Json) -> httpx.Response:
    return person.http.get(f"/api/rag/documents/{ticket['document']['id']}/download")
