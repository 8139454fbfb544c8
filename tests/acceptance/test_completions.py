"""OpenAI's own client against a library: answers, streams, scopes, histories, errors."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from functions.runtime import asking
from functions.web import sse
from tests.support.fakes.model_server import FakeModelServer, Reply, answer, answer_json, pieces
from tests.support.local_server import Json, LocalServer, Person

FACTS = "The boiler burns wood chips. It was built by Marta Olsen in 1931. The chimney is forty metres tall."
QUESTION = "What does the boiler burn?"
OFF_TOPIC = "Which prince married the dancer of the Bolshoi?"
LONG = "The boiler burns wood chips, and the chimney above it is forty metres tall, as Marta Olsen built it in 1931."
ANSWER = "The boiler burns wood chips."
SOURCES = f"\n\n**Sources**\n\n1. **boiler.txt**, part 1 (exact)\n\n   > {ANSWER}"


class Chatter:
    """A user who has only OpenAI's client."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.client = open_client(person, person.token)

    def create(self, *messages: Json | str, **fields: Any) -> Any:
        given = [said if isinstance(said, dict) else {"role": "user", "content": said} for said in messages]
        return self.client.chat.completions.create(**({"model": "ibid", "messages": given} | fields))

    def complete(self, *messages: Json | str, ibid: Json | None = None, **fields: Any) -> ChatCompletion:
        completion = self.create(*messages, **fields, extra_body={} if ibid is None else {"ibid": ibid})
        assert isinstance(completion, ChatCompletion)
        return completion

    def stream(self, *messages: Json | str, **fields: Any) -> list[ChatCompletionChunk]:
        with self.create(*messages, stream=True, **fields) as stream:
            return list(stream)

    def post(self, body: Any) -> httpx.Response:
        """Posts without the client, which refuses to send some bodies."""
        return self.person.http.post("/v1/chat/completions", json=body)


