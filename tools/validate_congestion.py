"""Trains and validates ``sawtooth congestion``: the model that is shipped, and its errors on series that it never saw.

    python tools/validate_congestion.py measure DIRECTORY [--jobs N]     # series of known throughput; kept, resumable
    python tools/validate_congestion.py train DIRECTORY                  # src/sawtooth/data/congestion.json
    python tools/validate_congestion.py table DIRECTORY [--figures DIR]  # Markdown, and a picture

Errors are |estimate / truth − 1|, truth being the mean goodput of a flow over the same 100 s. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sawtooth.congestion.calibrate import LOADS, Measurement, corpus, learn, make
from sawtooth.congestion.features import FEATURES, vector
from sawtooth.congestion.gaussian import Gaussian
from sawtooth.congestion.model import COLUMNS, CongestionModel

MODEL = Path(__file__).resolve().parents[1] / "src" / "sawtooth" / "data" / "congestion.json"
QUEUES = {100: 396, 200: 793, 500: 1982, 1000: 3963}
"""Packets that take 48 ms at so many Mbit/s."""
DEEPER = 4293
"""52 ms at 1 Gbit/s."""
DEPTHS = {200: (595, 694, 925, 1057), 1000: (3302, 4954)}
"""36, 42, 56 and 64 ms at 200 Mbit/s, 40 and 60 ms at 1 Gbit/s: none is that of a test."""
FULL = (10, 13, 18, 25, 33, 45, 60, 80, 110, 150, 200, 270, 360, 480, 650, 800, 1000)
SLOW = (3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 65, 80, 100)
MIDDLE = (4, 6, 9, 13, 20, 30, 45, 65, 100, 150, 200)
HALF = (5, 8, 13, 20, 33, 50, 80, 130, 200, 320, 500)
UNSEEN = (12, 30, 70, 120, 220, 400, 720, 950)
FIVE = (12, 40, 120, 400, 950)
ABLATION = {
    "standard deviation": ("std_s",),
    "mean, standard deviation": ("mean_s", "std_s"),
    "standard deviation, percent increasing": ("std_s", "increasing"),
    "these and loss": ("std_s", "increasing", "loss"),
    "these, loss and asymmetry": ("std_s", "increasing", "loss", "asymmetry"),
    "these, loss, asymmetry and autocorrelation": ("std_s", "increasing", "loss", "asymmetry", "lag1", "lag2", "lag3"),
}


def one(mbps: int, rtt_ms: int, cubic_percent: int, flows: int, seed: int, queue: int = 0, **more: Any) -> Measurement:
    cubic = round(flows * cubic_percent / 100)
    drawn = seed * 1000003 + mbps * 7 + rtt_ms * 31 + cubic_percent * 1009 + flows
    packets = queue or QUEUES[mbps]
    return Measurement(mbps * 10**6, packets, rtt_ms / 1e3, cubic, flows - cubic, drawn, **more)


def many(
    mbps: int, rtts: Sequence[int], mixes: Sequence[int], flows: Sequence[int], seeds: Sequence[int], queue: int = 0
) -> Iterator[Measurement]:
    for seed in seeds:
        for rtt_ms in rtts:
            for mix in mixes:
                yield from (one(mbps, rtt_ms, mix, count, seed, queue) for count in flows)


def busy(rtt_ms: int, flows: Sequence[int], seed: int) -> Iterator[Measurement]:
    for load in LOADS:
        for count in flows:
            # Below it the windows would be smaller than an endpoint allows.
            if 2 * round(load * 200e6 / 8 * rtt_ms * 1e-3 / count) > 9900:
                yield one(200, rtt_ms, 100, count, seed, load=load)


def gigabit() -> Iterator[Measurement]:
    """Every number of flows and mix with the first seed, NewReno with the second, and a quarter CUBIC."""
    combined = [(seed, mix, count) for seed in (1, 2) for mix in (0, 25, 50, 75, 100) for count in FULL]
    for number, (seed, mix, count) in enumerate(combined[:GIGABIT]):
        cubic = round(count * mix / 100)
        yield Measurement(10**9, QUEUES[1000], 0.02, cubic, count - cubic, seed * 1000 + number)


GIGABIT = 121


def kernel() -> Iterator[Measurement]:
    """The real kernel, whose series no model is trained on."""
    for seed, mixes in ((1, (100, 0)), (2, (100,))):
        for mix in mixes:
            yield from (one(100, 20, mix, count, seed, engine="kernel") for count in (10, 30, 100))
    for mix in (100, 0):
        yield from (one(100, 20, mix, count, 1, engine="kernel") for count in (5, 15, 50))
    yield from (one(100, 20, 50, count, 1, engine="kernel") for count in (10, 30))
    yield from (one(200, 20, 100, count, 1, engine="kernel") for count in (10, 40, 120))
    yield from (one(100, 40, 100, count, 1, engine="kernel") for count in (10, 40))


def sets() -> dict[str, list[Measurement]]:
    train = [
        *gigabit(),
        *many(100, [20], [100, 0, 50], SLOW, [1, 2]),
        *many(200, [20, 10, 40, 80], [100, 0, 50], MIDDLE, [1]),
        *many(500, [20], [100, 0, 50], HALF, [1]),
        *many(1000, [10, 40, 80], [100, 0], FULL[::2], [1]),
        *(one for packets in DEPTHS[200] for one in many(200, [20], [100, 0], MIDDLE, [1], packets)),
        *(one for packets in DEPTHS[1000] for one in many(1000, [20], [100, 0], FULL[1::3], [1], packets)),
    ]
    return {
        "train": [*train, *busy(20, (10, 50, 150), 1), *busy(40, (4, 10, 25), 1)],
        "test": [*many(1000, [20], [100, 0], UNSEEN, [101]), *many(1000, [20], [50, 30], UNSEEN, [101])],
        "rtt": list(many(1000, [10, 40, 80], [100, 0], FIVE, [101])),
        "queue": list(many(1000, [20], [100, 0], FIVE, [101], DEEPER)),
        "rate": list(many(500, [20], [100, 0], (6, 20, 60, 200, 475), [101])),
        "busy": list(busy(40, (4, 10, 25), 2)),
        "kernel": list(kernel()),
    }


def measure(directory: Path, jobs: int) -> None:
    for name, measurements in sets().items():
        print(f"{name}: {len(measurements)}", flush=True)
        make(directory / name, measurements, jobs=jobs)


def train(directory: Path) -> None:
    model = learn(corpus(directory / "train"))
    model.save(MODEL)
    print(f"{MODEL}: {MODEL.stat().st_size / 1e3:.0f} kB, {model.trained_on_}, held out {model.held_out_}")


def series(directory: Path, name: str) -> pd.DataFrame:
    found = corpus(directory / name, exact=True)
    return found[found["engine"] != "none"].reset_index(drop=True)


def errors(model: CongestionModel, found: pd.DataFrame, *, rate: bool = True, rtt_s: float | None = None) -> np.ndarray:
    table = found[list(COLUMNS)].copy()
    if rtt_s is not None:
        table["rtt_s"] = rtt_s
    if not rate:
        table["rate_bps"] = math.nan
    return np.abs(model.predict(table) / found["throughput_bps"].to_numpy() - 1)


def row(name: str, wrong: np.ndarray, *more: str) -> str:
    cells = (name, str(len(wrong)), f"{np.median(wrong):.1%}", f"{np.quantile(wrong, 0.9):.1%}", *more)
    return f"| {' | '.join(cells)} |"


def control(found: pd.DataFrame) -> pd.Series:
    return pd.Series(
        np.where(found["reno"] == 0, "CUBIC", np.where(found["cubic"] == 0, "NewReno", "mixed")), index=found.index
    )


def covered(model: CongestionModel, found: pd.DataFrame) -> str:
    low, high = model.predict_interval(found[list(COLUMNS)]).T
    truth = found["throughput_bps"].to_numpy()
    return f"{np.mean((low <= truth) & (truth <= high)):.0%}"


def accuracy(model: CongestionModel, directory: Path) -> Iterator[str]:
    yield "| series | n | median error | 90th percentile | no rate given: median | 90th percentile | in the interval |"
    yield "|---|---|---|---|---|---|---|"
    found = {name: series(directory, name) for name in ("test", "rtt", "queue", "rate", "kernel")}
    parts = {"1 Gbit/s, 48 ms of queue, RTT 20 ms": found["test"]}
    for name in ("CUBIC", "NewReno", "mixed"):
        parts[f"– of these, {name}"] = found["test"][control(found["test"]) == name]
    for rtt_s in sorted(found["rtt"]["rtt_s"].unique()):
        parts[f"1 Gbit/s, RTT {rtt_s * 1e3:g} ms"] = found["rtt"][found["rtt"]["rtt_s"] == rtt_s]
    parts["1 Gbit/s, 52 ms of queue"] = found["queue"]
    parts["500 Mbit/s"] = found["rate"]
    for name in ("CUBIC", "NewReno", "mixed"):
        parts[f"engine kernel, {name}"] = found["kernel"][control(found["kernel"]) == name]
    parts["engine kernel, all"] = found["kernel"]
    for name, part in parts.items():
        free = errors(model, part, rate=False)
        more = (f"{np.median(free):.1%}", f"{np.quantile(free, 0.9):.1%}", covered(model, part))
        yield row(name, errors(model, part), *more)


def assumptions(model: CongestionModel, directory: Path) -> Iterator[str]:
    """Of the model, and of one that has the source's two features only."""
    found = pd.concat([series(directory, "test"), series(directory, "rtt")])
    found = found[control(found) != "mixed"]
    learnt = corpus(directory / "train")
    learnt = learnt[learnt["state"] == "congested"]
    two = ("std_s", "increasing")
    process = Gaussian.learn(scaled(learnt, two), np.log(learnt["throughput_bps"].to_numpy()))
    assumed = (0.01, 0.02, 0.04, 0.08)
    yield f"| model | true RTT | n | {' | '.join(f'assumed {rtt_s * 1e3:g} ms' for rtt_s in assumed)} |"
    yield "|---|---|---|---|---|---|---|"
    for name in ("the model", "deviation and percent increasing only"):
        for true, part in found.groupby("rtt_s"):
            medians = []
            for rtt_s in assumed:
                if name == "the model":
                    wrong = errors(model, part, rtt_s=rtt_s)
                else:
                    answer = np.exp(process.predict(scaled(part.assign(rtt_s=rtt_s), two))[0])
                    wrong = np.abs(answer / part["throughput_bps"].to_numpy() - 1)
                medians.append(f"{np.median(wrong):.0%}")
            yield f"| {name} | {float(str(true)) * 1e3:g} ms | {len(part)} | {' | '.join(medians)} |"


