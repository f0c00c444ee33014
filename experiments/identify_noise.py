"""What ``sawtooth.capture.identify.replay_fit.NOISE`` is from: how the core's controls replay the kernel's captures.

    python experiments/identify_noise.py DIRECTORY [--labelled DIR] [--jobs N]

DIRECTORY is a corpus of train_identify.py; of its first 93 paths every third is taken. No labelled trace has a part in
the noise: of those it is only said what fits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from identify_training import SHORTEST_S, segments, sender_views, views

from sawtooth.capture.csv import read_csv
from sawtooth.capture.identify.classifier import SAME
from sawtooth.capture.identify.replay_fit import NOISE, Noise, ReplayedRounds, compare, likeliest
from sawtooth.capture.identify.trace import Segments, TooLittle, trace
from sawtooth.io.parallel import results
from sawtooth.scenario import LINUX_CONTROLS

VIEWS = ("sender", "sender, part", "sender, no start")
PATHS, EVERY = 93, 3
SCALES, ANCHORS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.14, 0.2), (0.05, 0.1, 0.2, 0.4)
WORST = -6.0
"""Lower limit of the log-likelihood per round, so that a trace whose replay fails counts no more than this."""
OWN = 0.95
"""Share of a congestion control's own traces that must fit."""

Rows = list[tuple[str, ReplayedRounds]]


def of_path(file: Path) -> Rows:
    with np.load(file) as stored:
        about = json.loads(str(stored["about"]))
        columns = {name: stored[name] for name in stored.files if name != "about"}
    found: Rows = []
    for flow, control in enumerate(about["controls"]):
        try:
            seen = {view: segments(columns, view, flow) for view in ("near", "far")}
        except IndexError:
            continue
        if seen["near"].t_s[-1] - seen["near"].t_s[0] >= SHORTEST_S + 2:
            found += of_views(control, views(seen, about["number"]))
    return found


def of_trace(task: tuple[Path, int]) -> Rows:
    file, link = task
    return of_views(file.stem, sender_views(read_csv(file), np.random.default_rng(link)))


def of_views(control: str, made: dict[str, Segments]) -> Rows:
    return [(SAME.get(control, control), one) for one in shown(made)]


def shown(made: dict[str, Segments]) -> Iterator[ReplayedRounds]:
    for view in VIEWS:
        try:
            found = compare(trace(made[view]))
        except TooLittle:
            continue
        if found is not None and len(found.flight) >= 5:
            yield found


def measured(rows: Rows, control: str) -> Noise:
    """The scale and anchor with the greatest likelihood for a control's own traces, and the value that 95% of them
    reach."""
    own = [seen for name, seen in rows if name == control]
    paces = control.startswith("bbr")

    def mean(noise: Noise) -> float:
        return float(np.mean([max(likeliest(seen, control, noise)[0], WORST) for seen in own]))

    tried = [Noise(scale, anchor, 0.0) for scale, anchor in product(SCALES, (0.0,) if paces else ANCHORS)]
    best = max(tried, key=mean)
    least = float(np.quantile([short(seen, control, best) for seen in own], 1 - OWN))
    return replace(best, least=round(least, 2))


def short(seen: ReplayedRounds, control: str, noise: Noise) -> float:
    likely, right, _ = likeliest(seen, control, noise)
    return likely - right


def table(title: str, rows: Rows, noise: dict[str, Noise]) -> None:
    names = np.array([name for name, _ in rows])
    fits = {
        control: np.array([short(seen, control, one) >= one.least for _, seen in rows])
        for control, one in noise.items()
    }
    none = ~np.any(list(fits.values()), axis=0)
    four = np.isin(names, list(noise))
    print(f"{title}: {len(rows)} traces")
    print(f"  none of them: {none[four].mean():.1%} of the four, {none[~four].mean():.1%} of others")
    for control, fit in fits.items():
        own = names == control
        kept = f"{fit[own].mean():.0%} of its own" if own.any() else "none of its own"
        print(f"  {control} fits {kept}, {fit[~own].mean():.0%} of others")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--labelled", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    numbered = [(int(file.stem.split("-")[1]), file) for file in sorted(asked.directory.glob("path-*.npz"))]
    files = [file for number, file in numbered if number < PATHS and number % EVERY == 0]
    rows = [row for found in results(of_path, files, jobs=asked.jobs) for row in found]
    noise = {control: measured(rows, control) for control in NOISE}
    for control, one in noise.items():
        print(control, one)
    table("kernel", rows, noise)
    if asked.labelled is not None:
        named = [file for file in sorted(asked.labelled.rglob("*.csv")) if file.stem in LINUX_CONTROLS]
        tasks = [(file, number) for number, file in enumerate(named)]
        table("labelled", [row for found in results(of_trace, tasks, jobs=asked.jobs) for row in found], noise)


if __name__ == "__main__":
    # Import by name: worker processes import the functions that they call, never the started script.
    import identify_noise

    identify_noise.main()
