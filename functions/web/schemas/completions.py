"""Request bodies of OpenAI's chat completions; fields that do not apply to a library are ignored, not refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from functions.core import models
from functions.core.text.storable import clean_text
from functions.core.text.visible import is_blank
from functions.web.schemas import requests
from functions.web.schemas.completion_text import drop_sources

MAX_QUESTION_CHARS = 4000


CleanText = Annotated[str, BeforeValidator(lambda value: clean_text(value) if isinstance(value, str) else value)]


def read_parts(value: Any) -> Any:
    """The content of a message as a list of parts; OpenAI also allows a string or null."""
    if value is None:
        return []
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


class Part(BaseModel):
    """A part of a message; only parts of type `text` are read."""

    type: CleanText
    text: CleanText = ""


class Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[list[Part], BeforeValidator(read_parts, json_schema_input_type=str | list[Part] | None)] = []

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if part.type == "text").strip()


class StreamOptions(BaseModel):
    include_usage: bool | None = None


class Library(requests.Request):
    """Our own field `ibid`: the scope of the question, and whether the answer's text ends with its sources.

    As in our other request bodies, unknown fields are refused.
    """

    document_ids: Annotated[tuple[UUID, ...], Field(max_length=100)] = ()
    notebook_id: UUID | None = None
    note_id: UUID | None = None
    filters: requests.Filters = requests.Filters()
    list_sources: bool = True


def read_library(value: Any) -> Any:
    return Library() if value is None else value


class Completion(BaseModel):
    model: str
    messages: list[Message]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    response_format: dict[str, Any] | None = None
    tool_choice: Any = None
    ibid: Annotated[Library, BeforeValidator(read_library, json_schema_input_type=Library | None)] = Library()

    @field_validator("messages")
    @classmethod
    def check_question(cls, messages: list[Message]) -> list[Message]:
        question = next((message for message in reversed(messages) if message.role == "user"), None)
        if question is None:
            raise PydanticCustomError("question", "There is no message of role user. The last one is the question")
        others = ", ".join(dict.fromkeys(part.type for part in question.content if part.type != "text"))
        if others:
            raise PydanticCustomError(
                "question", "A question may contain text only; leave out: {others}", {"others": others[:100]}
            )
        if is_blank(question.text):
            raise PydanticCustomError("question", "The question is empty")
        if len(question.text) > MAX_QUESTION_CHARS:
            raise PydanticCustomError("question", f"The question is longer than {MAX_QUESTION_CHARS} characters")
        return messages

    @field_validator("n")
    @classmethod
    def check_one(cls, value: int | None) -> int | None:
        if value not in (None, 1):
            raise PydanticCustomError("n", "A question has one answer; leave n out, or send 1")
        return value

    @field_validator("response_format")
    @classmethod
    def check_text(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None and value.get("type") != "text":
            raise PydanticCustomError("response_format", "Answers are text; no other format is available")
        return value

    @field_validator("tool_choice")
    @classmethod
    def check_no_tool(cls, value: Any) -> Any:
        if value not in (None, "none", "auto"):
            raise PydanticCustomError("tool_choice", "The client's tools are never called, so none can be required")
        return value

    @property
    def question(self) -> str:
        """The text of the last message of the user."""
        return self.messages[self._find_question_index()].text

    @property
    def history(self) -> tuple[models.Turn, ...]:
        """The earlier questions that were answered, each followed by its answer.

        The two roles alternate, because some models accept nothing else. System instructions and tool results are left
        out, because an answer may use the library only.
        """
        return _pair_turns(self.messages[: self._find_question_index()])

    def _find_question_index(self) -> int:
        return max(at for at, message in enumerate(self.messages) if message.role == "user")


def _pair_turns(messages: Sequence[Message]) -> tuple[models.Turn, ...]:
    turns: list[models.Turn] = []
    for message in messages:
        if not message.text:
            continue
        if message.role == "user":
            del turns[_count_answered(turns) :]
            turns.append(models.Turn("user", message.text))
        elif message.role == "assistant" and turns:
            answer = drop_sources(message.text)
            if turns[-1].role == "assistant":
                answer = f"{turns.pop().content}\n\n{answer}"
            turns.append(models.Turn("assistant", answer))
    return tuple(turns[: _count_answered(turns)])


def _count_answered(turns: Sequence[models.Turn]) -> int:
    """The number of turns without an unanswered last question."""
    return len(turns) - len(turns) % 2
