"""Digests of the simulator's tables over a grid of scenarios, to tell whether a change of the code changes any number.

    python tools/digests.py [--grid FILE] [--every N] > before
    python tools/digests.py [--grid FILE] [--every N] --against before

A line a point: SHA-256 of all its tables, and its name. Status 1 if a digest differs from before.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import pandas as pd

from sawtooth.compare.fidelity.grid import Grid
from sawtooth.engines import get
from sawtooth.scenario import Scenario

GRID = Path(__file__).resolve().parents[1] / "fidelity" / "grid.toml"

LATER = {
    "tcp_info": ["delivered_ce_segments", "delivery_bps"],
    "intervals": ["window_probes"],
    "queues": [
        *("early_drops", "marks", "delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s"),
        *("overlimits", "new_flow_count", "new_flows", "old_flows"),
    ],
    "links": ["policed"],
    "flows": ["asked_bytes", "window_probes"],
}
"""Columns added after the first digests were stored. For scenarios without the new features they contain no new
information, so they are left out."""


def digest(scenario: Scenario) -> str:
    run, found = get("sim").run(scenario), hashlib.sha256()
    for name in sorted(run.tables):
        table = run.tables[name].drop(columns=LATER.get(name, []))
        found.update(f"{name} {list(table.columns)} {len(table)} ".encode())
        found.update(pd.util.hash_pandas_object(table, index=False).to_numpy().tobytes())
    return found.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=Path, default=GRID)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th point only")
    parser.add_argument("--against", type=Path, metavar="FILE", help="what this printed before")
    given = parser.parse_args()
    lines = given.against.read_text().splitlines() if given.against else []
    before = {name: digest for digest, name in (line.split() for line in lines)}
    tried = changed = 0
    for point in Grid.load(given.grid).points()[:: given.every]:
        tried += 1
        now = digest(point.scenario)
        if not before:
            print(now, point.name, flush=True)
        elif before.get(point.name) != now:
            changed += 1
            print(f"changed: {point.name}", flush=True)
    if before:
        print(f"{changed} of {tried} changed")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
