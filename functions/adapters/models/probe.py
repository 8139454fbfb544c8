"""Asks a server of models whether it is there: for its list of models, which costs nothing."""

from __future__ import annotations

from functions.core import errors

SECONDS = 2.0
OPENAI_URL = "https://api.openai.com/v1"


def probe_server(base_url: str | None, api_key: str | None, what: str) -> None:
    """Raises ModelUnavailableError or ModelRejectedError, in words that hold neither the address nor the key.

    A server that has no list of models and says so is there. `what` begins the sentence.
    """
    import httpx  # 100 ms; `openai` would be 500

    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        address = f"{(base_url or OPENAI_URL).rstrip('/')}/models"
        # What a redirect points to is not what an administrator has set, and gets no key.
        answer = httpx.get(address, headers=headers, timeout=SECONDS, follow_redirects=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise errors.ModelUnavailableError(f"{what}: its server does not answer.") from None
    except UnicodeEncodeError:
        raise errors.ModelRejectedError(f"{what}: its key holds characters that no key has.") from None
    if 300 <= answer.status_code < 400:
        raise errors.ModelRejectedError(f"{what}: its server redirects. Set the address that it names.")
    if answer.status_code in (401, 403):
        raise errors.ModelRejectedError(f"{what}: its server refuses the key.")
    if answer.status_code >= 500:
        raise errors.ModelUnavailableError(f"{what}: its server answers with an error ({answer.status_code}).")
