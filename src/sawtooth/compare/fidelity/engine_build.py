"""Identifies the build of an engine, as a digest and in words, so that its measurements can be stored and reused."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.compare.fidelity.measures import EDITION
from sawtooth.run import versions

if TYPE_CHECKING:
    from sawtooth.scenario import Scenario


def build(engine: str, scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """12 hexadecimal digits, and what they stand for. For ``kernel``: the guest's kernel with the scenario's HZ, and
    the testbed. For ``sim``: the core, and the code that compiles scenarios.

    Raises SawtoothError ``kernel-missing``, and ValueError for another engine.
    """
    if engine == "kernel":
        compiled = scenario.compile()
        about = _kernel(compiled.hosts[0].hz, compiled.kernel) | {"traffic": scenario.traffic}
    elif engine == "sim":
        about = {"core": versions()["core"], "compiler": _sources("scenario")}
    else:
        raise ValueError(f"what {engine} measures is not kept")
    about |= {"engine": engine, "edition": EDITION}
    text = "|".join(f"{name}={about[name]}" for name in sorted(about))
    return hashlib.sha256(text.encode()).hexdigest()[:12], about


@functools.cache
def _kernel(hz: int, name: str | None) -> dict[str, Any]:
    from sawtooth import kernel

    found = kernel.find(hz, name).describe()
    kept = ("version", "hz", "digest", "source_digest", "recipe", "patches", "modules", "names")
    return {key: found[key] for key in kept if key in found} | {"testbed": _sources("testbed")}


@functools.cache
def _sources(package: str) -> str:
    directory = resources.files("sawtooth") / package
    files = sorted(path for ending in ("py", "c", "h") for path in Path(str(directory)).rglob(f"*.{ending}"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
