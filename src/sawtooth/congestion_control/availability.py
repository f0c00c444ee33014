"""Availability: which engines have which congestion control on this machine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from sawtooth.engines import model, sim
from sawtooth.errors import SawtoothError
from sawtooth.scenario import CONTROLS


@dataclass(frozen=True)
class Availability:
    """Who has a congestion control. ``model`` and ``sim``: whether these engines have it. ``kernels``: the kernels
    built here that have it, by their names in lists, with each kernel's own name for it. ``host``: whether this host's
    kernel has it or would load it.
    """

    name: str
    model: bool
    sim: bool
    kernels: dict[str, str]
    host: bool


def having() -> list[Availability]:
    """All known congestion controls and those of kernels built here, by name. A missing engine is no error."""
    from sawtooth.doctor.host import congestion_control
    from sawtooth.kernel.kernel import DEFAULT, installed

    simulated: tuple[str, ...] = ()
    with contextlib.suppress(SawtoothError):
        simulated = sim.controls()
    kernels: dict[str, dict[str, str]] = {}
    for kernel in installed():
        for name in kernel.controls if kernel.name or kernel.is_plain else ():
            kernels.setdefault(name, {}).setdefault(kernel.name or DEFAULT, kernel.own(name))
    host = {name for known in ("available", "modules") for name in congestion_control()[known]}
    known = sorted({*CONTROLS, *kernels, *simulated})
    return [
        Availability(name, name in model.CONTROLS, name in simulated, kernels.get(name, {}), name in host)
        for name in known
    ]
