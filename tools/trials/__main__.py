"""Trials of docs/reliability.md: ``python -m tools.trials TRIAL [--times N] [--seed S]``.

Each begins with what a user would do, spoils it at random (the same seed spoils in the same way, but for what the clock
decides), and counts what held. ``full-disk`` and ``links`` need root.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from tools.trials.bombs import bombs
from tools.trials.captures import damage
from tools.trials.disks import full_disk
from tools.trials.escapes import escapes
from tools.trials.forms import forms
from tools.trials.links import links
from tools.trials.modules import modules
from tools.trials.phases import phases
from tools.trials.recordings import recordings
from tools.trials.sameness import at_once, clocks, determinism, elsewhere
from tools.trials.stops import cluster_kills, kills, suspensions

TRIALS = {
    "kills": kills,
    "cluster-kills": cluster_kills,
    "phases": phases,
    "bombs": bombs,
    "escapes": escapes,
    "forms": forms,
    "links": links,
    "modules": modules,
    "full-disk": full_disk,
    "damage": damage,
    "recordings": recordings,
    "determinism": determinism,
    "elsewhere": elsewhere,
    "clocks": clocks,
    "at-once": at_once,
    "suspensions": suspensions,
}


def main() -> None:
    """Prints what was counted."""
    parser = argparse.ArgumentParser(prog="python -m tools.trials", description=__doc__)
    parser.add_argument("trial", choices=list(TRIALS))
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sawtooth-trial-") as directory:
        held = TRIALS[given.trial](given.times, random.Random(given.seed), Path(directory))
    print(f"{given.trial}, {given.times} times, seed {given.seed}")
    for what, count in held.items():
        print(f"  {count:6} {what}")


if __name__ == "__main__":
    main()
