"""Counts requests, retrievals, answers, tokens and jobs: for Prometheus, or on Lambda as log lines for CloudWatch.

No scraper reaches a Lambda container, so its counters would be lost. Each event is instead written as one log line in
the Embedded Metric Format, from which CloudWatch makes metrics of the same names. Everywhere else /metrics shows the
counters of the process in Prometheus's text format. Retrievals and answers also get one log line each.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from functions.runtime.config import find_function_name
from functions.runtime.logging import request_id

if TYPE_CHECKING:
    import prometheus_client
    from prometheus_client import Counter, Gauge, Histogram

    from functions.core import models
    from functions.core.retrieval import retriever
    from functions.core.settings import Settings

    _Series = Counter | Gauge | Histogram

NAMESPACE: Final = "Ibid"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, ...]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metric:
    """A counter, a gauge, or a histogram with the upper bounds of its buckets; `text` is its help text."""

    name: str
    text: str
    labels: Labels = ()
    kind: Literal["counter", "gauge", "histogram"] = "counter"
    buckets: tuple[float, ...] = ()

    @property
    def unit(self) -> str:
        """CloudWatch's name of the unit."""
        return "Seconds" if self.name.endswith("_seconds") else "None" if self.kind == "gauge" else "Count"


RETRIEVALS: Final = Metric("ai_rag_retrieve_total", "Retrievals, by what was searched.", ("scope",))
CHUNKS: Final = Metric(
    "ai_rag_chunks_retrieved", "Passages found by a retrieval.", (), "histogram", (0, 1, 2, 5, 10, 20, 50, 100)
)
EMBEDDING: Final = Metric("ai_rag_embed_latency_seconds", "Time to embed a question.", (), "histogram", _SECONDS)
SEARCHING: Final = Metric("ai_rag_search_latency_seconds", "Time to search the database.", (), "histogram", _SECONDS)
ANSWERS: Final = Metric(
    "ai_rag_answers_total", "Answers, by how they were written and how they ended.", ("mode", "status")
)
INPUT_TOKENS: Final = Metric("ai_rag_input_tokens_total", "Tokens that language models have read.")
OUTPUT_TOKENS: Final = Metric("ai_rag_output_tokens_total", "Tokens that language models have written.")
COST: Final = Metric("ai_rag_cost_usd_total", "Cost of answers and translations at the prices in the settings.")
REQUESTS: Final = Metric("http_requests_total", "Requests, by route and status.", ("method", "route", "status"))
RESPONDING: Final = Metric(
    "http_request_duration_seconds",
    "Time from a request to the end of its response.",
    ("method", "route"),
    "histogram",
    _SECONDS,
)
# A gauge, because a job is deleted with its document. On Lambda each job that ends is logged as 1.
JOBS: Final = Metric("ai_index_jobs_total", "Jobs of all documents and notes, by status.", ("status",), "gauge")
DUE_JOBS: Final = Metric("ai_index_jobs_due", "Jobs that are due.", (), "gauge")
DUE_SECONDS: Final = Metric("ai_index_oldest_due_seconds", "How long the oldest due job has waited.", (), "gauge")
GIVEN_UP: Final = Metric("ai_index_jobs_given_up", "Jobs that failed or died within the last day.", (), "gauge")

Sample = tuple[Metric, Labels, float]


