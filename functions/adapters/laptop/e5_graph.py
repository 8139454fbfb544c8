"""The network of multilingual-e5-small as an ONNX graph, with weights of 8 or 7 bits.

Products run on whole numbers, with one scale per output of the weights and one per text for the activations. Two
things keep the rounding small. Behind a normalisation, large input channels are made smaller and their weights larger
(SmoothQuant, Xiao et al. 2023, https://arxiv.org/abs/2211.10438). Before the output of the feed-forward part, where
single tokens have outliers, each token is divided by its largest value. The embeddings of words are not part of the
graph: they are looked up in the mapped file, and never exist as a whole.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from functions.adapters.laptop import e5_weights
from functions.adapters.laptop.onnx_graph import CONTRIB, Graph

if TYPE_CHECKING:  # numpy and onnx load on the first use of the model only
    import numpy as np
    import numpy.typing as npt

    from functions.adapters.laptop.e5_weights import Floats, Weights

LARGEST: Final = 3.0
SMOOTHING: Final = 0.7  # 0 leaves the inputs as they are, 1 makes their channels equally large
_VNNI: Final = re.compile(r"^flags\s*:.*\b(avx512_vnni|avx_vnni)\b", re.MULTILINE)


def choose_bits(processor: Path = Path("/proc/cpuinfo")) -> int:
    """8 where sums of two 8-bit products are exact, else 7: x86 without VNNI adds them in 16 bits, which overflow."""
    if platform.machine().lower() in ("aarch64", "arm64"):
        return 8
    try:
        return 8 if _VNNI.search(processor.read_text(encoding="utf-8", errors="replace")) else 7
    except OSError:
        return 7


def quantise(weights: Floats, bits: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Whole weights (inputs, outputs) of at most `bits` bits with a sign, and the scale of each of the outputs.

    `weights` are (outputs, inputs), and are overwritten.
    """
    import numpy as np

    scales = np.abs(weights).max(axis=1) / (2 ** (bits - 1) - 1)
    weights /= scales[:, None]
    return np.ascontiguousarray(np.rint(weights, out=weights).astype(np.int8).T), scales


def smooth(weights: Floats, scale: Floats, shift: Floats) -> Floats:
    """What to multiply each input channel of `weights` by, and divide the weights by: the mean factor is 1.

    The inputs come out of a normalisation with this scale and shift, so nearly all lie within LARGEST times the scale.
    """
    import numpy as np

    inputs = LARGEST * np.abs(scale) + np.abs(shift)
    logs = (1 - SMOOTHING) * np.log(np.abs(weights).max(axis=0)) - SMOOTHING * np.log(inputs)
    factors: Floats = np.exp(logs - logs.mean())
    return factors


def build_graph(weights: Weights, bits: int) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """The model (an onnx ModelProto), and its large tensors by name.

    Input `inputs`: float32 (1, width, 384), for each token the sum of the embeddings of its word, position and type.
    Outputs `tokens`: float32 (1, width, 384), the last hidden states; `embedding`: float32 (1, 384), a unit vector.
    """
    from onnx import TensorProto, helper

    build = _Builder(weights, bits)
    x = build.add_norm("emb.ln", "inputs", "normed")
    for number in range(e5_weights.LAYERS):
        before = f"l{number - 1}.oln" if number else "emb.ln"
        x = build.add_layer(f"l{number}.", x, before, "tokens" if number == e5_weights.LAYERS - 1 else f"l{number}")
    build.add_pooling(x)
    width: list[str | int | None] = [1, "width", e5_weights.DIMENSIONS]
    return build.graph.build(
        "multilingual-e5-small",
        [helper.make_tensor_value_info("inputs", TensorProto.FLOAT, width)],
        [
            helper.make_tensor_value_info("tokens", TensorProto.FLOAT, width),
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, width[::2]),
        ],
    )


