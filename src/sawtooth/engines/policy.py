"""Policy: a congestion control as a small neural network in a NumPy file (.npz), or read from an ONNX file. The core
evaluates it."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth import _core
from sawtooth.engines import onnx_layers
from sawtooth.errors import InputError, suggestion
from sawtooth.io.atomic_io import write_bytes
from sawtooth.io.untrusted import read_bytes
from sawtooth.sanitize import plain
from sawtooth.scenario import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

OBSERVED: dict[str, tuple[str, str]] = {name: (unit, meaning) for name, unit, meaning in _core.observed()}
"""What an agent sees: units and meanings, in the order of an observation."""
ACTIONS: dict[str, tuple[float, float]] = {name: _core.action_bounds(name) for name in ("cwnd", "rate", "change")}
"""The least and the greatest value of each kind of action."""
_LARGEST = 16 << 20
_MOST_LAYERS = 32
_MOST_WEIGHTS = 1 << 17
_AGAIN = "write it with sawtooth.gym.Policy.save"


def interval(every: str) -> tuple[str, int]:
    """How the core calls ``ack``, ``rtt`` or a time: a word, and microseconds. Raises InputError."""
    if every in ("ack", "rtt"):
        return every, 0
    try:
        micros = Span.parse(every).ns // 1000
    except InputError as error:
        fix = 'write every = "rtt", "ack", or a time: every = "10 ms"'
        raise InputError(error.code, error.message, field="every", fix=fix) from None
    if micros == 0:
        raise InputError(
            "out-of-range", "decisions are at least 1 us apart", field="every", fix='write every = "10 ms"'
        )
    return "time", micros


def checked_action(action: str) -> str:
    """Raises InputError ``unknown-name``."""
    if action not in ACTIONS:
        message = f"no action is named {plain(str(action), 40)}"
        raise InputError("unknown-name", message, field="action", fix=suggestion(str(action), ACTIONS))
    return action


@dataclass(frozen=True, eq=False)
class Policy:
    """Layers with an ``activation`` between them, ``tanh`` or ``relu``. ``inputs``: names of what it sees. ``every``,
    ``action``: as in the environment. ``layers``: a row of weights for each output, and the biases; the last one's only
    output is the action.

    Raises InputError ``unknown-name``, ``bad-policy`` for layers whose sizes do not match and for too many weights, and
    as ``every`` does.
    """

    inputs: tuple[str, ...]
    layers: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...] = field(repr=False)
    every: str = "rtt"
    action: str = "change"
    name: str = "policy"
    activation: str = "tanh"

    def __post_init__(self) -> None:
        for name in self.inputs:
            if name not in OBSERVED:
                message = f"no observation is named {plain(str(name), 40)}"
                raise InputError("unknown-name", message, field="inputs", fix=suggestion(str(name), OBSERVED))
        checked_action(self.action)
        interval(self.every)
        if self.activation not in ("tanh", "relu"):
            message = f"no activation is named {plain(str(self.activation), 40)}"
            raise InputError("unknown-name", message, field="activation", fix='write activation = "tanh" or "relu"')
        if len(self.layers) > _MOST_LAYERS:
            message = f"it has more than {_MOST_LAYERS} layers"
            raise InputError("bad-policy", message, field="layers", fix="give a policy with fewer layers")
        # Rows without columns count too: they become lists.
        weights = sum(math.prod(max(size, 1) for size in np.shape(part)) for layer in self.layers for part in layer)
        if weights > _MOST_WEIGHTS:
            message = f"it has more than {_MOST_WEIGHTS:,} weights"
            raise InputError("bad-policy", message, field="layers", fix="give a policy with fewer weights")
        if not all(np.isfinite(part).all() for layer in self.layers for part in layer):
            raise InputError("bad-policy", "a weight is not a finite number", field="layers", fix=_AGAIN)
        self._checked()

    def _checked(self) -> _core.Policy:
        try:
            return self.core
        except (ValueError, TypeError) as error:
            fix = (
                "name an input for each column of weights0; later layers have as many as rows before, the last one row"
            )
            raise InputError("bad-policy", plain(str(error), 200), field="layers", fix=fix) from None

    @cached_property
    def core(self) -> _core.Policy:
        """The same in the core."""
        places = list(OBSERVED)
        inputs = [places.index(name) for name in self.inputs]
        layers = [(np.asarray(weights).tolist(), np.asarray(biases).tolist()) for weights, biases in self.layers]
        return _core.Policy(self.name, *interval(self.every), self.action, inputs, layers, self.activation)

    def __call__(self, seen: NDArray[np.float64]) -> float:
        """The action for an observation."""
        least, most = ACTIONS[self.action]
        return min(max(self.core.decide(np.ascontiguousarray(seen, dtype=np.float64)), least), most)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it as a NumPy file. Raises SawtoothError ``unwritable-output``, ``disk-full``."""
        parts: dict[str, Any] = {"inputs": np.array(self.inputs), "every": np.array(self.every)}
        parts |= {"action": np.array(self.action), "activation": np.array(self.activation)}
        for at, (weights, biases) in enumerate(self.layers):
            parts |= {f"weights{at}": np.asarray(weights), f"biases{at}": np.asarray(biases)}
        text = io.BytesIO()
        np.savez(text, **parts)
        write_bytes(Path(path), text.getvalue())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Policy:
        """Reads such a file. Raises InputError ``file-not-found``, ``file-unreadable``, ``bad-policy``."""
        given = read_bytes(path, _LARGEST)
        try:
            return cls.read(given, Path(path).stem)
        except InputError as error:
            raise error.at(file=str(path)) from None

    @classmethod
    def read(cls, given: bytes, name: str = "policy") -> Policy:
        """From the bytes of such a file. Raises InputError ``bad-policy``, ``unknown-name``."""
        if len(given) > _LARGEST:
            message = f"it is larger than {_LARGEST >> 20} MiB"
            raise InputError("bad-policy", message, fix="give a policy with fewer weights")
        try:
            parts = _arrays(given)
        except _UNREADABLE as error:
            message = f"this is not a NumPy file of a policy: {plain(str(error), 120)}"
            raise InputError("bad-policy", message, fix=_AGAIN) from None
        layers: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        while f"weights{len(layers)}" in parts and len(layers) <= _MOST_LAYERS:
            at = len(layers)
            layers.append((_numbers(parts, f"weights{at}", 2), _numbers(parts, f"biases{at}", 1)))
        if not layers:
            raise InputError("bad-policy", "it has no array weights0", fix=_AGAIN)
        inputs = tuple(str(one) for one in _texts(parts, "inputs", 1))
        every, action = (str(_texts(parts, word, 0)) for word in ("every", "action"))
        activation = str(_texts(parts, "activation", 0)) if "activation" in parts else "tanh"
        return cls(inputs, tuple(layers), every, action, name, activation)

    @classmethod
    def from_onnx(
        cls, path: str | PathLike[str], inputs: Sequence[str], *, every: str = "rtt", action: str = "change"
    ) -> Policy:
        """The network in an ONNX file, as PyTorch and others export it: dense layers (Gemm, or MatMul and Add) with
        tanh or ReLU between them. ``inputs``: the observations that the model takes, in its order.

        Raises InputError ``file-not-found``, ``file-unreadable``, ``bad-policy``, ``unknown-name``; SawtoothError
        ``tool-missing`` without the library onnx.
        """
        given = read_bytes(path, _LARGEST)
        try:
            layers, activation = onnx_layers.read(given)
            return cls(tuple(inputs), tuple(layers), every, action, Path(path).stem, activation)
        except InputError as error:
            raise error.at(file=str(path)) from None


