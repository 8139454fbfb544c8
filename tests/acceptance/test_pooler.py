"""SEC-2, SEC-4: through a transaction pooler no request fails, sees another user's rows, or leaves session state."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres.connection import Database
from functions.core import errors, models
from functions.local.database import migrate
from tests.acceptance.support.containers import Container, Person, read, words_in
from tests.acceptance.support.pooler import Pooler, run_pooler
from tests.handlers.events import Answer
from tests.support import database as database_servers

CONCURRENCY, REQUESTS = 20, 1000
WORDS = ("quastenflosser", "zeppelin", "ammonite", "bergamot", "cardamom", "dulcimer", "ephedra", "fandango")
USER = models.User("00000000-0000-4000-8000-00000000000a", False, {})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def make_container(home: Path) -> Iterator[Callable[[str], Container]]:
    made: list[Container] = []

    def make(dsn: str) -> Container:
        made.append(Container(dsn, home))
        return made[-1]

    yield make
    for container in made:
        container.close()


@pytest.fixture
def pooler(module_database: str, tmp_path: Path) -> Iterator[Pooler]:
    """A pooler with five connections to the database for any number of clients."""
    with run_pooler(module_database, tmp_path) as running:
        yield running


@pytest.fixture
def narrow(module_database: str, tmp_path: Path) -> Iterator[Pooler]:
    """A pooler with one connection to the database, so that each client gets the session of the one before."""
    with run_pooler(module_database, tmp_path, pool_size=1) as running:
        yield running


def text_of(person: Person) -> str:
    return f"The {person.word} in the cellar burns wood chips, says the owner of the {person.word}."


def fill_library(container: Container, person: Person) -> str:
    """Adds an indexed document, a note and a conversation; returns the conversation's id."""
    add_document(container, person)
    read(container.call(person, "POST", "/api/rag/notes", {"title": person.word, "content": text_of(person)}), 201)
    container.run_due_jobs()
    answer = read(container.call(person, "POST", "/api/rag/chat", {"query": f"What burns the {person.word}?"}))
    return str(answer["conversation_id"])


def add_document(container: Container, person: Person) -> None:
    content = f"{text_of(person)} Number {random.getrandbits(64)}.".encode()
    body = {"file_name": f"{person.word}.txt", "size": len(content)}
    ticket = read(container.call(person, "POST", "/api/rag/documents", body), 201)
    container.store(person, ticket["document"], content)


def find_owners(answer: Answer, person: Person) -> set[str]:
    """The words of all users whose rows an answer shows."""
    return words_in(answer, [*PEOPLE, person])


# A thousand requests


def search(container: Container, person: Person, _: str) -> None:
    query = "q=what+burns+wood+chips+in+the+cellar&limit=20"
    answer = container.call(person, "GET", "/api/rag/search", query=query)
    assert read(answer)["hits"], answer.content
    assert find_owners(answer, person) == {person.word}


def ask(container: Container, person: Person, conversation: str) -> None:
    body = {"query": "What burns wood chips in the cellar?", "conversation_id": conversation}
    answer = container.call(person, "POST", "/api/rag/chat", body)
    assert read(answer)["sources"], answer.content
    assert find_owners(answer, person) == {person.word}


def list_page(path: str, query: str = "") -> Callable[[Container, Person, str], None]:
    def list_own(container: Container, person: Person, conversation: str) -> None:
        answer = container.call(person, "GET", path.format(conversation=conversation), query=query)
        assert read(answer)["items"], answer.content
        assert find_owners(answer, person) == {person.word}

    return list_own


def read_document(container: Container, person: Person, _: str) -> None:
    documents = read(container.call(person, "GET", "/api/rag/documents", query="status=indexed&limit=5"))["items"]
    answer = container.call(person, "GET", f"/api/rag/documents/{documents[-1]['id']}/text")
    read(answer)
    assert find_owners(answer, person) == {person.word}


