"""Reports whether the service is alive and ready, and its metrics."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from functions.adapters.postgres import jobs
from functions.core import errors
from functions.runtime import metrics
from functions.runtime.config import find_function_name
from functions.runtime.readiness import Readiness
from functions.runtime.services import Services
from functions.web.deps import DESCRIBED, Authorization, ServicesDep, authenticate, check_secret, read_bearer
from functions.web.schemas import operations

router = APIRouter()
alive = APIRouter()  # for functions without the packages that the checks of /ready need

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_LAMBDA_COMMENT: Final = (
    "# CloudWatch has the metrics of retrievals, answers, tokens and cost, in the namespace Ibid.\n"
    "# The API gateway counts requests.\n"
)


@alive.get("/health", response_model=operations.Health)
def get_health() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/ready", response_model=operations.Readiness, responses={503: {"model": operations.Readiness}})
def get_ready(
    request: Request, services: ServicesDep, authorization: Authorization, _: object = DESCRIBED
) -> JSONResponse:
    """Whether every check succeeds, else 503; on a laptop, and to operators, also a sentence for each.

    Operators send METRICS_TOKEN or the access token of an administrator.
    """
    checks = _find_readiness(request, services).check()
    ready = all(check.ok for check in checks.values())
    shown = checks if _may_see_checks(services, authorization) else {}
    body = {"status": "ok" if ready else "degraded", "checks": {name: asdict(check) for name, check in shown.items()}}
    return JSONResponse(body, 200 if ready else 503)


def _may_see_checks(services: Services, authorization: str | None) -> bool:
    """The sentences name models, versions and the backlog, which in the cloud are for operators alone."""
    if find_function_name() is None and services.config.supabase_url is None:
        return True
    try:
        bearer = read_bearer(authorization)
        with suppress(errors.NotSignedInError):
            check_secret(bearer, services.config.metrics_token)
            return True
        return authenticate(services, bearer).is_admin
    except errors.IbidError:  # /ready answers whoever asks
        return False


@router.get("/metrics", response_class=PlainTextResponse)
def get_metrics(
    request: Request, services: ServicesDep, authorization: Authorization, _: object = DESCRIBED
) -> Response:
    """Metrics in Prometheus's text format; requires METRICS_TOKEN, or without one a local request to a laptop."""
    # Also checks the Host header: a foreign page can resolve its own name to 127.0.0.1, but cannot send "localhost".
    is_loopback = request.client is not None and {request.client.host, request.url.hostname} <= _LOOPBACK
    if services.config.metrics_token is not None or not (services.is_local and is_loopback):
        check_secret(read_bearer(authorization), services.config.metrics_token)
    gauges = _read_gauges(services)
    text = (
        _LAMBDA_COMMENT + metrics.Registry().render(gauges)
        if metrics.is_embedded()
        else metrics.REGISTRY.render(gauges)
    )
    return Response(text, media_type=metrics.CONTENT_TYPE)


def _find_readiness(request: Request, services: Services) -> Readiness:
    """The Readiness of these services, created once, because its probes cache results and must not run twice."""
    state = request.app.state
    readiness: Readiness | None = state.readiness
    if readiness is None or readiness.services is not services:
        readiness = state.readiness = Readiness(services)
    return readiness


def _read_gauges(services: Services) -> list[metrics.Sample]:
    """The gauges of the job queue; none if the database does not answer, which /ready reports."""
    try:
        backlog = jobs.read_backlog(services.database)
        counts = jobs.count_jobs(services.database)
    except errors.UnavailableError:
        return []
    return [
        *metrics.describe_jobs(counts),
        *metrics.describe_backlog(backlog.due, backlog.oldest_seconds, backlog.given_up),
    ]
