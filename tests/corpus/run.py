"""Uploads every file of the corpus to a running installation, and computes the figures."""

from __future__ import annotations

import mimetypes
import re
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from tests.bench.report import at_most, figure
from tests.corpus.installation import run_installation
from tests.corpus.manifest import Entry, Outcome, find_deviation

STILL_SECONDS = 60.0  # a file that makes no progress for longer hangs; a long one on a slow machine may take minutes
PATIENCE_SECONDS = 180.0
PEAK_MB = 600.0
SENT_AHEAD = 3
POLL_SECONDS = 0.05, 0.5  # at first and for slow files: polling slows the worker down


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of each file, in order, and figures of the worker."""

    outcomes: tuple[tuple[Entry, Outcome], ...]
    peak_bytes: int
    worker_starts: int
    seconds: float
    has_ocr: bool

    @property
    def deviations(self) -> dict[str, str]:
        """For each file with another outcome than expected, the difference, by its path."""
        compared = ((e, find_deviation(e, outcome, has_ocr=self.has_ocr)) for e, outcome in self.outcomes)
        return {str(entry.path): deviation for entry, deviation in compared if deviation is not None}

    @property
    def figures(self) -> list[dict[str, Any]]:
        files, correct = len(self.outcomes), len(self.outcomes) - len(self.deviations)
        slowest, file = max((outcome.seconds, entry.path.name) for entry, outcome in self.outcomes)
        still, still_file = max((outcome.still_seconds, entry.path.name) for entry, outcome in self.outcomes)
        scans = [outcome.has_words for _, outcome in self.outcomes if outcome.has_words is not None]
        peak = self.peak_bytes / 1e6
        return [
            figure("files with the expected outcome", correct, files, 1.0),
            at_most(f"longest without progress, s: {still_file}", still, STILL_SECONDS),
            figure(f"slowest file, s: {file}", slowest, PATIENCE_SECONDS),
            at_most("peak of worker and OCR, MB", peak, PEAK_MB),
            figure("worker processes", self.worker_starts, 1, 1.0, ok=self.worker_starts == 1),
            figure("scans whose words were read", sum(scans), max(len(scans), 1)),
            figure("all files, s", self.seconds, files),
        ]


def run_corpus(entries: Sequence[Entry], on_outcome: Callable[[Entry, Outcome], object] = lambda *_: None) -> Result:
    """Ingests the files one after the other; calls `on_outcome` for each as soon as it is done."""
    with tempfile.TemporaryDirectory(prefix="ibid-corpus-") as folder:
        (home := Path(folder).resolve() / "home").mkdir()
        with run_installation(home) as (client, watch):
            start = time.monotonic()
            outcomes = []
            for entry, outcome in zip(entries, _ingest_all(client, entries), strict=True):
                outcome = replace(outcome, peak_bytes=watch.take_peak())
                outcomes.append((entry, outcome))
                on_outcome(entry, outcome)
            seconds = time.monotonic() - start
        return Result(tuple(outcomes), watch.peak_bytes, watch.starts, seconds, shutil.which("tesseract") is not None)


@dataclass(frozen=True, slots=True)
class _Sent:
    entry: Entry
    document: str | None
    sent_at: float
    refusal: Outcome | None = None


def _ingest_all(client: httpx.Client, entries: Sequence[Entry]) -> Iterator[Outcome]:
    """Sends a few files ahead, so that the worker is never idle; yields the outcomes in order."""
    waiting: deque[_Sent] = deque()
    free_at = 0.0
    for entry in [*entries, *[None] * SENT_AHEAD]:
        if entry is not None:
            waiting.append(_send(client, entry))
        if waiting and (len(waiting) > SENT_AHEAD or entry is None):
            sent = waiting.popleft()
            outcome = sent.refusal or _follow(client, sent)
            now = time.monotonic()
            yield replace(outcome, seconds=now - max(sent.sent_at, free_at))
            free_at = now


def _send(client: httpx.Client, entry: Entry) -> _Sent:
    """Announces and uploads a file, with the type that a browser would declare."""
    content = entry.path.read_bytes()
    body = {"file_name": entry.path.name, "size": len(content), "mime_type": mimetypes.guess_type(entry.path.name)[0]}
    announced = client.post("/api/rag/documents", json=body)
    if not announced.is_success:
        return _Sent(entry, None, time.monotonic(), _describe_refusal(announced))
    document, upload = announced.json()["document"]["id"], announced.json()["upload"]
    stored = client.request(upload["method"], upload["url"], content=content, headers=upload["headers"])
    if not stored.is_success:
        return _Sent(entry, None, time.monotonic(), _describe_refusal(stored))
    client.post(f"/api/rag/documents/{document}/finalize").raise_for_status()
    return _Sent(entry, document, time.monotonic())


def _describe_refusal(answer: httpx.Response) -> Outcome:
    problem = answer.json()
    return Outcome("refused" if answer.is_client_error else "unfinished", problem["code"], problem["detail"])


def _follow(client: httpx.Client, sent: _Sent) -> Outcome:
    started = changed = time.monotonic()
    still, last = 0.0, None
    while (elapsed := time.monotonic() - started) < PATIENCE_SECONDS:
        document = client.get(f"/api/rag/documents/{sent.document}").raise_for_status().json()
        now, state = time.monotonic(), (document["status"], document["stage"], document["progress"])
        still = max(still, now - changed)
        if state != last:
            changed, last = now, state
        if document["status"] in ("indexed", "failed"):
            return replace(_describe(client, sent, document), still_seconds=still)
        time.sleep(min(POLL_SECONDS[1], max(POLL_SECONDS[0], elapsed / 20)))
    return Outcome("unfinished", still_seconds=still)


def _describe(client: httpx.Client, sent: _Sent, document: dict[str, Any]) -> Outcome:
    words = sent.entry.words if document["status"] == "indexed" else None
    return Outcome(
        document["status"],
        document["error_code"],
        document["error"] or "",
        document["page_count"],
        document["chunk_count"],
        is_duplicate=document["id"] != sent.document,
        has_words=None if words is None else _has_words(client, document["id"], words),
    )


def _has_words(client: httpx.Client, document_id: str, words: str) -> bool:
    """Whether the text has at least three quarters of the words: OCR may misread a letter."""
    pages = client.get(f"/api/rag/documents/{document_id}/text").raise_for_status().json()["pages"]
    read = _split_words(" ".join(page["text"] for page in pages))
    found = [_was_read(word, read) for word in _split_words(words)]
    return sum(found) >= 0.75 * len(found)


def _split_words(text: str) -> set[str]:
    return set(re.findall(r"\w[\w-]*", text.casefold()))


def _was_read(word: str, read: set[str]) -> bool:
    """Whether the word was read; a longer word may be the beginning of another, as "tip-toe" of "tip-toeing"."""
    return word in read or (len(word) > 3 and any(other.startswith(word) for other in read))
