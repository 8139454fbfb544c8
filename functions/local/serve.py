"""Serves everything on one laptop: embedded database, worker, page and API on 127.0.0.1."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

from functions.core import errors
from functions.local import embedded_postgres, migrate, routes_local
from functions.local.worker import WorkerProcess
from functions.runtime.config import Config
from functions.runtime.wiring import Services
from functions.web import (
    routes_chat,
    routes_conversations,
    routes_documents,
    routes_health,
    routes_page,
    routes_search,
    routes_settings,
)
from functions.web.app import create_app

HOST = "127.0.0.1"


@contextmanager
def open_services(config: Config) -> Iterator[Services]:
    """The services of this machine. Without DATABASE_URL the embedded Postgres is started, and stopped at the end."""
    if config.database_url is not None:
        yield Services(config)
        return
    config.home.mkdir(parents=True, exist_ok=True)
    with embedded_postgres.start(config.home / "postgres") as server:
        migrate.migrate(server.dsn)
        services = Services(config.model_copy(update={"database_url": SecretStr(server.dsn)}))
        try:
            yield services
        finally:
            services.database.close()


def create_local_app(services: Services) -> FastAPI:
    """All functions as one app, with what stands in for Supabase where it is not configured."""
    routers = [
        routes_chat.router,
        routes_conversations.router,
        routes_documents.router,
        routes_health.router,
        routes_page.router,
        routes_search.router,
        routes_settings.router,
    ]
    if services.is_local:
        routers.append(routes_local.router)
    return create_app(*routers, services=services)


def serve(config: Config) -> int:
    """Serves until Ctrl-C; says so when the port is taken."""
    with bind(config.port) as listener, open_services(config) as services:
        assert services.config.database_url is not None
        warm_up(services)
        worker = WorkerProcess({"DATABASE_URL": services.config.database_url.get_secret_value()})
        worker.start()
        print(f"Ibid is ready: http://{HOST}:{config.port}  (data in {config.home}; Ctrl-C stops it)", flush=True)
        try:
            server = uvicorn.Server(
                uvicorn.Config(create_local_app(services), log_level="warning", timeout_graceful_shutdown=5)
            )
            server.run(sockets=[listener])
        finally:
            worker.stop()
    return 0


def warm_up(services: Services) -> None:
    """Loads the embedding model now, so that the first question does not wait for it."""
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
        except OSError as exc:
            raise errors.ConflictError(
                f"Port {port} on {HOST} is in use, perhaps by another Ibid."
                f" Stop that one, or choose another: PORT={port + 1} make run"
            ) from exc
        os.set_inheritable(listener.fileno(), False)
        yield listener
