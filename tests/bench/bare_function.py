"""The baseline of `bench_coldstart`: one route with one query and, for functions that ask a model, one question."""

from __future__ import annotations

from typing import Any

import psycopg
from fastapi import FastAPI
from mangum import Mangum
from pydantic import BaseModel, SecretStr
from pydantic_settings import BaseSettings


class Settings(BaseSettings):
    database_url: SecretStr
    openai_api_key: SecretStr = SecretStr("")
    openai_base_url: str = ""


class Setting(BaseModel):
    key: str
    value: Any


def read_settings() -> Settings:
    return Settings()  # type: ignore[call-arg]  # read from the environment


app = FastAPI()
handler = Mangum(app, lifespan="off")


@app.get("/settings")
def list_settings() -> list[Setting]:
    return [Setting(key=key, value=value) for key, value in query(read_settings())]


@app.get("/answer")
def ask() -> dict[str, str]:
    import openai

    settings = read_settings()
    client = openai.OpenAI(api_key=settings.openai_api_key.get_secret_value(), base_url=settings.openai_base_url)
    prompt = f"Which of these is largest? {query(settings)}"
    reply = client.chat.completions.create(model="fake", messages=[{"role": "user", "content": prompt}])
    return {"answer": reply.choices[0].message.content or ""}


def query(settings: Settings) -> list[tuple[str, Any]]:
    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        return connection.execute("select key, value from rag.settings").fetchall()
