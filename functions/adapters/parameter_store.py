"""Reads secrets from the AWS parameter store (SSM).

The request is signed here, because loading boto3 takes longer than everything else in a cold start. Tests compare the
signature with that of botocore.
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from functions.core import errors

_SECONDS: Final = 3.0
_PAUSES: Final = (0.1, 0.4, 1.0)
"""Seconds before each further attempt; a new version of all functions starts many instances at once."""

_TRANSIENT: Final = frozenset({"ThrottlingException", "TooManyUpdates", "InternalServerError", "ServiceUnavailable"})
_HEADERS: Final = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "AmazonSSM.GetParameters"}

_log = logging.getLogger(__name__)


def read_parameters(path: str, names: Iterable[str]) -> dict[str, str]:
    """The decrypted values of the parameters `path/name`, by name; those that do not exist are left out.

    Raises UnavailableError when the store refuses the function's role or does not answer.
    """
    body = json.dumps({"Names": [f"{path}/{name}" for name in names], "WithDecryption": True}).encode()
    status, code = 0, ""
    for pause in (*_PAUSES, None):
        try:
            status, answer = _send(body)
        except (OSError, http.client.HTTPException):
            status, answer = 503, {}
        if status == 200:
            return _read_values(path, answer)
        code = str(answer.get("__type", "")).rpartition("#")[2]
        if pause is None or not (status >= 500 or code in _TRANSIENT):
            break
        time.sleep(pause)
    raise _describe_refusal(path, status, code)


def _read_values(path: str, answer: dict[str, Any]) -> dict[str, str]:
    if missing := answer.get("InvalidParameters"):
        _log.info("the parameter store does not have these parameters", extra={"parameters": missing})
    return {found["Name"].removeprefix(f"{path}/"): found["Value"] for found in answer["Parameters"]}


def _describe_refusal(path: str, status: int, code: str) -> errors.UnavailableError:
    if code == "AccessDeniedException":
        return errors.UnavailableError(
            f"The role of this function may not read its parameters in {path}. An administrator has to deploy again."
        )
    _log.error("the parameter store could not be read", extra={"status_code": status, "error": code})
    return errors.UnavailableError(f"The parameters in {path} could not be read. Try again in a moment.")


def _send(body: bytes) -> tuple[int, dict[str, Any]]:
    """Posts a request to the store; returns the status and the answer."""
    region = os.environ["AWS_REGION"]
    url = urlsplit(os.environ.get("AWS_ENDPOINT_URL_SSM") or f"https://ssm.{region}.amazonaws.com")
    kind = http.client.HTTPConnection if url.scheme == "http" else http.client.HTTPSConnection
    connection = kind(url.netloc, timeout=_SECONDS)
    try:
        connection.request("POST", "/", body, sign(body, url.netloc, region, os.environ, datetime.now(UTC)))
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content.startswith(b"{") else {}
    finally:
        connection.close()


def sign(body: bytes, host: str, region: str, credentials: Mapping[str, str], now: datetime) -> dict[str, str]:
    """The headers of a signed request (Signature Version 4); `credentials` has the variables that Lambda sets."""
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {**_HEADERS, "host": host, "x-amz-date": moment}
    if token := credentials.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    names = ";".join(sorted(headers))
    canonical = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"POST\n/\n\n{canonical}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{moment[:8]}/{region}/ssm/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = b"AWS4" + credentials["AWS_SECRET_ACCESS_KEY"].encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{credentials['AWS_ACCESS_KEY_ID']}/{scope}"
    headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return headers
