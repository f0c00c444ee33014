"""The layers of a network in an ONNX file: dense layers one after the other, with tanh or ReLU between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.errors import InputError, SawtoothError, install_extra
from sawtooth.sanitize import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

Layers = list[tuple["NDArray[np.float64]", "NDArray[np.float64]"]]

ACTIVATIONS = {"Tanh": "tanh", "Relu": "relu"}
_SAME = ("Identity", "Flatten")
"""Operators that change no number of a single observation."""
_STANDARD = ("", "ai.onnx")
"""Names of ONNX's own set of operators."""
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError, MemoryError, OSError)
"""What onnx raises for damaged weights."""


def read(given: bytes) -> tuple[Layers, str]:
    """Layers (weights by output, biases) and the activation between them; ``tanh`` if there is one layer.

    Raises InputError ``bad-policy``; SawtoothError ``tool-missing`` without the library onnx.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ModuleNotFoundError:
        fix = install_extra("gym")
        raise SawtoothError("tool-missing", "reading ONNX files needs onnx", fix=fix) from None
    try:
        graph = onnx.load_model_from_string(given).graph
        return _followed(graph, dict(_fixed(graph)))
    except InputError:
        raise
    except (DecodeError, *_UNREADABLE) as error:
        message = f"this is not an ONNX file with its weights: {plain(str(error), 120)}"
        raise InputError("bad-policy", message, fix="export the model with its weights in one file") from None


def _fixed(graph: Any) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The values in the file, by name."""
    for one in graph.initializer:
        yield one.name, _values(one)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield _output(node), _values(attribute.t)


def _values(tensor: Any) -> NDArray[np.float64]:
    from onnx import TensorProto, numpy_helper

    # Such files are named by the model, and would be read from wherever it says.
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError("its weights are in another file")
    values = numpy_helper.to_array(tensor)
    if values.dtype.kind not in "fiu":
        raise ValueError(f"{tensor.name} has no real numbers")
    return values.astype(np.float64)


def _followed(graph: Any, fixed: dict[str, NDArray[np.float64]]) -> tuple[Layers, str]:
    """From the input, node by node."""
    inputs = [one.name for one in graph.input if one.name not in fixed]
    if len(inputs) != 1:
        raise _unlike(f"has {len(inputs)} inputs")
    layers: Layers = []
    activations: list[str] = []
    value = inputs[0]
    for node in graph.node:
        if node.op_type == "Constant":
            continue
        names = list(node.input)
        others = [fixed[name] for name in names if name in fixed]
        if names.count(value) != 1 or len(others) != len(names) - 1 or node.domain not in _STANDARD:
            raise _unlike(f"has {_called(node)} on other values than one before it and weights")
        if node.op_type in ACTIVATIONS and len(activations) + 1 == len(layers):
            activations.append(ACTIVATIONS[node.op_type])
        elif node.op_type in ("Gemm", "MatMul") and len(activations) == len(layers):
            layers.append(_dense(node, value, others))
        elif node.op_type == "Add" and len(activations) + 1 == len(layers):
            weights, biases = layers[-1]
            layers[-1] = weights, biases + _row(others[0], len(biases), node)
        elif node.op_type not in _SAME:
            raise _unlike(f"has {_called(node)} after {len(layers)} layers")
        value = _output(node)
    if not layers or len(activations) != len(layers) - 1 or len(set(activations)) > 1:
        raise _unlike(f"has {len(layers)} layers and the activations {', '.join(activations) or 'none'}")
    if [one.name for one in graph.output] != [value]:
        raise _unlike("has other outputs than that of its last layer")
    return layers, activations[0] if activations else "tanh"


def _dense(node: Any, value: str, others: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from onnx import helper

    options = {one.name: float(helper.get_attribute_value(one)) for one in node.attribute}
    if node.input[0] != value or options.get("transA") or not others or others[0].ndim != 2:
        raise _unlike(f"has {_called(node)} whose weights are not a matrix on the right")
    weights = others[0] if options.get("transB") else others[0].T
    biases = _row(others[1], len(weights), node) if len(others) > 1 else np.zeros(len(weights))
    return options.get("alpha", 1.0) * weights, options.get("beta", 1.0) * biases


def _row(values: NDArray[np.float64], size: int, node: Any) -> NDArray[np.float64]:
    """One number for each output."""
    if values.size not in (1, size) or (values.size > 1 and values.shape[-1] != size):
        raise _unlike(f"has {_called(node)} whose biases are not one for each of {size} outputs")
    return np.array(np.broadcast_to(values.reshape(-1), (size,)))


def _output(node: Any) -> str:
    if len(node.output) != 1:
        raise _unlike(f"has {_called(node)} with {len(node.output)} outputs")
    return str(node.output[0])


def _called(node: Any) -> str:
    return f"the operator {plain(str(node.op_type), 40)}"


def _unlike(what: str) -> InputError:
    fix = "give dense layers with tanh or ReLU between them, or call the model from a Python file"
    return InputError("bad-policy", f"the model {what}", fix=fix)
