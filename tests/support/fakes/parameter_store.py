"""The parameter store of AWS Systems Manager on loopback, as its reference documents GetParameters and PutParameter.

It checks signatures with botocore. A role is the part of an access key after "AKIA-"; one that `readable` does not list
may read everything.
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.fakes.json_server import Body, FakeServer, Fault

SECRET_KEY = "none"
MAX_NAMES, MAX_BYTES = 10, 4096
JSON = {"Content-Type": "application/x-amz-json-1.1"}
THROTTLED = Fault(400, JSON, {"__type": "ThrottlingException", "message": "Rate exceeded"})
BROKEN = Fault(500, JSON, {"__type": "InternalServerError", "message": "We are having trouble."})

_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([\w-]+)/ssm/.*SignedHeaders=(.*), ?Signature=(\w+)")


class ParameterStore(FakeServer):
    """Holds the values by name; every put makes another version."""

    def __init__(
        self, values: Mapping[str, str] | None = None, *, readable: Mapping[str, set[str]] | None = None
    ) -> None:
        super().__init__()
        self.values = dict(values or {})
        self.versions = dict.fromkeys(self.values, 1)
        self.kinds = dict.fromkeys(self.values, "SecureString")
        self.readable = readable or {}
        self._current = threading.local()

    def record(self, request: Body) -> None:
        super().record(request)
        self._current.headers = {name.lower(): value for name, value in request["headers"].items()}

    def answer(self, route: str, body: Body) -> Fault:
        headers: dict[str, str] = self._current.headers
        signed = _SIGNED.fullmatch(headers.get("authorization", ""))
        if signed is None or signed[4] != self._sign(signed, headers, body):
            return refuse("InvalidSignatureException")
        action = headers["x-amz-target"].removeprefix("AmazonSSM.")
        if action == "PutParameter":
            return self._put(body)
        return self._get(signed[1].removeprefix("AKIA-"), body) if action == "GetParameters" else refuse(action)

    def _sign(self, signed: re.Match[str], headers: dict[str, str], body: Body) -> str:
        used = {name: headers[name] for name in signed[3].split(";")}
        request = AWSRequest("POST", f"http://{headers['host']}/", used, json.dumps(body).encode())
        request.context["timestamp"] = headers["x-amz-date"]
        signer = SigV4Auth(Credentials(signed[1], SECRET_KEY), "ssm", signed[2])
        text = signer.string_to_sign(request, signer.canonical_request(request))
        return str(signer.signature(text, request))

    def _get(self, role: str, body: Body) -> Fault:
        names = body["Names"]
        if not 1 <= len(set(names)) == len(names) <= MAX_NAMES:
            return refuse("ValidationException")
        if role in self.readable and not set(names) <= self.readable[role]:  # one refused name refuses the call
            return refuse("AccessDeniedException")
        found = [name for name in names if name in self.values]
        missing = [name for name in names if name not in self.values]
        parameters = [self._describe(name, body.get("WithDecryption", False)) for name in found]
        return Fault(200, JSON, {"InvalidParameters": missing, "Parameters": parameters})

    def _describe(self, name: str, decrypted: bool) -> dict[str, Any]:
        is_plain = decrypted or self.kinds[name] == "String"
        return {
            "ARN": f"arn:aws:ssm:eu-central-1:123456789012:parameter{name}",
            "DataType": "text",
            "LastModifiedDate": 1795460000.0,
            "Name": name,
            "Type": self.kinds[name],
            "Value": self.values[name] if is_plain else "AQICAHi…",
            "Version": self.versions[name],
        }

    def _put(self, body: Body) -> Fault:
        name = body["Name"]
        if not 1 <= len(body["Value"].encode()) <= MAX_BYTES:
            return refuse("ValidationException")
        if name in self.values and not body.get("Overwrite"):
            return refuse("ParameterAlreadyExists")
        self.values[name], self.kinds[name] = body["Value"], body["Type"]
        self.versions[name] = self.versions.get(name, 0) + 1
        return Fault(200, JSON, {"Tier": "Standard", "Version": self.versions[name]})


def refuse(code: str) -> Fault:
    return Fault(400, JSON, {"__type": code, "message": "refused"})
