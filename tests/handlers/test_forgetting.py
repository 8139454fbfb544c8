"""Forgetting a user deletes all of their data and none of anybody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from functions.adapters.laptop.object_store import LocalObjectStore
from functions.adapters.postgres.search import save_translation
from functions.core import errors
from functions.local import forget_user
from functions.runtime.services import Services
from tests.handlers.conftest import Caller
from tests.support import library

FACT = b"The boiler burns wood chips in winter."

OWNED = """
    select c.table_name::text as name
    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = 'rag' and c.column_name = 'owner_id' and t.table_type = 'BASE TABLE' order by 1
"""


def fill(services: Services) -> Caller:
    """A user with at least one row in every table that has owners."""
    caller = Caller(services, admin=True)
    document = caller.add(FACT)
    notebook = caller.call("notebooks", "POST", "/api/rag/notebooks", {"title": "Heating"}).json
    body = {"title": "Boiler", "content": "Ask the plumber.", "notebook_id": notebook["id"]}
    caller.call("notebooks", "POST", "/api/rag/notes", body)
    services.make_worker().ingest_next()
    asked = caller.call("chat", "POST", "/api/rag/chat", {"query": "What does the boiler burn?"}).json
    attach = {"document_ids": [document["id"]]}
    caller.call("conversations", "PUT", f"/api/rag/conversations/{asked['conversation_id']}/documents", attach)
    caller.call("settings", "PATCH", "/api/rag/settings", {"context_turns": 4})
    caller.call("settings", "POST", "/api/rag/keys", {"name": "script", "scopes": ["read"]})
    library.translate_everything(services.database)
    save_translation(services.database, caller.user, "0" * 64, "fr", "Que brûle la chaudière ?")
    assert services.config.database_url is not None
    library.write_posting_lists(services.config.database_url.get_secret_value())
    return caller


def count_rows(services: Services, caller: Caller) -> dict[str, int]:
    with services.database.as_worker() as connection:
        tables = [row["name"] for row in connection.execute(OWNED).fetchall()]
        return {
            table: connection.execute(
                f"select count(*) as n from rag.{table} where owner_id = %s".encode(), (caller.user.id,)
            ).fetchall()[0]["n"]
            for table in tables
        }


@pytest.fixture
def ada(fresh_services: Services) -> Caller:
    return fill(fresh_services)


def test_forgetting_deletes_every_row_of_the_user_and_none_of_others(ada: Caller, fresh_services: Services) -> None:
    bob = fill(fresh_services)
    before = count_rows(fresh_services, bob)
    assert {table for table, rows in before.items() if rows == 0} == set()
    removed = forget_user.forget_user(fresh_services, ada.user.id)
    assert set(count_rows(fresh_services, ada).values()) == {0}
    assert count_rows(fresh_services, bob) == before
    assert removed == {"conversations": 1, "documents": 1, "notebooks": 1, "notes": 1, "objects": 1}


def test_all_stored_files_are_deleted_even_without_a_document(ada: Caller, fresh_services: Services) -> None:
    store = fresh_services.objects
    assert isinstance(store, LocalObjectStore)
    stray = ada.announce("late.txt")
    ada.store(stray, b"came late")
    ada.row("delete from rag.documents where id = %s returning id", stray["id"])
    assert forget_user.forget_user(fresh_services, ada.user.id)["objects"] == 2
    with fresh_services.database.autocommit() as connection:
        left = connection.execute("select name from storage.objects where name like %s", (f"{ada.user.id}/%",))
        assert left.fetchall() == []
    assert not list((fresh_services.config.home / "storage").rglob(f"*{ada.user.id}*/**/original.*"))


def test_the_audit_keeps_its_rows_without_the_users_name(ada: Caller, fresh_services: Services) -> None:
    forget_user.forget_user(fresh_services, ada.user.id)
    lines = ada.row("select count(*) as n, count(changed_by) as named from rag.settings_audit")
    assert lines == {"n": 1, "named": 0}


def test_forgetting_works_in_batches_and_can_be_repeated(ada: Caller, fresh_services: Services) -> None:
    for n in range(4):
        ada.announce(f"{n}.txt")
    assert forget_user.forget_user(fresh_services, ada.user.id, batch_size=2)["documents"] == 5
    assert set(forget_user.forget_user(fresh_services, ada.user.id).values()) == {0}


def test_duplicates_are_counted_with_their_original_document(ada: Caller, fresh_services: Services) -> None:
    worker = fresh_services.make_worker()
    for n in range(3):
        worker.ingest_next(ada.store(ada.announce(f"{n}.txt", len(FACT)), FACT))
    assert forget_user.forget_user(fresh_services, ada.user.id, batch_size=2)["documents"] == 4


def test_a_worker_saves_nothing_for_a_user_forgotten_during_ingestion(ada: Caller, fresh_services: Services) -> None:
    job_id = ada.store(ada.announce("new.txt"), b"The chimney was swept in May, and again in September.")
    worker = fresh_services.make_worker()
    download = worker.objects.download

    def forget_meanwhile(path: str, target: Path) -> None:
        download(path, target)
        forget_user.forget_user(fresh_services, ada.user.id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker.objects, "download", forget_meanwhile)
        outcome = worker.ingest_next(job_id)
    assert outcome is not None
    assert outcome.status == "superseded"
    assert set(count_rows(fresh_services, ada).values()) == {0}


def test_a_user_is_found_by_id_or_local_name_and_a_blank_is_refused(ada: Caller, fresh_services: Services) -> None:
    assert forget_user.find_user_id(fresh_services, ada.user.id.upper()) == ada.user.id
    assert forget_user.find_user_id(fresh_services, "ada") != ada.user.id
    with pytest.raises(errors.InvalidInputError):
        forget_user.find_user_id(fresh_services, " ")


def test_no_signed_in_user_can_forget_anybody(ada: Caller, fresh_services: Services) -> None:
    """SEC-2"""
    with pytest.raises(errors.NotAllowedError), fresh_services.database.as_user(ada.user) as connection:
        connection.execute("select rag.forget_user(%s, 100)", (ada.user.id,))
