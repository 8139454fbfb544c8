"""Connections to Postgres, directly or through a transaction pooler.

A Lambda container needs one connection and a laptop's server a few. A pool with background threads suits neither,
because Lambda freezes threads between invocations, so this is a stack of idle connections that are opened on demand.
There are no prepared statements and no session state, because a transaction pooler may run the next transaction on
another backend.

A connection that the pooler closed while it was idle is replaced without an error, and so is one that dies before a
transaction has done anything. If a connection dies during a transaction, the caller gets DatabaseUnavailableError and
the transaction is rolled back.
"""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from functions.core import errors, models

Connection = psycopg.Connection[DictRow]

WORKER_ROLE = "rag_worker"
MAX_CONNECTIONS = 24
"""Of one process. More would wait for each other inside Postgres, which refuses those above its `max_connections`."""
WAIT_SECONDS = 20.0
"""How long a caller waits for one of them."""
_NOT_MIGRATED = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.InvalidParameterValue,  # set_config('role', ...) with an unknown role
)
_TRUSTED_IDLE_SECONDS = 5.0
_SET_ROLE_AND_CLAIMS = "select set_config('role', %s, true), set_config('request.jwt.claims', %s, true)"


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turns errors of psycopg into ours; the adapters use no other place for that, except for our own SQL states."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as exc:
        raise errors.DatabaseUnavailableError from exc
    except _NOT_MIGRATED as exc:
        raise errors.DatabaseUnavailableError(
            "The database lacks tables, functions or roles of this version. An administrator has to run the migrations."
        ) from exc
    except psycopg.errors.ForeignKeyViolation as exc:
        raise errors.NotFoundError from exc
    except psycopg.errors.InsufficientPrivilege as exc:
        raise errors.NotAllowedError from exc


class _LostConnectionError(psycopg.OperationalError):
    """A connection died before anything was done on it."""


class Database:
    """The connections of one process; none is opened before the first use."""

    def __init__(self, dsn: str, *, application_name: str = "ibid") -> None:
        self._dsn = dsn
        self._application_name = application_name
        self._idle: list[tuple[Connection, float]] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._is_closed = False

    @contextmanager
    def as_user(self, user: models.User) -> Iterator[Connection]:
        """A transaction as this user, under row level security; the role is fixed and never taken from the token."""
        with self._transaction("authenticated", write_claims(user)) as connection:
            yield connection

    @contextmanager
    def as_worker(self) -> Iterator[Connection]:
        """A transaction as the worker role, which sees every owner's rows."""
        with self._transaction(WORKER_ROLE, json.dumps({"role": WORKER_ROLE})) as connection:
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """A connection outside any transaction, for single statements that set their own role."""
        with translate_errors(), self._connection() as connection:
            yield connection

    def close(self) -> None:
        """Closes the idle connections now, and each other one when it is given back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    @contextmanager
    def _transaction(self, role: str, claims: str) -> Iterator[Connection]:
        with translate_errors():
            try:
                connection, transaction = self._begin(role, claims)
            except _LostConnectionError:
                connection, transaction = self._begin(role, claims)
            with transaction:
                yield connection

    def _begin(self, role: str, claims: str) -> tuple[Connection, ExitStack]:
        with ExitStack() as stack:
            connection = stack.enter_context(self._connection())
            try:
                stack.enter_context(connection.transaction())
                connection.execute(_SET_ROLE_AND_CLAIMS, (role, claims))
            except psycopg.OperationalError as exc:
                if connection.closed:
                    raise _LostConnectionError(str(exc)) from exc
                raise
            return connection, stack.pop_all()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection of our own; a thread must not ask for a second one, because none may be left."""
        if not self._free.acquire(timeout=WAIT_SECONDS):
            raise errors.DatabaseUnavailableError("The database is busy. Try again in a moment.")
        try:
            with self._keep(self._take()) as connection:
                yield connection
        finally:
            self._free.release()

    @contextmanager
    def _keep(self, connection: Connection) -> Iterator[Connection]:
        try:
            yield connection
        except BaseException:
            # A generator that is closed before its result was read leaves a connection that cannot be reused.
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.close()
            raise
        finally:
            if not connection.closed:
                self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()

    def _take(self) -> Connection:
        """An idle connection that still works, or a new one.

        A connection can die unnoticed while its container is frozen, so one that was idle for a while is tested with an
        empty statement, and so is one with unread data, which is usually the notice that the server closed it.
        """
        while True:
            with self._lock:
                connection, since = self._idle.pop() if self._idle else (None, 0.0)
            if connection is None:
                return self._open()
            if time.monotonic() - since < _TRUSTED_IDLE_SECONDS and not _has_unread_data(connection):
                return connection
            try:
                connection.execute("")
                return connection
            except psycopg.Error:
                connection.close()

    def _open(self) -> Connection:
        return psycopg.connect(
            self._dsn,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=5,
            keepalives_idle=30,  # a vanished peer is noticed within a minute, not after two hours
            keepalives_interval=10,
            keepalives_count=3,
            application_name=self._application_name,
            row_factory=dict_row,
        )


def _has_unread_data(connection: Connection) -> bool:
    """Whether the server has sent something; on an idle connection that is usually a notice that it was closed."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def write_claims(user: models.User) -> str:
    """The claims of a statement that runs as this user; user id and role are never taken from the token."""
    return json.dumps({**user.claims, "sub": user.id, "role": "authenticated"})


@contextmanager
def outside_row_security(connection: Connection) -> Iterator[None]:
    """Runs a part of a worker's transaction as a role without row level security, under which COPY is refused."""
    connection.execute("select set_config('role', 'service_role', true)")
    yield
    connection.execute("select set_config('role', %s, true)", (WORKER_ROLE,))


def ping(database: Database) -> dict[str, Any]:
    """The versions of Postgres and pgvector; raises DatabaseUnavailableError."""
    with database.as_worker() as connection:
        row = connection.execute(
            "select current_setting('server_version') as postgres,"
            " (select extversion from pg_extension where extname = 'vector') as pgvector"
        ).fetchone()
    assert row is not None
    return dict(row)
