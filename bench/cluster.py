"""A study on a local cluster beside the plain pool: processor time, workers killed on the way, the scheduler's share.

    python bench/cluster.py --points 10000 --workers 2 --kill-every 20
    python bench/cluster.py --points 1000 --workers 1 --kinds pool cluster --together
    python bench/cluster.py --scheduler

The first runs the same points three times, by a pool, a cluster, and a cluster with a worker killed every so often, and
compares every table of every run byte by byte. With --together they run side by side: where others work as well, a
point costs more processor time, then more for all of them. Processor time is that of all processes, started and ended,
from the first import on; and of the last four fifths of the points, without what it takes to start. The last measures
what a group of tasks costs the scheduler and the client, which are one process here, in processor time and in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SCENARIO = {"duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "20 ms"}}
LIMIT_S = 7200
COSTS = ("cpu_s", "cpu_ms_a_point_later")


def used_s() -> float:
    """Processor time of this process and of all finished children."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def running_s() -> float:
    """Processor time of all processes below this one, and of their finished children."""
    return sum(spent_s for _, spent_s in below().values())


def below() -> dict[int, tuple[int, float]]:
    """All processes below this one, by id: their parents, and their processor time in seconds."""
    there = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            there[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found: dict[int, tuple[int, float]] = {}
    known = {os.getpid()}
    while new := {number for number, (parent, _) in there.items() if parent in known and number not in found}:
        found |= {number: there[number] for number in sorted(new)}
        known |= new
    return found


def arm(kind: str, points: int, workers: int, kill_every_s: float, out: Path) -> dict[str, Any]:
    """One way of running the points, in a separate process, so that its processor time is known."""
    from sawtooth.dask import Cluster
    from sawtooth.io.parallel import fan_out
    from sawtooth.study import Study
    from sawtooth.study.store import sealed
    from sawtooth.study.worker import Outcome, Task, run_point

    seeds = list(range(1, points // 100 + 1))
    vary = {"flows.0.cc": ["cubic", "bbr"], "path.loss": {"from": "0%", "to": "4.9%", "step": "0.1%"}}
    study = Study.from_dict({"name": "bench", "scenario": SCENARIO, "vary": vary, "repeat": {"seeds": seeds}})
    for place in ("points", "progress"):
        (out / place).mkdir(parents=True)
    seal = sealed(out) if kind != "pool" else None
    tasks = [Task(point.id, point.scenario.to_dict(), "sim", out, seal) for point in study.points()]
    counted: list[str] = []
    marks: list[tuple[int, float]] = []
    ended = threading.Event()
    killed = 0

    def done(_: int, outcome: Outcome) -> None:
        assert outcome.saved, outcome.error
        counted.append(outcome.point)
        if len(counted) in (len(tasks) // 5, len(tasks)):
            marks.append((len(counted), used_s() + running_s()))

    def kill() -> None:
        nonlocal killed
        while not ended.wait(kill_every_s):
            # Workers are grandchildren: forks of a process that has already imported everything.
            there = [number for number, (parent, _) in below().items() if parent != os.getpid()]
            if there:
                os.kill(there[killed % len(there)], signal.SIGKILL)
                killed += 1

    before_s, begun = used_s(), time.monotonic()
    if kind == "pool":
        fan_out(run_point, tasks, done=done, jobs=workers)
    else:
        with Cluster(f"local:{workers}") as cluster:
            if kind == "killed":
                threading.Thread(target=kill, daemon=True).start()
            fan_out(run_point, tasks, done=done, executor=cluster)
            ended.set()
    cpu_s, wall_s = used_s() - before_s, time.monotonic() - begun
    assert len(counted) == len(set(counted)) == len(tasks), "lost, or counted twice"
    digest = hashlib.sha256()
    files = sorted(out.glob("points/[0-9]*/*.parquet"))
    for file in files:
        digest.update(str(file.relative_to(out)).encode() + file.read_bytes())
    return {
        "kind": kind,
        "points": len(counted),
        "directories": len(list((out / "points").glob("[0-9]*"))),
        "cpu_s": round(cpu_s, 1),
        "cpu_ms_a_point_later": round(1e3 * (marks[1][1] - marks[0][1]) / (marks[1][0] - marks[0][0]), 2),
        "wall_s": round(wall_s, 1),
        "killed": killed,
        "sha256": digest.hexdigest()[:16],
    }


def scheduler(groups: int, workers: int) -> dict[str, float]:
    """The cost of a group of a hundred points, for client and scheduler."""
    from sawtooth.dask import Cluster, scheduler
    from sawtooth.io.parallel import fan_out, results

    size = 100
    payload = [dict(SCENARIO) | {"seed": seed} for seed in range(size)]
    scheduler.GROUP_S, scheduler.A_SECOND = 0.0, sys.maxsize  # a group is one task here, a list of a hundred scenarios
    scheduler.AHEAD = 20
    with Cluster(f"local:{workers}") as cluster:
        results(len, [payload] * 100, executor=cluster)
        mine, begun = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        results(len, [payload] * groups, executor=cluster)
        now, wall_s = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - begun
        each_s = (now.ru_utime + now.ru_stime - mine.ru_utime - mine.ru_stime) / groups
        before, peak = resident(), [0]
        scheduler.AHEAD = groups // workers

        def look() -> None:
            peak[0] = max(peak[0], resident())

        fan_out(len, [payload] * groups, done=lambda *_: None, poll=look, executor=cluster)
    return {
        "groups": groups,
        "cpu_ms_a_group": round(each_s * 1e3, 2),
        "groups_a_cpu_second": round(1 / each_s),
        "groups_a_second": round(groups / wall_s),
        "kB_a_group_in_flight": round((peak[0] - before) / groups / 1e3, 1),
        "MB_resident": round(before / 1e6),
    }


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def told(command: list[str]) -> dict[str, Any]:
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT_S)
    return dict(json.loads(answer.stdout))


def percent(one: float, first: float) -> float:
    return round(100 * (one / first - 1), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--points", type=int, default=1000, help="a multiple of 100")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=20.0, help="seconds")
    parser.add_argument("--scheduler", action="store_true", help="what a group costs the scheduler, instead")
    parser.add_argument("--kinds", nargs="+", default=["pool", "cluster", "killed"])
    parser.add_argument("--together", action="store_true", help="all kinds at once, not one after the other")
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.scheduler:
        print(json.dumps(scheduler(2000, given.workers)))
        return
    if given.arm is not None:
        with tempfile.TemporaryDirectory() as place:
            print(json.dumps(arm(given.arm, given.points, given.workers, given.kill_every, Path(place) / "out")))
        return
    found: list[dict[str, Any]] = []
    options = ["--points", given.points, "--workers", given.workers, "--kill-every", given.kill_every]
    commands = [[sys.executable, __file__, "--arm", kind, *map(str, options)] for kind in given.kinds]
    with ThreadPoolExecutor(len(commands) if given.together else 1) as side:
        for one in side.map(told, commands):
            found.append(one)
            over = {f"{name}_over_first_percent": percent(one[name], found[0][name]) for name in COSTS}
            print(json.dumps(one | over), flush=True)
    assert len({one["sha256"] for one in found}) == 1, "the runs differ"


if __name__ == "__main__":
    main()
