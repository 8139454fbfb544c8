"""KEY-1 in the database: who may see keys, and whose keys work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from functions.adapters.postgres import users
from functions.adapters.postgres.connection import Database
from functions.core import errors, models
from tests.support.library import ADA, BOB, add_key


@pytest.fixture
def accounts(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that may change the accounts of Supabase Auth, of which Ada has one."""
    with psycopg.connect(database, autocommit=True) as own:
        own.execute("insert into auth.users (id) values (%s)", (ADA.id,))
        yield own


def use(db: Database, key: str, *, checks_account: bool = False) -> models.User:
    return users.use_key(db, key, checks_account=checks_account)


def count_keys(db: Database, user: models.User) -> int:
    with db.as_user(user) as connection:
        return len(users.list_keys(connection))


def test_a_key_stands_for_its_owner_with_its_scopes(db: Database) -> None:
    """KEY-1"""
    found = use(db, add_key(db, scopes=("read", "ask")))
    assert (found.id, found.is_admin, found.scopes) == (ADA.id, False, frozenset({"read", "ask"}))


def test_the_statements_of_a_key_see_no_keys_and_make_none(db: Database) -> None:
    """KEY-1: also where a route forgets to ask"""
    holder = use(db, add_key(db, scopes=("read", "ask", "write")))
    assert (count_keys(db, holder), count_keys(db, ADA)) == (0, 1)
    with pytest.raises(errors.NotAllowedError):
        add_key(db, holder)
    with db.as_user(holder) as connection:
        assert connection.execute("delete from rag.api_keys").rowcount == 0


def test_an_owner_cannot_read_hashes_or_lengthen_a_key(db: Database) -> None:
    """KEY-1"""
    add_key(db)
    for statement in ("select key_hash from rag.api_keys", "update rag.api_keys set expires_at = 'infinity'"):
        with pytest.raises(errors.NotAllowedError), db.as_user(ADA) as connection:
            connection.execute(statement.encode())


@pytest.mark.parametrize(
    "change",
    [
        "update auth.users set banned_until = now() + interval '1 hour'",
        "update auth.users set deleted_at = now()",
        "delete from auth.users",
    ],
)
def test_a_key_stops_with_the_account_of_its_owner(db: Database, accounts: Any, change: str) -> None:
    """KEY-1"""
    key = add_key(db)
    assert use(db, key, checks_account=True).id == ADA.id
    accounts.execute(change)
    with pytest.raises(errors.NotSignedInError):
        use(db, key, checks_account=True)


def test_an_account_whose_suspension_is_over_has_its_keys_again(db: Database, accounts: Any) -> None:
    """KEY-1"""
    accounts.execute("update auth.users set banned_until = now() - interval '1 second'")
    assert use(db, add_key(db), checks_account=True).id == ADA.id


def test_simultaneous_requests_are_all_counted(db: Database, database: str) -> None:
    """KEY-1, OPS-5"""
    left = 60 - time.time() % 60
    time.sleep(left if left < 5 else 0)  # the count begins anew with each minute
    key = add_key(db)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: use(db, key), range(40)))
    with psycopg.connect(database) as own:
        assert own.execute("select used from rag.api_keys").fetchall() == [(40,)]


def test_keys_of_two_users_are_apart(db: Database) -> None:
    """KEY-1, SEC-2"""
    add_key(db)
    add_key(db, BOB)
    assert [count_keys(db, user) for user in (ADA, BOB, replace(ADA, is_admin=True))] == [1, 1, 1]
