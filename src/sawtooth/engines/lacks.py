"""Refuses, before a run, what the real kernel can do but ``sim`` and ``model`` cannot."""

from __future__ import annotations

from collections.abc import Collection

from sawtooth.errors import InputError
from sawtooth.scenario import LINUX_CONTROLS
from sawtooth.scenario.compiled import Compiled

_FIX = "use --engine sim, or kernel"
_KERNEL = "use --engine kernel, or netns where this host's kernel has it"
_NAMED = "use --engine kernel with host.kernel, the name of a kernel that has it"


def simulated() -> Collection[str]:
    """The controls of ``sim``; empty if its core is missing."""
    # Not through the engine, which imports this module: that would be circular.
    try:
        from sawtooth import _core
    except ImportError:
        return ()
    return tuple(_core.congestion_controls())


def check(compiled: Compiled, engine: str, controls: Collection[str]) -> None:
    """Raises SawtoothError ``unsupported``: a compiled scenario has what the engine lacks."""
    if compiled.programs:
        message = f"the engine {engine} runs no programs"
        raise InputError("unsupported", message, field="programs", fix="use --engine kernel, or netns")
    for index, flow in enumerate(compiled.flows):
        if flow.module is not None and engine != "sim":
            message = f"the engine {engine} runs no C source"
            raise InputError("unsupported", message, field=f"flows.{index}.cc", fix="use --engine sim, or kernel")
        if flow.variant is not None and engine != "sim":
            message = f"the engine {engine} does not have the variant {flow.variant} of {flow.cc}"
            raise InputError("unsupported", message, field=f"flows.{index}.cc.variant", fix="use --engine sim")
        if flow.module is None and flow.datagrams is None and flow.cc not in controls:
            what = f"closed form for {flow.cc}, only for" if engine == "model" else f"{flow.cc}, only"
            message = f"the engine {engine} has no {what} {', '.join(controls)}"
            fix = _KERNEL if flow.cc in LINUX_CONTROLS else _NAMED
            if engine != "sim" and flow.cc in simulated():
                fix = "use --engine sim"
            if engine == "sim" and flow.cc in LINUX_CONTROLS:
                fix = f'{fix}; or give its source, cc = {{ source = "…/net/ipv4/tcp_{flow.cc}.c" }}'
            raise InputError("unsupported", message, field=f"flows.{index}.cc", fix=fix)
    if engine == "sim":
        return
    for transmitter in compiled.transmitters:
        if transmitter.discipline is not None:
            message = f'the queue of "{transmitter.name}" is not tail drop, and the engine {engine} has only tail drop'
            raise InputError("unsupported", message, field="queue", fix="use --engine sim, kernel or netns")
        if transmitter.pace is not None:
            message = f'the rate of "{transmitter.name}" varies, and the engine {engine} has only constant ones'
            raise InputError("unsupported", message, field="links", fix=_FIX)
    for link in compiled.links:
        if link.policer is not None:
            message = f'the link "{link.name}" has a policer, and the engine {engine} has none'
            raise InputError("unsupported", message, field="policer", fix="use --engine sim, kernel or netns")
        if link.varies or link.losses or link.aggregation_ns:
            message = f'the link "{link.name}" varies, and the engine {engine} has only constant ones'
            raise InputError("unsupported", message, field="links", fix=_FIX)
