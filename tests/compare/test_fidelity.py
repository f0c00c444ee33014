"""The simulator against the real kernel: a part of the recorded fidelity grid, the record against the kernel built
here, and goodput of Linux 6.12 in virtual time that another program measured.
"""

import math
import statistics
from pathlib import Path

import pytest

import sawtooth
from sawtooth import Scenario, run
from sawtooth.compare.fidelity import Fidelity, Grid, compare_on, engine_build
from sawtooth.compare.fidelity.engine_build import build
from sawtooth.compare.fidelity.grid import Point
from sawtooth.compare.fidelity.measurements import Ledger
from sawtooth.compare.fidelity.measures import NAMES, measure
from sawtooth.compare.fidelity.record import beside
from sawtooth.kernel import Kernel

pytestmark = pytest.mark.usefixtures("patience")

GRID = Path(__file__).resolve().parents[2] / "fidelity" / "grid.toml"
TOLERANCE = {"mean_mbps": 0.10, "segments_out": 0.10, "retransmits": 0.15, "mean_rtt_ms": 0.05, "share": 0.10}
"""For each point with the tag "ci", in addition to the noise of both sides, which the record includes."""
LIVE = 4
"""Number of points measured again: the cheapest for the kernel."""

SEEDS = (1, 2, 3)

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
            "duration": "20 s",
            "chain": {"rtt": "0.44 ms"},
            "flows": [{"name": "bulk", "cc": "cubic"}],
        }
    )
    # Measured on the real kernel with one shared card a host: cubic 935.4 and 205.5, bbr 921.2 and 923.5 Mbit/s.
    assert mean_mbps(chain) == pytest.approx(935.4, rel=0.005)
    assert mean_mbps(chain.set({"chain.loss": "1%"})) == pytest.approx(205.5, rel=0.10)
    assert mean_mbps(chain.set({"flows.bulk.cc": "bbr"})) == pytest.approx(921.2, rel=0.02)
    assert mean_mbps(chain.set({"flows.bulk.cc": "bbr", "chain.loss": "1%"})) == pytest.approx(923.5, rel=0.05)


@pytest.fixture(scope="module")
def fidelity(tmp_path_factory: pytest.TempPathFactory) -> Fidelity:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return compare_on(GRID, tag="ci", quiet=True)


CI = Grid.load(GRID).points("ci")


def test_all_points_of_ci_are_on_record(fidelity: Fidelity) -> None:
    assert not fidelity.unmeasured
    assert [point.name for point in fidelity.points] == [point.name for point in CI]


@pytest.mark.parametrize("point", [point.name for point in CI])
def test_the_simulator_is_within_the_tolerance_of_the_record(fidelity: Fidelity, point: str) -> None:
    rows = fidelity.differences.query("point == @point and enough").to_dict("records")
    assert "mean_mbps" in {row["measure"] for row in rows}
    for row in rows:
        limit = TOLERANCE.get(row["measure"], math.inf)
        assert abs(row["ln_ratio"]) <= math.log1p(limit) + row["ln_noise"], row


def test_the_median_point_of_ci_is_within_the_goal(fidelity: Fidelity) -> None:
    median = fidelity.summary.set_index("measure")["median"]
    assert median["mean_mbps"] <= 0.03
    assert median["mean_rtt_ms"] <= 0.05


def cheapest() -> list[Point]:
    record = Ledger.load(beside(GRID))
    return sorted(CI, key=lambda point: record.of(point.question)[0]["cpu_s"])[:LIVE]


@pytest.mark.parametrize("package", ["scenario", "testbed"])
def test_a_build_changes_with_every_source_of_its_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = engine_build._sources.__wrapped__
    before, read = sources(package), Path.read_bytes
    changed = sorted((Path(sawtooth.__file__).parent / package).rglob("*.py"))
    for one in (changed[0], changed[-1]):
        monkeypatch.setattr(Path, "read_bytes", lambda path, one=one: read(path) + b" " * (path == one))
        assert sources(package) != before


@pytest.mark.parametrize("point", cheapest(), ids=lambda point: point.name)
def test_the_record_is_what_the_kernel_says(kernel: Kernel, point: Point) -> None:
    rows = Ledger.load(beside(GRID)).of(point.question)
    here = measure(run(point.scenario.set({"seed": rows[0]["seed"]}), engine="kernel"))
    if rows[0]["engine"] == build("kernel", point.scenario)[0]:
        # The same kernel and testbed give the same run.
        assert {name: here[name] for name in NAMES} == pytest.approx({name: rows[0][name] for name in NAMES}, rel=1e-6)
    means = [row["mean_mbps"] for row in rows]
    assert here["mean_mbps"] == pytest.approx(statistics.fmean(means), rel=0.05, abs=4 * statistics.stdev(means))
