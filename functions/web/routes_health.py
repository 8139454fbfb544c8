"""Whether the service is alive and ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from functions.adapters.postgres import connection
from functions.core import errors
from functions.runtime.wiring import Services
from functions.web.deps import ServicesDep

router = APIRouter()


@router.get("/health")
def get_health() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/ready")
def get_ready(services: ServicesDep) -> JSONResponse:
    """What works and what does not, in words; 503 when something needed does not."""
    checks = {
        "database": _check(lambda: _describe_database(services)),
        "storage": _check(lambda: _describe_storage(services)),
        "models": _check(lambda: _describe_models(services)),
    }
    ready = all(check["ok"] for check in checks.values())
    return JSONResponse({"status": "ok" if ready else "degraded", "checks": checks}, 200 if ready else 503)


def _check(describe: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"ok": True, "detail": describe()}
    except errors.IbidError as exc:
        return {"ok": False, "detail": exc.message}


def _describe_database(services: Services) -> str:
    versions = connection.ping(services.database)
    return f"Postgres {versions['postgres']}, pgvector {versions['pgvector']}"


def _describe_storage(services: Services) -> str:
    services.objects.info("ready/probe")
    return "The file storage answers."


def _describe_models(services: Services) -> str:
    embedding = ", ".join(server.name for server in services.policy().servers)
    return f"Embedding: {embedding}. Answers: {services.config.chat_model or 'extractive, no model configured'}."
