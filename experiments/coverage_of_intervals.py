"""Measures how often 95% confidence intervals over seeds contain the true mean, for several kinds of interval.

    python experiments/coverage_of_intervals.py [--seeds 400] [--draws 2000] [--pools FILE]

Each case is one scenario, run by ``sim`` with many seeds. Their values are the population, and the population's mean is
the truth. Samples of n are drawn from it with replacement. A kind of interval is chosen by leaving whole cases out: the
kind that does best on all other cases is judged on the case left out. The best kind falls short of 95% by least;
kinds that differ by less than one point are equal, and the interval score decides (Gneiting and Raftery 2007). Prints
the tables of docs/explanation/measures.md. ``--pools`` keeps the populations in a file, so that a second call is quick.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

import sawtooth
from sawtooth.stats import ceiling

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]
Kind = Callable[[Floats, float], Bounds]

COUNTS = (3, 5, 10)
LEVEL = 0.05
RESAMPLES = 999
BURSTS = {"gilbert_elliott": {"p": "0.1%", "r": "20%"}}
PAGES = {"kind": "pages", "objects": 10, "sizes": {"kind": "lognormal", "mean": "30 kB", "sigma": 1}}
TRANSFERS = {"kind": "arrivals", "load": "30%", "sizes": {"kind": "lognormal", "mean": "50 kB", "sigma": 2}}


@dataclass(frozen=True)
class Case:
    """A scenario, and the value taken from each of its runs."""

    name: str
    value: str
    """"goodput" of the first flow in Mbit/s, or "pages" or "flows": the mean time in s of one of that table."""
    path: dict[str, Any]
    flows: tuple[dict[str, Any], ...]
    duration: str = "20 s"

    def scenario(self, seed: int) -> sawtooth.Scenario:
        path = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"} | self.path
        flows = [{"name": f"f{at}", **flow} for at, flow in enumerate(self.flows)]
        return sawtooth.Scenario.from_dict({"duration": self.duration, "path": path, "flows": flows, "seed": seed})

    def most(self) -> float:
        """The largest possible value; infinite for times."""
        found = ceiling(self.scenario(1).compile()) if self.value == "goodput" else None
        return math.inf if found is None else found.goodput_bps / 1e6

    def of(self, seed: int) -> float:
        tables = sawtooth.run(self.scenario(seed)).tables
        if self.value == "goodput":
            intervals = tables["intervals"]
            return float(intervals[intervals["flow"] == 0]["goodput_bps"].mean()) / 1e6
        if self.value == "pages":
            return float(tables["pages"]["load_s"].mean())
        done = tables["flows"][tables["flows"]["flow"] == len(self.flows) - 1]
        return float((done["end_s"] - done["start_s"]).mean())


CUBIC, BBR, RENO = {"cc": "cubic"}, {"cc": "bbr"}, {"cc": "reno"}
CASES = (
    Case("no loss: BBR beside CUBIC", "goodput", {}, (BBR, CUBIC)),
    Case("no loss: CUBIC beside page loads", "goodput", {}, (CUBIC, {"source": PAGES})),
    Case("1% loss: CUBIC", "goodput", {"loss": "1%"}, (CUBIC,)),
    Case("0.01% loss: CUBIC", "goodput", {"loss": "0.01%"}, (CUBIC,)),
    Case("0.001% loss, 100 ms: Reno", "goodput", {"loss": "0.001%", "rtt": "100 ms"}, (RENO,), "30 s"),
    Case("1% loss: BBR", "goodput", {"loss": "1%"}, (BBR,)),
    Case("burst loss, 200 Mbit/s: BBR", "goodput", {"rate": "200 Mbit/s", "loss": BURSTS}, (BBR,)),
    Case("burst loss: CUBIC", "goodput", {"loss": BURSTS}, (CUBIC,)),
    Case("web, 1% loss: mean page time", "pages", {"loss": "1%"}, ({"source": PAGES},)),
    Case("web, burst loss: mean page time", "pages", {"loss": BURSTS}, ({"source": PAGES},)),
    Case("FQ-CoDel: BBR beside transfers", "goodput", {"queue": {"kind": "fq_codel"}}, (BBR, {"source": TRANSFERS})),
    Case("PIE: mean time of transfers", "flows", {"queue": {"kind": "pie"}}, (CUBIC, {"source": TRANSFERS})),
    Case("3% loss: time of 500 kB", "flows", {"loss": "3%"}, ({"bytes": "500 kB"},), "60 s"),
)


def _moments(samples: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, standard error and third central moment of the mean, for each row."""
    n = samples.shape[-1]
    mean = samples.mean(axis=-1)
    away = samples - mean[..., None]
    error = np.sqrt((away**2).sum(axis=-1) / (n - 1) / n)
    return mean, error, (away**3).sum(axis=-1) / n**3


