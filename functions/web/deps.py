"""Dependencies of the routes: the services of the process, the signed-in user, checked ids."""

from __future__ import annotations

import hmac
import json
import math
import time
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Header, Request
from pydantic import SecretStr

from functions.core import errors, models
from functions.runtime.config import find_function_name
from functions.runtime.services import Services, shared_services


def get_services(request: Request) -> Services:
    services: Services | None = request.app.state.services
    return services or shared_services()


ServicesDep = Annotated[Services, Depends(get_services)]


def get_user(services: ServicesDep, authorization: Annotated[str | None, Header()] = None) -> models.User:
    return services.authenticator.authenticate(read_bearer(authorization))


CurrentUser = Annotated[models.User, Depends(get_user)]


def get_deadline(request: Request) -> float:
    """The `time.monotonic()` at which Lambda stops the function that serves this request; infinity elsewhere.

    Mangum hands the context of the invocation over, the web adapter of the streaming function sends it as a header.
    """
    if find_function_name() is None:
        return math.inf
    context = request.scope.get("aws.context")
    if context is not None:
        return time.monotonic() + float(context.get_remaining_time_in_millis()) / 1000
    try:
        ends_at = float(json.loads(request.headers["x-amzn-lambda-context"])["deadline"]) / 1000
    except (KeyError, TypeError, ValueError):
        return math.inf
    return time.monotonic() + ends_at - time.time()


Deadline = Annotated[float, Depends(get_deadline)]


def get_admin(user: CurrentUser) -> models.User:
    if not user.is_admin:
        raise errors.NotAdminError
    return user


Admin = Annotated[models.User, Depends(get_admin)]


def read_bearer(authorization: str | None) -> str:
    """The bearer token of an Authorization header; raises NotSignedInError."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise errors.NotSignedInError
    return token.strip()


def check_secret(given: str | None, expected: SecretStr | None) -> None:
    """Compares in constant time; raises NotSignedInError, also when no secret is configured."""
    if expected is None or not hmac.compare_digest((given or "").encode(), expected.get_secret_value().encode()):
        raise errors.NotSignedInError("The secret for this address is missing or wrong.")


def read_id(value: str, what: str) -> str:
    """An id from the path; raises NotFoundError for a malformed id, as for one that does not exist."""
    try:
        return str(UUID(value))
    except ValueError:
        raise errors.NotFoundError(f"There is no such {what}.") from None
