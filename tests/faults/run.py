"""Runs a flow while something outside is broken, and looks whether everything is as it should be afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import httpx

from tests.faults import faults, flows
from tests.faults.flows import RefusedError, UnclearError, Visit
from tests.faults.plant import KEPT, KEPT_QUESTION, Plant
from tests.support.local_server import wait_until

RECOVERY_SECONDS = 45.0


@dataclass(frozen=True, slots=True)
class Cell:
    """What was observed: the outcome during the fault, and after how long everything worked again by itself."""

    fault: str
    flow: str
    outcome: str
    is_clear: bool
    """Whether the flow succeeded, waits to go on, or ended with an error that has a code."""
    lost: str = ""
    """What was wrong after the fault; empty if nothing was lost."""
    recovery_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.is_clear and not self.lost


def run_cell(plant: Plant, fault: str, flow: str) -> Cell:
    with _visit(plant) as visit:
        with _prepared(visit, flow), faults.FAULTS[fault](plant):
            visit.plant.server.services.forget_policy()
            outcome, is_clear = _observe(visit, flow, breaks=fault == faults.KILL)
        began = time.monotonic()
        lost = _find_loss(visit, flow)
        return Cell(fault, flow, outcome, is_clear, lost, time.monotonic() - began)


def list_cells() -> list[tuple[str, str]]:
    """Every fault with every flow that it can meet."""
    return [
        (fault, flow)
        for fault in faults.FAULTS
        for flow in flows.FLOWS
        if (fault not in faults.EVENTS or flow in flows.HAS_STEPS) and (fault, flow) != (faults.KILL, "sweep")
    ]


@contextmanager
def _visit(plant: Plant) -> Iterator[Visit]:
    with plant.visitor() as person:
        document = person.add_bytes("kept.txt", KEPT.encode())["id"]
        assert person.follow(document)["status"] == "indexed"
        note = person.post("/notes", title="Kept", content=KEPT)["id"]
        assert person.get(f"/notes/{note}", wait=20)["status"] == "indexed"
        yield Visit(plant, person, document, note)


@contextmanager
def _prepared(visit: Visit, flow: str) -> Iterator[None]:
    """Stores a further document where the flow needs one; its ingestion begins with the flow."""
    if flow == "delete, restore":
        visit.document = visit.person.add_bytes("doomed.txt", b"The last ferry sank in 1921.")["id"]
        visit.person.follow(visit.document)
    if flow != "ingest":
        yield
        return
    with visit.plant.server.worker.paused():
        ticket, content = visit.announce()
        visit.document = ticket["document"]["id"]
        visit.send(ticket, content)
        visit.call("POST", f"/documents/{visit.document}/finalize")
    yield


def _observe(visit: Visit, flow: str, *, breaks: bool) -> tuple[str, bool]:
    """The outcome, and whether it is clear; `breaks` says that connections to the server may break."""
    try:
        return flows.FLOWS[flow](visit), True
    except RefusedError as exc:
        return str(exc), True
    except UnclearError as exc:
        return f"UNCLEAR {exc}", False
    except (httpx.TransportError, AssertionError) as exc:
        if breaks and isinstance(exc, httpx.TransportError):
            return "connection broken", True
        return f"UNCLEAR {type(exc).__name__}: {str(exc)[:80]}", False


def _find_loss(visit: Visit, flow: str) -> str:
    """What is not as it should be although the fault is over, after RECOVERY_SECONDS at most."""
    problem = ""

    def is_well() -> bool:
        nonlocal problem
        visit.plant.server.services.forget_policy()
        visit.plant.let_time_pass()
        time.sleep(0.2)
        problem = _find_problem(visit, flow)
        return not problem

    with suppress(AssertionError):
        wait_until(is_well, RECOVERY_SECONDS)
    return problem


def _find_problem(visit: Visit, flow: str) -> str:
    try:
        for document in {visit.kept_document, visit.document} - {""}:
            if flow == "delete, restore" and document == visit.document:
                continue
            status = visit.status(document)
            if status != "indexed" and not (flow == "upload" and status == "awaiting_upload"):
                return f"a document is {status}"
        for note in {visit.kept_note, visit.note} - {""}:
            found = visit.call("GET", f"/notes/{note}")
            is_doubtful = flow == "delete, restore" and note == visit.kept_note  # perhaps only its first half happened
            if found["status"] != "indexed" or (found["trashed_at"] and not is_doubtful):
                return f"a note is {found['status']}"
        hits = visit.call("GET", "/search", q=KEPT_QUESTION)
        if KEPT not in [hit["text"] for hit in hits["hits"]] or hits["degraded"]:
            return f"search finds {len(hits['hits'])} passages, degraded: {hits['degraded']}"
        leftovers = visit.plant.find_leftovers()
        if leftovers:
            return f"left over: {leftovers}"
        again = flows.FLOWS[flow](visit) if flow not in ("ingest", "delete, restore", "sweep") else "indexed"
        return "" if again in ("indexed", "found", "model", "processing", "uploaded") else f"again: {again}"
    except (RefusedError, UnclearError, httpx.TransportError, AssertionError) as exc:
        return f"{type(exc).__name__}: {str(exc)[:120]}"
