"""Questions with a language model over HTTP: when text is streamed, and what is saved when the model fails."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from functions.web import sse
from tests.support.fakes.model_server import FakeModelServer, Reply, answer, answer_json, pieces
from tests.support.local_server import Json, LocalServer, Person, problem_of, run_local_server, wait_until

FACTS = "The boiler burns wood chips. It was built by Marta Olsen in 1931. The chimney is forty metres tall."
QUESTION = "What does the boiler burn?"
OFF_TOPIC = "Which prince married the dancer of the Bolshoi?"
LONG = "The boiler burns wood chips, and the chimney above it is forty metres tall, as Marta Olsen built it in 1931."

Timed = list[tuple[float, str]]


@pytest.fixture(scope="module")
def library(thinking: LocalServer, server: LocalServer) -> Iterator[Person]:
    with thinking.person("asker") as person:
        document_id = person.add_bytes("boiler.txt", FACTS.encode())["id"]
        assert person.follow(document_id)["status"] == "indexed"
        person.ask(QUESTION)  # the first question waits for imports
        yield person


@pytest.fixture
def asker(library: Person, model: FakeModelServer) -> Person:
    """A user whose next question meets a model without scripted faults."""
    model.requests.clear()
    model.closed_early.clear()
    assert not model._replies
    return library


def segment(model: FakeModelServer) -> str:
    """The id of the passage in the model's last prompt."""
    prompt = model.chats[-1]["messages"][-1]["content"]
    return str(prompt.split("[SEG=")[1].split("]")[0])


def messages(person: Person, conversation_id: str) -> list[Json]:
    items: list[Json] = person.get(f"/conversations/{conversation_id}/messages")["items"]
    return items


def last_conversation(person: Person) -> str:
    return str(person.get("/conversations", limit=1)["items"][0]["id"])


@contextmanager
def streaming(person: Person, query: str = QUESTION, **fields: Any) -> Iterator[httpx.Response]:
    body = {"query": query, "stream": True} | fields
    with person.http.stream("POST", "/api/rag/chat", json=body) as response:
        assert response.status_code == 200
        yield response


def read_timed(response: httpx.Response) -> Timed:
    """Every network read, with the seconds since the first one."""
    started = time.monotonic()
    return [(time.monotonic() - started, text) for text in response.iter_text()]


def events_of(text: str) -> list[Json]:
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line.startswith("data: ")]


def stream_all(person: Person, query: str = QUESTION) -> list[Json]:
    with streaming(person, query) as response:
        return events_of("".join(response.iter_text()))


# Streaming


def test_text_arrives_while_the_model_is_still_writing(asker: Person, model: FakeModelServer) -> None:
    """CHAT-2"""
    model.script(Reply(pieces(answer_json((LONG, [])), 6), delay=0.03))
    with streaming(asker) as response:
        reads = read_timed(response)
    texts = [at for at, text in reads if '"text": "' in text and '"done"' not in text]
    done = next(at for at, text in reads if '"done": true' in text)
    assert len(texts) >= 10
    assert texts[0] < done / 3
    assert texts[-1] - texts[0] > done / 3
    events = events_of("".join(text for _, text in reads))
    assert "".join(event.get("text", "") for event in events) == LONG


def test_the_conversation_id_is_sent_before_the_first_word(asker: Person) -> None:
    events = stream_all(asker)
    assert list(events[0]) == ["meta"]
    assert events[0]["meta"]["conversation_id"] == events[-1]["conversation_id"] == last_conversation(asker)


