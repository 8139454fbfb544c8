"""Reads settings and embedding servers from the database and caches them for a few seconds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from functions.adapters.models.prefixes import find_prefixes
from functions.adapters.postgres import settings as stored_settings
from functions.adapters.postgres.connection import Connection, Database
from functions.core import models
from functions.core.settings import Settings, load_settings
from functions.runtime.config import AUTO, Config, find_function_name

POLICY_SECONDS = 10.0
"""How long a process goes by what it has read, and so how long after a change every process knows it."""

# What the environment says about a server, and the variables that say it. The rest of a server belongs to its row.
_VARIABLES = {
    "kind": "EMBEDDING_BASE_URL",
    "model": "EMBEDDING_MODEL",
    "base_url": "EMBEDDING_BASE_URL",
    "api_key_env": "EMBEDDING_API_KEY",
    "dimensions": "EMBEDDING_DIMENSIONS",
    "max_input_tokens": "EMBEDDING_MAX_INPUT_TOKENS",
    "languages": "EMBEDDING_LANGUAGES",
    "query_prefix": "EMBEDDING_QUERY_PREFIX",
    "passage_prefix": "EMBEDDING_PASSAGE_PREFIX",
}

_log = logging.getLogger(__name__)

LOCAL_SERVER = models.EmbeddingServer(
    id="",
    name="multilingual-e5-small (local)",
    kind="local",
    model="intfloat/multilingual-e5-small",
    dimensions=384,
    max_input_tokens=510,
    languages=(),
    batch_size=64,
    token_level=True,
    query_prefix="query: ",
    passage_prefix="passage: ",
    similarity_floor=0.79,
    similarity_ceiling=0.875,
    # As measured in libraries of some hundred passages, for those that are smaller.
    similarity_scales={
        "en>en": models.SimilarityScale(0.79, 0.885),
        "fr>en": models.SimilarityScale(0.782, 0.877),
        "fr>fr": models.SimilarityScale(0.805, 0.878),
        "en>fr": models.SimilarityScale(0.756, 0.829),
    },
)
MINILM_SERVER = models.EmbeddingServer(
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
# The values of EMBEDDING_MODEL that name a model of this machine, unless EMBEDDING_BASE_URL names a server.
LOCAL_SERVERS = {"multilingual-e5-small": LOCAL_SERVER, "all-MiniLM-L6-v2": MINILM_SERVER}


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings and embedding servers in force; workers index with the first server."""

    settings: Settings
    servers: tuple[models.EmbeddingServer, ...]
    read_at: float


class PolicyReader:
    """Reads the policy at most every POLICY_SECONDS; `database` is called on the first read."""

    def __init__(self, config: Config, database: Callable[[], Database]) -> None:
        self._config = config
        self._database = database
        self._policy: Policy | None = None
        self._changes = 0
        self._lock = threading.Lock()
        self._has_warned = False

    def read(self) -> Policy:
        """The policy in force; a database without servers gets the one that the environment configures."""
        policy, changes = self._policy, self._changes
        if policy is None or time.monotonic() - policy.read_at > POLICY_SECONDS:
            with self._database().as_worker() as connection:
                policy = _read_policy(connection)
            if policy.servers:
                policy = self._follow_environment(policy)
            self._keep(policy, changes)
        if not policy.servers:  # after the block above, because the pooler may have no second connection
            configured = configured_server(self._config)
            if configured is MINILM_SERVER and self._config.embedding_model is None:
                _log.warning("multilingual-e5-small is not installed, so this library is indexed with all-MiniLM-L6-v2")
            server = stored_settings.ensure_default_server(self._database(), configured)
            policy = replace(policy, servers=(server,))
            self._keep(policy, changes)
        return policy

    def _follow_environment(self, policy: Policy) -> Policy:
        """The policy after the server of the environment has replaced one that nothing was indexed with.

        Otherwise logs once in a process that the environment configures another server than is in force.
        """
        configured, default = configured_server(self._config), policy.servers[0]
        if not differs(self._config, default) or any(is_same_server(configured, server) for server in policy.servers):
            return policy
        if stored_settings.follow_environment(self._database(), configured):
            _log.warning("%s now indexes new documents: nothing was indexed with %s", configured.name, default.name)
            with self._database().as_worker() as connection:
                policy = _read_policy(connection)
        elif not self._has_warned:
            self._has_warned = True
            _log.warning("%s", describe_other_model(configured, default))
        return policy

    def forget(self) -> None:
        """Makes the next call read the database again, after a setting was changed."""
        with self._lock:
            self._changes += 1
            self._policy = None

    def _keep(self, policy: Policy, changes: int) -> None:
        """Keeps what was read, unless a setting was changed meanwhile."""
        with self._lock:
            if changes == self._changes:
                self._policy = policy