def _t(n: int) -> float:
    return float(stdtrit(n - 1, 1 - LEVEL / 2))


def student(samples: Floats, most: float) -> Bounds:
    """Student's t."""
    mean, error, _ = _moments(samples)
    return mean - _t(samples.shape[-1]) * error, mean + _t(samples.shape[-1]) * error


def hall(samples: Floats, most: float) -> Bounds:
    """Hall's cubic transformation (1992) with Student's t."""
    mean, error, third = _moments(samples)
    t, skewness = _t(samples.shape[-1]), third / np.where(error > 0, error, 1.0) ** 3
    straight = np.abs(skewness) < 1e-9
    safe = np.where(straight, 1.0, skewness)

    def back(x: float) -> Floats:
        return np.where(straight, x, 3 / safe * (np.cbrt(1 + safe * (x - safe / 6)) - 1))

    return mean - error * back(t), mean - error * back(-t)


def wider(samples: Floats, most: float) -> Bounds:
    """On each side, the end of Student's t or Hall's interval that is farther from the mean."""
    first, second = student(samples, most), hall(samples, most)
    return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])


def bootstrap_t(samples: Floats, most: float, chance: np.random.Generator) -> Bounds:
    """The bootstrap-t interval (Efron and Tibshirani 1993, chapter 12), without resamples in which all values are
    equal."""
    parts = [_bootstrap_t(part, chance) for part in np.array_split(samples, max(1, len(samples) // 50))]
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _bootstrap_t(samples: Floats, chance: np.random.Generator) -> Bounds:
    draws, n = samples.shape
    mean, error, _ = _moments(samples)
    rows = np.arange(draws)[:, None]
    again = samples[rows[..., None], chance.integers(0, n, (draws, RESAMPLES, n))]
    centre = again.mean(axis=-1)
    deviation = again.std(axis=-1, ddof=1) / math.sqrt(n)
    spread = deviation > 1e-9 * error[:, None]
    away = (centre - mean[:, None]) / np.where(spread, deviation, 1.0)
    found = np.sort(np.where(spread, away, np.inf), axis=-1)
    last = spread.sum(axis=-1) - 1
    first, last = (found[rows[:, 0], np.maximum(0, (part * last)).astype(int)] for part in (LEVEL / 2, 1 - LEVEL / 2))
    first, last = (np.where(spread.any(axis=-1), side, 0.0) for side in (first, last))
    return mean - last * error, mean - first * error


def on_logs(samples: Floats, most: float) -> Bounds:
    """Student's t on logarithms, for the mean of a lognormal distribution (Cox's method: Zhou and Gao 1997); Student's
    t on the values if one is 0."""
    logs = np.log(np.maximum(samples, 1e-300))
    n, mean, variance = samples.shape[-1], logs.mean(axis=-1), logs.var(axis=-1, ddof=1)
    half = _t(n) * np.sqrt(variance / n + variance**2 / (2 * (n - 1)))
    with np.errstate(over="ignore"):
        found = np.exp(mean + variance / 2 - half), np.exp(mean + variance / 2 + half)
    plain, zero = student(samples, most), (samples <= 0).any(axis=-1)
    return np.where(zero, plain[0], found[0]), np.where(zero, plain[1], found[1])


def on_logs_of_room(samples: Floats, most: float) -> Bounds:
    """Like ``on_logs``. If the values are close to their maximum, applied to their distance from it."""
    plain = on_logs(samples, most)
    if math.isinf(most):
        return plain
    low, high = on_logs(most - samples, most)
    leans = _moments(samples)[2] < 0
    return np.where(leans, most - high, plain[0]), np.where(leans, most - low, plain[1])


def kinds(chance: np.random.Generator) -> dict[str, Kind]:
    return {
        "t": student,
        "Hall": hall,
        "wider": wider,
        "bootstrap-t": partial(bootstrap_t, chance=chance),
        "t on logs": on_logs,
        "logs, room": on_logs_of_room,
    }


@dataclass(frozen=True)
class Judged:
    """Coverage and means over draws; width and score are in standard errors of the true mean."""

    coverage: float
    width: float
    score: float

    @classmethod
    def of(cls, bounds: Bounds, population: Floats, most: float, n: int) -> Judged:
        truth, unit = float(population.mean()), float(population.std()) / math.sqrt(n)
        low, high = (np.clip(np.nan_to_num(side, nan=truth), 0.0, most) for side in bounds)
        short = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
        width = high - low
        held = float((short <= 1e-9 * truth).mean())
        return cls(held, float(np.median(width)) / unit, float((width + 2 / LEVEL * short).mean()) / unit)


def populations(seeds: int, kept: Path | None) -> dict[str, list[float]]:
    """The values of each case for seeds from 1 on, read from the file if it has them."""
    found: dict[str, list[float]] = json.loads(kept.read_text()) if kept and kept.is_file() else {}
    with ProcessPoolExecutor(2) as workers:
        for case in CASES:
            if len(found.get(case.name, ())) < seeds:
                found[case.name] = list(workers.map(case.of, range(1, seeds + 1), chunksize=10))
                if kept:
                    kept.write_text(json.dumps(found))
    return {case.name: found[case.name][:seeds] for case in CASES}


def judge(pools: dict[str, list[float]], draws: int) -> dict[tuple[str, int, str], Judged]:
    """The results by case, n and kind of interval."""
    found = {}
    for at, case in enumerate(CASES):
        values, most = np.array(pools[case.name]), case.most()
        chance = np.random.default_rng(at)
        for n in COUNTS:
            samples = chance.choice(values, (draws, n))
            for name, kind in kinds(np.random.default_rng(100 + at)).items():
                found[case.name, n, name] = Judged.of(kind(samples, most), values, most, n)
    return found


def shortfall(judged: dict[tuple[str, int, str], Judged], name: str, cases: list[str]) -> float:
    """How far coverage is below 95%, in percentage points: the mean over cases and n."""
    short = [max(0.0, 1 - LEVEL - judged[case, n, name].coverage) for case in cases for n in COUNTS]
    return 100 * float(np.mean(short))


def score(judged: dict[tuple[str, int, str], Judged], name: str, cases: list[str]) -> float:
    """The geometric mean of the score over cases and n."""
    return math.exp(float(np.mean([math.log(judged[case, n, name].score) for case in cases for n in COUNTS])))


def chosen(judged: dict[tuple[str, int, str], Judged], names: list[str], cases: list[str]) -> str:
    """The kind of interval that is best on these cases."""
    short = {name: shortfall(judged, name, cases) for name in names}
    near = [name for name in names if short[name] < min(short.values()) + 1]
    return min(near, key=lambda name: score(judged, name, cases))


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--pools", type=Path)
    given = parser.parse_args()
    judged = judge(populations(given.seeds, given.pools), given.draws)
    names, cases = list(kinds(np.random.default_rng(0))), [case.name for case in CASES]
    print(f"coverage in percent; n = {', '.join(map(str, COUNTS))}\n")
    row("case", *names, "best of the other cases")
    row(*["---"] * (len(names) + 2))
    for case in cases:
        cells = [", ".join(f"{100 * judged[case, n, name].coverage:.0f}" for n in COUNTS) for name in names]
        row(case, *cells, chosen(judged, names, [one for one in cases if one != case]))
    row("mean shortfall, points", *(f"{shortfall(judged, name, cases):.1f}" for name in names), "")
    row("mean score, standard errors", *(f"{score(judged, name, cases):.1f}" for name in names), "")
    widths = {n: {name: np.mean([judged[case, n, name].width for case in cases]) for name in names} for n in COUNTS}
    for n, width in widths.items():
        row(f"width relative to t, n = {n}", *(f"{width[name] / width[names[0]]:.2f}" for name in names), "")
    print(f"\nbest of all cases: {chosen(judged, names, cases)}")


if __name__ == "__main__":
    main()
