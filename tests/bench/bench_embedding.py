"""Compares the speed of the local embedder with matrix products in numpy: `python -m tests.bench.bench_embedding`.

The goal is a share of the machine's GEMM speed (numpy, same number of threads), because sequences per second depend on
the machine. The int8 rows show what dynamic quantisation would gain and lose; the product runs float32. Prints a table
and, as the last line, a JSON object.
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
from typing import Any

from tests.bench.report import at_most, figure, print_figures

TOKENS = 180
SEQUENCES = 24
ROUNDS = 5
THREADS = (1, 2)
GEMM_SHARE_GOAL = 0.6
QUERY_MS_GOAL = 10.0
LOAD_S_GOAL = 1.0
TEXT = (
    "The Company recognised revenue of $4,391 million in fiscal 2019, an increase of 12% over the prior year, driven "
    "by higher volumes in Europe, new contracts and lower freight costs; see note {n} to the financial statements. "
)


def count_sequence_flops(tokens: int) -> float:
    """Counts the multiplications and additions of dense layers and attention; everything else is under 1 %."""
    dense = 2 * 384 * (4 * 384 + 2 * 1536)
    return 6 * (tokens * dense + 4 * tokens * tokens * 384)


def time_best(call: Callable[[], Any]) -> float:
    call()
    return min(time_call(call) for _ in range(ROUNDS))


def time_call(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


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


def make_texts() -> list[str]:
    """Makes texts of exactly TOKENS tokens, including the two special ones."""
    from functions.adapters.laptop.embedder import LocalEmbedder

    tokenizer = LocalEmbedder()._load_once().tokenizer
    texts = []
    for n in range(SEQUENCES):
        offsets = tokenizer.encode(TEXT.format(n=n) * 8, add_special_tokens=False).offsets
        texts.append((TEXT.format(n=n) * 8)[: offsets[TOKENS - 3][1]])
    return texts


def make_quantised_embedder(threads: int) -> Any:
    """Makes a LocalEmbedder that runs the same graph with int8 weights, quantised by onnxruntime."""
    import tempfile
    from pathlib import Path

    import onnx
    import onnxruntime as ort
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from functions.adapters.laptop import minilm_graph
    from functions.adapters.laptop.embedder import LocalEmbedder, _Model, find_model

    weights = minilm_graph.read_weights(find_model() / "model.safetensors")
    proto, tensors = minilm_graph.build_graph(weights)
    products = {node.input[1]: node for node in proto.graph.node if node.op_type == "FusedMatMul"}
    for tensor in proto.graph.initializer:
        if tensor.name in tensors:
            values = tensors[tensor.name].T if tensor.name in products else tensors[tensor.name]
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.copy(), tensor.name))
    for node in products.values():
        node.op_type, node.domain = "MatMul", ""
        del node.attribute[:]
    embedder = LocalEmbedder(threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(proto, source)
        quantize_dynamic(
            source,
            target,
            op_types_to_quantize=["MatMul", "Attention"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # shapes after contrib operators are unknown
        )
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = ort.InferenceSession(target.read_bytes(), options, providers=["CPUExecutionProvider"])
    embedder._model = _Model(embedder._load_once().tokenizer, session, None)
    return embedder


def measure(threads: int) -> dict[str, float]:
    from functions.adapters.laptop.embedder import LocalEmbedder

    embedder = LocalEmbedder(threads=threads)
    load = time_call(embedder.load)
    small, texts = make_quantised_embedder(threads), make_texts()
    query = "How did revenue from services develop in fiscal 2019?"
    cosines = (embedder.embed(texts) * small.embed(texts)).sum(axis=1)
    return {
        "load_s": load,
        "fp32_per_s": SEQUENCES / time_best(lambda: embedder.embed(texts)),
        "int8_per_s": SEQUENCES / time_best(lambda: small.embed(texts)),
        "fp32_query_ms": 1000 * statistics.median(time_call(lambda: embedder.embed([query])) for _ in range(50)),
        "int8_query_ms": 1000 * statistics.median(time_call(lambda: small.embed([query])) for _ in range(50)),
        "int8_cosine_min": float(cosines.min()),
        "int8_cosine_mean": float(cosines.mean()),
    }


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


def list_figures(threads: int) -> list[dict[str, Any]]:
    found: dict[str, float] = run_alone("embedding", threads)
    gemm = measure_best_gemm(threads) / count_sequence_flops(TOKENS)
    name = f"{threads} thread" + "s" * (threads > 1)
    query = found["fp32_query_ms"]
    return [
        figure(f"fp32 texts of {TOKENS} tokens/s, {name}", found["fp32_per_s"], gemm, GEMM_SHARE_GOAL),
        figure(f"int8 texts of {TOKENS} tokens/s, {name}", found["int8_per_s"], gemm),
        at_most(f"fp32 query ms, {name}", query, QUERY_MS_GOAL),
        figure(f"int8 query ms, {name}", found["int8_query_ms"], query),
        at_most(f"load s, {name}", found["load_s"], LOAD_S_GOAL),
        figure(f"int8 cosine to fp32 (least), {name}", found["int8_cosine_min"], 1.0),
        figure(f"int8 cosine to fp32 (mean), {name}", found["int8_cosine_mean"], 1.0),
    ]


def main() -> None:
    if len(sys.argv) > 1:
        what, threads = sys.argv[1], int(sys.argv[2])
        print(json.dumps(measure_gemm() if what == "gemm" else measure(threads)))
        return
    figures = [row for threads in THREADS for row in list_figures(threads)]
    print_figures("embedding", figures)


if __name__ == "__main__":
    main()