def open_client(person: Person, token: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{person.server.base_url}/v1", api_key=token, max_retries=0)


def assistant_message(text: str) -> Json:
    return {"role": "assistant", "content": text}


def ibid_field(completion: Any) -> Json:
    """The field `ibid` of an answer."""
    return dict(completion.ibid)


def text_of(completion: ChatCompletion) -> str:
    return completion.choices[0].message.content or ""


def join_texts(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def turns(model: FakeModelServer) -> list[tuple[str, str]]:
    """The messages to the model between the rules and the question."""
    return [(message["role"], message["content"]) for message in model.chats[-1]["messages"][1:-1]]


def question_body(**fields: Any) -> Json:
    return {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]} | fields


@pytest.fixture(scope="module")
def library(thinking: LocalServer, server: LocalServer) -> Iterator[Chatter]:
    with thinking.person("chatter") as person:
        assert person.follow(person.add_bytes("boiler.txt", FACTS.encode())["id"])["status"] == "indexed"
        chatter = Chatter(person)
        with chatter.client:
            chatter.complete(QUESTION)  # the first question waits for imports
            yield chatter


@pytest.fixture
def chatter(library: Chatter, model: FakeModelServer) -> Chatter:
    """A user whose next question meets a model without scripted faults."""
    model.requests.clear()
    model.closed_early.clear()
    assert not model._replies
    return library


@pytest.fixture
def quoter(ada: Person) -> Iterator[Chatter]:
    """A user with an empty library on a server without a model."""
    chatter = Chatter(ada)
    with chatter.client:
        yield chatter


# The models


def test_the_list_of_models_is_the_library_alone(chatter: Chatter) -> None:
    """CHAT-10"""
    (listed,) = chatter.client.models.list().data
    assert listed == chatter.client.models.retrieve("ibid")
    assert (listed.id, listed.object, listed.owned_by) == ("ibid", "model", "ibid")


# Whole answers


def test_an_answer_is_a_completion_with_marks_and_a_list_of_sources(chatter: Chatter) -> None:
    """CHAT-10"""
    given = chatter.complete(QUESTION)
    (choice,) = given.choices
    assert (given.object, given.model, choice.index, choice.finish_reason) == ("chat.completion", "ibid", 0, "stop")
    assert (choice.message.role, choice.message.content) == ("assistant", f"{ANSWER} [1]{SOURCES}")
    assert choice.message.annotations is None
    assert given.id.startswith("chatcmpl-")
    assert abs(given.created - time.time()) < 60


def test_fields_that_openais_protocol_lacks_are_under_ibid(chatter: Chatter) -> None:
    """CHAT-5"""
    found = ibid_field(chatter.complete(QUESTION))
    (section,), (source,) = found["sections"], found["sources"]
    assert {key: found[key] for key in found.keys() - {"sections", "sources"}} == {
        "scope": {"kind": "library"},
        "mode": "model",
        "status": "complete",
        "degraded": None,
        "search_degraded": [],
        "search_query": None,
        "translated_query": None,
    }
    assert (section["text"], section["citations"]) == (ANSWER, [1])
    assert (source["file_name"], source["quote"], source["check"]) == ("boiler.txt", ANSWER, "exact")
    assert FACTS[source["start_offset"] : source["end_offset"]] == ANSWER


def test_the_list_of_sources_can_be_left_out(chatter: Chatter) -> None:
    assert text_of(chatter.complete(QUESTION, ibid={"list_sources": False})) == f"{ANSWER} [1]"
    body = question_body(stream=True, ibid={"listSources": False})
    assert "**Sources**" not in chatter.post(body).text


def test_the_usage_is_what_the_model_server_counted(chatter: Chatter, model: FakeModelServer) -> None:
    usage = chatter.complete(QUESTION).usage
    assert usage is not None
    assert usage.prompt_tokens == sum(len(str(said["content"]).split()) for said in model.chats[-1]["messages"])
    assert usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_an_answer_without_a_model_is_quoted_and_uses_no_tokens(quoter: Chatter) -> None:
    """CHAT-6"""
    assert quoter.person.follow(quoter.person.add_bytes("boiler.txt", ANSWER.encode())["id"])["status"] == "indexed"
    given = quoter.complete(QUESTION)
    assert (text_of(given), ibid_field(given)["mode"]) == (f"{ANSWER} [1]{SOURCES}", "extractive")
    assert given.usage is not None
    assert (given.usage.prompt_tokens, given.usage.completion_tokens, given.usage.total_tokens) == (0, 0, 0)
    assert join_texts(quoter.stream(QUESTION)) == ANSWER + SOURCES


def test_a_question_that_the_library_cannot_answer_is_refused_by_the_guard(
    chatter: Chatter, model: FakeModelServer
) -> None:
    """RET-8"""
    given = chatter.complete(OFF_TOPIC)
    assert (given.choices[0].finish_reason, ibid_field(given)["mode"], ibid_field(given)["status"]) == (
        "stop",
        "guard",
        "guarded",
    )
    assert ibid_field(given)["sources"] == []
    assert join_texts(chatter.stream(OFF_TOPIC)) == text_of(given)
    assert model.chats == []


def test_an_answer_cut_at_the_token_limit_has_finish_reason_length(chatter: Chatter, model: FakeModelServer) -> None:
    model.script(*[Reply(pieces(answer_json((LONG, [])))[:12], ending="length")] * 2)
    given, chunks = chatter.complete(QUESTION), chatter.stream(QUESTION)
    assert (given.choices[0].finish_reason, ibid_field(given)["status"]) == ("length", "interrupted")
    assert (chunks[-1].choices[0].finish_reason, ibid_field(chunks[-1])["status"]) == ("length", "interrupted")
    assert "*This answer was interrupted before it was complete.*" in text_of(given)


def test_parameters_without_a_meaning_for_a_library_are_ignored(chatter: Chatter) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    given = chatter.complete(
        QUESTION,
        temperature=1.5,
        max_tokens=1,
        tools=[tool],
        tool_choice="auto",
        response_format={"type": "text"},
        n=1,
        user="ada",
        seed=7,
        store=True,
        metadata={"a": "b"},
    )
    assert text_of(given).startswith(ANSWER)


def test_a_question_may_be_sent_as_content_parts(chatter: Chatter, model: FakeModelServer) -> None:
    parts = [{"type": "text", "text": "What does"}, {"type": "text", "text": "the boiler burn?"}]
    assert text_of(chatter.complete({"role": "user", "content": parts})).startswith(ANSWER)
    assert "Question: What does\nthe boiler burn?\n\n" in model.chats[-1]["messages"][-1]["content"]


# Streams


def test_text_arrives_while_the_model_is_still_writing(chatter: Chatter, model: FakeModelServer) -> None:
    """CHAT-2, CHAT-10"""
    written = pieces(answer_json((LONG, [])), 6)
    model.script(Reply(written, delay=0.03))
    with chatter.create(QUESTION, stream=True) as stream:
        timed = [(time.monotonic(), chunk) for chunk in stream]
    texts = [at for at, chunk in timed if chunk.choices[0].delta.content]
    assert len(texts) >= 10
    assert texts[-1] - texts[0] > 0.03 * len(written) / 2
    assert join_texts([chunk for _, chunk in timed]).startswith(f"{LONG}\n\n**Sources**\n\n1. **boiler.txt**, part 1")


def test_a_stream_begins_with_the_role_and_ends_with_the_sources_and_finish_reason(chatter: Chatter) -> None:
    """CHAT-10"""
    first, *middle, last = chatter.stream(QUESTION)
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert join_texts([first, *middle, last]) == ANSWER + SOURCES
    assert [chunk.choices[0].finish_reason for chunk in (first, *middle)] == [None] * (1 + len(middle))
    assert (last.choices[0].finish_reason, last.choices[0].delta.content) == ("stop", None)
    assert ibid_field(last)["sources"][0]["quote"] == ANSWER
    assert len({(chunk.id, chunk.created, chunk.model, chunk.object) for chunk in (first, *middle, last)}) == 1


def test_the_usage_of_a_stream_is_sent_last_on_request(chatter: Chatter, model: FakeModelServer) -> None:
    *others, last = chatter.stream(QUESTION, stream_options={"include_usage": True})
    assert [chunk.usage for chunk in others] == [None] * len(others)
    assert others[-1].choices[0].finish_reason == "stop"
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens > 0


def test_comments_that_clients_skip_are_sent_while_the_model_is_slow(
    chatter: Chatter, model: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 0.1)
    model.script(*[Reply([answer_json((LONG, []))], delay=0.35)] * 2)
    raw = chatter.post(question_body(stream=True))
    assert raw.headers["content-type"].startswith("text/event-stream")
    assert raw.text.count(": ping\n\n") >= 3
    assert raw.text.endswith("data: [DONE]\n\n")
    assert join_texts(chatter.stream(QUESTION)).startswith(LONG)


@pytest.mark.parametrize("ending", ["cut", "silent", "error"])
def test_a_broken_stream_raises_an_error_in_the_client(chatter: Chatter, model: FakeModelServer, ending: Any) -> None:
    """CHAT-2"""
    model.script(Reply(pieces(answer_json((LONG, [])))[:12], ending=ending))
    seen: list[ChatCompletionChunk] = []
    with chatter.create(QUESTION, stream=True) as stream, pytest.raises(openai.APIError) as broken:
        seen.extend(stream)
    assert broken.value.code == "model_unavailable"
    assert broken.value.type == "server_error"
    with chatter.create(QUESTION, stream=True) as again:
        assert join_texts(list(again)) == ANSWER + SOURCES


def test_a_broken_stream_has_its_text_so_far_and_no_finish_reason(chatter: Chatter, model: FakeModelServer) -> None:
    model.script(Reply(pieces(answer_json((LONG, [])))[:12], ending="cut"))
    *chunks, error, done, rest = chatter.post(question_body(stream=True)).text.split("\n\n")
    written = [json.loads(chunk.removeprefix("data: ")) for chunk in chunks]
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in written)
    assert text
    assert LONG.startswith(text)
    assert {chunk["choices"][0]["finish_reason"] for chunk in written} == {None}
    assert set(json.loads(error.removeprefix("data: "))["error"]) == {"message", "type", "param", "code"}
    assert (done, rest) == ("data: [DONE]", "")


