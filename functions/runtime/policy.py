"""Reads settings and embedding servers from the database and caches them for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Connection, Database
from functions.core import models
from functions.core.settings import Settings, load_settings
from functions.runtime.config import Config

POLICY_SECONDS = 10.0

LOCAL_SERVER = models.EmbeddingServer(
    id="",
    name="all-MiniLM-L6-v2 (local)",
    kind="local",
    model="sentence-transformers/all-MiniLM-L6-v2",
    dimensions=384,
    max_input_tokens=254,
    languages=("en",),
    batch_size=64,
    token_level=True,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings and embedding servers in force, the default server first."""

    settings: Settings
    servers: tuple[models.EmbeddingServer, ...]
    read_at: float


class PolicyReader:
    """Reads the policy at most every POLICY_SECONDS; `database` is called on the first read."""

    def __init__(self, config: Config, database: Callable[[], Database]) -> None:
        self._config = config
        self._database = database
        self._policy: Policy | None = None

    def read(self) -> Policy:
        """The policy in force; a database without servers gets the one that the environment configures."""
        policy = self._policy
        if policy is None or time.monotonic() - policy.read_at > POLICY_SECONDS:
            with self._database().as_worker() as connection:
                policy = self._policy = _read_policy(connection)
        if not policy.servers:  # after the block above, because the pooler may have no second connection
            server = stored_settings.ensure_default_server(self._database(), configured_server(self._config))
            policy = self._policy = replace(policy, servers=(server,))
        return policy

    def forget(self) -> None:
        """Makes the next call read the database again, after a setting was changed."""
        self._policy = None


def _read_policy(connection: Connection) -> Policy:
    servers = tuple(stored_settings.list_servers(connection))
    return Policy(load_settings(stored_settings.read(connection)), servers, time.monotonic())


def configured_server(config: Config) -> models.EmbeddingServer:
    """The embedding server that the environment configures; only a database without servers registers it."""
    if config.embedding_model is None:
        return LOCAL_SERVER
    return models.EmbeddingServer(
        id="",
        name=config.embedding_model,
        kind="openai",
        model=config.embedding_model,
        dimensions=config.embedding_dimensions,
        max_input_tokens=config.embedding_max_input_tokens,
        languages=tuple(filter(None, config.embedding_languages.replace(" ", "").split(","))),
        base_url=config.embedding_base_url or config.openai_base_url,
        api_key_env="OPENAI_API_KEY",
        token_level=config.embedding_token_url is not None,
    )