def use_note(container: Container, person: Person, _: str) -> None:
    """Creates, changes, trashes, restores and deletes a note."""
    note = read(container.call(person, "POST", "/api/rag/notes", {"title": "Note", "content": text_of(person)}), 201)
    path = f"/api/rag/notes/{note['id']}"
    changed = container.call(person, "PATCH", path, {"title": f"About the {person.word}"})
    assert find_owners(changed, person) == {person.word}
    for act in ("trash", "restore"):
        read(container.call(person, "POST", f"{path}/{act}"))
    read(container.call(person, "DELETE", path), 200, 204)
    read(container.call(person, "GET", path), 404)


def upload(container: Container, person: Person, _: str) -> None:
    add_document(container, person)


def read_another_users_conversation(container: Container, person: Person, _: str) -> None:
    """Checks that another user's conversation is not found."""
    stranger, conversation = random.choice([(p, c) for p, c in CONVERSATIONS.items() if p is not person])
    answer = container.call(person, "GET", f"/api/rag/conversations/{conversation}/messages")
    read(answer, 404)
    assert stranger.word not in answer.content.decode()


def read_settings(container: Container, person: Person, _: str) -> None:
    assert "rrf_k" in read(container.call(person, "GET", "/api/rag/settings"))


PEOPLE = [Person(word) for word in WORDS]
CONVERSATIONS: dict[Person, str] = {}
# (action, its number of requests, its weight)
MIX: list[tuple[Callable[[Container, Person, str], None], int, int]] = [
    (search, 1, 24),
    (ask, 1, 14),
    (list_page("/api/rag/documents"), 1, 12),
    (list_page("/api/rag/notes"), 1, 8),
    (list_page("/api/rag/conversations"), 1, 8),
    (list_page("/api/rag/conversations/{conversation}/messages", "limit=20"), 1, 8),
    (read_document, 2, 5),
    (use_note, 6, 2),
    (upload, 1, 2),
    (read_another_users_conversation, 1, 4),
    (read_settings, 1, 4),
]


def make_plan() -> list[tuple[Callable[[Container, Person, str], None], Person]]:
    """At least REQUESTS requests, in the same order in every run."""
    rng = random.Random(20)
    weights = [often for _, _, often in MIX]
    plan, requests = [], 0
    while requests < REQUESTS:
        act, count, _ = rng.choices(MIX, weights)[0]
        plan.append((act, rng.choice(PEOPLE)))
        requests += count
    return plan


