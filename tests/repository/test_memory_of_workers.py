"""The memory of a worker includes its child programs, no memory is counted twice, and a function on AWS has enough."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psutil
import pytest

from functions.core.extraction.child_process import Limits
from functions.core.extraction.isolation import DRAWING, READING
from tests.corpus.installation import measure_memory, read_memory
from tests.support import service

OWN_MEMORY = "held = b'x' * 100_000_000"
FORKED_COPY = f"import os; {OWN_MEMORY}; os.fork(); print(flush=True); input()"
PROGRAM = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {f"{OWN_MEMORY}; print(flush=True); input()"!r}])
input()
"""


@pytest.fixture
def start() -> Iterator[Callable[[str], psutil.Process]]:
    """Starts Python code and waits for its first line; its children end with it."""
    with ExitStack() as stack:

        def start(text: str) -> psutil.Process:
            command = [sys.executable, "-c", text]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            return psutil.Process(process.pid)

        yield start


def test_a_child_that_has_not_started_its_program_is_not_counted_twice(
    start: Callable[[str], psutil.Process],
) -> None:
    process = start(FORKED_COPY)
    assert process.children() != []
    assert measure_memory(process) < 1.2 * read_memory(process.pid, "VmRSS")


def test_the_child_programs_of_a_process_are_counted(start: Callable[[str], psutil.Process]) -> None:
    process = start(PROGRAM)
    assert measure_memory(process) - read_memory(process.pid, "VmRSS") > 100_000_000


@pytest.mark.parametrize(("name", "limits"), [("ingest", READING), ("drawing", DRAWING)])
def test_the_limits_of_a_file_fit_into_those_of_the_function_that_reads_it(name: str, limits: Limits) -> None:
    """LIM-1: half a gigabyte is left for the function itself and for Tesseract."""
    function = service.functions()[name]
    assert limits.memory + (512 << 20) <= function["memorySize"] << 20
    assert limits.processor_seconds < limits.seconds < function["timeout"] / 2
