"""Training and evaluation of the classifier for ``sawtooth capture --identify``, called by train_identify.py."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.capture.csv import read_csv
from sawtooth.capture.identify.classifier import (
    FORMAT,
    MISSING,
    SAME,
    SHORTEST_S,
    SIZES,
    calibrated,
    path_class,
    vector,
)
from sawtooth.capture.identify.features import features
from sawtooth.capture.identify.trace import Segments, TooLittle, trace
from sawtooth.io.parallel import results
from sawtooth.scenario import LINUX_CONTROLS

VIEWS_VERSION = 4
"""Version of ``views``. Stored features of another version are computed again."""
FIRST_LINK = 10**6
"""From this number on, numbers stand for links of labelled traces."""
LABELLED_WEIGHT = 4.0
"""Weight of a labelled trace: the six links from the field together count a third as much as the simulated paths."""
FOLDS = 6
"""Number of folds; without labelled links, which otherwise are the folds."""
TEMPERATURES = np.arange(0.3, 3.01, 0.05)
ROUNDS, LEAVES, RATE, TRIED = 40, 12, 0.2, 0.3
"""Boosting parameters: trees per class, leaves per tree, learning rate, share of features tried at a split."""
COMMON = ("reno", "cubic", "bbr")
"""The congestion controls that most senders use."""
LEVEL, WIDEST = 0.8, 5
"""Least total probability of the controls in an answer, and their maximum number."""
STRANGE = 0.08


@dataclass(frozen=True)
class Samples:
    """One row per view of a trace: features, the congestion control, the path's number, the view."""

    x: np.ndarray
    y: np.ndarray
    path: np.ndarray
    view: np.ndarray
    names: tuple[str, ...]
    kinds: np.ndarray
    """The kind of path of each row."""


def samples(directory: Path, jobs: int) -> Samples:
    """The samples of all paths."""
    files = sorted(directory.glob("path-*.npz"))
    return _samples([row for found in results(_of_path, files, jobs=jobs) for row in found])


def labelled_samples(directory: Path, jobs: int) -> tuple[Samples, dict[str, int]]:
    """Samples of labelled traces LINK/CONTROL.csv, and the links' numbers, which do not overlap those of paths."""
    files = [file for file in sorted(directory.rglob("*.csv")) if file.stem in LINUX_CONTROLS]
    links = {link: FIRST_LINK + number for number, link in enumerate(sorted({file.parent.name for file in files}))}
    tasks = [(file, links[file.parent.name]) for file in files]
    return _samples([row for found in results(_of_trace, tasks, jobs=jobs) for row in found]), links


def joined(one: Samples, other: Samples) -> Samples:
    columns = {
        name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("x", "y", "path", "view", "kinds")
    }
    return Samples(names=one.names, **columns)


def _samples(rows: list[tuple[str, str, int, dict[str, float]]]) -> Samples:
    return Samples(
        np.array([vector(row[3]) for row in rows]),
        np.array([SAME.get(row[0], row[0]) for row in rows]),
        np.array([row[2] for row in rows]),
        np.array([row[1] for row in rows]),
        tuple(rows[0][3]),
        np.array([path_class(row[3]) for row in rows]),
    )


def _of_trace(task: tuple[Path, int]) -> list[tuple[str, str, int, dict[str, float]]]:
    """Features of every view of a labelled trace at the sender."""
    file, link = task
    found = []
    for view, one in sender_views(read_csv(file), np.random.default_rng(link)).items():
        try:
            found.append((file.stem, view, link, features(trace(one))))
        except TooLittle:
            continue
    return found


def _of_path(file: Path) -> list[tuple[str, str, int, dict[str, float]]]:
    """Features of every view of a path's traces. Stored beside the path until the code that computes them changes."""
    code = Path(features.__code__.co_filename).parent
    sources = [code / f"{name}.py" for name in ("trace", "rounds", "laws", "features")]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]
    kept = file.with_suffix(f".features-{digest}-{VIEWS_VERSION}.json")
    if kept.exists():
        return [tuple(row) for row in json.loads(kept.read_text())]
    found = []
    with np.load(file) as stored:
        about = json.loads(str(stored["about"]))
        columns = {name: stored[name] for name in stored.files if name != "about"}
    for flow, control in enumerate(about["controls"]):
        try:
            seen = {view: segments(columns, view, flow) for view in ("near", "far")}
        except IndexError:
            # A client had the same port as one of the receivers, which happens once in a thousand.
            continue
        if seen["near"].t_s[-1] - seen["near"].t_s[0] < SHORTEST_S + 2:
            continue
        for view, one in views(seen, about["number"]).items():
            try:
                found.append((control, view, about["number"], features(trace(one))))
            except TooLittle:
                continue
    kept.write_text(json.dumps(found))
    return found


