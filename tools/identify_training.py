"""Training and evaluation of the classifier behind ``sawtooth capture --identify``: what train_identify.py calls."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.capture.identify.classifier import (
    FORMAT,
    MISSING,
    SAME,
    SIZES,
    Identification,
    calibrated,
    path_class,
    vector,
)
from sawtooth.capture.identify.features import features
from sawtooth.capture.identify.trace import Segments, TooLittle, trace
from sawtooth.work import results

VIEWS_VERSION = 2
"""Of ``views``: features that were kept of another one are made anew."""
HELD_OUT = 5
"""Of so many paths one is for the test: its number leaves the remainder 4."""
ROUNDS, LEAVES, RATE, TRIED = 150, 12, 0.1, 0.3
"""Of boosting: trees a class, leaves a tree, what a tree adds of its answer, share of features tried at a split."""
COMMON, COMMONER = ("reno", "cubic", "bbr"), 3.0
"""What most senders use, and how much likelier than each other control it is taken to be before a trace is seen."""
CONFUSED = 0.15
"""Groups of controls of which more than this share is taken for each other, averaged over both, become one."""
DOUBT, STRANGE = 0.25, 0.08


@dataclass(frozen=True)
class Samples:
    """One row a trace as seen: features, what sent it, the path's number, the view."""

    x: np.ndarray
    y: np.ndarray
    path: np.ndarray
    view: np.ndarray
    names: tuple[str, ...]
    kinds: np.ndarray
    """Of each, the class of path."""


def samples(directory: Path, jobs: int) -> Samples:
    """Of the paths that are not held out."""
    files = [file for file in sorted(directory.glob("path-*.npz")) if not held_out(int(file.stem.split("-")[1]))]
    rows = [row for found in results(_of_path, files, jobs=jobs) for row in found]
    names = tuple(rows[0][3])
    return Samples(
        np.array([vector(row[3]) for row in rows]),
        np.array([SAME.get(row[0], row[0]) for row in rows]),
        np.array([row[2] for row in rows]),
        np.array([row[1] for row in rows]),
        names,
        np.array([path_class(row[3]) for row in rows]),
    )


def held_out(number: int) -> bool:
    return number % HELD_OUT == HELD_OUT - 1


def _of_path(file: Path) -> list[tuple[str, str, int, dict[str, float]]]:
    """Features of every view of a path's traces. Kept beside the path until the code that makes them changes."""
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
            # A client's port was one of the receivers': seen once in a thousand.
            continue
        for view, one in views(seen, about["number"]).items():
            try:
                found.append((control, view, about["number"], features(trace(one))))
            except TooLittle:
                continue
    kept.write_text(json.dumps(found))
    return found


def views(seen: dict[str, Segments], number: int) -> dict[str, Segments]:
    """What others may have captured: without timestamps, a part only, without the start, behind a link with bursts."""
    drawn = np.random.default_rng(number)
    lasts = float(seen["near"].t_s[-1] - seen["near"].t_s[0])
    bare = seen["near"].without_timestamps()
    return {
        "sender": bare,
        "sender, part": bare.part(0.0, float(drawn.uniform(11, max(11.5, lasts)))),
        "sender, bursts": bursts(bare, float(drawn.uniform(0.1, 0.5))),
        "receiver": seen["far"],
        "receiver, no start": seen["far"].part(min(float(drawn.uniform(0.1, 0.4)) * lasts, lasts - 10.5), lasts),
    }


def bursts(one: Segments, share: float) -> Segments:
    """As if acknowledgements came together, ``share`` of the handshake's round trip apart, and clocked data out."""
    slot_s = share * float(one.t_s[np.flatnonzero(one.direction == 1)[0]] - one.t_s[0])
    together = one.t_s[0] + np.ceil((one.t_s - one.t_s[0]) / slot_s) * slot_s
    # Packets of a burst are still one after the other.
    return replace(one, t_s=together + np.arange(len(together)) * 1e-6)


def segments(columns: dict[str, np.ndarray], view: str, flow: int) -> Segments:
    """One flow of a path's file, with relative numbers."""
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


def train(own: Samples, provenance: dict[str, Any], jobs: int) -> dict[str, Any]:
    """The classifier as JSON values. Reproducible: every seed is fixed."""
    from sklearn.model_selection import GroupKFold

    classes = np.unique(own.y)
    blind = np.zeros((len(own.y), len(classes)))
    folds = list(GroupKFold(4).split(own.x, own.y, own.path))
    forest, *grown = results(_grown, [(own.x, own.y), *((own.x[known], own.y[known]) for known, _ in folds)], jobs=jobs)
    for (_, unseen), one in zip(folds, grown, strict=True):
        blind[unseen] = one.decision_function(own.x[unseen])
    truth = np.searchsorted(classes, own.y)
    temperature = min(np.arange(0.3, 2.01, 0.05), key=lambda one: _surprise(calibrated(blind, one), truth))
    shown = np.where(own.x == MISSING, np.nan, own.x)
    low, high = np.nanquantile(shown, 0.001, axis=0), np.nanquantile(shown, 0.999, axis=0)
    room = 0.1 * (high - low)
    prior = np.log(np.where(np.isin(classes, COMMON), COMMONER, 1.0)) * temperature
    guessed = classes[(blind + prior).argmax(axis=1)]
    right, common = guessed == own.y, np.isin(own.y, COMMON)
    return {
        "format": FORMAT,
        "made": provenance | {"paths": len(np.unique(own.path)), "traces": len(own.y)},
        "validation": {"all": round(float(right.mean()), 3), "common": round(float(right[common].mean()), 3)},
        "classes": classes.tolist(),
        "features": list(own.names),
        "temperature": round(float(temperature), 2),
        "doubt": DOUBT,
        "strange": STRANGE,
        "groups": {kind: _groups(classes, own.y, guessed, own.kinds == kind) for kind in KINDS},
        "limits": [[float(f"{value:.4g}") for value in row] for row in (low - room, high + room)],
        "base": [round(float(value), 4) for value in forest._baseline_prediction.ravel() + prior],
        "trees": [_kept(tree.nodes) for one in forest._predictors for tree in one],
    }


