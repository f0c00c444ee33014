"""What a study adds to a short run: CPU time of each part, per point, in a table.

    python experiments/short_runs.py [--points 200]

Points are runs of 10 ms on ``path``, made one after the other in this process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sawtooth.engines.sim import Sim
from sawtooth.run import Run
from sawtooth.study import Study
from sawtooth.study.result import Place, row_of


def study(points: int) -> dict[str, Any]:
    return {
        "name": "short",
        "scenario": {"duration": "10 ms", "interval": "10 ms", "path": {"rate": "10 Mbit/s", "queue": "1 bdp"}},
        "vary": {"path.rtt": [f"{1 + number / 100:.2f} ms" for number in range(points)]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    count, engine = parser.parse_args().points, Sim()

    def timed(part: str, of: Callable[[int], Any]) -> list[Any]:
        of(0)
        begun = time.process_time()
        made = [of(number) for number in range(count)]
        print(f"| {part} | {(time.process_time() - begun) / count * 1e3:.1f} |")
        return made

    begun = time.process_time()
    points = Study.from_dict(study(count)).points(seeds=[1])
    print(f"| part | ms |\n|---|---|\n| expanding the point | {(time.process_time() - begun) / count * 1e3:.1f} |")
    runs = timed("the simulation, with limits and warnings", lambda at: engine.run(points[at].scenario))
    with tempfile.TemporaryDirectory() as home:
        kept = [Path(home) / str(number) for number in range(count + 1)]
        order = iter(kept)
        timed("saving the run", lambda at: runs[at].save(next(order)))
        loaded = timed("reading it again", lambda at: Run.load(kept[at]))
        timed("its row of statistics", lambda at: row_of("sim", Place("", {"path.rtt": at}, 1), loaded[at]))


if __name__ == "__main__":
    main()