class Registry:
    """Counts samples from any thread and shows them in Prometheus's text format.

    The first sample imports prometheus-client, which takes 25 ms: functions on Lambda count nothing and never need it.
    """

    def __init__(self, *initial: tuple[Metric, Labels]) -> None:
        """`initial` series are shown with the value 0 before their first sample, so that rates start at 0."""
        self._initial = initial
        self._lock = threading.Lock()
        self._collectors: dict[Metric, _Series] = {}

    def add(self, samples: Iterable[Sample]) -> None:
        """Increments counters, observes histograms and sets gauges."""
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
        """The given gauges and all counted metrics in Prometheus's text format."""
        from prometheus_client import generate_latest

        for metric, labels in self._initial:
            self._find_series(metric, labels)
        current = Registry()
        current.add(gauges)
        return (generate_latest(current) + generate_latest(self)).decode()

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Called by prometheus-client to read the registry."""
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

    # Otherwise every counter and histogram has a second series with the time of its creation.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has types but for this
    histogram = partial(Histogram, buckets=metric.buckets)
    kinds: dict[str, Callable[..., _Series]] = {"counter": Counter, "gauge": Gauge, "histogram": histogram}
    return kinds[metric.kind](metric.name, metric.text, metric.labels, registry=None)


def describe_embedded(samples: Iterable[Sample], function: str, now: float) -> dict[str, object]:
    """One document of the Embedded Metric Format; every metric has the function's name as a dimension.

    A document holds one value per metric name, so two samples of the same metric need two documents.
    """
    directives, values = [], dict[str, object]()
    for metric, labels, value in samples:
        directives.append(
            {
                "Namespace": NAMESPACE,
                "Dimensions": [["function", *metric.labels]],
                "Metrics": [{"Name": metric.name, "Unit": metric.unit}],
            }
        )
        values |= dict(zip(metric.labels, labels, strict=True)) | {metric.name: value}
    return {
        "_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": directives},
        "function": function,
        "request_id": request_id.get(),
        **values,
    }


_SCOPES: Final = ("documents", "conversation", "notebook", "note", "library")
REGISTRY: Final = Registry(
    *((RETRIEVALS, (scope,)) for scope in _SCOPES),
    *((metric, ()) for metric in (CHUNKS, EMBEDDING, SEARCHING, INPUT_TOKENS, OUTPUT_TOKENS, COST)),
)


def is_embedded() -> bool:
    """Whether metrics are logged (on Lambda) instead of counted in this process."""
    return find_function_name() is not None


def record(*samples: Sample) -> None:
    """Counts the samples of one event, or logs them on Lambda, where each metric may occur only once in an event."""
    if function_name := find_function_name():
        line = describe_embedded(samples, function_name, time.time())
        print(json.dumps(line), file=sys.stdout, flush=True)
    else:
        REGISTRY.add(samples)


def record_retrieval(
    user: models.User, conversation_id: str | None, scope: models.Scope, retrieval: retriever.Retrieval
) -> None:
    """Counts and logs a retrieval."""
    record(
        (RETRIEVALS, (scope.kind,), 1),
        (CHUNKS, (), len(retrieval.ranking.hits)),
        (EMBEDDING, (), retrieval.embed_ms / 1000),
        (SEARCHING, (), retrieval.search_ms / 1000),
    )
    scores = [hit.score for hit in retrieval.ranking.hits]
    _log.info(
        "ai_rag_retrieve",
        extra={
            "user": user.id,
            "conversation": conversation_id,
            "scope": scope.kind,
            "candidate_docs": retrieval.ranking.candidate_sources,
            "candidate_chunks": retrieval.ranking.candidate_chunks,
            "top_k": len(retrieval.context),
            "max_score": max(scores, default=None),
            "min_score": min(scores, default=None),
            "embed_latency_ms": round(retrieval.embed_ms, 1),
            "search_latency_ms": round(retrieval.search_ms, 1),
            "rerank_latency_ms": None if retrieval.rerank_ms is None else round(retrieval.rerank_ms, 1),
            "degraded": list(retrieval.degraded),
        },
    )


def find_cost(usage: models.Usage, settings: Settings) -> float | None:
    """The cost of an answer's tokens in US dollars; None without tokens or prices."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None and completion is None:
        return None
    if not settings.price_input_per_million and not settings.price_output_per_million:
        return None
    micro = (prompt or 0) * settings.price_input_per_million + (completion or 0) * settings.price_output_per_million
    return round(micro / 1e6, 9)


def describe_usage(answer: models.Answer, cost: float | None) -> dict[str, Any]:
    """The tokens, their cost in US dollars if it is known, and the code of the error that kept the model silent."""
    described = asdict(answer.usage)
    if cost is not None:
        described["cost_usd"] = cost
    return described if answer.degraded is None else described | {"degraded": answer.degraded}


def record_answer(user: models.User, conversation_id: str | None, answer: models.Answer, cost: float | None) -> None:
    """Counts and logs an answer; tokens and cost are not counted if the model server sent none or negative ones."""
    record((ANSWERS, (answer.mode, answer.status), 1), *_list_tokens(answer.usage, cost))
    facts = {"user": user.id, "conversation": conversation_id, "mode": answer.mode, "status": answer.status}
    _log.info("ai_rag_answer", extra=facts | describe_usage(answer, cost))


def record_tokens(usage: models.Usage, cost: float | None) -> None:
    """Counts tokens that no answer has used, such as those of a translator."""
    record(*_list_tokens(usage, cost))


def _list_tokens(usage: models.Usage, cost: float | None) -> list[Sample]:
    amounts = ((INPUT_TOKENS, usage.prompt_tokens), (OUTPUT_TOKENS, usage.completion_tokens), (COST, cost))
    return [(metric, (), amount) for metric, amount in amounts if amount is not None and amount >= 0]


def record_request(method: str, route: str, status: int, seconds: float) -> None:
    """Counts a request. Does nothing on Lambda, where the gateway counts requests free of charge."""
    if not is_embedded():
        record((REQUESTS, (method, route, str(status)), 1), (RESPONDING, (method, route), seconds))


def record_job(status: str, count: int = 1) -> None:
    """Logs `count` jobs that have ended. Does nothing outside Lambda, where /metrics reads jobs from the database."""
    if is_embedded() and count:
        record((JOBS, (status,), count))


def record_backlog(due: int, oldest_seconds: float, given_up: int) -> None:
    """Logs the backlog, once a minute. Does nothing outside Lambda, where /metrics reads it from the database."""
    if is_embedded():
        record(*describe_backlog(due, oldest_seconds, given_up))


def describe_backlog(due: int, oldest_seconds: float, given_up: int) -> list[Sample]:
    return [(DUE_JOBS, (), due), (DUE_SECONDS, (), oldest_seconds), (GIVEN_UP, (), given_up)]


def describe_jobs(counts: Mapping[str, int]) -> list[Sample]:
    return [(JOBS, (status,), n) for status, n in counts.items()]