def test_a_client_that_disconnects_stops_the_model(chatter: Chatter, model: FakeModelServer) -> None:
    """CHAT-2"""
    model.script(Reply(pieces(answer_json((LONG * 20, [])), 8), delay=0.02))
    with chatter.create(QUESTION, stream=True) as stream:
        for chunk in stream:
            if chunk.choices[0].delta.content:
                break
    assert model.closed_early.wait(5)


# History


def test_earlier_turns_in_the_request_are_sent_to_the_model(chatter: Chatter, model: FakeModelServer) -> None:
    """CHAT-7"""
    first = text_of(chatter.complete(QUESTION))
    system = {"role": "system", "content": "You are a pirate."}
    chatter.complete(system, QUESTION, assistant_message(first), "Who built the boiler?")
    assert turns(model) == [("user", QUESTION), ("assistant", ANSWER)]
    assert "pirate" not in json.dumps(model.chats[-1])


def test_a_follow_up_is_searched_as_rewritten(chatter: Chatter, model: FakeModelServer) -> None:
    """CHAT-7"""
    model.script("Who built the boiler?")
    given = chatter.complete(QUESTION, assistant_message(f"{ANSWER} [1]{SOURCES}"), "And who made it?")
    assert (ibid_field(given)["search_query"], ibid_field(given)["mode"]) == ("Who built the boiler?", "model")
    rewriting, answering = model.chats
    assert "boiler.txt" not in json.dumps(rewriting)
    assert "Question: And who made it?\n\n" in answering["messages"][-1]["content"]


