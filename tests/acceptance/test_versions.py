"""Duplicates, new versions under the same name, and what a search sees while one version replaces another."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from functions.core import ports
from tests.acceptance.support import inside, prose
from tests.acceptance.support.stored_state import count_rows
from tests.acceptance.test_storage_events import run_at_once, run_due_jobs
from tests.support import database as database_servers
from tests.support.documents import make_pdf
from tests.support.local_server import Json, LocalServer, Person, problem_of, run_local_server

OLD, NEW = "The boiler of the old report burns peat.", "The boiler of the new report burns wood."
SEARCHERS = 2

State = frozenset[tuple[str, int, str]]


@pytest.fixture(scope="module")
def server(
    clusters: database_servers.Clusters, postgres_major: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    """A server without a worker, on its own database."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    with run_local_server(dsn, tmp_path_factory.mktemp("home"), worker=False) as running:
        yield running
    cluster.drop(dsn)


@pytest.fixture
def ada(server: LocalServer) -> Iterator[Person]:
    with server.person("Ada", admin=True) as person:
        yield person


class CountingEmbedder:
    """Counts the texts that it embeds."""

    def __init__(self, embedder: ports.Embedder) -> None:
        self._embedder = embedder
        self.count = 0
        self.dimensions, self.max_input_tokens = embedder.dimensions, embedder.max_input_tokens
        self.count_tokens = embedder.count_tokens

    def embed(self, texts: Sequence[str]) -> Any:
        self.count += len(texts)
        return self._embedder.embed(texts)


