"""The network of all-MiniLM-L6-v2 as an ONNX graph, built in memory around the weights in the mapped file.

The graph has the form that onnxruntime runs fastest (measured on one core), so no optimiser runs over it: one
`Attention` for query, key and value, `LayerNormalization` after a plain `Add` (six times faster than
`SkipLayerNormalization` on CPUs), `Add` and `Gelu` instead of `BiasGelu`. The weights are mapped, not copied into the
graph, so building it takes about 40 ms and it is not saved to a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functions.adapters.laptop.onnx_graph import CONTRIB, Graph
from functions.core import errors

if TYPE_CHECKING:  # numpy, onnx and onnxruntime load on the first use of the model only
    import numpy as np
    import numpy.typing as npt

    Weights = Mapping[str, npt.NDArray[np.float32]]

LAYERS = 6
HEADS = 12
DIMENSIONS = 384
EPSILON = 1e-12


def read_weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The float32 tensors of a safetensors file as read-only views of the mapped file; raises ModelRejectedError.

    https://huggingface.co/docs/safetensors/index#format
    """
    import numpy as np

    try:
        raw = np.memmap(path, dtype=np.uint8, mode="r")
        start = 8 + int.from_bytes(raw[:8].tobytes(), "little")
        entries: dict[str, Any] = json.loads(raw[8:start].tobytes())
        floats = {name: entry for name, entry in entries.items() if entry.get("dtype") == "F32"}
        return {
            name: np.frombuffer(raw[slice(*(start + at for at in entry["data_offsets"]))], np.float32).reshape(
                entry["shape"]
            )
            for name, entry in floats.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise errors.ModelRejectedError(
            f"The weights of the local embedding model are damaged ({path.name}). Install the model again."
        ) from exc


def _add_dense(graph: Graph, weights: Weights, prefix: str, x: str) -> str:
    """`x @ weight.T + bias`, with the weight as PyTorch stores it: (out, in)."""
    weight = graph.tensor(f"{prefix}.weight", weights[f"{prefix}.weight"])
    bias = graph.tensor(f"{prefix}.bias", weights[f"{prefix}.bias"])
    product = graph.node("FusedMatMul", [x, weight], f"{prefix}/product", CONTRIB, transB=1)
    return graph.node("Add", [product, bias], f"{prefix}/output")


def _add_norm(graph: Graph, weights: Weights, prefix: str, x: str, skip: str, output: str) -> str:
    scale = graph.tensor(f"{prefix}.weight", weights[f"{prefix}.weight"])
    shift = graph.tensor(f"{prefix}.bias", weights[f"{prefix}.bias"])
    total = graph.node("Add", [x, skip], f"{prefix}/sum")
    return graph.node("LayerNormalization", [total, scale, shift], output, axis=-1, epsilon=EPSILON)


def _add_embeddings(graph: Graph, weights: Weights) -> str:
    """Word + position + type 0, normalised; every token has type 0, so its row is added to the positions once."""
    prefix = "embeddings."
    positions = weights[prefix + "position_embeddings.weight"] + weights[prefix + "token_type_embeddings.weight"][0]
    inputs = [
        "input_ids",
        "",
        graph.tensor("words", weights[prefix + "word_embeddings.weight"]),
        graph.tensor("positions", positions),
        "",
        graph.tensor("embeddings.scale", weights[prefix + "LayerNorm.weight"]),
        graph.tensor("embeddings.shift", weights[prefix + "LayerNorm.bias"]),
    ]
    outputs = ["embeddings/output", "embeddings/mask"]
    return graph.nodes_with("EmbedLayerNormalization", inputs, outputs, CONTRIB, epsilon=EPSILON)[0]


def _add_attention(graph: Graph, weights: Weights, prefix: str, x: str) -> str:
    import numpy as np

    parts = [f"{prefix}.self.{name}" for name in ("query", "key", "value")]
    weight = np.ascontiguousarray(np.concatenate([weights[f"{part}.weight"] for part in parts]).T)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    inputs = [x, graph.tensor(f"{prefix}.weight", weight), graph.tensor(f"{prefix}.bias", bias), "attention_mask"]
    mixed = graph.node("Attention", inputs, f"{prefix}/mixed", CONTRIB, num_heads=HEADS)
    return _add_dense(graph, weights, f"{prefix}.output.dense", mixed)


def _add_layer(graph: Graph, weights: Weights, number: int, x: str) -> str:
    prefix = f"encoder.layer.{number}"
    attended = _add_attention(graph, weights, f"{prefix}.attention", x)
    x = _add_norm(graph, weights, f"{prefix}.attention.output.LayerNorm", attended, x, f"{prefix}/attended")
    inner = graph.node("Gelu", [_add_dense(graph, weights, f"{prefix}.intermediate.dense", x)], f"{prefix}/gelu")
    outer = _add_dense(graph, weights, f"{prefix}.output.dense", inner)
    last = number == LAYERS - 1
    return _add_norm(graph, weights, f"{prefix}.output.LayerNorm", outer, x, "tokens" if last else f"{prefix}/done")


def _add_pooling(graph: Graph, tokens: str) -> None:
    """Mean over the real tokens, scaled to unit length, which makes dividing by their number unnecessary."""
    import numpy as np
    from onnx import TensorProto

    mask = graph.node("Cast", ["attention_mask"], "mask/float", to=TensorProto.FLOAT)
    row = graph.node("Unsqueeze", [mask, graph.tensor("axis", np.array([1], np.int64))], "mask/row")
    total = graph.node("MatMul", [row, tokens], "pooled/total")
    length = graph.node("ReduceL2", [total, graph.tensor("last", np.array([2], np.int64))], "pooled/length", keepdims=1)
    unit = graph.node("Div", [total, length], "pooled/unit")
    graph.node("Squeeze", [unit, "axis"], "embeddings")


def build_graph(weights: Weights) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """The model (an onnx ModelProto), and the large tensors by name, which are passed to the session separately.

    Inputs `input_ids`, `attention_mask`: int32 (batch, width), right-padded. Outputs `tokens`: float32
    (batch, width, 384), the last hidden states; `embeddings`: float32 (batch, 384), unit rows.
    """
    from onnx import TensorProto, helper

    graph = Graph()
    x = _add_embeddings(graph, weights)
    for number in range(LAYERS):
        x = _add_layer(graph, weights, number, x)
    _add_pooling(graph, x)
    ids = [
        helper.make_tensor_value_info(n, TensorProto.INT32, ["batch", "width"]) for n in ("input_ids", "attention_mask")
    ]
    outputs = [
        helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", "width", DIMENSIONS]),
        helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", DIMENSIONS]),
    ]
    return graph.build("all-MiniLM-L6-v2", ids, outputs)