class Load:
    """Sends the requests of the plan from several threads with a worker beside them, and collects the faults."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.ingested = 0
        self._plan = iter(make_plan())
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def run(self, containers: list[Container], worker: Container) -> None:
        ingesting = threading.Thread(target=self._ingest, args=(worker,))
        ingesting.start()
        with ThreadPoolExecutor(len(containers)) as pool:
            list(pool.map(self._send, containers))
        self._stopping.set()
        ingesting.join()

    def _send(self, container: Container) -> None:
        while True:
            with self._lock:
                act, person = next(self._plan, (None, PEOPLE[0]))
            if act is None:
                break
            try:
                act(container, person, CONVERSATIONS[person])
            except Exception as exc:
                self.failures.append(f"{getattr(act, '__name__', act)} as {person.word}: {exc!r:.400}")
        with self._lock:
            self.statuses += container.statuses

    def _ingest(self, worker: Container) -> None:
        while not self._stopping.wait(0.05):
            try:
                self.ingested += worker.run_due_jobs()
            except Exception as exc:
                self.failures.append(f"ingestion: {exc!r:.400}")


def test_a_thousand_mixed_requests_cause_no_error_and_show_no_rows_of_another_user(
    pooler: Pooler, make_container: Callable[[str], Container]
) -> None:
    """SEC-4: 20 containers with one connection each, five connections behind the pooler, and an ingesting worker."""
    containers = [make_container(pooler.dsn) for _ in range(CONCURRENCY)]
    CONVERSATIONS.update({person: fill_library(containers[0], person) for person in PEOPLE})
    for container in containers:  # in sequence: the first request of a route sets it up, as it would in one thread
        for act, _, _ in MIX:
            act(container, PEOPLE[0], CONVERSATIONS[PEOPLE[0]])
        container.statuses.clear()
    load = Load()
    load.run(containers, make_container(pooler.dsn))
    assert load.failures == []
    assert set(load.statuses) <= {200, 201, 204, 404}
    assert load.statuses.total() >= REQUESTS
    assert load.ingested > 0
    assert {len(container.services.database._idle) for container in containers} == {1}


# Session state on a connection


def read_session_state(pooler: Pooler) -> dict[str, Any]:
    """The session state that another client finds on the one shared connection."""
    with psycopg.connect(pooler.dsn, prepare_threshold=None, autocommit=True) as stranger:
        row = stranger.execute(
            "select pg_backend_pid(), current_user, session_user, current_setting('role'),"
            " coalesce(current_setting('request.jwt.claims', true), ''),"
            " (select count(*) from pg_prepared_statements), (select count(*) from pg_cursors),"
            " (select count(*) from pg_locks where locktype = 'advisory'),"
            " (select count(*) from pg_listening_channels()),"
            # The pooler itself sets the name of the application.
            " (select array_agg(name) from pg_settings where source = 'session' and name <> 'application_name'),"
            " (select count(*) from pg_class where relpersistence = 't')"
        ).fetchone()
    assert row is not None
    names = ("pid", "user", "login", "role", "claims", "prepared", "cursors", "locks", "channels", "settings", "tables")
    return dict(zip(names, row, strict=True))


def test_a_request_leaves_no_state_on_its_connection(
    narrow: Pooler, make_container: Callable[[str], Container]
) -> None:
    """SEC-4: role, claims, prepared statements, cursors, locks, settings and temporary tables."""
    clean = read_session_state(narrow)
    container, person = make_container(narrow.dsn), Person("gherkin")
    conversation = fill_library(container, person)
    CONVERSATIONS.update({person: conversation, Person("harquebus"): str(USER.id)})
    for act, _, _ in MIX:
        act(container, person, conversation)
        assert read_session_state(narrow) == clean
    container.run_due_jobs()
    assert read_session_state(narrow) == clean
    assert (clean["role"], clean["claims"], clean["prepared"], clean["locks"]) == ("none", "", 0, 0)


def test_a_failed_unit_of_work_leaves_no_state_on_its_connection(narrow: Pooler) -> None:
    clean, database = read_session_state(narrow), Database(narrow.dsn)

    def fail(statement: str) -> None:
        with suppress(errors.IbidError, psycopg.Error), database.as_user(USER) as connection:
            connection.execute(statement.encode())
            raise errors.ConflictError

    def abandon_stream() -> None:
        """Starts a stream and stops reading it."""
        with database.as_worker() as connection:
            next(connection.cursor().stream("select generate_series(1, 100000)"))
            raise errors.ConflictError

    for statement in ("select 1 / 0", "select 1", "select * from rag.ingest_jobs", "syntax error"):
        fail(statement)
        assert read_session_state(narrow) == clean
    with suppress(errors.IbidError, psycopg.Error):
        abandon_stream()
    assert read_session_state(narrow) == clean
    database.close()


def test_a_new_database_is_migrated_through_the_pooler(empty_database: str, tmp_path: Path) -> None:
    """FIX-7: no migration needs settings or locks that outlive its transaction."""
    with run_pooler(empty_database, tmp_path) as pooler:
        assert migrate.migrate(pooler.dsn) == [migration.path.name for migration in migrate.list_migrations()]
        assert migrate.migrate(pooler.dsn) == []


# Connections that the pooler ends


def is_answered(container: Container, person: Person) -> bool:
    answer = container.call(person, "GET", "/api/rag/documents")
    return bool(read(answer)["items"]) and find_owners(answer, person) == {person.word}


@pytest.fixture
def person() -> Person:
    return Person("isinglass")


def kill_clients(pooler: Pooler, _: str) -> None:
    pooler.command("KILL ibid")
    pooler.command("RESUME ibid")


def restart(pooler: Pooler, _: str) -> None:
    pooler.stop()
    pooler.start()


def end_backends(_: Pooler, dsn: str) -> None:
    """Ends the pooler's own connections, as a restart of the database does."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )


@pytest.mark.parametrize("end", [kill_clients, restart, end_backends])
def test_a_connection_closed_between_requests_fails_no_request(
    pooler: Pooler, module_database: str, make_container: Callable[[str], Container], person: Person, end: Any
) -> None:
    containers = [make_container(pooler.dsn) for _ in range(3)]
    fill_library(containers[0], person)
    for _ in range(3):
        assert all(is_answered(container, person) for container in containers)
        end(pooler, module_database)
        time.sleep(0.1)  # so that the client has received the disconnection
    assert all(is_answered(container, person) for container in containers)
    for container in containers:
        search(container, person, "")
        end(pooler, module_database)
        time.sleep(0.1)
        search(container, person, "")