@pytest.fixture
def embedder(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> CountingEmbedder:
    """The embedder of the server's workers. Self-retrieval, which also embeds sentences, is switched off."""
    make_worker = server.services.make_worker
    counting = CountingEmbedder(make_worker().embedder)
    monkeypatch.setattr(
        server.services, "make_worker", lambda: replace(make_worker(), embedder=counting, search_as=None)
    )
    return counting


def make_report(tmp_path: Path, *pages: str) -> bytes:
    return make_pdf(tmp_path / "report.pdf", *pages).read_bytes()


def upload(person: Person, content: bytes, name: str = "report.pdf", **fields: Any) -> str:
    """Announces and stores a file; returns the id of the upload."""
    ticket = person.announce(name, content, **fields)
    assert ticket.status_code == 201, ticket.text
    assert person.put(ticket.json(), content).is_success
    return str(ticket.json()["document"]["id"])


def add(server: LocalServer, person: Person, content: bytes, name: str = "report.pdf") -> Json:
    """Uploads and ingests a document; returns it as its own address shows it."""
    document_id = upload(person, content, name)
    run_due_jobs(server)
    return person.get(f"/documents/{document_id}")


def find_boilers(person: Person) -> State:
    """Every passage in the library: all of them mention a boiler."""
    found = [
        (hit["document_id"], hit["chunk_index"], hit["text"])
        for hit in person.get("/search", q="boiler", limit=100)["hits"]
    ]
    assert len(found) == len(set(found)), found
    return frozenset(found)


def documents_found(person: Person) -> set[str]:
    return {document_id for document_id, _, _ in find_boilers(person)}


def count(server: LocalServer, person: Person) -> Json:
    config = server.services.config
    assert config.database_url is not None
    return count_rows(config.database_url.get_secret_value(), person.id)


# The same bytes


def test_known_bytes_are_not_uploaded_again(
    server: LocalServer, ada: Person, tmp_path: Path, embedder: CountingEmbedder
) -> None:
    """LIB-5"""
    content = make_report(tmp_path, OLD)
    document, rows, asked = add(server, ada, content), count(server, ada), embedder.count
    answer = ada.announce("other.pdf", content, sha256=hashlib.sha256(content).hexdigest())
    assert (answer.status_code, answer.json()) == (200, {"document": document, "upload": None, "duplicate": True})
    assert (run_due_jobs(server), count(server, ada), embedder.count) == ([], rows, asked)


def test_the_same_bytes_uploaded_again_become_an_alias_of_the_document(
    server: LocalServer, ada: Person, tmp_path: Path, embedder: CountingEmbedder
) -> None:
    """LIB-5"""
    content = make_report(tmp_path, OLD, NEW)
    document, rows, asked = add(server, ada, content), count(server, ada), embedder.count
    assert asked == rows["chunks"] == 2
    assert add(server, ada, content, "other.pdf") == document
    assert (count(server, ada), embedder.count) == (rows | {"documents": 2, "ingest_jobs": 2}, asked)
    assert [item["id"] for item in ada.get("/documents", versions="all")["items"]] == [document["id"]]
    assert documents_found(ada) == {document["id"]}
    assert inside.stored_files(server, ada) == [f"{document['id']}/original.pdf"]


@pytest.mark.parametrize("is_declared", [True, False], ids=["with-digest", "without-digest"])
def test_the_same_bytes_uploaded_twice_at_once_are_ingested_once(
    server: LocalServer, ada: Person, tmp_path: Path, embedder: CountingEmbedder, is_declared: bool
) -> None:
    """LIB-5"""
    content = make_report(tmp_path, OLD)
    fields = {"sha256": hashlib.sha256(content).hexdigest()} if is_declared else {}
    tickets = [ada.announce(name, content, **fields).json() for name in ("one.pdf", "two.pdf")]
    run_at_once(*(partial(ada.put, ticket, content) for ticket in tickets))
    run_at_once(partial(run_due_jobs, server), partial(run_due_jobs, server))
    found = [ada.get(f"/documents/{ticket['document']['id']}") for ticket in tickets]
    assert found[0] == found[1]
    assert found[0]["status"] == "indexed"
    assert (embedder.count, count(server, ada)["generations"]) == (1, 1)
    assert inside.stored_files(server, ada) == [f"{found[0]['id']}/original.pdf"]


def test_an_alias_is_deleted_with_its_document(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-5, LIB-8"""
    content = make_report(tmp_path, OLD)
    document = add(server, ada, content)
    other = upload(ada, content, "other.pdf")
    run_due_jobs(server)
    ada.http.delete(f"/api/rag/documents/{document['id']}")
    assert problem_of(ada.http.get(f"/api/rag/documents/{other}")) == (404, "not_found")
    assert count(server, ada) == {}
    again = add(server, ada, content)
    assert (again["status"], documents_found(ada)) == ("indexed", {again["id"]})


# Other bytes under the same name


def test_a_new_version_replaces_the_old_one_which_stays_readable(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-5"""
    old = add(server, ada, make_report(tmp_path, OLD))
    cited = ada.get("/search", q="boiler")["hits"][0]
    new = add(server, ada, make_report(tmp_path, NEW))
    read = ada.get(f"/documents/{old['id']}")
    assert (new["version"], new["superseded_by"]) == (2, None)
    assert (read["version"], read["superseded_by"], read["status"]) == (1, new["id"], "indexed")
    assert documents_found(ada) == {new["id"]}
    assert [item["id"] for item in ada.get("/documents")["items"]] == [new["id"]]
    assert [item["id"] for item in ada.get("/documents", versions="all")["items"]] == [new["id"], old["id"]]
    page = ada.get(f"/documents/{old['id']}/text", page=1)["pages"][0]["text"]
    assert page[cited["start_offset"] : cited["end_offset"]] == cited["text"] == OLD
    assert ada.http.get(f"/api/rag/documents/{old['id']}/pages/1.png").is_success


def test_deleting_a_version_also_deletes_the_older_ones(server: LocalServer, ada: Person, tmp_path: Path) -> None:
    """LIB-5, LIB-8"""
    versions = [add(server, ada, make_report(tmp_path, f"{OLD} {n}"))["id"] for n in range(3)]
    assert ada.http.delete(f"/api/rag/documents/{versions[-1]}").json()["removed"]["documents"] == 3
    assert (count(server, ada), inside.stored_files(server, ada)) == ({}, [])


def test_an_unreadable_new_version_leaves_the_old_one_in_place(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-5, LIB-7"""
    old = add(server, ada, make_report(tmp_path, OLD))
    failed = add(server, ada, b"%PDF-1.7 and nothing of a PDF behind it")
    assert failed["status"] == "failed"
    assert ada.get(f"/documents/{old['id']}") == old
    assert documents_found(ada) == {old["id"]}


def test_versions_follow_the_order_of_upload_whichever_is_indexed_first(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-5"""
    uploaded = [upload(ada, make_report(tmp_path, f"{OLD} {n}")) for n in range(4)]
    for document_id in (uploaded[0], uploaded[3], uploaded[1], uploaded[2]):
        server.services.make_worker().ingest_next(inside.job_of(server, document_id)["id"])
    found = [ada.get(f"/documents/{document_id}") for document_id in uploaded]
    assert [document["superseded_by"] for document in found] == [uploaded[3]] * 3 + [None]
    assert [document["version"] for document in found] == [1, 2, 3, 4]


def test_versions_indexed_at_the_same_time_leave_one_in_search(
    server: LocalServer, ada: Person, tmp_path: Path
) -> None:
    """LIB-5"""
    uploaded = [upload(ada, make_report(tmp_path, f"{OLD} {n}")) for n in range(6)]
    run_at_once(*[partial(run_due_jobs, server)] * 3)
    assert {ada.get(f"/documents/{document_id}")["status"] for document_id in uploaded} == {"indexed"}
    assert documents_found(ada) == {uploaded[-1]}


# Search during a change


class Searchers:
    """Threads that search in a loop and record every result."""

    def __init__(self, server: LocalServer, person: Person) -> None:
        self._server, self._person = server, person
        self._stopping = threading.Event()
        self.seen: list[State] = []
        self.failures: list[BaseException] = []

    def _search(self) -> None:
        with self._server.open_client(Authorization=f"Bearer {self._person.token}") as http:
            person = Person(self._server, "searcher")
            person.http.close()
            person.http = http
            try:
                while not self._stopping.is_set():
                    self.seen.append(find_boilers(person))
            except BaseException as exc:
                self.failures.append(exc)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._search) for _ in range(SEARCHERS)]
        for thread in threads:
            thread.start()
        yield
        self._stopping.set()
        for thread in threads:
            thread.join()
        assert self.failures == []


def watch_changes(server: LocalServer, ada: Person, changes: Sequence[Callable[[], object]]) -> list[State]:
    """Checks that each search saw a state from before or after a change; returns those states."""
    ada.http.patch(
        "/api/rag/settings", json={"requests_per_minute": 0}
    ).raise_for_status()  # they search without a pause
    rest = [find_boilers(ada)]
    searchers = Searchers(server, ada)
    with searchers.at_work():
        for change in changes:
            change()
            run_due_jobs(server)
            rest.append(find_boilers(ada))
    assert set(searchers.seen) <= set(rest), [
        {name for name, _, _ in state} for state in set(searchers.seen) - set(rest)
    ]
    assert len(searchers.seen) > 10 * len(changes)
    return rest


def boilers(name: str, paragraphs: int) -> bytes:
    texts = (
        f"The boiler of {name} is number {n}. {prose.write_paragraph(f'{name} {n}', 12)}" for n in range(paragraphs)
    )
    return "\n\n".join(texts).encode()


def test_a_search_during_reindexing_sees_the_old_passages_or_the_new_ones(server: LocalServer, ada: Person) -> None:
    """LIB-7"""
    document = add(server, ada, boilers("report", 8), "report.txt")

    def reindex(chunk_tokens: int) -> None:
        ada.http.patch("/api/rag/settings", json={"chunk_tokens": chunk_tokens}).raise_for_status()
        ada.post(f"/documents/{document['id']}/reindex")

    rest = watch_changes(server, ada, [partial(reindex, tokens) for tokens in (80, 120, 240)])
    assert all(rest)
    assert all(before != after for before, after in itertools.pairwise(rest))


def test_a_search_during_a_change_of_version_sees_one_version_and_never_none(server: LocalServer, ada: Person) -> None:
    """LIB-5, LIB-7"""
    add(server, ada, boilers("report 0", 4), "report.txt")
    changes = [partial(upload, ada, boilers(f"report {n}", 4), "report.txt") for n in range(1, 4)]
    rest = watch_changes(server, ada, changes)
    assert [len({document_id for document_id, _, _ in state}) for state in rest] == [1] * 4
    assert len(set(rest)) == 4
