"""Imports cost time at a cold start, so a function loads only what it needs to answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest

from tests.support import service
from tests.support.requirements import REPOSITORY

HANDLERS = sorted(service.python_handlers().values())
WORKERS = [
    "functions.ingest",
    "functions.retention",
    "functions.storage_event",
    "functions.sweeper",
    "functions.vector_indexes",
]
READERS = {"pdfplumber", "pypdfium2", "docx", "PIL", "lxml"}
CLIENTS = {"openai", "supabase", "storage3", "boto3"}
MODELS = {"onnxruntime", "onnx", "tokenizers"}
COUNTERS = {"prometheus_client"}
SDK = {"mcp", "mcp_types"}
# Modules that only answering needs; functions that only read and write rows must not load them.
ANSWERING = {
    "functions.runtime.asking",
    "functions.core.answering.answers",
    "functions.core.citations.cite",
    "functions.core.answering.tools",
}
ROWS_ONLY = ["functions.conversations", "functions.notebooks", "functions.page", "functions.settings"]
WEB = {"fastapi", "starlette", "mangum", "uvicorn"}


@cache
def loaded_by(module: str) -> set[str]:
    """`sys.modules` of a fresh interpreter after the import, with warnings as errors."""
    code = f"import {module}, json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    warnings = ["-W", "error", "-W", "ignore:There is no current event loop:DeprecationWarning:mangum.adapter"]
    command = [sys.executable, *warnings, "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", HANDLERS)
def test_no_handler_loads_clients_readers_models_or_counters_before_it_needs_them(module: str) -> None:
    assert not loaded_by(module) & (CLIENTS | READERS | MODELS | COUNTERS)


@pytest.mark.parametrize("module", HANDLERS)
def test_only_the_mcp_function_loads_the_sdk_and_before_it_is_called(module: str) -> None:
    """CHAT-9"""
    assert bool(loaded_by(module) & SDK) == (module == "functions.mcp")


@pytest.mark.parametrize("module", ROWS_ONLY)
def test_functions_that_do_not_answer_load_no_module_of_answering(module: str) -> None:
    assert not loaded_by(module) & ANSWERING


@pytest.mark.parametrize("module", ROWS_ONLY)
def test_functions_create_only_their_own_routes(module: str) -> None:
    """Every route costs 4 ms at a cold start."""
    own = {
        "conversations": {"conversations"},
        "notebooks": {"notebooks", "notes"},
        "page": {"page", "health"},
        "settings": {"settings", "embedding_servers", "keys"},
    }
    name = module.removeprefix("functions.")
    routes = {found for found in loaded_by(module) if found.startswith("functions.web.routes.")}
    assert routes == {f"functions.web.routes.{found}" for found in own.get(name, {name})}


@pytest.mark.parametrize("module", WORKERS)
def test_workers_never_load_the_web_framework(module: str) -> None:
    assert not loaded_by(module) & WEB


@pytest.mark.parametrize("module", sorted(set(HANDLERS) - set(WORKERS)))
def test_only_http_functions_load_the_web_framework(module: str) -> None:
    assert {"fastapi", "mangum"} <= loaded_by(module)


@pytest.mark.parametrize("module", HANDLERS)
def test_no_handler_loads_the_local_package(module: str) -> None:
    code = f"import {module}, sys; sys.exit(any(name.startswith('functions.local') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
