from __future__ import annotations

from typing import Any

import pytest

from functions.adapters.models import model_server
from tests.support.fakes.json_server import Body, FakeServer, Fault


class SizeServer(FakeServer):
    """Lists models as llama.cpp does, and shows one as Ollama does."""

    def __init__(self, replies: dict[str, Any]) -> None:
        super().__init__()
        self.replies = replies

    def answer(self, route: str, body: Body) -> Fault:
        return Fault(body=self.replies[route]) if route in self.replies else Fault(404, body={})


@pytest.mark.parametrize(
    ("address", "is_near"),
    [
        (None, False),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("http://[::1", False),
        ("http://127.0.0.1:11434/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:8080/v1", True),
        ("http://192.168.1.20/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://host.docker.internal:1234/v1", True),
        ("http://studio.local/v1", True),
    ],
)
def test_an_address_of_this_machine_or_its_network_is_near(address: str | None, is_near: bool) -> None:
    """CHAT-2"""
    assert model_server.is_near(address) is is_near


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen2.5:1.5b", 1.5e9),
        ("Llama-3.2-3B-Instruct-Q4_K_M.gguf", 3e9),
        ("Qwen3-30B-A3B", 30e9),
        ("mixtral-8x7b-instruct", 56e9),
        ("smollm2:135m", 135e6),
        ("gpt-4.1-mini", None),
        ("llama3.2", None),
        ("phi-3-mini-128k", None),
        ("", None),
    ],
)
def test_the_size_is_read_from_the_name_of_the_model(name: str, size: float | None) -> None:
    """CHAT-4"""
    assert model_server.read_size(name) == size


@pytest.mark.parametrize(
    ("replies", "size"),
    [
        ({"GET /v1/models": {"data": [{"id": "x.gguf", "meta": {"n_params": 1_235_814_432}}]}}, 1_235_814_432.0),
        ({"GET /v1/models": {"data": [{"id": "a", "meta": {"n_params": 1}}, {"id": "m"}]}}, None),
        ({"POST /api/show": {"details": {"parameter_size": "3.2B"}}, "GET /v1/models": {"data": None}}, 3.2e9),
        ({"POST /api/show": {"model_info": {"general.parameter_count": 8e9}}, "GET /v1/models": {}}, 8e9),
        ({"POST /api/show": [], "GET /v1/models": [1]}, None),
        ({}, None),
    ],
    ids=["llama.cpp", "another-model", "ollama", "ollama-count", "other-shapes", "neither"],
)
def test_the_size_is_asked_of_llama_cpp_and_ollama(replies: dict[str, Any], size: float | None) -> None:
    """CHAT-4"""
    with SizeServer(replies) as server:
        assert model_server.ask_size(f"{server.base_url}/v1", None, "m") == size


def test_a_server_that_does_not_tell_is_asked_again_after_a_minute() -> None:
    """CHAT-4"""
    now = [0.0]
    with SizeServer({}) as server:
        size = model_server.ModelSize("m", f"{server.base_url}/v1", None, clock=lambda: now[0])
        assert [size.find() for _ in range(3)] == [None] * 3
        assert len(server.requests) == 2  # llama.cpp's and Ollama's way
        now[0] = model_server.ASK_AGAIN_SECONDS
        server.replies["GET /v1/models"] = {"data": [{"id": "m", "meta": {"n_params": 1e9}}]}
        assert [size.find() for _ in range(2)] == [1e9] * 2
        assert len(server.requests) == 3


def test_a_server_that_does_not_answer_tells_nothing() -> None:
    """CHAT-4, EVAL-4"""
    assert model_server.ask_size("http://127.0.0.1:9/v1", None, "m") is None
    assert model_server.ask_slots("http://127.0.0.1:9/v1", None) is None


@pytest.mark.parametrize(
    ("replies", "slots"),
    [({"GET /props": {"total_slots": 4}}, 4), ({"GET /props": {"total_slots": "4"}}, None), ({}, None)],
    ids=["llama.cpp", "another-shape", "not-told"],
)
def test_llama_cpp_tells_how_many_questions_it_takes(replies: dict[str, Any], slots: int | None) -> None:
    """EVAL-4"""
    with SizeServer(replies) as server:
        assert model_server.ask_slots(f"{server.base_url}/v1", None) == slots
