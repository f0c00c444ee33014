"""Having: which engine has which congestion control here, and by what."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from sawtooth.controls.facts import FACTS
from sawtooth.engines import model, sim
from sawtooth.errors import SawtoothError


@dataclass(frozen=True)
class Having:
    """``model`` and ``sim``: whether they have it. ``kernels``: the kernels built here that have it, by what lists call
    them, with what each calls it. ``host``: whether this host's kernel has it, or would load it.
    """

    name: str
    model: bool
    sim: bool
    kernels: dict[str, str]
    host: bool


def having() -> list[Having]:
    """All that are known, and those that kernels built here have, by name. Does not fail where an engine is missing."""
    from sawtooth.doctor.host import congestion_control
    from sawtooth.kernel.additions import DEFAULT
    from sawtooth.kernel.kernel import installed

    simulated: tuple[str, ...] = ()
    with contextlib.suppress(SawtoothError):
        simulated = sim.controls()
    kernels: dict[str, dict[str, str]] = {}
    for kernel in installed():
        for name in kernel.controls if kernel.name or kernel.is_plain else ():
            kernels.setdefault(name, {}).setdefault(kernel.name or DEFAULT, kernel.own(name))
    host = {name for known in ("available", "modules") for name in congestion_control()[known]}
    known = sorted({*FACTS, *kernels, *simulated})
    return [
        Having(name, name in model.CONTROLS, name in simulated, kernels.get(name, {}), name in host) for name in known
    ]
