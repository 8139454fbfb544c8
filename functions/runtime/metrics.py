"""Figures of what this process does: counted for Prometheus, or on Lambda written as log lines that CloudWatch reads.

No scraper reaches a Lambda container, so counters there would be lost. Each event is written as one log line in the
Embedded Metric Format instead, and CloudWatch makes metrics of the same names from it. Everywhere else /metrics shows
the counters of the process in Prometheus's text format.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from functions.runtime.config import find_function_name
from functions.runtime.logging import request_id

if TYPE_CHECKING:
    import prometheus_client
    from prometheus_client import Counter, Gauge, Histogram

    _Series = Counter | Gauge | Histogram

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
        """The unit, as CloudWatch names it."""
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
    """Counts samples from any thread and shows them in Prometheus's text format.

    prometheus-client is loaded by the first sample: that takes 25 ms, and functions on Lambda count nothing.
    """

    def __init__(self, *always: tuple[Metric, Labels]) -> None:
        """`always` are shown before anything happens, so that a rate begins at 0."""
        self._always = always
        self._lock = threading.Lock()
        self._collectors: dict[Metric, _Series] = {}

    def add(self, samples: Iterable[Sample]) -> None:
        """Counts up counters and histograms, and sets gauges."""
        from prometheus_client import Counter, Gauge

        for metric, labels, value in samples:
            series = self._find_series(metric, labels)
            if isinstance(series, Counter):
                series.inc(value)
            elif isinstance(series, Gauge):
                series.set(value)
            else:
                series.observe(value)

    def render(self, gauges: Iterable[Sample] = ()) -> str:
        """These gauges and everything counted, in Prometheus's text format."""
        from prometheus_client import generate_latest

        for metric, labels in self._always:
            self._find_series(metric, labels)
        current = Registry()
        current.add(gauges)
        return (generate_latest(current) + generate_latest(self)).decode()

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """The method through which prometheus-client reads a registry."""
        with self._lock:
            collectors = sorted(self._collectors.items(), key=lambda item: item[0].name)
        for _, collector in collectors:
            yield from collector.collect()

    def _find_series(self, metric: Metric, labels: Labels) -> _Series:
        with self._lock:
            if metric not in self._collectors:
                self._collectors[metric] = _create_collector(metric)
            collector = self._collectors[metric]
        return collector.labels(*labels) if labels else collector


def _create_collector(metric: Metric) -> _Series:
    from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

    # Without this, every counter and histogram has a second series: the time of its creation.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    histogram = partial(Histogram, buckets=metric.buckets)
    kinds: dict[str, Callable[..., _Series]] = {"counter": Counter, "gauge": Gauge, "histogram": histogram}
    return kinds[metric.kind](metric.name, metric.text, metric.labels, registry=None)


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
    """Whether figures are logged instead of counted in this process."""
    return find_function_name() is not None


def record(*samples: Sample) -> None:
    """Counts the samples of one event, or logs them on Lambda, where no two of them may be of one metric."""
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
    """Tokens and cost are left out where the model's server sent no count, or a negative one."""
    known = ((INPUT_TOKENS, input_tokens), (OUTPUT_TOKENS, output_tokens), (COST, cost))
    counted = ((metric, (), value) for metric, value in known if value is not None and value >= 0)
    record((ANSWERS, (mode, status), 1), *counted)


def record_request(method: str, route: str, status: int, seconds: float) -> None:
    """Does nothing on Lambda, where the gateway and the platform count requests without a charge."""
    if not is_embedded():
        record((REQUESTS, (method, route, str(status)), 1), (RESPONDING, (method, route), seconds))


def record_job(status: str, count: int = 1) -> None:
    """Logs jobs that have ended. Does nothing outside Lambda, where /metrics asks the database."""
    if is_embedded() and count:
        record((JOBS, (status,), count))


def record_backlog(due: int, oldest_seconds: float, given_up: int) -> None:
    """Logs what waits, once a minute. Does nothing outside Lambda, as above."""
    if is_embedded():
        record(*describe_backlog(due, oldest_seconds, given_up))


def describe_backlog(due: int, oldest_seconds: float, given_up: int) -> list[Sample]:
    return [(DUE_JOBS, (), due), (DUE_SECONDS, (), oldest_seconds), (GIVEN_UP, (), given_up)]


def describe_jobs(counts: Mapping[str, int]) -> list[Sample]:
    return [(JOBS, (status,), n) for status, n in counts.items()]
