"""Trials of docs/reliability.md: ``python -m experiments.trials TRIAL [--times N] [--seed S]``.

Each begins with what a user would do, spoils it at random (the same seed spoils in the same way, but for what the clock
decides), and counts what held. ``full-disk`` and ``links`` need root.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from experiments.trials.bombs import bombs
from experiments.trials.captures import damage
from experiments.trials.disks import full_disk
from experiments.trials.escapes import escapes
from experiments.trials.forms import forms
from experiments.trials.links import links
from experiments.trials.modules import modules
from experiments.trials.phases import phases
from experiments.trials.recordings import recordings
from experiments.trials.sameness import at_once, clocks, determinism, elsewhere
from experiments.trials.stops import cluster_kills, kills, suspensions

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
    """Prints the counts."""
    parser = argparse.ArgumentParser(prog="python -m experiments.trials", description=__doc__)
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