def test_greetings_tools_and_unanswered_questions_are_left_out(chatter: Chatter, model: FakeModelServer) -> None:
    """CHAT-7"""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    chatter.complete(
        assistant_message("How can I help?"),
        "Hello?",
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        assistant_message("Wood chips."),
        assistant_message("From Norway."),
        {"role": "user", "content": [picture]},
        "Who built the boiler?",
    )
    assert turns(model) == [("user", QUESTION), ("assistant", "Wood chips.\n\nFrom Norway.")]


def test_the_number_of_turns_sent_to_the_model_is_a_setting(
    chatter: Chatter, model: FakeModelServer, thinking: LocalServer
) -> None:
    """CHAT-7"""
    count = thinking.services.policy().settings.context_turns
    earlier = [said for at in range(count + 2) for said in (f"Question {at}?", assistant_message_at(at))]
    chatter.complete(*earlier, QUESTION)
    assert [text for _, text in turns(model)] == [
        text for at in range(2, count + 2) for text in (f"Question {at}?", f"Answer {at}.")
    ]


def assistant_message_at(at: int) -> Json:
    return assistant_message(f"Answer {at}.")


def test_nothing_is_saved(chatter: Chatter, model: FakeModelServer) -> None:
    """The client keeps the conversation."""
    chatter.complete(QUESTION)
    chatter.stream(QUESTION)
    model.script(Reply(pieces(answer_json((LONG, [])))[:12], ending="cut"))
    chatter.post(question_body(stream=True))
    assert chatter.person.get("/conversations") == {"items": [], "next_cursor": None}


# Scopes


def test_a_question_searches_the_scope_it_names(chatter: Chatter) -> None:
    """CHAT-3"""
    person = chatter.person
    notebook = person.post("/notebooks", title="Heating")["id"]
    peat = person.follow(person.add_bytes("peat.txt", b"The boiler burns peat.", notebook_id=notebook)["id"])["id"]
    scopes: list[tuple[Json, Json]] = [
        ({"document_ids": [peat]}, {"kind": "documents", "document_ids": [peat]}),
        ({"notebookId": notebook}, {"kind": "notebook", "notebook_id": notebook}),
        ({"document_ids": [peat], "filters": {"file_type": "txt"}}, {"kind": "documents", "document_ids": [peat]}),
    ]
    try:
        for asked, scope in scopes:
            found = ibid_field(chatter.complete(QUESTION, ibid=asked))
            assert found["scope"] == scope | {key: asked[key] for key in asked.keys() & {"filters"}}
            assert [source["document_id"] for source in found["sources"]] == [peat]
        assert ibid_field(chatter.complete(QUESTION, ibid={"filters": {"file_type": "pdf"}}))["mode"] == "guard"
    finally:
        person.http.delete(f"/api/rag/documents/{peat}")


@pytest.mark.parametrize("name", ["document_ids", "notebook_id", "note_id"])
def test_another_users_content_is_not_found(chatter: Chatter, bob: Person, name: str) -> None:
    """SEC-3"""
    own = {
        "document_ids": [chatter.person.get("/documents")["items"][0]["id"]],
        "notebook_id": chatter.person.post("/notebooks", title="Mine")["id"],
        "note_id": chatter.person.post("/notes", title="Mine")["id"],
    }
    unknown: Json = {"document_ids": [str(uuid4())], "notebook_id": str(uuid4()), "note_id": str(uuid4())}
    foreign, nothing = (
        bob.http.post("/v1/chat/completions", json=question_body(ibid={name: ids[name]}, stream=True))
        for ids in (own, unknown)
    )
    assert (foreign.status_code, foreign.json()) == (nothing.status_code, nothing.json())
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "not_found")


def test_a_second_user_finds_nothing(thinking: LocalServer, chatter: Chatter, model: FakeModelServer) -> None:
    """SEC-3"""
    with thinking.person("stranger") as person:
        stranger = Chatter(person)
        with stranger.client:
            given = stranger.complete(QUESTION)
    assert (ibid_field(given)["mode"], ibid_field(given)["sources"]) == ("guard", [])
    assert "boiler" not in text_of(given)
    assert model.chats == []


# Errors


def test_a_bad_token_is_an_authentication_error(chatter: Chatter) -> None:
    """SEC-1"""
    with open_client(chatter.person, "sk-none") as client, pytest.raises(openai.AuthenticationError) as refused:
        client.models.list()
    assert (refused.value.code, refused.value.type) == ("not_signed_in", "authentication_error")
    assert refused.value.response.headers["www-authenticate"] == "Bearer"