def worth(directory: Path) -> Iterator[str]:
    """Each set of features learns anew, with the RTT and the rate."""
    learnt, unseen = corpus(directory / "train"), series(directory, "test")
    learnt = learnt[learnt["state"] == "congested"]
    real = series(directory, "kernel")
    used = [name for name in FEATURES if name not in ("mean_s", "range_s")]
    chosen = {**ABLATION, "all but mean and range (the model)": tuple(used)}
    chosen |= {
        f"the model without {left}": tuple(n for n in used if n != left) for left in ("std_s", "increasing", "loss")
    }
    yield "| features | n | median error | 90th percentile | median error, Mbit/s | engine kernel: median error |"
    yield "|---|---|---|---|---|---|"
    for name, columns in chosen.items():
        log = np.log(learnt["throughput_bps"].to_numpy())
        process = Gaussian.learn(scaled(learnt, columns), log)
        wrong = {}
        for where, found in (("test", unseen), ("kernel", real)):
            wrong[where] = np.exp(process.predict(scaled(found, columns))[0]) - found["throughput_bps"].to_numpy()
        share = np.abs(wrong["test"]) / unseen["throughput_bps"].to_numpy()
        kernels = np.median(np.abs(wrong["kernel"]) / real["throughput_bps"].to_numpy())
        yield row(name, share, f"{np.median(np.abs(wrong['test'])) / 1e6:.2f}", f"{kernels:.1%}")


