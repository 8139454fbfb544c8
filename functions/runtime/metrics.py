"""Figures of what this process does: counted for Prometheus, or on Lambda written as lines that CloudWatch reads.

A container of a function platform is seen by no scraper and answers one request at a time, so its counters mean
nothing; there each event is one line of the log in the Embedded Metric Format, from which CloudWatch makes metrics of
the same names. Anywhere else the counters of the process are shown at /metrics, in Prometheus's text format.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal

from functions.runtime.config import find_function_name
from functions.runtime.logging import request_id

NAMESPACE: Final = "Ibid"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure: a counter, a gauge, or a histogram with the upper ends of its buckets."""

    name: str
    text: str
    labels: Labels = ()
    kind: Literal["counter", "gauge", "histogram"] = "counter"
    buckets: tuple[float, ...] = ()

    @property
    def unit(self) -> str:
        """As CloudWatch calls it."""
        return "Seconds" if self.name.endswith("_seconds") else "None" if self.kind == "gauge" else "Count"


RETRIEVALS: Final = Metric("ai_rag_retrieve_total", "Retrievals, by what was searched.", ("scope",))
CHUNKS: Final = Metric(
    "ai_rag_chunks_retrieved", "Passages found by a retrieval.", (), "histogram", (0, 1, 2, 5, 10, 20, 50, 100)
)
EMBEDDING: Final = Metric("ai_rag_embed_latency_seconds", "Embedding of a question.", (), "histogram", _SECONDS)
SEARCHING: Final = Metric("ai_rag_search_latency_seconds", "Search in the database.", (), "histogram", _SECONDS)
ANSWERS: Final = Metric("ai_rag_answers_total", "Answers, by how they came about and ended.", ("mode", "status"))
INPUT_TOKENS: Final = Metric("ai_rag_input_tokens_total", "Tokens the language model has read.")
OUTPUT_TOKENS: Final = Metric("ai_rag_output_tokens_total", "Tokens the language model has written.")
COST: Final = Metric("ai_rag_cost_usd_total", "Cost of answers at the prices in the settings.")
REQUESTS: Final = Metric("http_requests_total", "Requests, by route and status.", ("method", "route", "status"))
RESPONDING: Final = Metric(
    "http_request_duration_seconds",
    "From a request to the end of its answer.",
    ("method", "route"),
    "histogram",
    _SECONDS,
)
# A gauge, since a job goes with its document; on Lambda each job that ends is one.
JOBS: Final = Metric("ai_index_jobs_total", "Jobs of the documents and notes that there are.", ("status",), "gauge")
DUE_JOBS: Final = Metric("ai_index_jobs_due", "Jobs that could be worked on now.", (), "gauge")
DUE_SECONDS: Final = Metric("ai_index_oldest_due_seconds", "How long the oldest of them has waited.", (), "gauge")
GIVEN_UP: Final = Metric("ai_index_jobs_given_up", "Jobs that failed or died within a day.", (), "gauge")

Sample = tuple[Metric, Labels, float]


class Registry:
    """Counts what is recorded, from any thread."""

    def __init__(self, *always: tuple[Metric, Labels]) -> None:
        """`always` are shown before anything happens, so that a rate begins at 0."""
        self._lock = threading.Lock()
        self._sums = dict.fromkeys(always, 0.0)
        self._buckets = {key: _empty(key[0]) for key in always if key[0].kind == "histogram"}

    def add(self, samples: Iterable[Sample]) -> None:
        with self._lock:
            for metric, labels, value in samples:
                key = metric, labels
                self._sums[key] = self._sums.get(key, 0.0) + value
                if metric.kind == "histogram":
                    counts = self._buckets.setdefault(key, _empty(metric))
                    counts[sum(value > end for end in metric.buckets)] += 1

    def render(self, gauges: Iterable[Sample] = ()) -> str:
        """Everything counted, and these gauges, as Prometheus reads it."""
        with self._lock:
            sums = dict(self._sums)
            buckets = {key: list(counts) for key, counts in self._buckets.items()}
        sums |= {(metric, labels): value for metric, labels, value in gauges}
        lines: list[str] = []
        last: Metric | None = None
        for key in sorted(sums, key=lambda key: (key[0].name, key[1])):
            metric, labels = key
            if metric != last:
                lines += [f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}"]
                last = metric
            pairs = list(zip(metric.labels, labels, strict=True))
            if metric.kind != "histogram":
                lines.append(f"{metric.name}{_braces(pairs)} {sums[key]:.15g}")
                continue
            ends = [*(f"{end:g}" for end in metric.buckets), "+Inf"]
            totals = list(accumulate(buckets[key]))
            lines += [
                f"{metric.name}_bucket{_braces([*pairs, ('le', end)])} {n}" for end, n in zip(ends, totals, strict=True)
            ]
            lines.append(f"{metric.name}_sum{_braces(pairs)} {sums[key]:.15g}")
            lines.append(f"{metric.name}_count{_braces(pairs)} {totals[-1]}")
        return "".join(f"{line}\n" for line in lines)


