"""The simulator beside the real kernel: throughput of Linux 6.12 in virtual time, measured outside this project."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from sawtooth import Scenario, run

SEEDS = (1, 2, 3)
REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference" / "kernel-6.12-hz250.csv"

# cc, HZ, rate, rtt, queue in packets, loss, seconds, the kernel's mean in Mbit/s, tolerance.
KERNEL = [
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "0%", 20, 956.3, 0.005),
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "1%", 60, 232.1, 0.10),
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "2%", 60, 164.5, 0.30),
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "3%", 60, 106.8, 0.30),
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "5%", 120, 44.5, 0.30),
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "7%", 120, 18.7, 0.30),
    ("cubic", 250, "1 Gbit/s", "0.44 ms", 1000, "10%", 240, 5.9, 0.30),
    ("cubic", 100, "1 Gbit/s", "0.6 ms", 1000, "1%", 60, 242.8, 0.10),
    ("cubic", 250, "1 Gbit/s", "0.6 ms", 1000, "1%", 60, 152.2, 0.10),
    ("cubic", 1000, "1 Gbit/s", "0.6 ms", 1000, "1%", 60, 91.3, 0.10),
    ("reno", 100, "1 Gbit/s", "0.6 ms", 1000, "1%", 60, 205.3, 0.05),
    ("reno", 1000, "1 Gbit/s", "0.6 ms", 1000, "1%", 60, 205.3, 0.05),
    ("reno", 250, "100 Mbit/s", "20 ms", 170, "1%", 120, 6.8, 0.10),
    ("bbr", 250, "1 Gbit/s", "0.44 ms", 1000, "1%", 20, 938.2, 0.05),
    ("bbr", 250, "100 Mbit/s", "20 ms", 170, "0%", 60, 93.6, 0.05),
    ("bbr", 250, "100 Mbit/s", "20 ms", 170, "3%", 60, 89.4, 0.05),
]


def mean_mbps(scenario: Scenario) -> float:
    means = []
    for seed in SEEDS:
        intervals = run(scenario.set({"seed": seed})).tables["intervals"]
        means.append(intervals.groupby("t_s")["goodput_bps"].sum().mean() / 1e6)
    return statistics.fmean(means)


def path(cc: str, hz: int, rate: str, rtt: str, queue: int, loss: str, seconds: float) -> Scenario:
    return Scenario.from_dict(
        {
            "topology": "path",
            "duration": f"{seconds} s",
            "path": {"rate": rate, "rtt": rtt, "queue": f"{queue} packets", "loss": loss},
            "host": {"hz": hz},
            "flows": [{"cc": cc}],
        }
    )


@pytest.mark.parametrize(
    ("cc", "hz", "rate", "rtt", "queue", "loss", "seconds", "kernel", "tolerance"),
    KERNEL,
    ids=[f"{cc}-hz{hz}-{rtt}-{loss}".replace(" ", "") for cc, hz, _, rtt, _, loss, *_ in KERNEL],
)
def test_throughput_is_the_kernels(
    cc: str, hz: int, rate: str, rtt: str, queue: int, loss: str, seconds: float, kernel: float, tolerance: float
) -> None:
    assert mean_mbps(path(cc, hz, rate, rtt, queue, loss, seconds)) == pytest.approx(kernel, rel=tolerance)


def test_cubic_gains_from_a_longer_tick_at_lan_round_trips_and_reno_does_not() -> None:
    cubic = {hz: mean_mbps(path("cubic", hz, "1 Gbit/s", "0.6 ms", 1000, "1%", 20)) for hz in (100, 250, 1000)}
    reno = {hz: mean_mbps(path("reno", hz, "1 Gbit/s", "0.6 ms", 1000, "1%", 20)) for hz in (100, 250, 1000)}
    assert cubic[100] > 1.3 * cubic[250] > 1.3 * 1.3 * cubic[1000]
    assert reno[100] == pytest.approx(reno[1000], rel=0.03)


def test_five_hosts_with_a_card_each_give_what_the_kernel_gives() -> None:
    chain = Scenario.from_dict(
        {
            "topology": "chain",
            "duration": "60 s",
            "chain": {"rtt": "0.44 ms"},
            "flows": [{"name": "bulk", "cc": "cubic"}],
        }
    )
    # Measured on the real kernel with one shared card a host: cubic 935.4 and 205.5, bbr 921.2 and 923.5 Mbit/s.
    assert mean_mbps(chain) == pytest.approx(935.4, rel=0.005)
    assert mean_mbps(chain.set({"chain.loss": "1%"})) == pytest.approx(205.5, rel=0.10)
    assert mean_mbps(chain.set({"flows.bulk.cc": "bbr"})) == pytest.approx(921.2, rel=0.02)
    assert mean_mbps(chain.set({"flows.bulk.cc": "bbr", "chain.loss": "1%"})) == pytest.approx(923.5, rel=0.05)


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"the kernel's runs are not beside the project: {REFERENCE.name}")
def test_the_median_difference_over_the_whole_reference_is_under_three_percent() -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
    import validate

    groups: dict[str, list[dict[str, str]]] = {}
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            groups.setdefault(row["name"], []).append(row)
    differences = []
    for rows in groups.values():
        kernel = statistics.fmean(float(row["mean_mbps"]) for row in rows)
        simulated = statistics.fmean(
            validate.simulated(run(validate.scenario(rows[0], seed))).mean for seed in SEEDS[:2]
        )
        differences.append(abs(simulated / kernel - 1))
    differences.sort()
    assert len(differences) > 30
    assert statistics.median(differences) < 0.03
    assert differences[int(0.9 * len(differences))] < 0.15