class _Builder:
    """Adds the parts of the network to a graph."""

    def __init__(self, weights: Weights, bits: int) -> None:
        self.graph, self._weights, self._bits = Graph(), weights, bits

    def add_layer(self, layer: str, x: str, norm: str, output: str) -> str:
        """Adds the layer that reads `x`, the output of the normalisation `norm`."""
        attended = self._add_product(f"{layer}ao", [f"{layer}ao"], self._add_attention(layer, x, norm))
        x = self._add_sum_norm(f"{layer}aln", attended, x, f"{layer}attended")
        inner = self._add_product(f"{layer}fi", [f"{layer}fi"], x, f"{layer}aln")
        inner = self.graph.node("Gelu", [inner], f"{layer}gelu")
        return self._add_sum_norm(f"{layer}oln", self._add_product_by_token(f"{layer}fo", inner), x, output)

    def add_norm(self, name: str, x: str, output: str) -> str:
        scale, shift = (self._add_float(f"{name}.{part}") for part in "wb")
        epsilon = self._weights.epsilon
        return self.graph.node("LayerNormalization", [x, scale, shift], output, axis=-1, epsilon=epsilon)

    def add_pooling(self, tokens: str) -> None:
        """The mean over all tokens, scaled to unit length, which makes dividing by their number unnecessary."""
        import numpy as np

        axis = self.graph.tensor("axis", np.array([1], np.int64))
        total = self.graph.node("ReduceSum", [tokens, axis], "pooled/total", keepdims=0)
        length = self.graph.node("ReduceL2", [total, axis], "pooled/length", keepdims=1)
        self.graph.node("Div", [total, length], "embedding")

    def _add_attention(self, layer: str, x: str, norm: str) -> str:
        names = [f"{layer}{part}" for part in "qkv"]
        mixed = self._add_product(f"{layer}qkv", names, x, norm)
        parts = self.graph.nodes_with("Split", [mixed], [f"{name}/output" for name in names], axis=-1, num_outputs=3)
        return self.graph.node("MultiHeadAttention", parts, f"{layer}mixed", CONTRIB, num_heads=e5_weights.HEADS)

    def _add_product(self, name: str, parts: list[str], x: str, norm: str | None = None) -> str:
        """`x @ weights + bias`, for the outputs of all `parts` side by side; `norm` is what `x` comes out of."""
        import numpy as np

        weights = e5_weights.to_floats(np.concatenate([self._weights.blocks[f"{part}.w"] for part in parts]))
        if norm is not None:
            factors = smooth(weights, *(self._weights.floats[f"{norm}.{part}"] for part in "wb"))
            weights /= factors
            x = self.graph.node("Mul", [x, self.graph.tensor(f"{name}.smooth", factors)], f"{name}/smooth")
        bias = np.concatenate([self._weights.floats[f"{part}.b"] for part in parts])
        return self._add_whole_product(name, weights, [x], [self.graph.tensor(f"{name}.b", bias)])

    def _add_product_by_token(self, name: str, x: str) -> str:
        """`x @ weights + bias`, with each token divided by its largest value before, and multiplied by it after."""
        import numpy as np

        node, tensor = self.graph.node, self.graph.tensor
        last, least = tensor("last", np.array([-1], np.int64)), tensor("least", np.array([0.17], np.float32))
        largest = node("ReduceMax", [x, last], f"{name}/largest", keepdims=1)
        scale = node("Max", [largest, least], f"{name}/scale")  # Gelu returns nothing below -0.17
        weights = e5_weights.to_floats(self._weights.blocks[f"{name}.w"])
        product = self._add_whole_product(name, weights, [node("Div", [x, scale], f"{name}/even")], [])
        scaled = node("Mul", [product, scale], f"{name}/scaled")
        return node("Add", [scaled, self._add_float(f"{name}.b")], f"{name}/output")

    def _add_whole_product(self, name: str, weights: Floats, x: list[str], bias: list[str]) -> str:
        import numpy as np

        whole, scales = quantise(weights, self._bits)
        inputs = [
            self.graph.tensor(f"{name}.w", whole),
            self.graph.tensor(f"{name}.scales", scales),
            self.graph.tensor(f"{name}.zeros", np.zeros(len(scales), np.int8)),
        ]
        return self.graph.node("DynamicQuantizeMatMul", [*x, *inputs, *bias], f"{name}/product", CONTRIB)

    def _add_sum_norm(self, name: str, x: str, skip: str, output: str) -> str:
        return self.add_norm(name, self.graph.node("Add", [x, skip], f"{name}/sum"), output)

    def _add_float(self, name: str) -> str:
        return self.graph.tensor(name, self._weights.floats[name])