def views(seen: dict[str, Segments], number: int) -> dict[str, Segments]:
    """Variants of a trace as others may capture it: without timestamps, only in part, without the handshake or the
    start, behind a link that sends in bursts, or from a receiver that merges segments."""
    drawn = np.random.default_rng(number)
    made = sender_views(seen["near"].without_timestamps(), drawn)
    far = seen["far"]
    # Of the rarer variants, use one per path.
    if number % 3 == 0:
        made["sender, bursts"] = bursts(made["sender"], float(drawn.uniform(0.1, 0.5)))
    else:
        lasts = float(far.t_s[-1] - far.t_s[0])
        name, whole = ("receiver", True) if number % 3 == 1 else ("receiver, no start", False)
        made[name] = far if whole else far.part(_since(lasts, drawn), lasts)
    return made


def sender_views(bare: Segments, drawn: np.random.Generator) -> dict[str, Segments]:
    """Variants of a trace that was captured at the sender, without timestamps."""
    lasts = float(bare.t_s[-1] - bare.t_s[0])

    def some() -> Segments:
        return thinned(bare, float(1.5 * 20 ** drawn.uniform(0, 1)), drawn)

    return {
        "sender": bare,
        "sender, thinned": without_first(some(), int(drawn.integers(0, 4))),
        "sender, part": (bare if drawn.random() < 0.3 else some()).part(0.0, float(drawn.uniform(11, lasts))),
        "sender, no start": (bare if drawn.random() < 0.3 else some()).part(_since(lasts, drawn), lasts),
    }


def _since(lasts: float, drawn: np.random.Generator) -> float:
    return min(float(drawn.uniform(0.03, 0.4)) * lasts, lasts - 10.5)


def without_first(one: Segments, packets: int) -> Segments:
    return Segments(**{name: values[packets:] for name, values in vars(one).items()})


TOGETHER_S = 1e-3


def thinned(one: Segments, stretch: float, drawn: np.random.Generator) -> Segments:
    """As if the receiver merged segments (receive offload): among acknowledgements at most ``TOGETHER_S`` apart, about
    one in ``stretch`` remains, and the last. Data that the removed ones released follows the remaining one."""
    # Only without timestamps: an echo would otherwise refer to a removed segment.
    burst = np.concatenate([[0], np.cumsum(np.diff(one.t_s) > TOGETHER_S)])
    ack = one.direction != int(one.length[one.direction == 1].sum() > one.length[one.direction == 0].sum())
    ack &= (one.flags & 2 == 0) & (one.length == 0)
    position = np.arange(len(ack))
    if not ack.any():
        return one
    acks = position[ack]
    last = np.concatenate([burst[acks][1:] != burst[acks][:-1], [True]])
    kept = last | (drawn.random(len(acks)) < 1 / stretch)
    following = acks[kept][np.searchsorted(acks[kept], acks)]
    before = np.cumsum(ack) - 1
    own = (before >= 0) & (burst[acks[np.maximum(before, 0)]] == burst) & ~ack
    key = np.where(own, following[np.maximum(before, 0)] + 0.5, position)
    gone = np.zeros(len(ack), dtype=bool)
    gone[acks[~kept]] = True
    remain = position[~gone]
    order = remain[np.argsort(key[remain], kind="stable")]
    moved = Segments(**{name: values[order] for name, values in vars(one).items()})
    return replace(moved, t_s=one.t_s[remain])