_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    SyntaxError,
    OSError,
    EOFError,
    OverflowError,
    MemoryError,
    RecursionError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zipfile and NumPy raise for a damaged file."""


def _arrays(given: bytes) -> dict[str, NDArray[Any]]:
    """The arrays by name. Their sizes are checked before memory is taken for them, and nothing is unpickled."""
    found: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(given)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > _LARGEST:
            raise ValueError(f"its arrays are larger than {_LARGEST >> 20} MiB")
        for member in members:
            with archive.open(member) as file:
                text = io.BytesIO(file.read(_LARGEST))
            version = np.lib.format.read_magic(text)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(text)
            if dtype.kind not in "fiuU" or dtype.itemsize == 0:
                raise ValueError(f"{member.filename} has neither numbers nor text")
            values = np.frombuffer(text.read(), dtype=dtype)
            order: Any = "F" if is_fortran else "C"
            found[member.filename.removesuffix(".npy")] = values.reshape(shape, order=order)
    return found


def _part(parts: Mapping[str, NDArray[Any]], name: str, dimensions: int, kinds: str, what: str) -> NDArray[Any]:
    one = parts.get(name)
    if one is None:
        raise InputError("bad-policy", f"it has no array {name}", fix=_AGAIN)
    if one.ndim != dimensions or one.dtype.kind not in kinds:
        raise InputError("bad-policy", f"{name} is not {what} with {dimensions} dimensions", fix=_AGAIN)
    return one


def _numbers(parts: Mapping[str, NDArray[Any]], name: str, dimensions: int) -> NDArray[np.float64]:
    return _part(parts, name, dimensions, "fiu", "an array of numbers").astype(np.float64)


def _texts(parts: Mapping[str, NDArray[Any]], name: str, dimensions: int) -> NDArray[Any]:
    return _part(parts, name, dimensions, "U", "text")