def _empty(metric: Metric) -> list[int]:
    return [0] * (len(metric.buckets) + 1)


def _braces(pairs: Iterable[tuple[str, str]]) -> str:
    text = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
    return f"{{{text}}}" if text else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def describe_embedded(samples: Iterable[Sample], function: str, now: float) -> dict[str, object]:
    """One document of the Embedded Metric Format; every metric has the function's name as a dimension.

    A document has one value a name, so samples of one metric with different labels are documents of their own.
    """
    directives, facts = [], dict[str, object]()
    for metric, labels, value in samples:
        directives.append(
            {
                "Namespace": NAMESPACE,
                "Dimensions": [["function", *metric.labels]],
                "Metrics": [{"Name": metric.name, "Unit": metric.unit}],
            }
        )
        facts |= dict(zip(metric.labels, labels, strict=True)) | {metric.name: value}
    return {
        "_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": directives},
        "function": function,
        "request_id": request_id.get(),
        **facts,
    }


_SCOPES: Final = ("documents", "conversation", "notebook", "note", "library")
REGISTRY: Final = Registry(
    *((RETRIEVALS, (scope,)) for scope in _SCOPES),
    *((metric, ()) for metric in (CHUNKS, EMBEDDING, SEARCHING, INPUT_TOKENS, OUTPUT_TOKENS, COST)),
)


def is_embedded() -> bool:
    """Whether figures go to the log instead of being counted here."""
    return find_function_name() is not None


def record(*samples: Sample) -> None:
    """Counts samples of one event, or writes them down; on Lambda no two of them may be of one metric."""
    if function_name := find_function_name():
        line = describe_embedded(samples, function_name, time.time())
        print(json.dumps(line), file=sys.stdout, flush=True)
    else:
        REGISTRY.add(samples)


def record_retrieval(scope: str, chunks: int, embed_ms: float, search_ms: float) -> None:
    record(
        (RETRIEVALS, (scope,), 1),
        (CHUNKS, (), chunks),
        (EMBEDDING, (), embed_ms / 1000),
        (SEARCHING, (), search_ms / 1000),
    )


def record_answer(
    mode: str, status: str, input_tokens: int | None, output_tokens: int | None, cost: float | None
) -> None:
    """Tokens and cost are left out where nobody has counted them."""
    known = ((INPUT_TOKENS, input_tokens), (OUTPUT_TOKENS, output_tokens), (COST, cost))
    record((ANSWERS, (mode, status), 1), *((metric, (), value) for metric, value in known if value is not None))


def record_request(method: str, route: str, status: int, seconds: float) -> None:
    """Not on Lambda, where the gateway and the platform count requests for nothing."""
    if not is_embedded():
        record((REQUESTS, (method, route, str(status)), 1), (RESPONDING, (method, route), seconds))


def record_job(status: str, count: int = 1) -> None:
    """Jobs that have ended. Only on Lambda: elsewhere /metrics asks the database."""
    if is_embedded() and count:
        record((JOBS, (status,), count))


def record_backlog(due: int, oldest_seconds: float, given_up: int) -> None:
    """What waits, once a minute. Only on Lambda, as above."""
    if is_embedded():
        record(*describe_backlog(due, oldest_seconds, given_up))


def describe_backlog(due: int, oldest_seconds: float, given_up: int) -> list[Sample]:
    return [(DUE_JOBS, (), due), (DUE_SECONDS, (), oldest_seconds), (GIVEN_UP, (), given_up)]


def describe_jobs(counts: Mapping[str, int]) -> list[Sample]:
    return [(JOBS, (status,), n) for status, n in counts.items()]
