"""The same study elsewhere, at once, and with a clock that jumps: the same bytes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tools.trials.command import STUDY, finished, tables


def determinism(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """The same study with other numbers of workers."""
    study = home / "study.toml"
    study.write_text(STUDY)
    held: Counter[str] = Counter()
    first = ""
    for number in range(times):
        jobs = rng.choice((1, 2, 3, 5))
        finished(["run", study, "--quiet", "--jobs", jobs, "--out", home / f"out-{number}"])
        first = first or tables(home / f"out-{number}")
        held["same bytes" if tables(home / f"out-{number}") == first else "OTHER BYTES"] += 1
    return held
