"""Compares the two local embedding models with each other and with the machine's own matrix product.

`python -m tests.bench.bench_embedding`: multilingual-e5-small has twice the layers of all-MiniLM-L6-v2, and must be no
slower and take no more memory. The two take turns in one process, so that other programs slow down both alike; with
one thread, the time of the processor is measured. The share of the machine's GEMM speed (numpy, float32) is reported
because passages per second depend on the machine. Prints a table and, as the last line, a JSON object.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.report import at_most, figure, print_figures

if TYPE_CHECKING:  # some processes measure their own memory
    from functions.adapters.laptop.embedder import LocalEmbedder

CHARACTERS = 900  # 180 to 260 tokens in either vocabulary
PASSAGES = 24
ROUNDS = 5
PROCESSES = 3  # of which the fastest counts, because other programs slow down single ones
THREADS = (1, 2)
LOAD_S_GOAL = 1.0
LAYERS = {"e5": 12, "minilm": 6}
TEXTS = (
    "The Company recognised revenue of $4,391 million in fiscal 2019, an increase of 12% over the prior year, driven "
    "by higher volumes in Europe, new contracts and lower freight costs; see note {n} to the financial statements. ",
    "La société a enregistré un chiffre d'affaires de 4 391 millions d'euros en 2019, soit une hausse de 12 % grâce à "
    "la progression des volumes en Europe et aux nouveaux contrats ; voir la note {n} des états financiers. ",
)
QUESTIONS = ("How did revenue from services develop in fiscal 2019?", "Comment les ventes ont-elles évolué en 2019 ?")


def make_passages() -> list[str]:
    return [(TEXTS[n % len(TEXTS)].format(n=n) * 9)[:CHARACTERS] for n in range(PASSAGES)]


def time_call(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    call()
    return clock() - start


def read_peak_megabytes() -> float:
    # getrusage may report the peak of the parent process.
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**10


def make_embedder(name: str, threads: int) -> LocalEmbedder:
    from functions.adapters.laptop import e5, embedder, minilm

    return embedder.LocalEmbedder({"e5": e5.NAME, "minilm": minilm.NAME}[name], threads=threads)


def measure_start(name: str, threads: int) -> dict[str, float]:
    """Measures what a process needs that has one of the models."""
    embedder = make_embedder(name, threads)
    load = time_call(embedder.load, time.process_time)
    embedder.embed(make_passages())
    return {"load_s": load, "megabytes": read_peak_megabytes()}


def measure_speed(threads: int) -> dict[str, dict[str, float]]:
    """Measures both models in turn; the least time of a passage and the median of a question count."""
    clock = time.process_time if threads == 1 else time.perf_counter
    passages, found = make_passages(), {}
    embedders = {name: make_embedder(name, threads) for name in LAYERS}
    times: dict[str, list[list[float]]] = {name: [[], []] for name in LAYERS}
    for _ in range(ROUNDS + 1):  # the first round loads and warms up
        for name, embedder in embedders.items():
            times[name][0].append(time_call(partial(embedder.embed, passages), clock) / PASSAGES)
            times[name][1] += [time_call(partial(embedder.embed, [question]), clock) for question in QUESTIONS * 5]
    for name, embedder in embedders.items():
        tokens = sum(embedder.count_tokens_batch(passages)) / PASSAGES
        whole, asked = times[name]
        found[name] = {"passage_s": min(whole[1:]), "question_ms": 1000 * statistics.median(asked)}
        found[name]["flops"] = count_flops(name, min(tokens, embedder.max_input_tokens))
    return found


def count_flops(name: str, tokens: float) -> float:
    """Counts the multiplications and additions of dense layers and attention; everything else is under 1 %."""
    dense = 2 * 384 * (4 * 384 + 2 * 1536)
    return LAYERS[name] * (tokens * dense + 4 * tokens * tokens * 384)


def measure_gemm() -> float:
    """Measures the best speed of three shapes, in flop/s; the environment sets threads and kernel."""
    import numpy as np

    rng, found = np.random.default_rng(0), []
    for rows, inner, columns in ((2048, 384, 1536), (2048, 1536, 384), (1024, 1024, 1024)):
        left, right = rng.random((rows, inner), np.float32), rng.random((inner, columns), np.float32)
        target = np.empty((rows, columns), np.float32)
        seconds = min(time_call(partial(np.matmul, left, right, out=target)) for _ in range(20))
        found.append(2 * rows * inner * columns / seconds)
    return max(found)


def run_alone(what: str, threads: int, **environment: str) -> Any:
    """Measures `what` in a new process, because BLAS reads its settings from the environment at import."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment |= dict.fromkeys(names, str(threads))
    command = [sys.executable, "-m", "tests.bench.bench_embedding", what, str(threads)]
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def measure_best_gemm(threads: int) -> float:
    """Measures GEMM with OpenBLAS's choice of kernel, which is AVX2 on CPUs that it does not know, and with AVX-512.

    The second process fails on CPUs without AVX-512.
    """
    found = [run_alone("gemm", threads), run_alone("gemm", threads, OPENBLAS_CORETYPE="SkylakeX")]
    return max(filter(None, found))


def measure_best_start(name: str, threads: int) -> dict[str, float]:
    rows = [run_alone(name, threads) for _ in range(PROCESSES)]
    return {key: min(row[key] for row in rows) for key in rows[0]}


def list_figures(threads: int) -> list[dict[str, Any]]:
    found, gemm = run_alone("speed", threads), measure_best_gemm(threads)
    e5, minilm = (found[name] | measure_best_start(name, threads) for name in ("e5", "minilm"))
    name = f"{threads} thread" + "s" * (threads > 1)
    # The server embeds a question on one thread; only the worker, which embeds many passages at once, has more.
    asked = [at_most("e5 question ms (baseline: MiniLM)", e5["question_ms"], minilm["question_ms"])]
    return (asked if threads == 1 else []) + [
        figure(f"e5 passages/s, {name} (baseline: MiniLM)", 1 / e5["passage_s"], 1 / minilm["passage_s"], 1.0),
        at_most(f"e5 peak MB, {name} (baseline: MiniLM)", e5["megabytes"], minilm["megabytes"]),
        at_most(f"e5 load s, {name}", e5["load_s"], LOAD_S_GOAL),
        at_most(f"MiniLM load s, {name}", minilm["load_s"], LOAD_S_GOAL),
        figure(f"e5 passages/s, {name} (baseline: GEMM)", 1 / e5["passage_s"], gemm / e5["flops"]),
        figure(f"MiniLM passages/s, {name} (baseline: GEMM)", 1 / minilm["passage_s"], gemm / minilm["flops"]),
    ]


def main() -> None:
    if len(sys.argv) > 1:
        what, threads = sys.argv[1], int(sys.argv[2])
        measures: dict[str, Callable[[], object]] = {"gemm": measure_gemm, "speed": partial(measure_speed, threads)}
        print(json.dumps(measures.get(what, partial(measure_start, what, threads))()))
        return
    print_figures("embedding", [row for threads in THREADS for row in list_figures(threads)])


if __name__ == "__main__":
    main()