KINDS = tuple(f"{seen} back-offs, {size} windows" for seen in ("no", "few", "many") for size in SIZES)


def _grown(known: tuple[np.ndarray, np.ndarray]) -> Any:
    """The forest of features and of what sent them."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        max_features=TRIED,
        min_samples_leaf=10,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=1,
    ).fit(*known)


def _surprise(probabilities: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(probabilities[np.arange(len(truth)), truth]).mean())


def _groups(classes: np.ndarray, truth: np.ndarray, guessed: np.ndarray, kept: np.ndarray) -> list[list[str]]:
    """Joins the two groups that are most taken for each other until none is by more than ``CONFUSED``."""
    counts = np.array([[np.sum((truth == a) & (guessed == b) & kept) for b in classes] for a in classes], dtype=float)
    groups = [[number] for number in range(len(classes))]
    while len(groups) > 1:
        best, pair = CONFUSED, None
        for i, one in enumerate(groups):
            for j, other in enumerate(groups[:i]):
                rows = counts[one].sum(), counts[other].sum()
                if min(rows) < 5:
                    continue
                mixed = (counts[np.ix_(one, other)].sum() / rows[0] + counts[np.ix_(other, one)].sum() / rows[1]) / 2
                if mixed > best:
                    best, pair = mixed, (i, j)
        if pair is None:
            break
        joined = groups[pair[0]] + groups[pair[1]]
        groups = [group for number, group in enumerate(groups) if number not in pair] + [joined]
    named = [sorted(str(classes[number]) for number in group) for group in groups]
    return [sorted([*group, *(name for name, like in SAME.items() if like in group)]) for group in named]


def _kept(nodes: Any) -> dict[str, Any]:
    """One of scikit-learn's trees, renumbered in preorder: it grows the best node first."""
    feature: list[int] = []
    threshold: list[float] = []
    value: list[float] = []

    def add(node: int) -> None:
        if nodes["is_leaf"][node]:
            feature.append(-1)
            value.append(float(f"{nodes['value'][node]:.3g}"))
            return
        feature.append(int(nodes["feature_idx"][node]))
        threshold.append(float(f"{nodes['num_threshold'][node]:.6g}"))
        add(int(nodes["left"][node]))
        add(int(nodes["right"][node]))

    add(0)
    return {"feature": feature, "threshold": threshold, "value": value}


@dataclass
class Score:
    """Of a set of traces: how often the answer is right, and what is taken for what."""

    total: int = 0
    named: int = 0
    grouped: int = 0
    unknown: int = 0

    def add(self, truth: str, answer: Identification) -> None:
        self.total += 1
        self.unknown += answer.unknown is not None
        self.named += answer.unknown is None and answer.names[0][0] == SAME.get(truth, truth)
        self.grouped += answer.best is not None and truth in answer.best

    def line(self) -> str:
        if not self.total:
            return "none"
        shares = (self.named / self.total, self.grouped / self.total, self.unknown / self.total)
        return "by name {:6.1%}  by group {:6.1%}  unknown {:6.1%}  of {}".format(*shares, self.total)


def report(title: str, answers: list[tuple[str, Identification]]) -> str:
    """Accuracy of all and of reno, cubic and bbr, and the confusion matrix by name in percent of each row."""
    every, three, large, sizes = Score(), Score(), Score(), []
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for truth, answer in answers:
        every.add(truth, answer)
        if truth in ("reno", "cubic", "bbr"):
            three.add(truth, answer)
            if not answer.path.endswith(f"{SIZES[0]} windows"):
                large.add(truth, answer)
        counts[truth][answer.names[0][0] if answer.names else "none"] += 1
        sizes.append(len(answer.ranked[0][0]) if answer.ranked else 0)
    columns = sorted({name for row in counts.values() for name in row})
    lines = [title, f"  all               {every.line()}", f"  reno, cubic, bbr  {three.line()}"]
    lines.append(f"  … above 15 segm.  {large.line()}")
    lines += [f"  controls in the likeliest group: {np.mean(sizes):.1f} on average", ""]
    lines.append(" " * 11 + " ".join(f"{name[:5]:>5}" for name in columns))
    for truth in sorted(counts):
        total = sum(counts[truth].values())
        lines.append(f"{truth:11}" + " ".join(f"{100 * counts[truth][name] / total:5.0f}" for name in columns))
    return "\n".join(lines)
