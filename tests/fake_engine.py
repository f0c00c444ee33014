"""Fake engines for the tests of studies: fast, seeded, able to fail as real ones do; and a study for them."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sawtooth.errors import InputError, SawtoothError
from sawtooth.run import Run
from sawtooth.study import Study, run_study


@dataclass(frozen=True)
class Fake:
    """1,000 Mbit/s, reduced by the loss, with seeded noise. Each run leaves a mark in ``marks``, if given."""

    marks: str = ""
    name: str = "fake"

    def check(self, scenario):
        if scenario.chain_table.loss.ppb > 500_000_000:
            raise InputError("unsupported", "more than half is lost", field="chain.loss", fix="lower it")

    def capturing(self, directory, at=()):
        raise InputError("unsupported", "it writes no captures", field="capture", fix="leave it out")

    def run(self, scenario, *, progress=None, stop=None):
        if self.marks:
            (Path(self.marks) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        self.before(scenario, stop)
        count = scenario.duration.ns // scenario.interval.ns
        noise = np.random.default_rng(scenario.seed).random(count)
        loss = scenario.chain_table.loss.probability
        mean = (1000 if scenario.flows[0].cc == "bbr" else 900) * (1 - 8 * loss)
        ends = (np.arange(count) + 1) * scenario.interval.seconds
        intervals = pd.DataFrame(
            {
                "t_s": ends,
                "flow": 0,
                "goodput_bps": (mean + 10 * noise) * 1e6,
                "segments_out": 1000,
                "retransmits": round(1000 * loss),
                "timeouts": 1,
                "tail_probes": 2,
            }
        )
        info = pd.DataFrame({"t_s": ends, "flow": 0, "connection": 0, "srtt_s": 0.002, "rwnd_limited_s": ends / 4})
        tables = {"intervals": intervals, "tcp_info": info}
        if len(scenario.flows) > 1:
            tables |= self.shared(scenario, intervals)
        if progress is not None:
            progress(1.0)
        return Run(scenario, self.name, tables, {"warnings": ["made up"]})

    def shared(self, scenario, whole):
        """The n-th flow gets n parts of the whole; its last connection gets twice as much as each other one."""
        flows = list(enumerate(scenario.compile().flows))
        parts = [whole.assign(flow=at, goodput_bps=whole["goodput_bps"] * (at + 1)) for at, _ in flows]
        rows = [
            {
                "flow": at,
                "connection": connection,
                "generation": 0,
                "start_s": 0.0,
                "end_s": scenario.duration.seconds,
                "delivered_bytes": 1e6 * (2 if connection == flow.count - 1 else 1),
            }
            for at, flow in flows
            for connection in range(flow.count)
        ]
        return {"intervals": pd.concat(parts, ignore_index=True), "flows": pd.DataFrame(rows)}

    def before(self, scenario, stop):
        """What each kind of engine does before it answers."""


@dataclass(frozen=True)
class Fixed(Fake):
    """It has no randomness: every seed gives the same."""

    def run(self, scenario, *, progress=None, stop=None):
        run = super().run(scenario.set({"seed": 1}), progress=progress, stop=stop)
        return Run(scenario, self.name, run.tables, run.meta)


@dataclass(frozen=True)
class Late(Fake):
    """Delivers nothing in the first three seconds."""

    def run(self, scenario, *, progress=None, stop=None):
        run = super().run(scenario, progress=progress, stop=stop)
        intervals = run.tables["intervals"]
        intervals.loc[intervals["t_s"] <= 3, "goodput_bps"] = 0.0
        return run


@dataclass(frozen=True)
class Failing(Fake):
    """Fails at losses of 2% and more."""

    def before(self, scenario, stop):
        if scenario.chain_table.loss.ppb >= 20_000_000:
            raise SawtoothError("core-failed", "it broke")


@dataclass(frozen=True)
class Full(Fake):
    """At losses of 2% and more, the disk is full when the run is saved."""

    def run(self, scenario, *, progress=None, stop=None):
        run = super().run(scenario, progress=progress, stop=stop)
        if scenario.chain_table.loss.ppb >= 20_000_000:
            return Run(scenario, run.engine, {"intervals": _NoSpace()}, run.meta)
        return run


class _NoSpace:
    def items(self):
        raise OSError(28, "No space left on device")


@dataclass(frozen=True)
class Killed(Fake):
    """Its worker is killed at a loss of 2%, as by the kernel when memory runs out; only once if ``marks`` is given."""

    once: str = ""

    def before(self, scenario, stop):
        if scenario.chain_table.loss.ppb == 20_000_000 and not Path(self.once).exists():
            Path(self.once).touch()
            # Lets the other worker finish the previous point.
            time.sleep(1.0)
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class DiesBesideAnother(Fake):
    """Its worker is killed at a loss of 2% while another one runs 3%, which ends after the kill was noticed."""

    once: str = ""

    def before(self, scenario, stop):
        begun = Path(self.once)
        if scenario.chain_table.loss.ppb == 30_000_000:
            begun.touch()
            while not stop():
                time.sleep(0.02)
        if scenario.chain_table.loss.ppb == 20_000_000:
            while not begun.exists():
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Slow(Fake):
    """Runs forever at a loss of 2%, and stops when asked."""

    def before(self, scenario, stop):
        while scenario.chain_table.loss.ppb == 20_000_000:
            time.sleep(0.02)
            if stop is not None and stop():
                raise SawtoothError("interrupted", "stopped")


@dataclass(frozen=True)
class Stubborn(Fake):
    """Runs forever at a loss of 2%, and never checks whether to stop."""

    def before(self, scenario, stop):
        while scenario.chain_table.loss.ppb == 20_000_000:
            time.sleep(0.02)


def study(**changes):
    """One congestion control at four losses, with two seeds: eight points."""
    content = {
        "name": "small",
        "scenario": {"topology": "chain", "duration": "30 s"},
        "vary": {
            "flows.cc": ["cubic"],
            "topology": ["chain"],
            "chain.loss": {"from": "0%", "to": "3%", "step": "1%"},
        },
        "columns": {
            "cc": {"field": "flows.cc"},
            "path": {"field": "topology", "labels": {"chain": "symmetric"}},
            "loss_percent": {"field": "chain.loss", "unit": "%"},
        },
        "repeat": {"seeds": [1, 2]},
        "published": {"file": "one-percent-loss"},
    }
    return Study.from_dict(content | changes)


def quick(given=None, *, out, engine=None, workers=1, **options):
    """Runs in threads, to save the time of starting processes."""
    with ThreadPoolExecutor(workers) as executor:
        return run_study(given or study(), engine=engine or Fake(), out=out, executor=executor, quiet=True, **options)
