"""Serves everything on one laptop: embedded database, worker, page and API on 127.0.0.1."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio.to_thread
import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from functions.core import errors
from functions.local.database import embedded_postgres, migrate
from functions.local.server import routes
from functions.local.server.worker import NoteThread, WorkerProcess
from functions.runtime import metrics
from functions.runtime.config import Config
from functions.runtime.services import Services
from functions.web.app import create_app
from functions.web.routes import (
    chat,
    completions,
    conversations,
    documents,
    health,
    mcp,
    notebooks,
    notes,
    page,
    search,
    settings,
)

HOST = "127.0.0.1"
# A long poll or a stream holds a thread while it waits; forty, the default, are taken by a few busy tabs.
THREADS = 90
KEEPER_SECONDS = 2.0

_log = logging.getLogger(__name__)


@contextmanager
def open_services(config: Config) -> Iterator[Services]:
    """The services of this machine. Without DATABASE_URL the embedded Postgres is started, and stopped at the end."""
    if config.database_url is not None:
        services = Services(config)
        try:
            yield services
        finally:
            services.database.close()
        return
    config.home.mkdir(parents=True, exist_ok=True)
    with embedded_postgres.start(config.home / "postgres") as server:
        migrate.migrate(server.dsn)
        services = Services(config.model_copy(update={"database_url": SecretStr(server.dsn)}))
        stopping = threading.Event()
        keeper = threading.Thread(target=_keep_alive, args=(server, stopping), name="database-keeper", daemon=True)
        keeper.start()
        try:
            yield services
        finally:
            stopping.set()
            keeper.join()
            services.database.close()


def _keep_alive(server: embedded_postgres.Server, stopping: threading.Event) -> None:
    """Brings a killed database back: nobody else on a laptop would."""
    while not stopping.wait(KEEPER_SECONDS):
        try:
            server.revive()
        except Exception:
            _log.exception("the database was not brought back")


def create_local_app(services: Services) -> FastAPI:
    """All functions as one app, with what stands in for Supabase where it is not configured."""
    routers = [
        chat.router,
        completions.router,
        conversations.router,
        documents.router,
        health.alive,
        health.router,
        mcp.router,
        notebooks.router,
        notes.router,
        page.router,
        search.router,
        settings.router,
    ]
    if services.is_local:
        routers.append(routes.router)
    app = create_app(*routers, services=services)
    app.router.lifespan_context = _more_threads
    return app


@asynccontextmanager
async def _more_threads(_: FastAPI) -> AsyncIterator[None]:
    """The number of threads that routes run in belongs to the event loop."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def serve(config: Config) -> int:
    """Serves until Ctrl-C or a signal to end; says so when the port is taken."""
    # Uvicorn raises the signal again after its shutdown: as an exit, so that worker and database are stopped as well.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    with bind(config.port) as listener, open_services(config) as services:
        assert services.config.database_url is not None
        warm_up(services)
        worker = WorkerProcess({"DATABASE_URL": services.config.database_url.get_secret_value()})
        worker.start()
        services.index_notes_with(NoteThread(services).index)
        print(f"Ibid is ready: http://{HOST}:{config.port}  (data in {config.home}; Ctrl-C stops it)", flush=True)
        try:
            server = uvicorn.Server(
                uvicorn.Config(create_local_app(services), log_level="warning", timeout_graceful_shutdown=5)
            )
            # Uvicorn leaves SIGHUP to us. An exit raised inside a request would only end that request.
            signal.signal(signal.SIGHUP, server.handle_exit)
            server.run(sockets=[listener])
        finally:
            worker.stop()
    return 0


def warm_up(services: Services) -> None:
    """Loads the embedding model and the metrics now, so that the first request does not wait for them."""
    metrics.REGISTRY.render([])
    try:
        server = services.policy().servers[0]
        if server.kind == "local":
            services.embedder_of(server).embed(["ready"])
    except errors.IbidError as exc:
        print(f"ibid: {exc.message}", file=sys.stderr)


@contextmanager
def bind(port: int) -> Iterator[socket.socket]:
    """The listening socket, taken before the database starts, so that a busy port is known at once."""
    # With its protocol said, asyncio turns Nagle's delay off on what it accepts: 40 ms a request, and streams in jerks.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()
        except PermissionError as exc:
            raise errors.ConflictError(f"Port {port} is for administrators only. Choose one above 1023.") from exc
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise
            raise errors.ConflictError(
                f"Port {port} on {HOST} is in use, perhaps by another Ibid."
                " Stop that one, or choose another: PORT=… make run"
            ) from exc
        os.set_inheritable(listener.fileno(), False)
        yield listener
