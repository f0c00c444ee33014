"""Linux's own congestion controls, run by the simulator from the source that the engine `kernel` is built of.

    python experiments/modules.py same [--every N]  Reno, BBR, CUBIC beside the simulator's own: the same tables?
    python experiments/modules.py kernel [--controls A,B …]  the others beside the kernel's record: the same throughput?

The sources are taken out of the archive of Debian's package linux-source-6.12, for the time of a run. `same` goes over
the grid of `fidelity/grid.toml`, one seed a point; status 1 where a table of Reno or BBR differs in anything, or one of
CUBIC in more than its cube root explains: with the simulator's root put into the source instead of Linux's the
tables are to be the same, without it the mean throughput within 0.1%. `kernel` takes the points of
`fidelity/modules.toml`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sawtooth.compare.fidelity.grid import Grid
from sawtooth.compare.fidelity.measurements import Ledger
from sawtooth.engines import get
from sawtooth.io.parallel import cores, results
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.stats import throughput

ARCHIVE = Path("/usr/src/linux-source-6.12.tar.xz")
GRID = Path(__file__).resolve().parents[1] / "fidelity" / "grid.toml"
OWN = ("reno", "cubic", "bbr")
OTHERS = ("bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "vegas", "veno")
OTHERS += ("westwood", "yeah")
BESIDE = {"yeah": ("vegas",)}
"""Modules that need the sources of others."""
WITHIN = 0.001
"""Allowed relative difference of the mean throughput for CUBIC with Linux's cube root."""
RECORDED = GRID.with_name("modules.toml")
SEEDS = (1, 2, 3)
"""Seeds of the simulator at each point of the kernel's record."""
RENO = """\
#include <linux/module.h>
#include <net/tcp.h>

static struct tcp_congestion_ops reno = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "reno",
};

static int __init reno_register(void)
{
	return tcp_register_congestion_control(&reno);
}
module_init(reno_register);
"""
"""Linux's Reno is part of its TCP code, so this module calls the same helper functions instead."""
ROOT = """
static u32 nearest_root(u64 a)
{
	u32 root = 0;

	for (int bit = 21; bit >= 0; bit--) {
		unsigned __int128 doubled = 2 * (u64)(root | 1u << bit) - 1;

		if (doubled * doubled * doubled < (unsigned __int128)8 * a)
			root |= 1u << bit;
	}
	return root;
}
#define cubic_root(a) nearest_root(a)

static inline void bictcp_update("""
"""The simulator's cube root in C, inserted before the function that calls Linux's."""


def unpack(directory: Path, archive: Path = ARCHIVE) -> None:
    """The sources of all controls into ``directory``, and beside them ``tcp_reno.c`` and ``tcp_cubic_root.c``."""
    wanted = {f"tcp_{name}" for name in ("cubic", "bbr", *OTHERS)}
    with tarfile.open(archive) as tar:
        for member in tar:
            path = Path(member.name)
            if path.parts[1:3] == ("net", "ipv4") and path.stem in wanted and path.suffix in (".c", ".h"):
                file = tar.extractfile(member)
                if file is not None:
                    (directory / path.name).write_bytes(file.read())
            elif path.parts[1:2] > ("net",) and (directory / "tcp_yeah.c").exists():
                break
    (directory / "tcp_reno.c").write_text(RENO)
    cubic = (directory / "tcp_cubic.c").read_text()
    begins = "\nstatic inline void bictcp_update("
    assert begins in cubic, "another tcp_cubic.c than was expected"
    (directory / "tcp_cubic_root.c").write_text(cubic.replace(begins, ROOT, 1))


def by_source(scenario: Scenario, directory: Path, root: bool = False) -> Scenario:
    """The scenario with Linux's sources. ``root``: use the simulator's cube root in CUBIC."""
    flows = []
    for flow in scenario.to_dict()["flows"]:
        name = flow["cc"]
        files = [f"tcp_{name}_root.c" if root and name == "cubic" else f"tcp_{name}.c"]
        files += [f"tcp_{other}.c" for other in BESIDE.get(name, ())]
        module = {"source": [str(directory / file) for file in files], "name": name}
        flows.append({**flow, "name": flow.get("name", name), "cc": module})
    return Scenario.from_dict({**scenario.to_dict(), "flows": flows})


