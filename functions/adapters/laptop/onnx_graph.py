"""Builds ONNX graphs in memory, and opens them with onnxruntime as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # numpy, onnx and onnxruntime load on the first use of a model only
    import numpy.typing as npt

CONTRIB: Final = "com.microsoft"
INLINE_BYTES: Final = 8192  # smaller tensors are part of the graph, larger ones are passed to onnxruntime separately


class Graph:
    """Collects nodes and tensors; every method that adds a node returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: dict[str, npt.NDArray[Any]] = {}

    def tensor(self, name: str, values: npt.NDArray[Any]) -> str:
        self.tensors[name] = values
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        return self.nodes_with(kind, inputs, [output], domain, **attributes)[0]

    def nodes_with(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
    ) -> Sequence[str]:
        """Like `node`, for a node with several outputs."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs

    def build(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """The model (an onnx ModelProto), and the large tensors by name, which are passed to the session separately."""
        from onnx import helper

        external = {name: values for name, values in self.tensors.items() if values.nbytes > INLINE_BYTES}
        tensors = [_declare(name, values, external=name in external) for name, values in self.tensors.items()]
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
        proto = helper.make_graph(self.nodes, name, inputs, outputs, tensors)
        return helper.make_model(proto, opset_imports=opsets, ir_version=9), external


def _declare(name: str, values: npt.NDArray[Any], *, external: bool) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    if not external:
        return numpy_helper.from_array(values, name)
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    tensor = TensorProto(name=name, data_type=kind, dims=values.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="beside")
    return tensor


def open_session(proto: Any, tensors: dict[str, npt.NDArray[Any]], threads: int) -> tuple[Any, Any]:
    """The session, and the tensors that it reads in place, which must live as long as it does."""
    import onnxruntime as ort

    ort.disable_telemetry_events()
    ort.set_default_logger_severity(3)
    values = {name: ort.OrtValue.ortvalue_from_numpy(tensor) for name, tensor in tensors.items()}
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # the graphs are already optimal
    options.add_external_initializers(list(values), list(values.values()))
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session, (tensors, values)
