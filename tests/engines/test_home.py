"""The topology home: every kind of queue on its access line, in both directions, on the simulator and the kernel."""

from typing import Any

import numpy as np
import pytest

import sawtooth
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import throughput
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check
from tests.scenario.test_queue import KINDS

LINE = ("line>router", "router>line")
NEEDED: dict[str, dict[str, Any]] = {
    "red": {"limit": "100 ms"},
    "tbf": {"rate": "8 Mbit/s", "burst": "16 KiB", "latency": "100 ms"},
    "pfifo": {"limit": "100 packets"},
}
HOLD_BACK = {"codel", "fq_codel", "pie", "fq_pie", "cake", "dualpi2"}
"""Kinds that keep the delay of a long transfer low."""


def home(queue: Any, **changes: Any) -> Scenario:
    tables: dict[str, Any] = {
        "topology": "home",
        "duration": "20 s",
        "warmup": "5 s",
        "home": {"queue": queue},
        "probes": [{"from": "server", "to": "device", "interval": "50 ms"}],
        "flows": [{"from": "server", "to": "device", "cc": "cubic"}],
    }
    return Scenario.from_dict(tables | changes)


def median_ms(run: Any) -> float:
    probes = run.tables["probes"]
    return float(np.nanmedian(probes[probes["t_s"] > 5]["rtt_s"])) * 1e3


@pytest.mark.parametrize("kind", KINDS)
def test_the_access_line_has_every_kind_of_queue(kind: str) -> None:
    scenario = home({"kind": kind, **NEEDED.get(kind, {})})
    compiled = scenario.compile()
    of_line = [one for one in compiled.transmitters if one.name in LINE]
    assert len(of_line) == 2
    assert len({one.discipline.kind if one.discipline is not None else "" for one in of_line}) == 1
    # The kernel engine accepts it, and so does a file with topology custom.
    build(compiled, Place(), "st-1-0-1-")
    check(compiled, scenario.traffic, Place(), where="there")
    again = scenario.as_custom().compile()
    assert [one.discipline for one in again.transmitters] == [one.discipline for one in compiled.transmitters]
    run = sawtooth.run(scenario)
    rate = 8 if kind == "tbf" else 50
    assert throughput(run).mean() > 0.8 * rate
    assert (median_ms(run) < 60) == (kind in HOLD_BACK | {"fq", "sfq", "pfifo", "red"})


def test_without_one_the_line_is_bloated() -> None:
    assert median_ms(sawtooth.run(home("250 ms"))) > 120


COMPARED = {kind: home({"kind": kind}, duration="12 s") for kind in ("fq_codel", "cake")}


@pytest.mark.parametrize("kind", COMPARED)
def test_the_kernel_has_it_on_the_access_line(kind: str, compared: dict[str, Run]) -> None:
    run = compared[kind]
    assert throughput(run).mean() > 40
    assert median_ms(run) < 60
    assert median_ms(run) == pytest.approx(median_ms(sawtooth.run(COMPARED[kind])), rel=0.25)