def scaled(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    names = list(FEATURES)
    places = [names.index(name) for name in columns]
    rows = np.array([vector(values)[places] for values in table[names].to_dict("records")])
    return np.column_stack([rows, np.log(table["rtt_s"]), np.log(table["rate_bps"])])


def depth(directory: Path) -> Iterator[str]:
    """The same flows at 48 and 52 ms of queue."""
    keys = ["cubic", "reno"]
    both = series(directory, "test").merge(series(directory, "queue"), on=keys, suffixes=("", "_deeper"))
    yield "| feature | median change from 48 to 52 ms |"
    yield "|---|---|"
    for name in ("mean_s", "std_s", "increasing", "step_s", "range_s", "asymmetry", "loss"):
        change = np.median(np.abs(both[f"{name}_deeper"] / both[name] - 1))
        yield f"| `{name}` ({len(both)} pairs) | {change:.1%} |"


def on_kernel(model: CongestionModel, directory: Path) -> Iterator[str]:
    found = series(directory, "kernel")
    found["estimate"] = model.predict(found[list(COLUMNS)])
    found = found.sort_values(["rate_bps", "rtt_s", "reno", "cubic"])
    yield "| link | CUBIC + NewReno flows | increasing | deviation | truth, a flow | estimate |"
    yield "|---|---|---|---|---|---|"
    for values in found.to_dict("records"):
        link = f"{values['rate_bps'] / 1e6:g} Mbit/s, {values['rtt_s'] * 1e3:g} ms"
        mbps = [f"{values[name] / 1e6:.2f} Mbit/s" for name in ("throughput_bps", "estimate")]
        flows = f"{values['cubic']:.0f} + {values['reno']:.0f}"
        measured = f"{values['increasing']:.0%} | {values['std_s'] * 1e3:.1f} ms"
        yield f"| {link} | {flows} | {measured} | {' | '.join(mbps)} |"


def states(model: CongestionModel, directory: Path) -> Iterator[str]:
    yield "| series, not trained on | called |"
    yield "|---|---|"
    idle = corpus(directory / "busy", seed=77)
    tables = {
        "idle": idle[idle["state"] == "idle"],
        "busy, 10 to 95% load": series(directory, "busy"),
        "congested, engine sim": pd.concat([series(directory, name) for name in ("test", "rtt", "queue", "rate")]),
        "congested, engine kernel": series(directory, "kernel"),
    }
    for name, table in tables.items():
        called = Counter(model.predict_state(table[list(COLUMNS)]))
        yield f"| {name} ({len(table)}) | {', '.join(f'{state}: {count}' for state, count in sorted(called.items()))} |"


def picture(model: CongestionModel, directory: Path, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    figure, axis = plt.subplots(figsize=(6, 5.2), layout="constrained")
    for name, mark, label in (("test", "o", "simulator, 1 Gbit/s"), ("kernel", "^", "kernel, 100 and 200 Mbit/s")):
        found = series(directory, name)
        middle = model.predict(found[list(COLUMNS)]) / 1e6
        low, high = model.predict_interval(found[list(COLUMNS)]).T / 1e6
        colour = "#0072b2" if name == "test" else "#d55e00"
        spread = [middle - low, high - middle]
        truth = found["throughput_bps"] / 1e6
        axis.errorbar(truth, middle, spread, fmt=mark, ms=4, lw=0.8, color=colour, label=label)
    axis.plot([0.8, 110], [0.8, 110], color="black", lw=0.8)
    axis.set(xscale="log", yscale="log", xlabel="true throughput of a flow, Mbit/s", ylabel="estimate, Mbit/s")
    axis.set_title("Series that were not trained on, 90% intervals")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(out / "congestion-estimates.png", dpi=90)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "train", "table"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figures", type=Path)
    asked = parser.parse_args()
    if asked.what == "measure":
        measure(asked.directory, asked.jobs)
        return 0
    if asked.what == "train":
        train(asked.directory)
        return 0
    model = CongestionModel.load(MODEL)
    tables = {
        "Accuracy": accuracy(model, asked.directory),
        "A wrong assumed RTT: median error": assumptions(model, asked.directory),
        "What the features are worth": worth(asked.directory),
        "Another depth of queue": depth(asked.directory),
        "On the real kernel": on_kernel(model, asked.directory),
        "States": states(model, asked.directory),
    }
    for title, lines in tables.items():
        print(f"### {title}\n\n" + "\n".join(lines) + "\n", flush=True)
    if asked.figures is not None:
        picture(model, asked.directory, asked.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
