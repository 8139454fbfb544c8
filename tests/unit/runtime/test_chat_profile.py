from __future__ import annotations

from typing import Any

import pytest

from functions.runtime.config import Config
from functions.runtime.services import Services
from tests.support.fakes.json_server import Body, FakeServer, Fault


class LlamaServer(FakeServer):
    """Lists one model of a billion parameters, as llama.cpp does."""

    def answer(self, route: str, body: Body) -> Fault:
        return Fault(body={"data": [{"id": "model.gguf", "meta": {"n_params": 1e9}}]})


def services(**config: Any) -> Services:
    return Services(Config(**config))


@pytest.mark.parametrize(
    ("model", "chosen", "profile"),
    [
        ("qwen2.5:1.5b", "auto", "compact"),
        ("llama-3.1-8b-instruct", "auto", "compact"),
        ("gemma-2-9b-it", "auto", "full"),
        ("gpt-4.1-mini", "auto", "full"),
        ("gpt-4.1-mini", "compact", "compact"),
        ("qwen2.5:1.5b", "full", "full"),
    ],
)
def test_the_setting_or_the_size_chooses_the_prompt(model: str, chosen: str, profile: str) -> None:
    """CHAT-4"""
    assert services(chat_model=model).find_profile(chosen) == profile


def test_a_near_server_is_asked_for_the_size_until_it_tells_it() -> None:
    """CHAT-4"""
    with LlamaServer() as server:
        chatting = services(chat_model="m", openai_base_url=f"{server.base_url}/v1")
        assert [chatting.find_profile("auto") for _ in range(2)] == ["compact"] * 2
        assert len(server.requests) == 1
    late = services(chat_model="m", openai_base_url="http://127.0.0.1:9/v1")
    assert late.find_profile("auto") == "full"


@pytest.mark.parametrize(
    ("config", "seconds"),
    [
        ({}, 60.0),
        ({"openai_base_url": "http://127.0.0.1:11434/v1"}, 180.0),
        ({"openai_base_url": "http://127.0.0.1:11434/v1", "chat_first_word_seconds": 20}, 20.0),
    ],
    ids=["far", "near", "configured"],
)
def test_a_near_model_has_longer_until_its_first_word(config: dict[str, Any], seconds: float) -> None:
    """CHAT-2"""
    assert services(chat_model="m", **config).first_word_seconds == seconds
