"""The layers of a network in an ONNX file: dense layers one after the other, with tanh or ReLU between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.errors import InputError, SawtoothError
from sawtooth.sanitize import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

Layers = list[tuple["NDArray[np.float64]", "NDArray[np.float64]"]]

ACTIVATIONS = {"Tanh": "tanh", "Relu": "relu"}
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError, MemoryError, OSError)
"""What onnx raises for damaged weights."""
_SAME = ("Identity", "Flatten")
"""Operators that change no number of a single observation."""


def read(given: bytes) -> tuple[Layers, str]:
    """Layers (weights by output, biases) and the activation between them; ``tanh`` if there is one layer.

    Raises InputError ``bad-policy``; SawtoothError ``tool-missing`` without the library onnx.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ModuleNotFoundError:
        fix = "pip install 'sawtooth[gym]'"
        raise SawtoothError("tool-missing", "reading ONNX files needs onnx", fix=fix) from None
    try:
        graph = onnx.load_model_from_string(given).graph
        return _followed(graph, dict(_fixed(graph)))
    except (DecodeError, *_UNREADABLE) as error:
        message = f"this is not an ONNX file with its weights: {plain(str(error), 120)}"
        raise InputError("bad-policy", message, fix="export the model with its weights in one file") from None


def _fixed(graph: Any) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The values in the file, by name."""
    from onnx import numpy_helper

    for one in graph.initializer:
        yield one.name, np.asarray(numpy_helper.to_array(one), dtype=np.float64)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield node.output[0], np.asarray(numpy_helper.to_array(attribute.t), dtype=np.float64)


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
        others = [fixed.get(name) for name in node.input if name != value]
        if value not in node.input or any(other is None for other in others):
            raise _unlike(f"joins values at {_called(node)}")
        if node.op_type in ACTIVATIONS and len(activations) + 1 == len(layers):
            activations.append(ACTIVATIONS[node.op_type])
        elif node.op_type in ("Gemm", "MatMul") and len(activations) == len(layers):
            layers.append(_dense(node, value, [other for other in others if other is not None]))
        elif node.op_type == "Add" and len(activations) + 1 == len(layers) and others[0] is not None:
            weights, biases = layers[-1]
            layers[-1] = weights, biases + others[0].reshape(-1)
        elif node.op_type not in _SAME:
            raise _unlike(f"has {_called(node)} after {len(layers)} layers")
        value = node.output[0]
    if not layers or len(activations) != len(layers) - 1 or len(set(activations)) > 1:
        raise _unlike(f"has {len(layers)} layers and the activations {', '.join(activations) or 'none'}")
    if [one.name for one in graph.output] != [value]:
        raise _unlike("has other outputs than that of its last layer")
    return layers, activations[0] if activations else "tanh"


def _dense(node: Any, value: str, others: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    options = {one.name: one.i if one.name.startswith("trans") else one.f for one in node.attribute}
    if node.input[0] != value or options.get("transA") or not others or others[0].ndim != 2:
        raise _unlike(f"has {_called(node)} whose weights are not a matrix on the right")
    weights = others[0] if options.get("transB") else others[0].T
    biases = others[1].reshape(-1) if len(others) > 1 else np.zeros(1)
    scaled = options.get("alpha", 1.0) * weights, options.get("beta", 1.0) * biases
    return scaled[0], np.array(np.broadcast_to(scaled[1], scaled[0].shape[:1]))


def _called(node: Any) -> str:
    return f"the operator {plain(node.op_type, 40)}"


def _unlike(what: str) -> InputError:
    fix = "give dense layers with tanh or ReLU between them, or call the model from a Python file"
    return InputError("bad-policy", f"the model {what}", fix=fix)
