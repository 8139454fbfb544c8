"""Dependencies of the routes: the services of the process, the signed-in user, checked ids.

Those that wait for nothing in a process that has started are coroutines, because FastAPI runs every other function in
a thread of its own, and each change of thread waits for the interpreter.
"""

from __future__ import annotations

import hmac
import json
import math
import time
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer
from pydantic import SecretStr

from functions.adapters.postgres import users
from functions.core import api_keys, errors, models
from functions.runtime.config import find_function_name
from functions.runtime.services import Services, shared_services


async def get_services(request: Request) -> Services:
    services: Services | None = request.app.state.services
    return services or shared_services()


ServicesDep = Annotated[Services, Depends(get_services)]


async def get_authorization(request: Request) -> str | None:
    return request.headers.get("authorization")


# HTTPBearer only describes the token in OpenAPI: `read_bearer` reads it, because its refusals have our form.
Authorization = Annotated[str | None, Depends(get_authorization)]
DESCRIBED = Depends(HTTPBearer(auto_error=False, scheme_name="token", description="An access token or an API key"))


async def get_caller(services: ServicesDep, authorization: Authorization, _: object = DESCRIBED) -> models.User:
    bearer = read_bearer(authorization)
    if api_keys.is_key(bearer) or services.authenticator.fetches_keys:  # waits for the database or the sign-in server
        return await run_in_threadpool(authenticate, services, bearer)
    return authenticate(services, bearer)


Caller = Annotated[models.User, Depends(get_caller)]
"""Whoever is signed in, also with an API key of any scope."""


async def get_user(caller: Caller, request: Request) -> models.User:
    return check_scope(caller, "read" if request.method == "GET" else "write")


CurrentUser = Annotated[models.User, Depends(get_user)]
"""Takes the scope `read` for GET and `write` for other methods."""


async def get_asker(caller: Caller) -> models.User:
    return check_scope(caller, "ask")


Asker = Annotated[models.User, Depends(get_asker)]


async def get_key_owner(caller: Caller) -> models.User:
    if caller.scopes is not None:
        raise errors.NotAllowedError("Only you can make, list and revoke API keys, not a program. Sign in to do that.")
    return caller


KeyOwner = Annotated[models.User, Depends(get_key_owner)]


async def get_deadline(request: Request) -> float:
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


async def get_admin(caller: Caller) -> models.User:
    if not caller.is_admin:
        raise errors.NotAdminError
    return caller


Admin = Annotated[models.User, Depends(get_admin)]


def authenticate(services: Services, bearer: str) -> models.User:
    """The user that a token or an API key stands for; raises NotSignedInError, and RateLimitedError for a key."""
    if api_keys.is_key(bearer):
        return users.use_key(services.database, bearer, checks_account=not services.is_local)
    return services.authenticator.authenticate(bearer)


def check_scope(user: models.User, scope: api_keys.Scope) -> models.User:
    """The same user; raises MissingScopeError for an API key without the scope."""
    if user.scopes is not None and scope not in user.scopes:
        raise errors.MissingScopeError(f"This API key or sign-in lacks the scope {scope!r}. Make a key that has it.")
    return user


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
