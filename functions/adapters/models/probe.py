"""Checks whether model servers work: by their list of models, which is free of charge, or by embedding one word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functions.core import errors, models

if TYPE_CHECKING:
    import httpx

SECONDS = 2.0
OPENAI_URL = "https://api.openai.com/v1"
WORD = "ready"


def probe_server(base_url: str | None, api_key: str | None, what: str) -> None:
    """Raises ModelUnavailableError or ModelRejectedError, whose message contains neither the address nor the key.

    A server that answers 404 because it has no list of models passes. The message begins with `what`.
    """
    _check_status(_send("GET", base_url, "models", api_key, what), what)


def probe_embedding(server: models.EmbeddingServer, api_key: str | None) -> None:
    """Lets a server embed one word; raises like `probe_server`, for everything that would fail each ingestion.

    The message says what to set. A rate limit passes, because ingestion waits for it.
    """
    what = f"Embedding ({server.name})"
    address = "its base_url" if server.managed else "EMBEDDING_BASE_URL"
    body: dict[str, Any] = {"model": server.model, "input": [server.passage_prefix + WORD]}
    if server.model.startswith("text-embedding-3"):
        body["dimensions"] = server.dimensions
    try:
        answer = _send("POST", server.base_url, "embeddings", api_key, what, body)
        _check_status(answer, what)
    except errors.ModelUnavailableError as exc:
        raise errors.ModelUnavailableError(f"{exc.message} Check that it runs, and {address}.") from None
    except errors.ModelRejectedError as exc:
        if exc.details.get("status") in (401, 403):
            variable = server.api_key_env or "its api_key_env"
            advice = f"Check {variable}." if api_key else f"{variable} is not set."
            raise errors.ModelRejectedError(f"{exc.message} {advice}") from None
        raise
    if answer.status_code == 429 and "insufficient_quota" not in answer.text:
        return
    if answer.status_code == 429:
        raise errors.ModelRejectedError(f"{what}: the quota is used up. Check the provider's plan and billing.")
    if answer.status_code >= 400:
        name = "its model" if server.managed else "EMBEDDING_MODEL"
        raise errors.ModelRejectedError(
            f"{what}: the server does not embed a word ({answer.status_code}). Check {name} and {address}."
        )
    _check_dimensions(answer, server, what)


def _check_dimensions(answer: httpx.Response, server: models.EmbeddingServer, what: str) -> None:
    try:
        returned = len(answer.json()["data"][0]["embedding"])
    except (ValueError, LookupError, TypeError):
        raise errors.ModelRejectedError(f"{what}: the server returned something other than vectors.") from None
    if returned != server.dimensions:
        advice = f"Add a server with {returned}" if server.managed else f"Set EMBEDDING_DIMENSIONS={returned}"
        raise errors.ModelRejectedError(
            f"{what}: the server returns {returned} dimensions, but {server.dimensions} are configured. {advice}."
        )


def _send(
    method: str, base_url: str | None, route: str, api_key: str | None, what: str, body: dict[str, Any] | None = None
) -> httpx.Response:
    import httpx  # loads in 100 ms, `openai` in 500 ms

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        # A redirect would send the key to an address that no administrator has configured.
        return httpx.request(
            method,
            f"{(base_url or OPENAI_URL).rstrip('/')}/{route}",
            headers=headers,
            json=body,
            timeout=SECONDS,
            follow_redirects=False,
        )
    except httpx.ReadTimeout:
        raise errors.ModelUnavailableError(f"{what}: the server takes longer than {SECONDS:g} s to answer.") from None
    except (httpx.HTTPError, httpx.InvalidURL):
        raise errors.ModelUnavailableError(f"{what}: the server does not answer.") from None
    except UnicodeEncodeError:
        raise errors.ModelRejectedError(
            f"{what}: the key contains characters that cannot be sent. Check the key."
        ) from None


def _check_status(answer: httpx.Response, what: str) -> None:
    status = answer.status_code
    if 300 <= status < 400:
        raise errors.ModelRejectedError(
            f"{what}: the server redirects requests. Configure the address that it redirects to."
        )
    if status in (401, 403):
        raise errors.ModelRejectedError(f"{what}: the server refuses the key.", status=status)
    if status >= 500:
        raise errors.ModelUnavailableError(f"{what}: the server answers with an error ({status}).")
