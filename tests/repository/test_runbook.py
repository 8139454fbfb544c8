"""functions/RUNBOOK.md has the sums, names and defaults of the code."""

from __future__ import annotations

import re

import pytest

from functions.core.settings import Settings
from functions.runtime import metrics
from functions.runtime.config import Config
from tests.support import service
from tests.support.requirements import REPOSITORY

TEXT = (REPOSITORY / "functions" / "RUNBOOK.md").read_text(encoding="utf-8")
SMALLEST_POOLER = 200


def test_the_connections_of_all_functions_are_counted_and_fit_the_smallest_pooler() -> None:
    queue = service.functions()["ingest"]["events"][0]["sqs"]["maximumConcurrency"]
    reserved = service.reserved_concurrency()
    clients = sum(reserved.values()) + queue
    assert service.functions().keys() - reserved.keys() == {"ingest", "page"}
    assert f"+ {queue} ingest = {clients}\n" in TEXT
    assert clients < SMALLEST_POOLER
    for name, count in reserved.items():
        assert re.search(rf"\b{count} {name}\b", TEXT) or count <= 1, name


def test_the_runbook_says_how_to_rotate_every_secret() -> None:
    secrets = {name.upper() for name, field in Config.model_fields.items() if "SecretStr" in str(field.annotation)}
    table = TEXT[TEXT.index("## Rotate secrets") : TEXT.index("## Restore")]
    assert {secret for secret in secrets if f"`{secret}`" not in table} == set()


@pytest.mark.parametrize("metric", [value for value in vars(metrics).values() if isinstance(value, metrics.Metric)])
def test_the_runbook_names_every_metric_with_its_labels(metric: metrics.Metric) -> None:
    (line,) = [line for line in TEXT.splitlines() if line.startswith("|") and f"`{metric.name}`" in line][:1]
    assert all(f"`{label}`" in line for label in metric.labels)


def test_every_metric_that_the_runbook_names_exists() -> None:
    names = {value.name for value in vars(metrics).values() if isinstance(value, metrics.Metric)}
    assert set(re.findall(r"`((?:ai|http)_\w+)`", TEXT)) - {"ai_rag_retrieve"} <= names


@pytest.mark.parametrize(
    "name", ["requests_per_minute", "questions_per_day", "uploads_per_minute", "max_documents", "max_library_megabytes"]
)
def test_the_limits_of_the_runbook_are_the_default_settings(name: str) -> None:
    assert re.search(rf"`{name}` \({getattr(Settings(), name):,}\b", TEXT)


def test_the_runbook_says_what_each_alarm_means_and_what_to_do() -> None:
    """OPS-6"""
    resources = service.read()["resources"]["Resources"].values()
    names = {r["Properties"]["AlarmName"] for r in resources if r["Type"] == "AWS::CloudWatch::Alarm"}
    table = TEXT[TEXT.index("### Alarms") : TEXT.index("## Limits of each user")]
    listed = re.findall(r"^\| `([a-z-]+)` \|[^|]{10,}\|[^|]{10,}\|$", table, re.MULTILINE)
    assert {f"${{self:service}}-${{sls:stage}}-{name}" for name in listed} == names