def bursts(one: Segments, share: float) -> Segments:
    """As if acknowledgements arrived in bursts, ``share`` of the handshake's RTT apart, and released data in bursts."""
    slot_s = share * float(one.t_s[np.flatnonzero(one.direction == 1)[0]] - one.t_s[0])
    together = one.t_s[0] + np.ceil((one.t_s - one.t_s[0]) / slot_s) * slot_s
    # Packets of a burst still follow each other.
    return replace(one, t_s=together + np.arange(len(together)) * 1e-6)


def segments(columns: dict[str, np.ndarray], view: str, flow: int) -> Segments:
    """One flow of a path's file, with relative sequence numbers."""
    own = columns[f"{view}_flow"] == flow
    raw = {
        name.removeprefix(f"{view}_"): values[own].astype(np.int64)
        for name, values in columns.items()
        if name.startswith(view)
    }
    back = raw["direction"] == 1
    first = [int(raw["seq"][raw["direction"] == way][0]) for way in (0, 1)]
    acknowledges = raw["flags"] & 16 > 0
    return Segments(
        t_s=raw["t_ns"] / 1e9,
        direction=raw["direction"],
        seq=(raw["seq"] - np.where(back, first[1], first[0])) % 2**32,
        length=raw["length"],
        ack=np.where(acknowledges, (raw["ack"] - np.where(back, first[0], first[1])) % 2**32, 0),
        flags=raw["flags"],
        tsval=raw["tsval"],
        tsecr=raw["tsecr"],
        window=np.zeros_like(raw["seq"]),
    )


def train(
    own: Samples, provenance: dict[str, Any], jobs: int, labelled: Samples | None = None
) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """The classifier as JSON values; and for each labelled link one that has learned and calibrated without it.
    Reproducible: every seed is fixed.

    Links are the folds, and every so many'th path goes with one. The shipped classifier is the mean of forests that
    each lack one fold; a fold's answers in the validation are those of the forests that lack it and one other. A
    temperature is of what single forests say of a fold that they lack; a validation's lacks the fold it is for, too.
    """
    every = own if labelled is None else joined(own, labelled)
    classes = np.unique(every.y)
    truth = np.searchsorted(classes, every.y)
    field = every.path >= FIRST_LINK
    folds = int(every.path[field].max()) - FIRST_LINK + 1 if field.any() else FOLDS
    fold = np.where(field, every.path - FIRST_LINK, every.path % folds)
    calibrates = field if field.any() else ~field
    lacks = [frozenset(one) for size in (1, 2) for one in combinations(range(folds), size)]
    without = [np.isin(fold, list(one)) for one in lacks]
    grown = dict(zip(lacks, results(_grown, [_known(every, ~unseen) for unseen in without], jobs=jobs), strict=True))
    logits = {
        one: np.where(unseen[:, None], grown[one].decision_function(every.x), np.nan)
        for one, unseen in zip(lacks, without, strict=True)
    }

    def temperature(lacking: frozenset[int]) -> float:
        """The calibration temperature: from forests trained without these folds and one more, evaluated on that one."""
        rows = calibrates & ~np.isin(fold, list(lacking))
        told = np.full((len(fold), len(classes)), np.nan)
        for other in set(range(folds)) - lacking:
            told[fold == other] = logits[lacking | {other}][fold == other]
        return float(min(TEMPERATURES, key=lambda one: _surprise(calibrated(told[rows], one), truth[rows])))

    blind, left_out = np.full((len(fold), len(classes)), np.nan), {}
    for one in range(folds):
        pairs = [frozenset({one, other}) for other in range(folds) if other != one]
        cold = temperature(frozenset({one}))
        rows = fold == one
        blind[rows] = calibrated(np.mean([logits[pair][rows] for pair in pairs], axis=0), cold)
        left_out[one] = kept_of([grown[pair] for pair in pairs], every, ~rows, cold)
    told = {
        "format": FORMAT,
        "made": provenance | {"paths": len(np.unique(every.path)), "traces": len(every.y)},
        "validation": {
            "temperatures": [left_out[one]["temperature"] for one in range(folds)],
            "rows": [
                "traces",
                "answered",
                "by name",
                "by group",
                *(f"of three {kind}" for kind in ("answered", *_RIGHT)),
                "p > 0.9",
            ],
        }
        | counted(every, blind, truth),
    }
    singles = [grown[frozenset({one})] for one in range(folds)]
    kept = told | kept_of(singles, every, slice(None), temperature(frozenset()))
    return kept, left_out