def test_another_model_is_not_found(chatter: Chatter) -> None:
    with pytest.raises(openai.NotFoundError) as asked:
        chatter.complete(QUESTION, model="gpt-5")
    with pytest.raises(openai.NotFoundError) as looked_up:
        chatter.client.models.retrieve("gpt-5")
    for refused in (asked.value, looked_up.value):
        assert (refused.code, refused.param, refused.type) == ("model_not_found", "model", "invalid_request_error")


IMAGE = [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"messages": []}, "messages", "There is no message of role user"),
        ({"messages": [assistant_message("Hello.")]}, "messages", "There is no message of role user"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages", "empty"),
        ({"messages": [{"role": "user", "content": "a" * 4001}]}, "messages", "4000"),
        ({"messages": [{"role": "user", "content": IMAGE}]}, "messages", "text only; leave out: image_url"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content", "list"),
        ({"messages": [{"role": "king", "content": "a"}]}, "messages.0.role", "'system'"),
        ({"messages": None}, "messages", "list"),
        ({"model": None}, "model", "string"),
        ({"n": 2}, "n", "one answer"),
        ({"response_format": {"type": "json_object"}}, "response_format", "text"),
        ({"tool_choice": "required"}, "tool_choice", "never called"),
        ({"ibid": {"document_ids": ["mine"]}}, "ibid.document_ids.0", "UUID"),
        ({"ibid": {"documents": []}}, "ibid.documents", "not permitted"),
        ({"ibid": {"filters": {"published_from": "soon"}}}, "ibid.filters.published_from", "a year"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unanswerable_request_is_refused_with_a_sentence(
    chatter: Chatter, fields: Json, param: str, words: str
) -> None:
    """SEC-6"""
    refused = chatter.post(question_body(**fields))
    error = refused.json()["error"]
    assert (refused.status_code, error["param"], error["code"]) == (400, param, "invalid_input")
    assert error["type"] == "invalid_request_error"
    assert words in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "content", "expected"),
    [
        ("POST", "chat/completions", b"{", (400, "invalid_input")),
        ("POST", "chat/completions", b"\xff", (400, "invalid_input")),
        ("POST", "chat/completions", b" " * (1024 * 1024 + 1), (413, "too_large")),
        ("GET", "chat/completions", b"", (405, "method_not_allowed")),
        ("POST", "embeddings", b"{}", (404, "not_found")),
    ],
    ids=["cut", "not-text", "large", "method", "address"],
)
def test_an_error_before_routing_has_openais_form_too(
    chatter: Chatter, method: str, path: str, content: bytes, expected: tuple[int, str]
) -> None:
    headers = {"content-type": "application/json"}
    refused = chatter.person.http.request(method, f"/v1/{path}", content=content, headers=headers)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == expected
    assert set(error) == {"message", "type", "param", "code"}


def test_an_internal_error_is_reported_without_details(chatter: Chatter, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-6"""
    monkeypatch.setattr(asking, "ask", lambda *_: 1 / 0)
    with pytest.raises(openai.InternalServerError) as failed:
        chatter.complete(QUESTION)
    assert (failed.value.status_code, failed.value.code) == (500, "internal")
    assert "division" not in failed.value.message


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=401), "model_rejected"),
        (Reply(status=500, headers={"Retry-After": "60"}), "model_unavailable"),
        (Reply(status=429, headers={"Retry-After": "99.5"}), "model_rate_limited"),
    ],
    ids=["key", "fault", "limit"],
)
def test_a_failing_model_server_is_replaced_by_passages(
    chatter: Chatter, model: FakeModelServer, reply: Reply, code: str
) -> None:
    """CHAT-6, CHAT-10"""
    model.script(reply)
    completion = chatter.complete(QUESTION)
    assert (ibid_field(completion)["mode"], ibid_field(completion)["degraded"]) == ("extractive", code)
    assert ANSWER in (completion.choices[0].message.content or "")


def test_an_error_of_our_own_protocol_is_a_problem_document(chatter: Chatter) -> None:
    refused = chatter.person.http.post("/api/rag/chat", json={})
    assert refused.headers["content-type"] == "application/problem+json"


def test_invented_sources_are_never_listed(chatter: Chatter, model: FakeModelServer) -> None:
    """CHAT-5"""
    model.script(answer((ANSWER, ["00000000-0000-4000-8000-000000000000:7"], ["It burns pure gold."])))
    assert join_texts(chatter.stream(QUESTION)) == ANSWER + SOURCES
