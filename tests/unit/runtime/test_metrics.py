"""OPS-3: the text that Prometheus reads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from functions.core import models
from functions.runtime import metrics
from functions.runtime.metrics import Metric, Registry

HITS = Metric("hits_total", "Hits.", ("who",))
SECONDS = Metric("wait_seconds", "Waiting.", (), "histogram", (0.5, 1.0))


def test_a_bucket_of_a_histogram_counts_values_up_to_its_upper_bound() -> None:
    registry = Registry()
    registry.add((SECONDS, (), value) for value in (0.25, 0.5, 1.0, 7.0))
    assert registry.render() == (
        "# HELP wait_seconds Waiting.\n"
        "# TYPE wait_seconds histogram\n"
        'wait_seconds_bucket{le="0.5"} 2.0\n'
        'wait_seconds_bucket{le="1.0"} 3.0\n'
        'wait_seconds_bucket{le="+Inf"} 4.0\n'
        "wait_seconds_count 4.0\n"
        "wait_seconds_sum 8.75\n"
    )


def test_any_text_in_a_label_is_escaped() -> None:
    registry = Registry()
    registry.add([(HITS, ('a"b\\c\nd',), 2)])
    assert r'hits_total{who="a\"b\\c\nd"} 2.0' in registry.render().splitlines()


def test_metrics_that_are_always_shown_start_at_zero() -> None:
    assert 'hits_total{who="ada"} 0.0' in Registry((HITS, ("ada",))).render()
    assert "wait_seconds_count 0.0" in Registry((SECONDS, ())).render()


def test_no_count_is_lost_between_threads() -> None:
    registry = Registry()

    def add_hits(count: int) -> None:
        for _ in range(count):
            registry.add([(HITS, ("ada",), 1)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_hits, [500] * 8))
    assert 'hits_total{who="ada"} 4000.0' in registry.render()


def test_gauges_are_rendered_with_the_counters() -> None:
    registry = Registry((HITS, ("ada",)))
    load = Metric("a_load", "Load.", (), "gauge")
    assert [line for line in registry.render([(load, (), 0.5)]).splitlines() if line[0] != "#"] == [
        "a_load 0.5",
        'hits_total{who="ada"} 0.0',
    ]


def test_a_gauge_shows_what_it_was_last_set_to() -> None:
    load = Metric("a_load", "Load.", ("of",), "gauge")
    shown = Registry().render([(load, ("disk",), 7), (load, ("disk",), -2)])
    assert shown == '# HELP a_load Load.\n# TYPE a_load gauge\na_load{of="disk"} -2.0\n'


def test_a_negative_token_count_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter cannot decrease, and model servers may send any number."""
    registry = Registry()
    monkeypatch.setattr(metrics, "REGISTRY", registry)
    answer = models.Answer("", (), (), "complete", "model", models.Usage(prompt_tokens=-5, completion_tokens=3))
    metrics.record_answer(models.User.named("ada"), None, answer, None)
    assert [line for line in registry.render().splitlines() if "token" in line and line[0] != "#"] == [
        "ai_rag_output_tokens_total 3.0"
    ]