def test_pings_are_sent_while_the_model_is_slow(
    asker: Person, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CHAT-2"""
    monkeypatch.setattr(sse, "PING_SECONDS", 0.1)
    model.script(Reply([answer_json((LONG, []))], delay=0.35))
    with streaming(asker) as response:
        text = "".join(response.iter_text())
    assert text.count(": ping\n\n") >= 3
    assert events_of(text)[-1]["mode"] == "model"


def test_no_database_connection_is_held_while_the_model_writes(
    server: LocalServer, asker: Person, model: FakeModelServer
) -> None:
    model.script(Reply(pieces(answer_json((LONG, [])), 20), delay=0.1))
    config = server.services.config
    assert config.database_url is not None
    states: list[set[str]] = []
    with (
        server.worker.paused(),
        psycopg.connect(config.database_url.get_secret_value(), autocommit=True) as connection,
        streaming(asker) as response,
    ):
        for text in response.iter_text():
            if '"text"' in text and '"done"' not in text:
                rows = connection.execute(
                    "select distinct state || case when xact_start is null then '' else ' with a transaction' end"
                    " as state from pg_stat_activity"
                    " where datname = current_database() and application_name = 'ibid'"
                ).fetchall()
                states.append({str(row[0]) for row in rows})
    assert len(states) > 3
    assert states[:-1] == [{"idle"}] * (len(states) - 1)


# Answers of the model


def test_an_answer_is_cited_and_saved_with_its_tokens(asker: Person, model: FakeModelServer) -> None:
    """CHAT-4, CHAT-5"""
    given = asker.ask(QUESTION)
    assert given["answer"] == "The boiler burns wood chips. [1]"
    assert (given["status"], given["mode"]) == ("complete", "model")
    source = given["sources"][0]
    assert (source["quote"], source["check"]) == ("The boiler burns wood chips.", "exact")
    assert FACTS[source["start_offset"] : source["end_offset"]] == source["quote"]
    assert given["usage"]["model"] == "fake"
    assert given["usage"]["completion_tokens"] > 0
    saved = messages(asker, given["conversation_id"])[1]
    assert (saved["id"], saved["content"], saved["usage"]) == (given["message_id"], given["answer"], given["usage"])
    assert segment(model) == f"{source['document_id']}:{source['chunk_index']}"


def test_an_off_topic_question_never_reaches_the_model(asker: Person, model: FakeModelServer) -> None:
    """RET-8"""
    assert asker.ask(OFF_TOPIC)["mode"] == "guard"
    assert model.chats == []


def test_invented_ids_and_quotes_never_reach_the_answer(asker: Person, model: FakeModelServer) -> None:
    """CHAT-5"""
    invented = "00000000-0000-4000-8000-000000000000:7"
    model.script(answer(("The boiler burns wood chips.", [invented, "SEG=nonsense"], ["It burns pure gold."])))
    given = asker.ask(QUESTION)
    assert "00000000" not in json.dumps(given)
    assert "gold" not in json.dumps(given)
    assert [source["quote"] for source in given["sources"]] == ["The boiler burns wood chips."]


@pytest.mark.parametrize(
    "text",
    [
        "The boiler burns wood chips.",
        '{"sections": [{"text": "The boiler burns wood chips."',
        '```json\n{"sections": [{"text": "The boiler burns wood chips.", "source_ids": []}]}\n```',
    ],
    ids=["plain-text", "cut-json", "fenced-json"],
)
def test_an_answer_that_is_not_the_requested_json_is_still_cited(
    asker: Person, model: FakeModelServer, text: str
) -> None:
    """CHAT-5"""
    model.script(Reply(pieces(text)))
    given = asker.ask(QUESTION)
    assert given["answer"].startswith("The boiler burns wood chips.")
    assert [source["quote"] for source in given["sources"]] == ["The boiler burns wood chips."]


def test_an_empty_answer_is_replaced_by_quotations(asker: Person, model: FakeModelServer) -> None:
    """CHAT-6"""
    model.script(Reply(["{}"]))
    given = asker.ask(QUESTION)
    assert (given["mode"], given["status"]) == ("extractive", "complete")
    assert "wood chips" in given["answer"]


def test_a_follow_up_is_sent_to_the_model_with_the_earlier_turns(asker: Person, model: FakeModelServer) -> None:
    """CHAT-7"""
    first = asker.ask(QUESTION)
    asker.ask("Who built the boiler?", conversation_id=first["conversation_id"])
    turns = [(turn["role"], turn["content"]) for turn in model.chats[-1]["messages"][1:-1]]
    assert turns == [("user", QUESTION), ("assistant", "The boiler burns wood chips.")]


def test_refused_questions_are_not_part_of_the_history(asker: Person, model: FakeModelServer) -> None:
    """CHAT-7"""
    conversation = asker.ask(QUESTION)["conversation_id"]
    assert asker.ask(OFF_TOPIC, conversation_id=conversation)["mode"] == "guard"
    asker.ask("Who built the boiler?", conversation_id=conversation)
    turns = [turn["content"] for turn in model.chats[-1]["messages"][1:-1]]
    assert turns == [QUESTION, "The boiler burns wood chips."]


# When the model fails


def test_a_rate_limited_model_is_asked_again_after_its_retry_after(asker: Person, model: FakeModelServer) -> None:
    """ING-8"""
    started = time.monotonic()
    model.script(Reply(status=429, headers={"Retry-After": "1"}))
    assert asker.ask(QUESTION)["mode"] == "model"
    assert time.monotonic() - started >= 1.0
    assert len(model.chats) == 2


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=401), "model_rejected"),
        (Reply(status=404), "model_rejected"),
        (Reply(status=429, headers={"Retry-After": "99.5"}), "model_rate_limited"),
        (Reply(status=500, headers={"Retry-After": "60"}), "model_unavailable"),
        (Reply(status=502, raw=b"<html>Bad gateway</html>", headers={"Retry-After": "60"}), "model_unavailable"),
    ],
    ids=["key", "no-model", "limit", "fault", "proxy"],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_a_failing_model_is_replaced_by_passages_and_the_reason_is_kept(
    asker: Person, model: FakeModelServer, reply: Reply, code: str, streamed: bool
) -> None:
    """CHAT-2, CHAT-6, SEC-6"""
    model.script(reply)
    given = stream_all(asker)[-1] if streamed else asker.ask(QUESTION)
    assert (given["mode"], given["status"], given["usage"]["degraded"]) == ("extractive", "complete", code)
    assert "The boiler burns wood chips." in [source["quote"] for source in given["sources"]]
    assert not {"scripted", "html"} & set(given["answer"].split())
    question, kept = messages(asker, last_conversation(asker))
    assert (question["content"], kept["content"], kept["usage"]) == (QUESTION, given["answer"], given["usage"])


def test_an_unreachable_model_is_replaced_by_passages(server: LocalServer, library: Person) -> None:
    """CHAT-2, CHAT-6"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    config = server.services.config
    assert config.database_url is not None
    dsn = config.database_url.get_secret_value()
    with run_local_server(dsn, config.home, worker=False, chat_model="fake", openai_base_url=nobody) as lonely:
        headers = {"Authorization": f"Bearer {library.token}"}
        given = lonely.http.post("/api/rag/chat", json={"query": QUESTION}, headers=headers).json()
    assert (given["mode"], given["usage"]["degraded"]) == ("extractive", "model_unavailable")
    assert given["answer"].startswith("The language model could not answer")


@pytest.mark.parametrize("ending", ["cut", "silent", "error"])
def test_a_broken_connection_is_an_error_event_and_the_text_so_far_is_kept(
    asker: Person, model: FakeModelServer, ending: Any
) -> None:
    """CHAT-2"""
    model.script(Reply(pieces(answer_json((LONG, [])))[:12], ending=ending))
    *written, error = stream_all(asker)
    assert error["error"]["code"] == "model_unavailable"
    text = "".join(event.get("text", "") for event in written)
    assert text
    assert LONG.startswith(text)
    asked, kept = messages(asker, last_conversation(asker))
    assert (asked["content"], kept["status"], kept["mode"]) == (QUESTION, "interrupted", "model")
    assert kept["content"].startswith(text)


def test_an_answer_cut_at_the_token_limit_is_interrupted(asker: Person, model: FakeModelServer) -> None:
    model.script(Reply(pieces(answer_json((LONG, [])))[:12], ending="length"))
    given = asker.ask(QUESTION)
    assert given["status"] == "interrupted"
    assert messages(asker, given["conversation_id"])[1]["status"] == "interrupted"


def test_a_client_that_disconnects_stops_the_model_and_the_text_so_far_is_kept(
    asker: Person, model: FakeModelServer
) -> None:
    """CHAT-2"""
    model.script(Reply(pieces(answer_json((LONG * 20, [])), 8), delay=0.02))
    with streaming(asker) as response:
        seen = ""
        for text in response.iter_text():
            seen += text
            if seen.count('"text"') > 3:
                break
    assert model.closed_early.wait(5)
    conversation = last_conversation(asker)
    kept = wait_until(lambda: messages(asker, conversation)[1:])[0]
    assert (kept["status"], kept["mode"]) == ("interrupted", "model")
    assert (LONG * 20).startswith(kept["content"])
    assert 10 < len(kept["content"]) < len(LONG * 10)


def test_a_conversation_deleted_during_an_answer_stays_deleted(asker: Person, model: FakeModelServer) -> None:
    model.script(Reply(pieces(answer_json((LONG, [])), 12), delay=0.03))
    with streaming(asker) as response:
        chunks = response.iter_text()
        conversation = events_of(next(chunks))[0]["meta"]["conversation_id"]
        assert asker.http.delete(f"/api/rag/conversations/{conversation}").status_code == 204
        last = events_of("".join(chunks))[-1]
    assert last["error"]["code"] == "not_found"
    assert problem_of(asker.http.get(f"/api/rag/conversations/{conversation}/messages")) == (404, "not_found")


def test_two_concurrent_questions_each_keep_their_answer(asker: Person, model: FakeModelServer) -> None:
    """CHAT-11: in the history, the list, the export and the next prompt, whichever is answered first."""
    conversation = asker.ask(QUESTION)["conversation_id"]
    model.script(Reply(pieces(answer_json(("Slow words of wood chips.", [])), 4), delay=0.15))
    with streaming(asker, "What exactly does the boiler of the house burn?", conversation_id=conversation) as slow:
        lines = slow.iter_text()
        next(text for text in lines if '"text": ' in text)
        asker.ask("How tall is the chimney of the house, in metres?", conversation_id=conversation)
        list(lines)
    kept = [(message["role"], message["content"][:12]) for message in messages(asker, conversation)[2:]]
    assert [role for role, _ in kept] == ["user", "assistant"] * 2
    assert (kept[0][1], kept[1][1], kept[2][1]) == ("What exactly", "Slow words o", "How tall is ")