def _read_policy(connection: Connection) -> Policy:
    servers = tuple(stored_settings.list_servers(connection, POLICY_SECONDS))
    return Policy(load_settings(stored_settings.read(connection)), servers, time.monotonic())


def configured_server(config: Config) -> models.EmbeddingServer:
    """The embedding server that the environment configures; a database has it once it is registered or adopted."""
    if config.embedding_model is None:
        return _default_server()
    if config.embedding_base_url is None and config.embedding_model in LOCAL_SERVERS:
        return LOCAL_SERVERS[config.embedding_model]
    known = find_prefixes(config.embedding_model)
    query, passage = config.embedding_query_prefix, config.embedding_passage_prefix
    return models.EmbeddingServer(
        id="",
        name=config.embedding_model,
        kind="openai",
        model=config.embedding_model,
        dimensions=config.embedding_dimensions,
        max_input_tokens=config.embedding_max_input_tokens,
        languages=tuple(filter(None, config.embedding_languages.replace(" ", "").split(","))),
        base_url=config.embedding_base_url or config.openai_base_url,
        api_key_env=config.embedding_api_key_name
        or ("OPENAI_API_KEY" if config.embedding_api_key is None else "EMBEDDING_API_KEY"),
        token_level=config.embedding_token_url is not None,
        query_prefix=known.query if query == AUTO else query,
        passage_prefix=known.passage if passage == AUTO else passage,
    )


def is_same_server(configured: models.EmbeddingServer, stored: models.EmbeddingServer) -> bool:
    """Whether a stored server is as the environment configures it."""
    return all(getattr(configured, name) == getattr(stored, name) for name in _VARIABLES)


def differs(config: Config, stored: models.EmbeddingServer) -> bool:
    """Whether the environment describes another server than a stored one.

    It describes none where an administrator has set the server up, nor on Lambda without EMBEDDING_MODEL: a function
    that lacks the variable must not undo what the others were given.
    """
    is_silent = config.embedding_model is None and find_function_name() is not None
    return not (is_silent or stored.managed or is_same_server(configured_server(config), stored))


def describe_other_model(configured: models.EmbeddingServer, stored: models.EmbeddingServer) -> str:
    """Tells an administrator that the environment configures another embedding server than the one in force."""
    how = "on the page, or with python -m functions.local reindex"
    if configured.model == stored.model:
        different = [name for name in _VARIABLES if getattr(configured, name) != getattr(stored, name)]
        variables = ", ".join(_VARIABLES[name] for name in different)
        return (
            f"The environment configures {configured.model} otherwise than the database has it ({variables}). What the"
            f" database has stays in force until an administrator adopts the new values: {how}."
        )
    return (
        f"The environment configures the embedding model {configured.model}, but the library is indexed with"
        f" {stored.model}, which stays in force until an administrator re-indexes the library: {how}. To keep it, set"
        f" EMBEDDING_MODEL={_name_model(stored)}. Questions and uploads work meanwhile."
    )


def _name_model(server: models.EmbeddingServer) -> str:
    """The value of EMBEDDING_MODEL that names the model of a server."""
    return server.model.rpartition("/")[2] if server.kind == "local" else server.model


def _default_server() -> models.EmbeddingServer:
    """The local model of a new library: MiniLM where it is installed and the better one could not be downloaded."""
    from functions.adapters.laptop import embedder

    if embedder.is_installed(LOCAL_SERVER.model) or not embedder.is_installed(MINILM_SERVER.model):
        return LOCAL_SERVER
    return MINILM_SERVER  # the installer has said so
