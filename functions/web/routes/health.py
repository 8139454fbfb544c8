"""Whether the service is alive and ready, and its figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response

from functions.adapters.postgres import jobs
from functions.core import errors
from functions.runtime import metrics
from functions.runtime.readiness import Readiness
from functions.runtime.services import Services
from functions.web.deps import ServicesDep, check_secret, read_bearer

router = APIRouter()
alive = APIRouter()  # alone where the packages are missing that /ready asks with

_NEAR: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_ELSEWHERE: Final = (
    "# Retrievals, answers, tokens and cost of functions are CloudWatch metrics under these names, namespace Ibid;\n"
    "# requests are those of the API gateway.\n"
)


@alive.get("/health")
def get_health() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/ready")
def get_ready(request: Request, services: ServicesDep) -> JSONResponse:
    """What works and what does not, in words; 503 when something needed does not."""
    checks = _find_readiness(request, services).check()
    ready = all(check.ok for check in checks.values())
    body = {"status": "ok" if ready else "degraded", "checks": {name: asdict(check) for name, check in checks.items()}}
    return JSONResponse(body, 200 if ready else 503)


@router.get("/metrics")
def get_metrics(
    request: Request, services: ServicesDep, authorization: Annotated[str | None, Header()] = None
) -> Response:
    """Figures as Prometheus reads them, for whoever knows METRICS_TOKEN; without one, for a laptop's own programs."""
    # The Host header too: a foreign page may point its name at 127.0.0.1, but cannot call it localhost.
    is_near = request.client is not None and {request.client.host, request.url.hostname} <= _NEAR
    if services.config.metrics_token is not None or not (services.is_local and is_near):
        check_secret(read_bearer(authorization), services.config.metrics_token)
    gauges = _read_gauges(services)
    text = _ELSEWHERE + metrics.Registry().render(gauges) if metrics.is_embedded() else metrics.REGISTRY.render(gauges)
    return Response(text, media_type=metrics.CONTENT_TYPE)


def _find_readiness(request: Request, services: Services) -> Readiness:
    """The one of these services: its probes keep what they found for a while, and never run twice at once."""
    state = request.app.state
    found: Readiness | None = state.readiness
    if found is None or found.services is not services:
        found = state.readiness = Readiness(services)
    return found


def _read_gauges(services: Services) -> list[metrics.Sample]:
    """What the database knows, of every process; nothing when it does not answer, which is what /ready is for."""
    try:
        waiting = jobs.read_backlog(services.database)
        counts = jobs.count_jobs(services.database)
    except errors.UnavailableError:
        return []
    return [
        *metrics.describe_jobs(counts),
        *metrics.describe_backlog(waiting.due, waiting.oldest_seconds, waiting.given_up),
    ]