def test_connections_closed_for_idleness_fail_no_request(
    module_database: str, tmp_path: Path, make_container: Callable[[str], Container], person: Person
) -> None:
    with run_pooler(module_database, tmp_path, server_idle_timeout="1", client_idle_timeout="1") as impatient:
        container = make_container(impatient.dsn)
        fill_library(container, person)
        time.sleep(1.5)
        assert is_answered(container, person)
        time.sleep(1.5)
        search(container, person, "")


def test_a_paused_pooler_delays_requests_and_fails_none(
    pooler: Pooler, make_container: Callable[[str], Container], person: Person
) -> None:
    container = make_container(pooler.dsn)
    fill_library(container, person)
    pooler.command("PAUSE ibid")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(is_answered, container, person)
        time.sleep(0.3)
        assert not waiting.done()
        pooler.command("RESUME ibid")
        assert waiting.result(10)


def test_without_a_pooler_requests_get_a_503_and_are_answered_again_afterwards(
    pooler: Pooler, make_container: Callable[[str], Container], person: Person
) -> None:
    container = make_container(pooler.dsn)
    fill_library(container, person)
    pooler.stop()
    time.sleep(0.1)
    answer = container.call(person, "GET", "/api/rag/documents")
    assert answer.problem == (503, "database_unavailable")
    assert str(pooler.port) not in answer.content.decode()
    pooler.start()
    assert is_answered(container, person)


def test_a_connection_that_dies_before_its_first_statement_is_replaced_once(module_database: str) -> None:
    """No check can prevent this: the connection is alive when it is taken and dead when it is used."""
    watched = DyingDatabase(module_database, deaths=1)
    with watched.as_user(USER) as connection:
        assert connection.execute("select auth.uid()::text as id").fetchone() == {"id": USER.id}
    watched.deaths = 2
    with pytest.raises(errors.DatabaseUnavailableError), watched.as_user(USER):
        pass
    with watched.as_worker() as connection:
        assert connection.execute("select current_user::text as role").fetchone() == {"role": "rag_worker"}
    watched.close()


class DyingDatabase(Database):
    """Hands out `deaths` connections whose backends have been terminated."""

    def __init__(self, dsn: str, deaths: int) -> None:
        super().__init__(dsn)
        self.deaths = deaths

    def _take(self) -> Any:
        connection = super()._take()
        if self.deaths > 0:
            self.deaths -= 1
            with psycopg.connect(self._dsn, autocommit=True) as killer:
                killer.execute("select pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))
        return connection


def test_a_connection_that_dies_in_mid_transaction_fails_the_request_and_saves_nothing(module_database: str) -> None:
    """The request is not retried, because the caller may have seen a part of its result."""
    user = Database(module_database)

    def do_half() -> None:
        with user.as_user(USER) as connection:
            connection.execute("insert into rag.notebooks (owner_id, title) values (%s, 'half')", (USER.id,))
            with psycopg.connect(module_database, autocommit=True) as killer:
                killer.execute("select pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))
            connection.execute("select 1")

    with pytest.raises(errors.DatabaseUnavailableError) as raised:
        do_half()
    assert raised.value.retryable
    with user.as_user(USER) as connection:
        assert connection.execute("select from rag.notebooks where owner_id = %s", (USER.id,)).fetchone() is None
    user.close()


def test_the_first_request_of_a_new_installation_takes_one_connection(
    clusters: database_servers.Clusters,
    postgres_major: int,
    tmp_path: Path,
    make_container: Callable[[str], Container],
) -> None:
    """SEC-4: a request that needs two could wait for ever when the pooler has one left."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    with run_pooler(dsn, tmp_path, pool_size=1) as narrow:
        container = make_container(narrow.dsn)
        fill_library(container, Person("jacaranda"))
        assert len(container.services.database._idle) == 1
        container.services.database.close()
    cluster.drop(dsn)
