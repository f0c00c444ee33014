"""Four programs on ten paths, on the engine kernel in virtual time and on netns in real time: medians side by side.

    sudo python tools/validate_programs.py [--times N] [--engine kernel] [PROGRAM ...]

It prints each value as it comes, and then a table for docs/validation.in.md. What is not installed is left out. Real
time needs a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

import programs as known

import sawtooth
from sawtooth.scenario import Scenario

PATHS = [(2, 50), (5, 20), (10, 40), (10, 200), (20, 20), (20, 40), (20, 100), (50, 10), (50, 40), (100, 20)]
"""Mbit/s, and ms of round-trip time. No random loss, because in real time it would differ in each run."""
SIZES = {
    "http1": ("head -c 1000000", "head -c 4000000"),
    "iperf3": ('"2M"', '"4M"'),
    "quic-ngtcp2": ("head -c 1000000", "head -c {ten_seconds}"),
    "pgbench": (
        "pgbench -i -q postgres 2> /dev/null && pgbench -c 4 -t 50 postgres",
        """echo "select repeat('x', 200000)" > /tmp/query && pgbench -n -c 1 -t 20 -f /tmp/query postgres""",
    ),
}
"""Programs of studies/programs, and what lengthens their transfers. ngtcp2's start and handshake compute for 0.2 s,
which are 2% of ten seconds. pgbench asks for long answers, because small transactions without a delay measure the
processor."""


def scenario(name: str, rate: int, rtt: int, *, delayed: bool) -> Scenario:
    """The program's scenario on another path, without loss. Its queue holds one bandwidth-delay product."""
    found = Scenario.load(known.files()[name])
    before, after = (text.format(ten_seconds=rate * 1_250_000) for text in SIZES[name])
    changed: list[dict[str, Any]] = []
    for one in found.given()["programs"]:
        command = one["command"]
        longer = [after.strip('"') if word == before.strip('"') else word for word in command]
        changed.append({**one, "command": command.replace(before, after) if isinstance(command, str) else longer})
    path = {"path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms", "path.loss": "0%"}
    path["path.queue"] = f"{max(10, rate * rtt * 125 // 1500)} packets"
    if not delayed:
        path["path.rtt"] = "0 s"
    return found.set({"programs": changed, **path})


def main(arguments: Sequence[str]) -> int:
    """Exits with status 1 if a median is further than 3% away."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help=f"Default: {', '.join(SIZES)}.")
    parser.add_argument("--times", type=int, default=3, help="Runs on netns for each path (default: 3).")
    fix = "Delays of 0 s, for a host whose kernel has no netem."
    parser.add_argument("--without-delay", action="store_true", help=fix)
    parser.add_argument("--engine", choices=("kernel", "netns"), help="Only this one.")
    given = parser.parse_args(arguments)
    found: dict[tuple[str, str, int, int], float] = {}
    wanted = [name for name in given.names or SIZES if not known.absent(known.files()[name])]
    for engine in [given.engine] if given.engine else ["netns", "kernel"]:
        for name in wanted:
            for rate, rtt in PATHS:
                values = []
                # In virtual time all runs are identical.
                for _ in range(given.times if engine == "netns" else 1):
                    run = sawtooth.run(scenario(name, rate, rtt, delayed=not given.without_delay), engine=engine)
                    values.append(next(iter(run.meta["measured"].values())))
                spread = " ".join(f"{value:.6g}" for value in values)
                print(f"{engine} {name} {rate} Mbit/s {rtt} ms: {spread}", flush=True)
                found[engine, name, rate, rtt] = median(values)
    if given.engine:
        return 0
    worst = 0.0
    print("| path | " + " | ".join(wanted) + " |\n|---|" + "---:|" * len(wanted))
    for rate, rtt in PATHS:
        cells = []
        for name in wanted:
            virtual, real = (found[engine, name, rate, rtt] for engine in ("kernel", "netns"))
            away = virtual / real - 1
            worst = max(worst, abs(away))
            cells.append(f"{virtual:.4g} / {real:.4g} ({away:+.1%})")
        print(f"| {rate} Mbit/s, {rtt} ms | {' | '.join(cells)} |")
    return int(worst > 0.03)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
