"""Administrators add, try, change, switch off and remove embedding servers without SQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from tests.handlers.administration.conftest import FACT, ROUTE, add, change, listed, work
from tests.handlers.conftest import Caller
from tests.handlers.events import Json
from tests.support.fakes.model_server import FakeModelServer, Reply, word_vector

SIZES = (384, 768, 1024, 1536, 3072)


def search(caller: Caller) -> Json:
    query = "q=What+does+the+boiler+burn%3F&debug=true"
    return dict(caller.call("search", "GET", "/api/rag/search", query=query).json)


def test_a_server_is_added_with_the_dimensions_that_it_returns(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    added = add(caller, other, model="e5-base-v2", api_key_env="OTHER_API_KEY")
    assert added.status == 201
    assert added.json == listed(caller)["other"] | {
        "dimensions": 96,
        "base_url": other.base_url,
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
        "api_key_env": "OTHER_API_KEY",
        "key_is_set": True,
        "is_default": False,
        "documents": 0,
    }
    assert other.requests[-1]["headers"]["authorization"] == "Bearer sk-other"
    assert b"sk-other" not in added.content


def test_a_server_that_does_not_work_is_not_added(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    other.script(Reply(status=401))
    refused = add(caller, other)
    assert refused.problem == (502, "model_rejected")
    assert refused.json["detail"].startswith("The model server refused the key.")
    wrong = add(caller, other, dimensions=64)
    assert "returns 96 dimensions, but 64 are configured" in wrong.json["detail"]
    assert list(listed(caller)) == ["fake-model"]


def test_a_model_with_more_dimensions_than_can_be_stored_is_refused(caller: Caller) -> None:
    """SET-1"""
    with FakeModelServer(dimensions=4001) as large:
        answer = add(caller, large)
    assert (answer.problem, "returns 4001 dimensions" in answer.json["detail"]) == ((502, "model_rejected"), True)


@pytest.mark.parametrize("fields", [{}, {"documents": "words"}], ids=str)
def test_a_change_that_names_nothing_is_refused(caller: Caller, fields: Json) -> None:
    """SET-1"""
    assert change(caller, "fake-model", **fields).problem == (400, "invalid_input")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"base_url": "ftp://models"}, "http://"),
        ({"base_url": "http://ada:secret@models/v1"}, "api_key_env"),
        ({"base_url": "http://models/v1?key=1"}, "?"),
        ({"api_key_env": "sk-0123456789"}, "never the key itself"),
        ({"api_key_env": "SUPABASE_SECRET_KEY"}, "_API_KEY"),
        ({"dimensions": 0}, "greater"),
        ({"dimensions": 4001}, "less"),
        ({"max_input_tokens": 15}, "greater"),
        ({"batch_size": 0}, "greater"),
        ({"languages": ["english"]}, "pattern"),
        ({"price_per_million_tokens": -1}, "greater"),
        ({"name": " "}, "at least 1"),
        ({"key": "sk-0123456789"}, "Extra"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_wrong_field_is_named(caller: Caller, other: FakeModelServer, fields: Json, word: str) -> None:
    """SET-1"""
    answer = add(caller, other, **fields)
    assert (answer.status, word in answer.json["detail"]) == (400, True)
    assert answer.json["faults"][0]["key"].split(".")[0] == next(iter(fields))
    assert other.requests == []


def test_a_variable_that_is_not_set_is_named(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    answer = add(caller, other, api_key_env="MISSING_API_KEY")
    assert (answer.status, answer.json["detail"]) == (
        400,
        "The environment variable MISSING_API_KEY is not set. Set it first.",
    )


def test_two_servers_do_not_share_a_name(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    assert (add(caller, other).status, add(caller, other).problem) == (201, (409, "conflict"))


def test_servers_of_five_sizes_are_searched_side_by_side(caller: Caller) -> None:
    """SET-1, RET-6: without a migration."""
    with ExitStack() as stack:
        for size in SIZES:
            server = stack.enter_context(FakeModelServer(dimensions=size))
            assert add(caller, server, f"size-{size}", is_default=True).json["dimensions"] == size
            document = caller.add(FACT + str(size).encode(), f"boiler-{size}.txt")
            assert (document["embedding_model"], document["embedding_dim"]) == (f"size-{size}-model", size)
        found = search(caller)
        counts = {row["dimensions"]: row["documents"] for row in listed(caller).values() if row["documents"]}
    assert counts == dict.fromkeys(SIZES, 1)
    assert (len(found["hits"]), found["degraded"]) == (5, [])
    assert all(hit["arms"]["vector_rank"] for hit in found["hits"])


def test_exactly_one_server_is_the_default(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    add(caller, other)
    assert change(caller, "other", is_default=True).json["is_default"] is True
    assert {name: row["is_default"] for name, row in listed(caller).items()} == {"other": True, "fake-model": False}
    assert change(caller, "fake-model", is_default=False).status == 400


def test_a_server_that_an_administrator_chose_is_not_the_business_of_the_environment(
    caller: Caller, other: FakeModelServer
) -> None:
    """SET-1"""
    add(caller, other, is_default=True)
    assert [server.name for server in caller.services.policy().servers] == ["other"]
    assert caller.call("settings", "GET", ROUTE).json["can_adopt"] is False


def test_a_server_without_documents_that_is_not_the_default_is_not_asked(
    caller: Caller, other: FakeModelServer
) -> None:
    """RET-6"""
    add(caller, other)
    other.requests.clear()
    caller.add(FACT)
    assert (len(search(caller)["hits"]), other.requests) == (1, [])


def test_the_trial_tells_dimensions_prefixes_and_speed(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    server_id = add(caller, other, model="e5-base-v2", query_prefix="").json["id"]
    found = caller.call("settings", "POST", f"{ROUTE}/{server_id}/test").json
    assert found.pop("milliseconds") > 0
    assert found.pop("texts_per_second") > 0
    assert found == {
        "ok": True,
        "error": None,
        "dimensions": {"configured": 96, "returned": 96},
        "prefixes": {
            "configured": {"query": "", "passage": "passage: "},
            "suggested": {"query": "query: ", "passage": "passage: "},
        },
    }


def test_the_trial_says_in_words_why_a_server_does_not_work(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    server_id = add(caller, other).json["id"]
    other.script(Reply(vectors=[[1.0, 0.0]] * 8))
    found = caller.call("settings", "POST", f"{ROUTE}/{server_id}/test").json
    assert (found["ok"], found["error"]["code"]) == (False, "model_rejected")
    assert found["dimensions"] == {"configured": 96, "returned": 2}
    assert "returns 2 dimensions, but 96 are configured" in found["error"]["detail"]


def test_texts_are_embedded_with_the_prefix_of_a_question_or_a_passage(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    server_id = add(caller, other, model="e5-base-v2").json["id"]
    body = {"texts": ["wood"], "server_id": server_id, "kind": "passage"}
    found = caller.call("settings", "POST", "/api/rag/embed", body).json
    assert (found["prefix"], found["dimensions"], len(found["embeddings"][0])) == ("passage: ", 96, 96)
    assert other.embeddings[-1]["input"] == ["passage: wood"]
    assert caller.call("settings", "POST", "/api/rag/embed", {"texts": []}).status == 400


def test_a_changed_address_serves_the_next_question(caller: Caller, model: FakeModelServer) -> None:
    """SET-1: without a restart."""
    caller.add(FACT)
    with FakeModelServer(dimensions=64) as elsewhere:
        assert change(caller, "fake-model", base_url=elsewhere.base_url).status == 200
        model.requests.clear()
        assert search(caller)["hits"][0]["arms"]["vector_rank"] == 1
        assert (len(elsewhere.embeddings) > 0, model.requests) == (True, [])
    assert caller.call("settings", "GET", ROUTE).json["can_adopt"] is False


def test_an_address_that_does_not_work_is_refused_and_changes_nothing(caller: Caller, model: FakeModelServer) -> None:
    """SET-1"""
    answer = change(caller, "fake-model", base_url="http://127.0.0.1:1/v1")
    assert answer.problem == (503, "model_unavailable")
    assert listed(caller)["fake-model"]["base_url"] == model.base_url


def test_an_address_with_another_model_is_refused_where_documents_are_indexed(caller: Caller) -> None:
    """SET-2: vectors of two models are never mixed."""
    caller.add(FACT)

    def turn(texts: Sequence[str]) -> list[list[float]]:
        return [word_vector(text, 64)[::-1] for text in texts]

    with FakeModelServer(dimensions=64, embed=turn) as elsewhere:
        answer = change(caller, "fake-model", base_url=elsewhere.base_url)
    assert answer.problem == (409, "conflict")
    assert "other vectors than those of its documents" in answer.json["detail"]


def test_the_price_of_a_server_that_is_down_can_be_changed(caller: Caller, model: FakeModelServer) -> None:
    """SET-1"""
    model.script(*[Reply(status=401)] * 3)
    assert change(caller, "fake-model", price_per_million_tokens=0.02).json["price_per_million_tokens"] == 0.02


def test_another_size_of_a_server_that_holds_nothing_spares_a_worker_that_is_indexing(
    caller: Caller, model: FakeModelServer, other: FakeModelServer, nudges: list[int]
) -> None:
    """SET-2: the vectors of a server have one size, whoever changes it when."""
    worker = caller.services.make_worker()
    job = caller.store(caller.announce(), FACT)
    changed = change(caller, "fake-model", base_url=other.base_url, dimensions=96).json
    assert (changed["name"], changed["dimensions"], changed["is_default"]) == ("fake-model", 96, True)
    worker.ingest_next(job)
    assert search(caller)["hits"][0]["arms"]["vector_rank"] == 1
    for _ in range(3):
        work(nudges)
    assert [(row["dimensions"], row["documents"]) for row in listed(caller).values() if row["active"]] == [(96, 1)]
    assert search(caller)["hits"][0]["arms"]["vector_rank"] == 1


def test_another_model_for_a_server_that_holds_documents_asks_first(caller: Caller) -> None:
    """SET-2"""
    caller.add(FACT)
    answer = change(caller, "fake-model", model="e5-base-v2")
    assert (answer.problem, answer.json["documents"], answer.json["notes"]) == ((409, "server_in_use"), 1, 0)
    assert listed(caller)["fake-model"]["model"] == "fake-model"


def test_another_model_for_the_default_server_moves_the_library(caller: Caller, nudges: list[int]) -> None:
    """SET-2, SET-6"""
    document = caller.add(FACT)
    changed = change(caller, "fake-model", model="e5-base-v2", passage_prefix="passage: ", documents="reindex").json
    assert (changed["model"], changed["is_default"]) == ("e5-base-v2", True)
    work(nudges)
    work(nudges)
    found = caller.call("documents", "GET", f"/api/rag/documents/{document['id']}").json
    assert (found["embedding_server_id"], found["embedding_model"]) == (changed["id"], "e5-base-v2")


def test_a_server_that_holds_documents_is_not_switched_off_without_a_word_on_them(
    caller: Caller, other: FakeModelServer
) -> None:
    """SET-1"""
    caller.add(FACT)
    add(caller, other, is_default=True)
    answer = change(caller, "fake-model", active=False)
    assert (answer.problem, answer.json["documents"], answer.json["notes"]) == ((409, "server_in_use"), 1, 0)
    assert '"reindex"' in answer.json["detail"]
    assert search(caller)["hits"][0]["arms"]["vector_rank"] == 1


def test_its_documents_can_stay_on_their_words(caller: Caller, other: FakeModelServer, model: FakeModelServer) -> None:
    """SET-1, OPS-4"""
    caller.add(FACT)
    add(caller, other, is_default=True)
    assert change(caller, "fake-model", active=False, documents="words").json["active"] is False
    model.requests.clear()
    assert (search(caller)["hits"][0]["arms"]["vector_rank"], model.requests) == (None, [])
    told = caller.call("settings", "GET", ROUTE).json
    assert told["words_alone"] == [{"name": "fake-model", "sources": 1}]
    assert change(caller, "fake-model", active=True).status == 200
    assert search(caller)["hits"][0]["arms"]["vector_rank"] == 1


def test_its_documents_can_move_to_the_default_server(
    caller: Caller, other: FakeModelServer, nudges: list[int]
) -> None:
    """SET-1, SET-6"""
    caller.add(FACT)
    add(caller, other, is_default=True)
    assert change(caller, "fake-model", active=False, documents="reindex").json["is_leaving"] is True
    for _ in range(3):
        work(nudges)
    rows = {name: (row["active"], row["documents"]) for name, row in listed(caller).items()}
    assert rows == {"other": (True, 1), "fake-model": (False, 0)}
    assert search(caller)["hits"][0]["arms"]["vector_rank"] == 1


def test_the_default_server_is_neither_switched_off_nor_removed(caller: Caller) -> None:
    """SET-1"""
    server_id = listed(caller)["fake-model"]["id"]
    assert change(caller, "fake-model", active=False).problem == (409, "conflict")
    assert caller.call("settings", "DELETE", f"{ROUTE}/{server_id}").problem == (409, "conflict")


def test_a_server_that_holds_nothing_is_removed(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    caller.add(FACT)
    server_id = add(caller, other, is_default=True).json["id"]
    holding = listed(caller)["fake-model"]["id"]
    assert caller.call("settings", "DELETE", f"{ROUTE}/{holding}").problem == (409, "server_in_use")
    change(caller, "fake-model", is_default=True)
    assert caller.call("settings", "DELETE", f"{ROUTE}/{server_id}").status == 204
    assert caller.call("settings", "DELETE", f"{ROUTE}/{server_id}").problem == (404, "not_found")
    assert list(listed(caller)) == ["fake-model"]


def test_every_change_of_a_server_is_audited(caller: Caller, other: FakeModelServer) -> None:
    """SET-4"""
    add(caller, other)
    change(caller, "other", name="renamed", batch_size=7)
    with caller.services.database.as_worker() as connection:
        rows = connection.execute(
            "select old_value, new_value, changed_by::text as by from rag.settings_audit order by id desc limit 2"
        ).fetchall()
    assert rows[0] == {
        "old_value": {"name": "other", "batch_size": 20},
        "new_value": {"name": "renamed", "batch_size": 7},
        "by": caller.user.id,
    }
    assert (rows[1]["old_value"], rows[1]["new_value"]["name"]) == (None, "other")


def test_a_local_server_is_added_by_its_name_alone(caller: Caller) -> None:
    """SET-1"""
    body = {"name": "here", "kind": "local", "model": "multilingual-e5-small"}
    added = caller.call("settings", "POST", ROUTE, body).json
    assert (added["dimensions"], added["token_level"], added["passage_prefix"]) == (384, True, "passage: ")
    unknown = caller.call("settings", "POST", ROUTE, body | {"name": "there", "model": "unknown"})
    assert "There are multilingual-e5-small and all-MiniLM-L6-v2" in unknown.json["detail"]


def test_a_local_server_has_the_dimensions_of_its_model(caller: Caller) -> None:
    """SET-1"""
    caller.call("settings", "POST", ROUTE, {"name": "here", "kind": "local", "model": "multilingual-e5-small"})
    refused = change(caller, "here", dimensions=385)
    assert (refused.problem, "has 384 dimensions, not 385" in refused.json["detail"]) == ((502, "model_rejected"), True)


def test_another_local_model_brings_what_is_known_of_it(caller: Caller) -> None:
    """SET-1"""
    caller.call("settings", "POST", ROUTE, {"name": "here", "kind": "local", "model": "multilingual-e5-small"})
    changed = change(caller, "here", model="all-MiniLM-L6-v2").json
    known = ("model", "passage_prefix", "max_input_tokens", "languages")
    assert [changed[name] for name in known] == ["sentence-transformers/all-MiniLM-L6-v2", "", 254, ["en"]]


def test_another_model_brings_its_prefixes_unless_others_were_given(caller: Caller, other: FakeModelServer) -> None:
    """SET-1"""
    add(caller, other)
    changed = change(caller, "other", model="e5-base-v2").json
    assert (changed["query_prefix"], changed["passage_prefix"]) == ("query: ", "passage: ")
    change(caller, "other", query_prefix="ask: ")
    assert change(caller, "other", model="plain").json["query_prefix"] == "ask: "


@pytest.mark.parametrize(
    "address", ["http://a b/v1", "http://models:99999/v1", "http://[::1/v1", "http://models:abc/v1"]
)
def test_an_address_that_no_request_can_go_to_is_refused(caller: Caller, other: FakeModelServer, address: str) -> None:
    """SET-1"""
    assert add(caller, other, base_url=address).problem == (400, "invalid_input")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ROUTE),
        ("POST", ROUTE),
        ("PATCH", f"{ROUTE}/00000000-0000-4000-8000-000000000000"),
        ("DELETE", f"{ROUTE}/00000000-0000-4000-8000-000000000000"),
        ("POST", f"{ROUTE}/00000000-0000-4000-8000-000000000000/test"),
        ("POST", "/api/rag/embed"),
    ],
)
def test_nobody_else_reaches_the_servers(caller: Caller, method: str, path: str) -> None:
    """SET-4"""
    assert Caller(caller.services).call("settings", method, path, {}).problem == (403, "not_admin")
