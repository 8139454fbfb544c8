"""Two administrators change embedding servers at the same moment, and neither undoes what the other did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Connection
from functions.adapters.postgres.embedding import administration
from functions.core import errors
from functions.runtime import embedding_servers, reindexing
from tests.handlers.administration.conftest import FACT, add, change, listed, work
from tests.handlers.conftest import Caller
from tests.support.fakes.model_server import FakeModelServer


def race(caller: Caller, first: Callable[[Connection], object], second: Callable[[], object]) -> BaseException | None:
    """What `second` raises if it begins before the transaction of `first` ends."""
    with ThreadPoolExecutor(1) as pool:
        with caller.services.database.as_worker() as connection:
            first(connection)
            running = pool.submit(second)
            time.sleep(0.5)
        return running.exception(20)


def defaults(caller: Caller) -> list[tuple[str, bool]]:
    return [(name, row["active"]) for name, row in listed(caller).items() if row["is_default"]]


def test_a_change_during_the_trial_of_another_is_not_undone(caller: Caller, other: FakeModelServer) -> None:
    """SET-1, SET-4"""
    server_id = add(caller, other).json["id"]
    quick = other.embed

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        other.embed = quick
        embedding_servers.change(caller.services, server_id, {"price_per_million_tokens": 2.0}, caller.user)
        return quick(texts)

    other.embed = embed
    assert change(caller, "other", api_key_env="OTHER_API_KEY").problem == (409, "conflict")
    assert (listed(caller)["other"]["price_per_million_tokens"], change(caller, "other", batch_size=3).status) == (
        2,
        200,
    )


def test_a_server_that_becomes_the_default_is_not_switched_off(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    server_id = add(caller, other).json["id"]
    fault = race(
        caller,
        lambda connection: administration.make_default(connection, server_id, caller.user),
        lambda: embedding_servers.change(caller.services, server_id, {}, caller.user, active=False),
    )
    assert (type(fault), defaults(caller)) == (errors.ConflictError, [("other", True)])


def test_a_server_that_becomes_the_default_is_not_removed(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    server_id = add(caller, other).json["id"]
    fault = race(
        caller,
        lambda connection: administration.make_default(connection, server_id, caller.user),
        lambda: embedding_servers.remove(caller.services, server_id, caller.user),
    )
    assert (type(fault), defaults(caller)) == (errors.ConflictError, [("other", True)])


def test_a_server_that_is_removed_does_not_become_the_default(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    server_id = add(caller, other).json["id"]
    fault = race(
        caller,
        lambda connection: remove(connection, server_id, caller),
        lambda: embedding_servers.change(caller.services, server_id, {}, caller.user, is_default=True),
    )
    assert (type(fault), defaults(caller)) == (errors.NotFoundError, [("fake-model", True)])


def test_the_library_does_not_move_to_a_server_that_is_removed(caller: Caller, other: FakeModelServer) -> None:
    """SET-6"""
    server_id = add(caller, other).json["id"]
    fault = race(
        caller,
        lambda connection: remove(connection, server_id, caller),
        lambda: reindexing.move(caller.services, server_id, caller.user),
    )
    assert (type(fault), defaults(caller)) == (errors.NotFoundError, [("fake-model", True)])


def test_two_servers_that_are_added_at_once_do_not_share_a_name(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    add(caller, other)
    with caller.services.database.as_worker() as connection:
        present = stored_settings.find_server(connection, listed(caller)["other"]["id"]).server
    twin = replace(present, id="", name="twin")
    fault = race(
        caller,
        lambda connection: administration.save_server(connection, twin, caller.user),
        lambda: embedding_servers.add(caller.services, twin, caller.user, finds_size=False, is_default=False),
    )
    assert isinstance(fault, errors.ConflictError)


def remove(connection: Connection, server_id: str, caller: Caller) -> None:
    administration.remove_server(connection, administration.hold_server(connection, server_id), caller.user)


def test_a_server_that_is_removed_while_a_worker_indexes_with_it_costs_the_document_nothing(
    caller: Caller, other: FakeModelServer, nudges: list[int]
) -> None:
    """SET-1, ING-11"""
    present = listed(caller)["fake-model"]["id"]
    server_id = add(caller, other, is_default=True).json["id"]
    worker, quick = caller.services.make_worker(), other.embed
    document = caller.announce()
    job = caller.store(document, FACT)

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        other.embed = quick
        embedding_servers.change(caller.services, present, {}, caller.user, is_default=True)
        embedding_servers.remove(caller.services, server_id, caller.user)
        return quick(texts)

    other.embed = embed
    worker.ingest_next(job)
    caller.row("update rag.ingest_jobs set run_after = now() returning id")  # the pause before the next attempt is over
    work(nudges)
    found = caller.call("documents", "GET", f"/api/rag/documents/{document['id']}").json
    assert (found["status"], found["embedding_model"]) == ("indexed", "fake-model")
