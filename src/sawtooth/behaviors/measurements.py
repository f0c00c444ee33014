"""Measurements: the quantities of all situations on one kernel, by seed.

They are kept in files, so that the same command continues.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.behaviors.catalogue import Catalogue
from sawtooth.behaviors.quantities import QUANTITIES
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import read_json, write_json, writing
from sawtooth.io.parallel import fan_out
from sawtooth.kernel import Kernel

if TYPE_CHECKING:
    from sawtooth.run import Run

Show = Callable[[int, int], None]
"""Called with the finished runs and all runs."""


@dataclass(frozen=True)
class Measured:
    """A kernel. ``values``: by seed and situation, each quantity. ``tables``: by seed and situation, the digest of the
    run's tables and its hosts' counters. ``failed``: by seed and situation, why a run failed. ``wall_s``: seconds of
    the longest guest; infinite if that is not known."""

    kernel: Kernel
    values: Mapping[int, Mapping[str, Mapping[str, float]]] = field(repr=False)
    tables: Mapping[int, Mapping[str, str]] = field(repr=False)
    failed: Mapping[int, Mapping[str, str]] = field(repr=False)
    wall_s: float = math.inf

    @property
    def label(self) -> str:
        return self.kernel.name or "default"

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The failed runs as JSON values."""
        return [
            {"seed": seed, "situation": name, "why": why}
            for seed, some in self.failed.items()
            for name, why in some.items()
        ]

    def of(self, situation: str, quantity: str) -> list[float]:
        """One value for each seed whose run has it, in the order of the seeds."""
        found = [seed[situation][quantity] for seed in self.values.values() if situation in seed]
        return [value for value in found if not math.isnan(value)]


def measure(
    kernels: Sequence[Kernel],
    catalogue: Catalogue,
    directory: Path,
    *,
    seeds: Sequence[int] | None = None,
    jobs: int | None = None,
    show: Show | None = None,
    limit_s: float = math.inf,
) -> list[Measured]:
    """Runs all situations on each kernel: for each seed one guest, in which they follow one another. ``directory``: for
    the measurements, which are not repeated while kernel and catalogue stay the same, unless a run failed.
    ``limit_s``: seconds after which a guest is taken for hung, at most the engine's limit.

    Raises SawtoothError as ``Kernel.run`` does, and ``unwritable-output``.
    """
    chosen = list(seeds or catalogue.seeds)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    tasks = [(kernel, seed) for kernel in kernels for seed in chosen]
    files = {(kernel.digest, seed): _file(directory, kernel, catalogue, seed) for kernel, seed in tasks}
    stopped = threading.Event()
    missing = list({files[kernel.digest, seed]: (kernel, seed) for kernel, seed in tasks}.values())
    missing = [task for task in missing if not _is_whole(files[task[0].digest, task[1]])]
    count = len(catalogue.situations)
    done = [0]

    def keep(number: int, content: dict[str, Any]) -> None:
        kernel, seed = missing[number]
        write_json(files[kernel.digest, seed], content)
        done[0] += count

    fan_out(
        partial(_measured, catalogue, limit_s, stopped.is_set),
        missing,
        done=keep,
        poll=lambda: show(done[0], count * len(missing)) if show is not None else None,
        stop=stopped.set,
        jobs=jobs,
        threads=True,
    )
    found = []
    for kernel in kernels:
        read = {seed: read_json(files[kernel.digest, seed]) for seed in chosen}
        values = {
            seed: {
                name: {quantity: math.nan if one is None else one for quantity, one in some.items()}
                for name, some in about["values"].items()
            }
            for seed, about in read.items()
        }
        tables, failed = ({seed: about[part] for seed, about in read.items()} for part in ("tables", "failed"))
        wall_s = max(about.get("wall_s", math.inf) for about in read.values())
        found.append(Measured(kernel, values, tables, failed, wall_s))
    return found


def is_measured(kernel: Kernel, catalogue: Catalogue, directory: Path, seeds: Sequence[int]) -> bool:
    """Whether ``measure`` has nothing left to run."""
    return all(_is_whole(_file(directory, kernel, catalogue, seed)) for seed in seeds)


def _file(directory: Path, kernel: Kernel, catalogue: Catalogue, seed: int) -> Path:
    return directory / f"{kernel.digest}-{catalogue.digest()}-{seed}.json"


def _measured(
    catalogue: Catalogue, limit_s: float, stop: Callable[[], bool], task: tuple[Kernel, int]
) -> dict[str, Any]:
    """What one guest measures, as JSON values."""
    from sawtooth.engines import kernel as engine

    kernel, seed = task
    settings = {"seed": seed, "host.hz": kernel.hz} | ({"host.kernel": kernel.name} if kernel.name else {})
    situations = catalogue.situations
    begun = time.monotonic()
    scenarios = [one.scenario.set(settings) for one in situations]
    runs = engine.series(scenarios, stop=stop, limit_s=min(limit_s, engine.TIMEOUT_S))
    content: dict[str, Any] = {"values": {}, "tables": {}, "failed": {}, "wall_s": time.monotonic() - begun}
    for situation, run in zip(situations, runs, strict=True):
        if isinstance(run, SawtoothError):
            content["failed"][situation.name] = str(run.message)
            continue
        values = {name: QUANTITIES[name].value(run) for name in situation.measures}
        content["values"][situation.name] = {name: None if math.isnan(one) else one for name, one in values.items()}
        content["tables"][situation.name] = _digest(run)
    return content


def _is_whole(file: Path) -> bool:
    """A run may have failed for a reason that has passed."""
    return file.is_file() and not read_json(file)["failed"]


def _digest(run: Run) -> str:
    """Covers the tables and the hosts' counters."""
    digest = hashlib.sha256(json.dumps(run.meta.get("hosts"), sort_keys=True).encode())
    for name in sorted(run.tables):
        digest.update(f"{name}\n{run.tables[name].to_csv(index=False)}".encode())
    return digest.hexdigest()[:16]