def differing(one: Run, other: Run) -> list[str]:
    """Tables and columns that differ between two runs."""
    found = []
    for name, table in one.tables.items():
        for column in table.columns:
            mine, theirs = table[column].to_numpy(), other.tables[name][column].to_numpy()
            if mine.shape != theirs.shape or not np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"):
                found.append(f"{name}.{column}")
    return found


def _compare(task: tuple[Scenario, str]) -> tuple[list[str], float | None]:
    """For one point: the differences, and for CUBIC the change of the mean caused by Linux's cube root."""
    scenario, directory = task
    named = [{**flow, "name": flow.get("name", flow["cc"])} for flow in scenario.to_dict()["flows"]]
    plain = Scenario.from_dict({**scenario.to_dict(), "flows": named})
    sim = get("sim")
    ours = sim.run(plain)
    differs = differing(ours, sim.run(by_source(plain, Path(directory), root=True)))
    if not any(flow["cc"] == "cubic" for flow in named):
        return differs, None
    linux = sim.run(by_source(plain, Path(directory)))
    return differs, linux.meta["delivered_packets"] / max(1, ours.meta["delivered_packets"]) - 1


def same(directory: Path, every: int, jobs: int | None) -> int:
    points = [
        point for point in Grid.load(GRID).points() if {flow.cc for flow in point.scenario.compile().flows} <= set(OWN)
    ][::every]
    tasks = [(point.scenario, str(directory)) for point in points]
    changes, wrong = [], 0
    for point, (differs, change) in zip(points, results(_compare, tasks, jobs=jobs, threads=True), strict=True):
        if differs:
            wrong += 1
            print(f"differs: {point.name}: {', '.join(differs)}")
        if change is not None:
            changes.append(change)
            if abs(change) > 10 * WITHIN:
                print(f"Linux's cube root: {point.name}: {change:+.2%}")
    print(f"{len(points)} points, {len(points) - wrong} with the same tables")
    mean = statistics.fmean(changes) if changes else 0.0
    if changes:
        apart = statistics.median(abs(change) for change in changes)
        print(
            f"CUBIC with Linux's cube root: {mean:+.3%} in the mean, {apart:.3%} apart in the median of {len(changes)}"
        )
    return int(wrong > 0 or abs(mean) > WITHIN)


def _goodput(task: tuple[Scenario, str]) -> float:
    """Goodput summed over all connections, in Mbit/s, of a run with Linux's sources."""
    scenario, directory = task
    return float(throughput(get("sim").run(by_source(scenario, Path(directory)))).mean())


def kernel(directory: Path, controls: Sequence[str], jobs: int | None) -> int:
    grid = Grid.load(RECORDED)
    record = Ledger.load(RECORDED.with_name(grid.record))
    points = [point for point in grid.points() if {flow.cc for flow in point.scenario.compile().flows} <= set(controls)]
    tasks = [(point.scenario.set({"seed": seed}), str(directory)) for point in points for seed in SEEDS]
    found = list(results(_goodput, tasks, jobs=jobs, threads=True))
    away: dict[str, list[float]] = {}
    print("point,kernel_mbps,sim_mbps,change")
    for number, point in enumerate(points):
        theirs = [float(row["mean_mbps"]) for row in record.of(point.question)]
        ours = found[number * len(SEEDS) : (number + 1) * len(SEEDS)]
        if theirs:
            change = statistics.fmean(ours) / statistics.fmean(theirs) - 1
            print(f"{point.name},{statistics.fmean(theirs):.3f},{statistics.fmean(ours):.3f},{change:+.4f}")
            away.setdefault(point.scenario.compile().flows[0].cc, []).append(abs(change))
    every = sorted(size for sizes in away.values() for size in sizes)
    for name, sizes in {**away, "all": every}.items():
        ninth = sorted(sizes)[int(0.9 * len(sizes))] if sizes else float("nan")
        told = f"median {statistics.median(sizes):.2%}, 90th percentile {ninth:.1%}, worst {max(sizes):.1%}"
        print(f"{name}: {len(sizes)} points, {told}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("same", "kernel"))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th point only")
    parser.add_argument("--controls", default=",".join(OTHERS), help="which, separated by commas")
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sawtooth-modules-") as name:
        unpack(Path(name))
        if given.what == "same":
            return same(Path(name), given.every, given.jobs)
        return kernel(Path(name), given.controls.split(","), given.jobs)


if __name__ == "__main__":
    sys.exit(main())
