"""Runs Ibid on one machine: the embedded database, the worker, the page and the API on 127.0.0.1."""

from __future__ import annotations

import errno
import gc
import importlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from functions.core import errors
from functions.local.database import embedded_postgres, migrate
from functions.local.packaging import install, local_models
from functions.local.server import api_docs, priority, routes, sources
from functions.local.server.sign_in import SignIn
from functions.local.server.worker import NoteThread, WorkerProcess
from functions.runtime import metrics, reindexing
from functions.runtime.config import Config
from functions.runtime.services import Services
from functions.web.app import create_app
from functions.web.routes import (
    chat,
    completions,
    conversations,
    documents,
    embedding_servers,
    health,
    keys,
    mcp,
    notebooks,
    notes,
    page,
    search,
    settings,
)

HOST = "127.0.0.1"
# An answer that is not streamed keeps a thread while it waits for a model; a few programs would use up the usual 40.
THREADS = 90
UPLOAD_THREADS = 16
KEEPER_SECONDS = 2.0

_log = logging.getLogger(__name__)


@contextmanager
def open_services(config: Config) -> Iterator[Services]:
    """Opens the services of this machine; without DATABASE_URL, the embedded Postgres runs until they are closed."""
    if config.database_url is not None:
        services = Services(config)
        try:
            yield services
        finally:
            services.close()
        return
    config.home.mkdir(parents=True, exist_ok=True)
    with embedded_postgres.start(config.home / "postgres") as server:
        migrate.migrate(server.dsn)
        services = Services(config.model_copy(update={"database_url": SecretStr(server.dsn)}))
        stopping = threading.Event()
        keeper = threading.Thread(target=_revive_database, args=(server, stopping), name="database-keeper", daemon=True)
        keeper.start()
        try:
            yield services
        finally:
            stopping.set()
            keeper.join()
            services.close()


def _revive_database(server: embedded_postgres.Server, stopping: threading.Event) -> None:
    """Restarts a killed database, because nothing else on a laptop does."""
    while not stopping.wait(KEEPER_SECONDS):
        try:
            server.revive()
        except Exception:
            _log.exception("the database could not be restarted")


def create_local_app(
    services: Services, *, page_sources: bool = False, announce: Callable[[str], object] | None = None
) -> FastAPI:
    """Creates one app of all routes, with the replacement for Supabase when that is not configured.

    `page_sources` serves the modules of the page as they are, in place of the files that are deployed. `announce` gets
    the next sign-in key whenever one has been used.
    """
    routers = [
        api_docs.router,
        chat.router,
        completions.router,
        conversations.router,
        documents.router,
        embedding_servers.router,
        health.alive,
        health.router,
        keys.router,
        mcp.router,
        notebooks.router,
        notes.router,
        page.router,
        search.router,
        settings.router,
        settings.usage_router,
    ]
    if services.is_local:
        routers.append(routes.router)
    if page_sources:
        routers.insert(0, sources.router)  # the first route that matches answers
    app = create_app(*routers, services=services)
    app.add_middleware(priority.MarkQuestions, config=services.config)
    app.router.lifespan_context = _limit_threads
    if services.is_local:
        app.state.sign_in = SignIn(services.local_secret, announce)
    return app


@asynccontextmanager
async def _limit_threads(app: FastAPI) -> AsyncIterator[None]:
    """Sets the numbers of threads when the app starts, because the limits belong to the event loop."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    app.state.upload_threads = anyio.CapacityLimiter(UPLOAD_THREADS)
    yield


def serve(config: Config, *, page_sources: bool = False) -> int:
    """Serves until Ctrl-C, SIGTERM or SIGHUP; raises ConflictError when the port is in use."""
    # Uvicorn raises the signal again after its shutdown; as SystemExit it lets us stop the worker and the database.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    with bind(config.port) as listener, open_services(config) as services:
        assert services.config.database_url is not None
        install_models(services)
        warm_up(services)
        announce_other_model(services)
        worker = WorkerProcess({"DATABASE_URL": services.config.database_url.get_secret_value()})
        worker.start()
        services.index_notes_with(NoteThread(services).index)
        try:
            address = f"http://{HOST}:{config.port}/"
            app = create_local_app(
                services,
                page_sources=page_sources,
                announce=lambda key: print(f"Signed in. For another browser: {address}#key={key}", flush=True),
            )
            door = f"{address}#key={app.state.sign_in.key}" if services.is_local else address
            print(f"Ibid is ready: {door}  (data in {config.home}; Ctrl-C stops it)", flush=True)
            # All requests wait for a full garbage collection: 100 ms with what is loaded by now, and none without.
            gc.collect()
            gc.freeze()
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
            # Uvicorn leaves SIGHUP to us. An exit raised inside a request would only end that request.
            signal.signal(signal.SIGHUP, server.handle_exit)
            server.run(sockets=[listener])
        finally:
            worker.stop()
    return 0


def install_models(services: Services) -> None:
    """Installs the local models that the library's vectors come from, when this installation lacks them."""
    environment = Path(sys.prefix)
    try:
        wanted = {server.model for server in services.policy().servers if server.kind == "local"}
        for model in sorted(wanted):
            if not local_models.is_installed(model, environment):
                print(f"ibid: this library was indexed with {model}, which is not installed", flush=True)
                install.install_model(model, environment)
                importlib.invalidate_caches()
    except (errors.IbidError, install.InstallError) as exc:
        print(f"ibid: {exc}", file=sys.stderr)


def warm_up(services: Services) -> None:
    """Loads the embedding models and the metrics now, so that the first request does not wait for them."""
    metrics.REGISTRY.render([])
    try:
        for server in services.policy().servers:
            if server.kind == "local":
                services.embedder_of(server).embed(["ready"])
    except errors.IbidError as exc:
        print(f"ibid: {exc.message}", file=sys.stderr)


def announce_other_model(services: Services) -> None:
    """Prints that the library is indexed with another embedding model than configured, or is being re-indexed."""
    state = reindexing.describe(services)
    if state.is_other or state.move is not None:
        print(f"ibid: {state.sentence}", file=sys.stderr)


@contextmanager
def bind(port: int) -> Iterator[socket.socket]:
    """Opens the listening socket, before the database starts, so that a busy port is reported at once."""
    # asyncio sets TCP_NODELAY only when the protocol is given; without it, requests and streamed pieces wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except PermissionError as exc:
            raise errors.ConflictError(
                f"Only an administrator may listen on port {port}. Choose a port above 1023."
            ) from exc
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise
            raise errors.ConflictError(
                f"Port {port} on {HOST} is in use, perhaps by another Ibid server."
                " Stop that server, or choose another port: PORT=… make run"
            ) from exc
        os.set_inheritable(listener.fileno(), False)
        yield listener
