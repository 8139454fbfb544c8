"""The configuration: environment variables, which `.env.example` describes, and on AWS secrets of the parameter store.

Without them, the laptop's own adapters are used.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import AliasChoices, Field, PrivateAttr, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from functions.adapters import parameter_store

AUTO: Final = "auto"
"""A prefix that is looked up by the name of the model."""


class Config(BaseSettings):
    """The configuration, read once per process; an empty variable counts as unset, except for a prefix."""

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: SecretStr | None = None
    supabase_url: str | None = None
    supabase_secret_key: SecretStr | None = None
    supabase_publishable_key: str | None = None
    supabase_jwt_secret: SecretStr | None = None
    supabase_jwt_algorithm: str = "ES256"
    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    chat_model: str | None = None
    chat_first_word_seconds: float | None = Field(default=None, ge=1, le=600)
    embedding_model: str | None = None
    embedding_base_url: str | None = None
    embedding_api_key: SecretStr | None = None
    embedding_api_key_name: str | None = None
    embedding_dimensions: int = 1536
    embedding_max_input_tokens: int = 8191
    embedding_languages: str = ""
    embedding_token_url: str | None = None
    # An empty prefix is a choice, so these two are read past `env_ignore_empty`; unset or "auto" means the model's own.
    embedding_query_prefix: str = Field(default_factory=lambda: os.environ.get("EMBEDDING_QUERY_PREFIX", AUTO))
    embedding_passage_prefix: str = Field(default_factory=lambda: os.environ.get("EMBEDDING_PASSAGE_PREFIX", AUTO))
    rerank_base_url: str | None = None
    rerank_model: str | None = None
    rerank_api_key: SecretStr | None = None
    translation_model: str | None = None
    translation_base_url: str | None = None
    translation_api_key: SecretStr | None = None
    translation_folder: Path | None = None
    ocr_languages: str = "eng+fra"
    parameter_path: str | None = None
    secrets: str = ""
    ingest_queue_url: str | None = None
    chat_stream_url: str | None = None
    cron_secret: SecretStr | None = None
    webhook_secret: SecretStr | None = None
    metrics_token: SecretStr | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    ibid_home: Path = Field(default=Path(".ibid"), validation_alias=AliasChoices("IBID_HOME", "ibid_home"))
    ibid_api_key: SecretStr | None = None
    port: int = Field(default=8000, ge=1, le=65535)

    _other_keys: dict[str, str] = PrivateAttr(default_factory=dict)

    @field_validator("database_url")
    @classmethod
    def check_database_url(cls, value: SecretStr | None) -> SecretStr | None:
        """Refuses other schemes without quoting the URL, which contains a password."""
        if value is not None and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must begin with postgresql://")
        return value

    def find_api_key(self, name: str | None) -> str | None:
        """The API key that a variable, or a parameter of this function, has under a name."""
        key = getattr(self, (name or "").lower(), None)
        if isinstance(key, SecretStr):
            return key.get_secret_value()
        return self._other_keys.get(name or "") or os.environ.get(name or "") or None

    def describe_unset(self, name: str) -> str:
        """Tells an administrator which variable, or which parameter of this function, is missing."""
        is_parameter = self.parameter_path is not None and name in self.secrets.split(",")
        where = f"The parameter {self.parameter_path}/{name}" if is_parameter else name
        return f"{where} is not set. An administrator has to set it."

    @cached_property
    def home(self) -> Path:
        """The folder of the laptop's database, files and key, as an absolute path."""
        return self.ibid_home.expanduser().resolve()


def read_config() -> Config:
    """The configuration of this process; reads the secrets of a function on AWS from the parameter store, in one call.

    Raises UnavailableError when they cannot be read. A parameter that does not exist counts as unset.
    """
    config = Config()
    if config.parameter_path is None or not config.secrets:
        return config
    found = parameter_store.read_parameters(config.parameter_path, config.secrets.split(","))
    known: dict[str, Any] = {
        name.lower(): value for name, value in found.items() if name.lower() in Config.model_fields
    }
    config = Config(**known)
    config._other_keys.update({name: value for name, value in found.items() if name.lower() not in known})
    return config


def find_function_name() -> str | None:
    """The name of the running Lambda function; None outside Lambda."""
    return os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
