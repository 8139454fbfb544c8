"""Sends generated requests to every operation of the OpenAPI document, as every caller, and checks each answer."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import hypothesis
import requests
import schemathesis
from hypothesis import strategies
from requests.structures import CaseInsensitiveDict
from schemathesis.core.errors import InvalidSchema
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Err, Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from tests.fuzz.api.callers import Caller
from tests.support.generated_client import forbid_other_fields
from tests.support.local_server import Json

Case = schemathesis.Case[Any]
Operation = APIOperation[Any, Any, Any, Any]

CHECKS: Final = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
MODES: Final = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
# Reading before writing before deleting, and what changes the installation at the end.
_ORDER: Final = ("get", "post", "put", "patch", "delete")
_ADMINISTRATION: Final = ("/api/rag/embed", "/api/rag/settings")
# What a model server answers is its own: these operations say so with a 5xx of their own code.
_OF_MODEL_SERVERS: Final = {"model_unavailable", "model_rejected"}


@dataclass(slots=True)
class Findings:
    """Counts the answers by operation and status; `faults` are answers that break a rule, by what broke."""

    requests: int = 0
    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def fuzz(document: Json, base_url: str, callers: Sequence[Caller], model_url: str, *, examples: int) -> Findings:
    """Sends up to `examples` valid and as many invalid requests per operation as each caller, always the same ones."""
    findings = Findings()
    schema = schemathesis.openapi.from_dict(forbid_other_fields(document))
    operations = sorted(map(_read_operation, schema.get_all_operations()), key=_place)
    with requests.Session() as session:
        session.trust_env = False
        for operation in operations:
            send = _Sender(operation, callers, base_url, model_url, session, findings)
            for mode in MODES:
                _generate(operation.as_strategy(generation_mode=mode), send, examples)
    return findings


def _read_operation(found: Ok[Operation] | Err[InvalidSchema]) -> Operation:
    if isinstance(found, Err):
        raise found.err()
    return found.ok()


def _place(operation: Operation) -> tuple[bool, int, str]:
    return operation.path.startswith(_ADMINISTRATION), _ORDER.index(operation.method.lower()), operation.path


def _generate(
    cases: strategies.SearchStrategy[Case],
    send: Callable[[Case, Random], None],
    examples: int,
) -> None:
    @hypothesis.seed(0)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(cases, strategies.randoms(use_true_random=False))
    def send_each(case: Case, chance: Random) -> None:
        send(case, chance)

    with warnings.catch_warnings(), suppress(hypothesis.errors.Unsatisfiable):
        warnings.simplefilter("ignore")  # both are about operations of which no invalid request can be made
        send_each()


def _use_known(part: Any, known: Mapping[str, Sequence[Any]], chance: Random) -> Any:
    """A copy with values that mean something in place of most generated ones, because a random id never meets a row."""
    if isinstance(part, list):
        return [_use_known(item, known, chance) for item in part]
    if not isinstance(part, dict):
        return part
    copy = {name: _use_known(value, known, chance) for name, value in part.items()}
    for name in sorted(copy.keys() & known.keys()):
        if chance.random() < 0.8:
            value = chance.choice(known[name])
            copy[name] = [value] if isinstance(part[name], list) else value
    return copy


@dataclass(slots=True)
class _Sender:
    operation: Operation
    callers: Sequence[Caller]
    base_url: str
    model_url: str
    session: requests.Session
    findings: Findings

    def __call__(self, case: Case, chance: Random) -> None:
        self._keep_on_this_machine(case)
        generated = (case.path_parameters, case.query, case.body)
        headers = {name: value for name, value in case.headers.items() if name.lower() != "authorization"}
        for caller in self.callers:
            case.path_parameters, case.query, case.body = (_use_known(p, caller.known, chance) for p in generated)
            case.headers = CaseInsensitiveDict(headers | dict(caller.headers))
            self._send(case, caller)

    def _send(self, case: Case, caller: Caller) -> None:
        answer = case.call(base_url=self.base_url, session=self.session, timeout=60)
        label = f"{self.operation.method.upper()} {self.operation.path}"
        self.findings.requests += 1
        self.findings.statuses.setdefault(label, Counter())[answer.status_code] += 1
        for fault in self._find_faults(case, answer, caller):
            self.findings.faults.setdefault(f"{label} as {caller.name}: {fault}", case.as_curl_command())

    def _keep_on_this_machine(self, case: Case) -> None:
        """No address but that of the fake model server, and no long poll."""
        if isinstance(case.body, dict) and self.operation.path.startswith("/api/rag/embedding-servers"):
            case.body["base_url"] = self.model_url
        if isinstance((case.query or {}).get("wait"), int):
            case.query["wait"] = 0

    def _find_faults(self, case: Case, answer: schemathesis.Response, caller: Caller) -> Iterator[str]:
        text = answer.content.decode("utf-8", "replace")
        yield from (f"shows {mark} of somebody else" for mark in caller.foreign if mark in text)
        if answer.status_code >= 500 and not self._is_expected_failure(text, answer.status_code):
            yield f"status {answer.status_code}: {text[:300]}"
        if not caller.headers and self._needs_token() and answer.status_code < 400:
            yield f"status {answer.status_code} without a token"
        if (
            400 <= answer.status_code < 500
            and str(answer.status_code) not in self.operation.definition.raw["responses"]
        ):
            yield f"status {answer.status_code}, which is not in the document: {text[:300]}"
        (media_type,) = answer.headers["content-type"]
        if media_type.startswith("text/event-stream"):  # the document describes the events as text
            yield from (f"event {event}" for event in text.strip().split("\n\n") if not event.startswith("data: "))
            return
        try:
            case.validate_response(answer, checks=CHECKS)
        except FailureGroup as group:
            yield from (f"{type(e).__name__}: {' '.join(str(e).split())[:300]}" for e in group.exceptions)

    def _needs_token(self) -> bool:
        """Figures are also shown to clients on this machine, without one."""
        return "security" in self.operation.definition.raw and self.operation.path not in ("/metrics", "/ready")

    def _is_expected_failure(self, text: str, status: int) -> bool:
        return status != 500 and any(f'"{code}"' in text for code in _OF_MODEL_SERVERS)
