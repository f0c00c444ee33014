"""Trains and judges what ``explain`` tells of the kind of queue, the loss process and other traffic.

    python experiments/explain_corpus.py CORPUS --paths 500                                  # simulated paths
    python experiments/train_explain.py train CORPUS src/sawtooth/data/explain.json
    python experiments/explain_corpus.py KERNEL --paths 100 --first 100000 --engine kernel   # paths of the real kernel
    python experiments/train_explain.py judge KERNEL

Training sees simulated paths only. Temperatures and levels are chosen on paths left out. ``judge`` prints a table for
the answers and one for the intervals of ``whatif``'s estimate, as Markdown.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from identify_training import _kept as kept_tree

from sawtooth.capture.identify.classifier import calibrated
from sawtooth.whatif.kinds import FORMAT, NOT_SEEN, shipped, unlike, vector
from sawtooth.whatif.quantity import Choice
from sawtooth.whatif.signs import signs

FOLDS = 5
TEMPERATURES = np.arange(0.5, 3.01, 0.1)
LEVELS = {"queue_kind": 0.66, "loss_process": 0.9, "cross_traffic": 0.58}
"""Least probability of an answer, chosen from what ``train`` prints of simulated paths left out: right there in 93%,
95% and 92%."""
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
STRANGE = 0.08
FEW, PART = 3, 0.1
"""Up to FEW drops, and below PART of all losses, a cause of loss cannot be seen; such paths are not judged."""


def queue_kind(truth: dict[str, Any]) -> str | None:
    dropped = truth["drops"] + truth["policed"]
    if dropped == 0:
        return NOT_SEEN
    if dropped <= FEW or (truth["kind"] == "policer" and truth["policed"] <= 2 * truth["drops"]):
        return None
    return {"codel": "CoDel or fq_codel", "pie": "PIE", "red": "RED"}.get(truth["kind"], truth["kind"])


def loss_process(truth: dict[str, Any]) -> str | None:
    dropped, lost = truth["drops"] + truth["policed"], truth["lost"]
    if lost == 0:
        return None if 0 < dropped <= FEW else "congestion" if dropped else "no loss"
    seen = lost > FEW and lost > PART * (lost + dropped)
    return truth["loss"] if seen else None


def cross_traffic(truth: dict[str, Any]) -> str | None:
    if truth["cross"] == "none":
        return "none"
    return "present" if truth["others_bps"] > PART * truth["rate_bps"] else None


TRUTHS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "queue_kind": queue_kind,
    "loss_process": loss_process,
    "cross_traffic": cross_traffic,
}


def cases(directory: Path) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any], np.ndarray, list[str]]]:
    """Number, side, truth, what is shown, and the vector of each capture that shows a path."""
    for file in sorted(directory.glob("*.pickle")):
        case = pickle.loads(file.read_bytes())
        for side, seen in case["shown"].items():
            if "path" not in seen:
                continue
            found = signs(seen["facts"]["directions"][0], seen["segments"], seen["losses"], 0)
            if found is not None:
                values = vector(found, seen["path"], seen["cc"], seen["observed"]["goodput_bps"])
                yield int(file.stem), side, case["truth"], seen, values, list(found)


def train(corpus: Path, target: Path) -> None:
    every = list(cases(corpus))
    x = np.array([one[4] for one in every])
    fold = np.array([one[0] % FOLDS for one in every])
    parts = {}
    for name, truth_of in TRUTHS.items():
        truth = np.array([truth_of(one[2]) or "" for one in every])
        rows = truth != ""
        classes = np.unique(truth[rows])
        index = np.searchsorted(classes, truth[rows])
        logits = np.zeros((int(rows.sum()), len(classes)))
        for left in range(FOLDS):
            unseen = fold[rows] == left
            grown = _grown(x[rows][~unseen], index[~unseen])
            told = grown.decision_function(x[rows][unseen])
            logits[unseen] = _both(told)
        temperature = float(min(TEMPERATURES, key=lambda one: _surprise(calibrated(logits, one), index)))
        shares = calibrated(logits, temperature)
        level = LEVELS[name]
        answered = shares.max(axis=1) >= level
        right = (shares.argmax(axis=1) == index)[answered].mean()
        for one in SHARES:
            chosen = shares.max(axis=1) >= one
            correct = (shares.argmax(axis=1) == index)[chosen].mean()
            print(f"  from {one:.0%}: {chosen.mean():.0%} answered, {correct:.1%} right")
        print(f"{name}: {len(index)} captures, level {level:.2f}, {answered.mean():.0%} answered, {right:.1%} right")
        grown = _grown(x[rows], index)
        parts[name] = {
            "classes": classes.tolist(),
            "temperature": round(temperature, 2),
            "level": round(level, 2),
            **_stored(grown),
        }
    shown = np.where(x == -1000.0, np.nan, x)
    low, high = np.nanquantile(shown, 0.002, axis=0), np.nanquantile(shown, 0.998, axis=0)
    room = 0.1 * (high - low)
    kept = {
        "format": FORMAT,
        "made": {"paths": len({one[0] for one in every}), "captures": len(every)},
        "strange": STRANGE,
        "limits": [[float(f"{value:.4g}") for value in row] for row in (low - room, high + room)],
        "parts": parts,
    }
    target.write_text(json.dumps(kept, separators=(",", ":")) + "\n")


def _grown(x: np.ndarray, y: np.ndarray) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    made = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.1, max_leaf_nodes=8, min_samples_leaf=8, max_features=0.3, random_state=35
    )
    return made.fit(x, y)


def _both(logits: np.ndarray) -> np.ndarray:
    """Two classes have one logit in scikit-learn: half of it for each."""
    return np.stack([-logits / 2, logits / 2], axis=1) if logits.ndim == 1 else logits


def _stored(grown: Any) -> dict[str, Any]:
    base = grown._baseline_prediction.ravel()
    if len(base) > 1:
        trees = [kept_tree(tree.nodes, 1.0) for one in grown._predictors for tree in one]
        return {"base": [round(float(value), 4) for value in base], "trees": trees}
    trees = [kept_tree(one[0].nodes, share) for one in grown._predictors for share in (-0.5, 0.5)]
    return {"base": [round(float(-base[0] / 2), 4), round(float(base[0] / 2), 4)], "trees": trees}


def _surprise(shares: np.ndarray, index: np.ndarray) -> float:
    return float(-np.log(shares[np.arange(len(index)), index] + 1e-12).mean())


def judge(directory: Path) -> None:
    every = list(cases(directory))
    print("| part | captures | answered | right of what is answered | right of all |\n|---|---|---|---|---|")
    judged = [_told(one[3], one[4]) for one in every]
    for name, truth_of in TRUTHS.items():
        rows = [(truth_of(one[2]), choice[name]) for one, choice in zip(every, judged, strict=True)]
        rows = [row for row in rows if row[0] is not None]
        answered = [truth == choice.answer for truth, choice in rows if choice.answer is not None]
        guessed = [bool(choice.shares) and truth == choice.shares[0][0] for truth, choice in rows]
        print(
            f"| {name} | {len(rows)} | {len(answered) / len(rows):.0%} | {np.mean(answered):.1%} of {len(answered)} "
            f"| {np.mean(guessed):.1%} |"
        )
    print("\n| quantity | captures | median error | 90th percentile | interval holds |\n|---|---|---|---|---|")
    for name, truth_name, wanted in (
        ("rate", "rate_bps", _full),
        ("rtt", "rtt_s", lambda _truth: True),
        ("queue", "packets", _full),
    ):
        errors, inside = [], []
        for _, _, truth, seen, _, _ in every:
            value = seen["path"][name]
            if value["bound"] or not wanted(truth):
                continue
            errors.append(abs(value["value"] / truth[truth_name] - 1))
            inside.append(value["low"] <= truth[truth_name] <= value["high"])
        if errors:
            half, most = np.quantile(errors, (0.5, 0.9))
            print(f"| {name} | {len(errors)} | {half:.1%} | {most:.1%} | {np.mean(inside):.0%} |")


def _told(seen: dict[str, Any], values: np.ndarray) -> dict[str, Choice]:
    """As ``explain`` does: nothing of a path whose rate or round trip is unlike the simulated ones."""
    why = unlike(seen["path"])
    return shipped().judge(values) if why is None else {name: Choice(None, why) for name in TRUTHS}


def _full(truth: dict[str, Any]) -> bool:
    """A tail-drop queue that was full, and nobody else's packets in it."""
    return truth["kind"] == "tail drop" and truth["drops"] > FEW and truth["cross"] == "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "judge"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("target", type=Path, nargs="?", help="the file that train writes")
    options = parser.parse_args()
    if options.what == "train":
        train(options.directory, options.target)
    else:
        judge(options.directory)


if __name__ == "__main__":
    main()
