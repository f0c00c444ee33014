"""Trains and judges what ``explain`` says each change would give where others use the bottleneck.

    python experiments/train_shared.py measure CORPUS --paths 3000              # simulated paths
    python experiments/train_shared.py train CORPUS src/sawtooth/data/shared.json

``measure`` draws paths as ``explain_corpus.py`` does. On a third of those that others use, the explained transfer
begins after theirs. Of the paths that nobody else uses every fourth is measured, and counts four times. Each path is a
file with what both ends' captures show, and what every change gave. ``train`` prints how often intervals hold on paths
left out.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from explain_corpus import SIDES, drawn, each, port
from identify_training import _kept as kept_tree

from sawtooth import Scenario
from sawtooth.capture import read_capture
from sawtooth.capture.identify.classifier import MISSING
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.explain.gains import CHANGES, INSTEAD
from sawtooth.io.table_store import whole
from sawtooth.scenario import Span
from sawtooth.whatif import observe
from sawtooth.whatif.observation import CONTROLS, Observed
from sawtooth.whatif.shared import (
    FORMAT,
    LIKELY,
    MEASURES,
    QUANTILES,
    change_features,
    likely,
    related,
    seen,
)

FIRST = 1_000_000
"""Number of the first path: no other experiment uses these."""
OTHER_SEED = 1_000_000
LATER = 3
"""Of the paths that others use, one in this many: there the explained transfer begins after theirs."""
FOLDS = 3
STRANGE = 0.08
HOLDS = 0.05
"""Part of the transfers beyond either end of an interval."""
PLAIN = 4
"""Of the paths that nobody else uses, one in this many is measured, and counts this many times."""
LEAST = 0.1
"""A capture with a smaller probability of other traffic is never explained by what is learned here."""


def begun_later(case: dict[str, Any], number: int) -> float:
    """When the explained transfer begins, in s; others begin at 0."""
    rng = np.random.default_rng([36, number])
    if case["truth"]["cross"] == "none" or number % LATER != 1:
        return 0.0
    begin = round(rng.uniform(0.5, 4.0), 2)
    fields = case["scenario"]
    fields["flows"][0]["start"] = f"{begin} s"
    fields["duration"] = f"{Span.parse(fields['duration']).seconds + begin:.2f} s"
    return begin


def measure(task: tuple[int, str]) -> str:
    number, directory = task
    target = Path(directory) / f"{number:07}.pickle"
    if target.exists():
        return ""
    case = drawn(number)
    begin = begun_later(case, number)
    fields, truth = case["scenario"], case["truth"]
    try:
        with tempfile.TemporaryDirectory() as home:
            Sim(capture=Path(home)).run(Scenario(**fields))
            shown = {side: _seen(Path(home) / f"capture-{side}.pcap") for side in SIDES}
        case["seen"] = {side: one for side, one in shown.items() if one is not None}
        wanted = [(cc, cc) for cc in CONTROLS]
        ccs = {one.cc if one.cc in CONTROLS else INSTEAD for one in case["seen"].values()}
        wanted += [(change.name, cc) for change in CHANGES for cc in sorted(ccs)]
        if any(likely(one) >= LEAST for one in case["seen"].values()):
            case["gave"] = {one: _gave(fields, truth, begin, *one) for one in wanted}
    except SawtoothError as error:
        return f"{number}: {error}"
    part = target.with_suffix(".part")
    part.write_bytes(pickle.dumps(case))
    part.rename(target)
    return ""


def _seen(file: Path) -> Observed | None:
    """What one capture shows of the explained transfer; None if it shows no path."""
    connections = read_capture(file, 0).facts["connections"]
    at = min(range(len(connections)), key=lambda one: port(connections[one]))
    try:
        observed = observe(file, connection=str(at))
    except SawtoothError:
        return None
    return observed if likely(observed) > 0 else None


def _gave(fields: dict[str, Any], truth: dict[str, Any], begin: float, change: str, cc: str) -> tuple[float, float]:
    """Goodput since the first data, and the mean of the smoothed round trips."""
    flows = [fields["flows"][0] | {"cc": cc}, *fields["flows"][1:]]
    change_features = fields | {"flows": flows, "seed": fields["seed"] + OTHER_SEED}
    path = dict(fields["path"])
    made = next((one for one in CHANGES if one.name == change), None)
    if made is not None and "buffer" in change:
        path["queue"] = _larger(path["queue"])
    elif made is not None and "loss" in change:
        path["loss"] = _halved(path.get("loss", "0%"))
    found = Scenario(**change_features | {"path": path}).set(dict(made.fields) if made is not None else {})
    tables = Sim().run(found).tables
    lasted = Span.parse(fields["duration"]).seconds - begin - truth["rtt_s"]
    flows_, moments = whole(tables, "flows"), whole(tables, "tcp_info")
    own = moments["flow"] == 0
    trips = moments["srtt_s"][own]
    delivered = flows_["delivered_bytes"][flows_["flow"] == 0].sum()
    return float(delivered * 8 / lasted), float(trips.mean()) if trips.size else float("nan")


def _larger(queue: Any) -> Any:
    """Only a tail drop grows, as in what ``explain`` simulates."""
    return queue if isinstance(queue, dict) else f"{int(queue.split()[0]) * 4} packets"


def _halved(loss: Any) -> Any:
    if isinstance(loss, dict):
        return loss | {"mean": f"{float(loss['mean'].rstrip('%')) / 2:.6f}%"}
    return f"{float(loss.rstrip('%')) / 2:.6f}%"


@dataclass(frozen=True)
class Rows:
    """What is learned from: numbers, the logarithms of the true ratios, and of each row the path, a weight, a relation
    and a group for the tables."""

    values: np.ndarray
    truth: np.ndarray
    number: np.ndarray
    weight: np.ndarray
    relation: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, found: list[tuple[Any, ...]]) -> Rows:
        return cls(*(np.array(column) for column in zip(*found, strict=True)))


def rows(corpus: Path) -> dict[str, Rows]:
    """By measure. Each capture has a row for each change."""
    changes = tuple(one.name for one in CHANGES)
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in MEASURES}
    for file in sorted(corpus.glob("*.pickle")):
        case = pickle.loads(file.read_bytes())
        plain, later = case["truth"]["cross"] == "none", "start" in case["scenario"]["flows"][0]
        of, weight = int(file.stem), PLAIN if plain else 1
        for observed in case["seen"].values():
            if "gave" not in case or likely(observed) < LIKELY:
                continue
            shown = seen(observed)
            own = observed.cc if observed.cc in CONTROLS else INSTEAD
            for (change, cc), (bps, trip_s) in case["gave"].items():
                if (change in changes and cc != own) or not bps > 0:
                    continue
                values = np.concatenate([shown, change_features(observed, cc, change, changes)])
                gave = (math.log(bps / observed.goodput_bps), math.log(trip_s / observed.rtt_mean_s))
                kind = _group(observed.cc, change, cc, plain=plain, later=later)
                for name, one in zip(MEASURES, gave, strict=True):
                    found[name].append((values, one, of, weight, related(observed.cc, cc), kind))
    return {name: Rows.of(one) for name, one in found.items()}


def _group(own: str | None, change: str, cc: str, *, plain: bool, later: bool) -> tuple[str, str, str]:
    family = {None: "unknown", "bbr": "bbr", "bbr3": "bbr"}.get(own, "cubic, reno")
    new = ("bbr" if cc in ("bbr", "bbr3") else "cubic, reno") if change == cc else change
    return "nobody else" if plain else "others before it" if later else "others with it", family, new


def train(corpus: Path, target: Path) -> None:
    every = rows(corpus)
    with ProcessPoolExecutor(2) as pool:
        measures = dict(zip(every, pool.map(_measure, every.items()), strict=True))
    of = every[MEASURES[0]]
    shown = of.values[:, : -len(CONTROLS) - 1 - len(CHANGES)]
    shown = np.where(shown == MISSING, np.nan, shown)
    low, high = np.nanquantile(shown, 0.002, axis=0), np.nanquantile(shown, 0.998, axis=0)
    room = 0.1 * (high - low)
    kept = {
        "format": FORMAT,
        "made": {"paths": len(np.unique(of.number)), "rows": len(shown)},
        "strange": STRANGE,
        "changes": [one.name for one in CHANGES],
        "limits": [[float(f"{value:.4g}") for value in row] for row in (low - room, high + room)],
        "measures": measures,
    }
    target.write_text(json.dumps(kept, separators=(",", ":")) + "\n")
    print(kept["made"])


def _measure(task: tuple[str, Rows]) -> dict[str, Any]:
    """One measure's regressions, and their margins from paths left out. What is printed of a fold has the margins of
    the other folds."""
    name, of = task
    # Whole blocks: every fold has paths of each kind, which go by the number's remainder.
    fold = of.number // (LATER * PLAIN) % FOLDS
    told = np.zeros((len(of.truth), len(QUANTILES)))
    for left in range(FOLDS):
        unseen = fold == left
        for at, part in enumerate(QUANTILES):
            grown = _grown(of.values[~unseen], of.truth[~unseen], of.weight[~unseen], part)
            told[unseen, at] = grown.predict(of.values[unseen])
    told.sort(axis=1)
    margins = {}
    shown = told.copy()
    for relation in np.unique(of.relation).tolist():
        those = of.relation == relation
        margins[relation] = _margins(of, told, those)
        for left in range(FOLDS):
            below, above = _margins(of, told, those & (fold != left))
            here = those & (fold == left)
            shown[here, 0] = np.minimum(told[here, 1], told[here, 0] - below)
            shown[here, 2] = np.maximum(told[here, 1], told[here, 2] + above)
    _print(name, of.truth, shown, of.group)
    forests = [_stored(_grown(of.values, of.truth, of.weight, part)) for part in QUANTILES]
    return {"margins": margins, "forests": forests}


def _grown(x: np.ndarray, y: np.ndarray, weight: np.ndarray, part: float) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    made = HistGradientBoostingRegressor(
        loss="quantile",
        quantile=part,
        max_iter=120,
        learning_rate=0.06,
        max_leaf_nodes=12,
        min_samples_leaf=80,
        max_features=0.3,
        random_state=35,
    )
    return made.fit(x, y, sample_weight=weight)


def _stored(grown: Any) -> dict[str, Any]:
    base = float(grown._baseline_prediction.ravel()[0])
    return {"base": round(base, 4), "trees": [kept_tree(one[0].nodes, 1.0) for one in grown._predictors]}


def _margins(of: Rows, told: np.ndarray, those: np.ndarray) -> tuple[float, float]:
    """What the low and the high end need on those rows."""
    weight = of.weight[those]
    below, above = _margin((told[:, 0] - of.truth)[those], weight), _margin((of.truth - told[:, 2])[those], weight)
    return round(below, 4), round(above, 4)


def _margin(beyond: np.ndarray, weight: np.ndarray) -> float:
    """What must be added to an end so that the part ``HOLDS`` of the truths is beyond it."""
    order = np.argsort(beyond)
    total = np.cumsum(weight[order])
    return float(beyond[order][np.searchsorted(total, (1 - HOLDS) * total[-1])])


def _print(name: str, truth: np.ndarray, told: np.ndarray, group: np.ndarray) -> None:
    print(f"\n| {name} | observed | predicted | n | median error | 90% interval holds | its width |")
    print(f"|{'---|' * 7}")
    inside = (told[:, 0] <= truth) & (truth <= told[:, 2])
    groups = [tuple(one) for one in np.unique(group, axis=0)]
    for one in [*sorted({(kind, "all", "all") for kind, _, _ in groups}), *groups]:
        of = [group[:, at] == value for at, value in enumerate(one) if value != "all"]
        rows = np.logical_and.reduce(of)
        error, width = np.abs(truth - told[:, 1])[rows], (told[:, 2] - told[:, 0])[rows]
        print(
            f"| {' | '.join(one)} | {rows.sum()} | {np.median(error):.1%} | {inside[rows].mean():.0%} "
            f"| {np.median(width):.0%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "train"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("target", type=Path, nargs="?", help="the file that train writes")
    parser.add_argument("--paths", type=int, default=3000)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.what == "train":
        train(options.directory, options.target)
        return
    options.directory.mkdir(parents=True, exist_ok=True)
    numbers = range(options.first, options.first + options.paths)
    kept = [one for one in numbers if one % PLAIN == 0 or drawn(one)["truth"]["cross"] != "none"]
    tasks = [(one, str(options.directory)) for one in kept]
    each(measure, tasks, options.workers)
    print(json.dumps({"paths": len(list(options.directory.glob("*.pickle")))}))


if __name__ == "__main__":
    main()
