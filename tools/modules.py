"""Linux's own congestion controls, run by the simulator from the source that the engine `kernel` is built of.

    python tools/modules.py same [--every N]             Reno, BBR, CUBIC beside the simulator's own: the same tables?
    python tools/modules.py kernel [--controls A,B …]     the others beside the engine kernel: the same throughput?

The sources are taken out of the archive of Debian's package linux-source-6.12, for the time of a run. `same` goes over
the grid of `fidelity/grid.toml`, one seed a point; status 1 where a table of Reno or BBR differs in anything, or one of
CUBIC in more than its cube root explains: with the simulator's root put into the source instead of Linux's the
tables are to be the same, without it the mean throughput within 0.1%. `kernel` takes six paths for each control.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.engines import get
from sawtooth.errors import SawtoothError
from sawtooth.fidelity.grid import Grid
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.work import cores, results

ARCHIVE = Path("/usr/src/linux-source-6.12.tar.xz")
GRID = Path(__file__).resolve().parents[1] / "fidelity" / "grid.toml"
OWN = ("reno", "cubic", "bbr")
OTHERS = ("bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "vegas", "veno")
OTHERS += ("westwood", "yeah")
BESIDE = {"yeah": ("vegas",)}
"""Modules that use others."""
WITHIN = 0.001
"""Of the mean throughput, for CUBIC with Linux's root."""
PATHS = (
    ("100 Mbit/s", "20 ms", "1 bdp", "0%", 1),
    ("10 Mbit/s", "40 ms", "3 bdp", "0%", 1),
    ("100 Mbit/s", "20 ms", "1 bdp", "0.1%", 3),
    ("100 Mbit/s", "20 ms", "1 bdp", "1%", 3),
    ("50 Mbit/s", "80 ms", "0.3 bdp", "0.01%", 3),
    ("100 Mbit/s", "2 ms", "1 bdp", "1%", 3),
)
"""Rate, RTT, queue, loss, and how many seeds the engine kernel gets."""
SEEDS = 24
"""Of the simulator, where something is lost by chance."""
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
"""Linux's is in the middle of its TCP; a module of the same helpers stands for it."""
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
"""The simulator's root in C, put before the function that calls Linux's."""


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
    """The same with Linux's sources; ``root``: CUBIC's with the simulator's cube root."""
    flows = []
    for flow in scenario.to_dict()["flows"]:
        name = flow["cc"]
        files = [f"tcp_{name}_root.c" if root and name == "cubic" else f"tcp_{name}.c"]
        files += [f"tcp_{other}.c" for other in BESIDE.get(name, ())]
        module = {"source": [str(directory / file) for file in files], "name": name}
        flows.append({**flow, "name": flow.get("name", name), "cc": module})
    return Scenario.from_dict({**scenario.to_dict(), "flows": flows})


def differing(one: Run, other: Run) -> list[str]:
    """Tables and columns in which two runs differ in anything."""
    found = []
    for name, table in one.tables.items():
        for column in table.columns:
            mine, theirs = table[column].to_numpy(), other.tables[name][column].to_numpy()
            if mine.shape != theirs.shape or not np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"):
                found.append(f"{name}.{column}")
    return found


def _compare(task: tuple[Scenario, str]) -> tuple[list[str], float | None]:
    """For one point: what differs, and for CUBIC the change of the mean that Linux's root makes."""
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


def _scenario(cc: Any, path: Sequence[Any], seed: int) -> Scenario:
    rate, rtt, queue, loss, _ = path
    return Scenario.from_dict(
        {
            "duration": "60 s",
            "traffic": "native",
            "seed": seed,
            "path": {"rate": rate, "rtt": rtt, "queue": queue, "loss": loss},
            "flows": [{"name": "flow", "cc": cc}],
        }
    )


def _goodput(task: tuple[str, Scenario]) -> float | str:
    engine, scenario = task
    try:
        return float(get(engine).run(scenario).tables["intervals"]["goodput_bps"].mean())
    except SawtoothError as error:
        return str(error)


def kernel(directory: Path, controls: Sequence[str], jobs: int | None) -> int:
    tasks: list[tuple[str, Scenario]] = []
    keys: list[tuple[str, int, str]] = []
    for control in controls:
        for number, path in enumerate(PATHS):
            for engine, seeds in (("kernel", path[4]), ("sim", SEEDS if path[4] > 1 else 1)):
                for seed in range(1, seeds + 1):
                    scenario = _scenario(control, path, seed)
                    tasks.append((engine, by_source(scenario, directory) if engine == "sim" else scenario))
                    keys.append((control, number, engine))
    seen: dict[tuple[str, int, str], list[float]] = {}
    for key, found in zip(keys, results(_goodput, tasks, jobs=jobs, threads=True), strict=True):
        if isinstance(found, str):
            print(key, found, file=sys.stderr)
        else:
            seen.setdefault(key, []).append(found)
    print("control,rate,rtt,queue,loss,kernel_bps,sim_bps,change")
    changes = []
    for control in controls:
        for number, path in enumerate(PATHS):
            theirs, ours = seen.get((control, number, "kernel"), []), seen.get((control, number, "sim"), [])
            if not theirs or not ours:
                continue
            truth, mean = statistics.fmean(theirs), statistics.fmean(ours)
            changes.append(mean / truth - 1)
            print(f"{control},{','.join(str(one) for one in path[:4])},{truth:.0f},{mean:.0f},{changes[-1]:+.4f}")
    if changes:
        apart = sorted(abs(change) for change in changes)
        print(f"{len(changes)} points: {statistics.median(apart):.2%} apart in the median, {apart[-1]:.1%} at worst")
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