def _known(every: Samples, rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weight = np.where(every.path[rows] >= FIRST_LINK, LABELLED_WEIGHT, 1.0)
    return every.x[rows], every.y[rows], weight


def kept_of(forests: list[Any], every: Samples, known: Any, temperature: float) -> dict[str, Any]:
    """The stored form of a classifier: the mean of the forests, which were trained on ``known`` rows."""
    shown = np.where(every.x[known] == MISSING, np.nan, every.x[known])
    low, high = np.nanquantile(shown, 0.001, axis=0), np.nanquantile(shown, 0.999, axis=0)
    room = 0.1 * (high - low)
    base = np.mean([forest._baseline_prediction.ravel() for forest in forests], axis=0)
    return {
        "format": FORMAT,
        "classes": np.unique(every.y).tolist(),
        "features": list(every.names),
        "temperature": round(temperature, 2),
        "level": LEVEL,
        "widest": WIDEST,
        "strange": STRANGE,
        "limits": [[float(f"{value:.4g}") for value in row] for row in (low - room, high + room)],
        "base": [round(float(value), 4) for value in base],
        "trees": [
            _kept(tree.nodes, 1 / len(forests)) for forest in forests for one in forest._predictors for tree in one
        ],
    }


def _grown(known: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Any:
    """Train a forest. ``known``: features, congestion controls, weights."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        max_features=TRIED,
        min_samples_leaf=10,
        max_bins=63,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=1,
    ).fit(*known)


def _surprise(probabilities: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(probabilities[np.arange(len(truth)), truth]).mean())


def _kept(nodes: Any, share: float) -> dict[str, Any]:
    """A tree of scikit-learn with its nodes renumbered in preorder (scikit-learn numbers them in order of growth); its
    values are multiplied by ``share``."""
    feature: list[int] = []
    threshold: list[float] = []
    value: list[float] = []

    def add(node: int) -> None:
        if nodes["is_leaf"][node]:
            feature.append(-1)
            value.append(float(f"{nodes['value'][node] * share:.3g}"))
            return
        feature.append(int(nodes["feature_idx"][node]))
        threshold.append(float(f"{nodes['num_threshold'][node]:.6g}"))
        add(int(nodes["left"][node]))
        add(int(nodes["right"][node]))

    add(0)
    return {"feature": feature, "threshold": threshold, "value": value}


_RIGHT = ("by name", "by group", "by group, large windows")


def counted(every: Samples, shares: np.ndarray, truth: np.ndarray) -> dict[str, list[str]]:
    """For each view, separately for paths and labelled links: numbers of traces, of answers, and of correct answers,
    for all controls and for reno, cubic and bbr."""
    order = np.argsort(-shares, axis=1)
    few = (np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1) < LEVEL).sum(axis=1) + 1
    ranked = np.take_along_axis(shares, order, axis=1)
    sure = np.cumsum(ranked, axis=1)[np.arange(len(few)), few - 1] > 0.9
    answered, named = few <= WIDEST, order[:, 0] == truth
    grouped = (order == truth[:, None]).argmax(axis=1) < few
    three, large = np.isin(every.y, COMMON), np.char.endswith(every.kinds.astype(str), f"{SIZES[2]} windows")
    field = every.path >= FIRST_LINK
    found = {}
    for title, rows in [("kernel, all views", ~field), ("links of others, all views", field)] + [
        (f"{'links of others' if others else 'kernel'}, {view}", (field == others) & (every.view == view))
        for others in (False, True)
        for view in np.unique(every.view[field == others])
    ]:
        told, common = rows & answered, rows & answered & three
        found[title] = [
            str(int(rows.sum())),
            _of(answered, rows),
            _of(named, told),
            _of(grouped, told),
            _of(answered, rows & three),
            _of(named, common),
            _of(grouped, common),
            _of(grouped, common & large),
            f"{int(grouped[told & sure].sum())} of {int((told & sure).sum())}",
        ]
    return found


def _of(right: np.ndarray, rows: np.ndarray) -> str:
    return f"{right[rows].mean():.1%}" if rows.any() else "–"
