"""What can be known about a congested link from probes, and what would tell more: measured on simulated links.

    python experiments/congestion_bounds.py measure DIRECTORY [--links N] [--kernel N] [--only SET] [--jobs N]
    python experiments/congestion_bounds.py learn DIRECTORY    # what several windows give, into the bundled model
    python experiments/congestion_bounds.py table DIRECTORY    # Markdown

Each link is probed for ten minutes. The bundled model has learned from none of them. ``learn`` uses every second link,
``table`` the others for the accuracy of what it learned, and all for the rest.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from validate_congestion import MODEL

from sawtooth.link_estimate.calibrate import Measured, make, read
from sawtooth.link_estimate.estimate import Estimate, estimate
from sawtooth.link_estimate.features import FEATURES, vector
from sawtooth.link_estimate.gaussian import Gaussian
from sawtooth.link_estimate.model import CongestionModel
from sawtooth.link_estimate.random_links import PROBES, USUAL, Link, LinkRanges, draw
from sawtooth.link_estimate.together import narrower, together
from sawtooth.scenario.header_sizes import FULL_FRAME, MSS

WINDOWS = 6
"""Windows of 1,000 probes in ten minutes."""
WIDE = LinkRanges(rates_bps=(50e6, 200e6), quiet=0.0)
"""Slow links, because ten minutes of a fast one cost too much."""
SLOW = replace(WIDE, rates_bps=(50e6, 100e6))
"""For the real kernel."""
OFTEN = replace(USUAL, rates_bps=(100e6, 200e6))
SEEDS, SEEDED = 3, 6
"""Other seeds of a link, on one link in six."""
KNOWN = {"nothing": (False, False), "rate": (False, True), "RTT": (True, False), "rate and RTT": (True, True)}
"""What is given of a link: the mean base RTT of its flows, its rate."""
NAMES = {"nothing": "without rtt, rate", "rate": "without rtt", "RTT": "without rate", "rate and RTT": "all"}
"""The model's names of the same."""
AGREE = 0.9
"""Features agree if they differ by no more than this share of two windows of one link do."""
NEAR = 0.2
"""Logarithm of the ratio of two rates that count as the same."""

Floats = NDArray[np.float64]


def sets(links: int, kernel: int) -> dict[str, list[Link]]:
    """``links`` wide draws, half as many usual ones; some of the wide ones with other seeds, for one window."""
    long = [replace(draw("minutes", at, WIDE), probes=WINDOWS * PROBES) for at in range(links)]
    again = [
        replace(one, name=f"{one.name}-{seed}", seed=one.seed + seed, probes=PROBES)
        for one in long[::SEEDED]
        for seed in range(1, SEEDS + 1)
    ]
    usual = [replace(draw("often", at, OFTEN), probes=WINDOWS * PROBES) for at in range(links // 2)]
    real = [draw("real", at, SLOW, engine="kernel") for at in range(kernel)]
    return {
        "minutes": long,
        "often": usual,
        "seeds": again,
        "real": [replace(one, probes=WINDOWS * PROBES) for one in real],
    }


@dataclass(frozen=True)
class Probed:
    """A link, its windows without anything given, and the windows' features on the model's scale."""

    link: Measured
    windows: list[Estimate]

    @property
    def number(self) -> int:
        return int(self.link.one.name.split("-")[1])

    @property
    def log(self) -> float:
        return float(np.log(self.link.throughput_bps))

    def features(self) -> Floats:
        return np.array([vector(one.measured or {}) for one in self.windows])

    def given(self, known: str) -> dict[str, Any]:
        rtt, rate = KNOWN[known]
        return {"rtt_s": self.link.rtt_s if rtt else None, "rate_bps": float(self.link.one.rate_bps) if rate else None}

    def answers(self, model: CongestionModel, known: str) -> tuple[Floats, Floats]:
        """Error of each window's estimate, and half the width of its interval, as logarithms."""
        given = [np.nan if value is None else value for value in self.given(known).values()]
        rows = np.array([[*(one.measured or {}).values(), *given] for one in self.windows])
        middle = np.log(model.predict(rows))
        return middle - self.log, np.log(model.predict_interval(rows)[:, 1]) - middle


def probed(directory: Path, model: CongestionModel) -> list[Probed]:
    """The links that were found congested in every window."""
    found = []
    for link in read(directory):
        windows = estimate(link.series, model)
        if all(one.throughput_bps is not None for one in windows):
            found.append(Probed(link, windows))
    return found


def shares(found: Sequence[Probed], model: CongestionModel) -> dict[str, float]:
    """The share of the squared error, in widths of the interval, that differs between the windows of one link."""
    result = {}
    for known, name in NAMES.items():
        scores = np.array([error / half for error, half in (one.answers(model, known) for one in found)])
        result[name] = float(f"{(scores.var(axis=1, ddof=1).mean() / (scores**2).mean()):.3g}")
    return result


def accuracy(found: Sequence[Probed], model: CongestionModel) -> Iterator[str]:
    """What the command says about each window, and about all together."""
    heads = "median error | inside | factor"
    yield f"| given | 100 s: {heads} | ten minutes: answered | {heads} |"
    yield f"|---|{'---|' * 7}"
    for known in KNOWN:
        single, long = [], []
        for one in found:
            given = one.given(known)
            windows = estimate(one.link.series, model, **given)
            single += [(said, one.log) for said in windows if said.throughput_bps]
            if (whole := together(windows, model, **given)) is not None:
                long.append((whole, one.log))
        yield f"| {known} | {_summary(single)} | {len(long)} of {len(found)} | {_summary(long)} |"


def _summary(found: Sequence[tuple[Estimate, float]]) -> str:
    errors = [abs((said.throughput_bps or np.nan) / np.exp(log) - 1) for said, log in found]
    inside = [(said.low_bps or 0) <= np.exp(log) <= (said.high_bps or np.inf) for said, log in found]
    return f"{np.median(errors):.0%} | {np.mean(inside):.0%} | {np.median([said.factor for said, _ in found]):.1f}"


def parts(found: Sequence[Probed], model: CongestionModel) -> Iterator[str]:
    """The model's error by the number of windows, and its two parts: the chance of a window, and what stays."""
    counts = (1, 2, 3, WINDOWS)
    yield f"| given | {' | '.join(f'{count * 100} s' for count in counts)} | chance of a window | what stays |"
    yield f"|---|{'---|' * (len(counts) + 2)}"
    for known in KNOWN:
        errors = np.array([one.answers(model, known)[0] for one in found])
        cells = []
        for count in counts:
            means = errors.reshape(len(errors), -1, count).mean(axis=2)
            cells.append(f"{np.median(np.abs(np.expm1(means))):.0%}")
        chance = errors.var(axis=1, ddof=1)
        stays = np.maximum((errors.mean(axis=1) ** 2 - chance / WINDOWS).mean(), 0)
        yield f"| {known} | {' | '.join(cells)} | {chance.mean() ** 0.5:.2f} | {stays**0.5:.2f} |"


def trained(found: Sequence[Probed]) -> Iterator[str]:
    """The errors of a process that learns from these links only, from one window or from ten minutes of each, on links
    left out: whether a model that is made for ten minutes would be better."""
    yield "| given | learned from 100 s | from ten minutes |"
    yield "|---|---|---|"
    truth = np.array([one.log for one in found])
    links = np.array([[np.log(one.link.rtt_s), np.log(one.link.one.rate_bps)] for one in found])
    for known, given in KNOWN.items():
        cells = []
        for count in (1, WINDOWS):
            means = np.array([one.features()[:count].mean(axis=0) for one in found])
            process = Gaussian.learn(np.column_stack([means, links[:, given]]), truth)
            errors = np.abs(np.expm1(process.held_out(np.arange(len(found)))[0] - truth))
            cells.append(f"{np.median(errors):.0%}")
        yield f"| {known} | {' | '.join(cells)} |"


def seeds(found: Sequence[Probed], again: Sequence[Probed], model: CongestionModel) -> Iterator[str]:
    """The deviation between windows of one series, and between series of one link with other seeds."""
    yield "| given | windows of one series | other seeds |"
    yield "|---|---|---|"
    groups = [[one for one in again if one.number == first.number] for first in found]
    pairs = [(first, group) for first, group in zip(found, groups, strict=True) if len(group) == SEEDS]
    for known in KNOWN:
        within = [first.answers(model, known)[0].var(ddof=1) for first, _ in pairs]
        between = [
            np.var([first.answers(model, known)[0][0], *(one.answers(model, known)[0][0] for one in group)], ddof=1)
            for first, group in pairs
        ]
        yield f"| {known} ({len(pairs)} links) | {np.mean(within) ** 0.5:.2f} | {np.mean(between) ** 0.5:.2f} |"


def twins(found: Sequence[Probed], model: CongestionModel) -> Iterator[str]:
    """Links of the training whose features agree with those of a window of another link: how their goodputs differ."""
    windows = np.array([one.features() for one in found])
    unit = np.sqrt(windows.var(axis=1, ddof=1).mean(axis=0))
    scaled, trained = windows / unit, model.rows_[:, : len(FEATURES)] / unit
    same = [_apart(scaled[:, at], scaled[:, before]) for at in range(WINDOWS) for before in range(at)]
    limit = np.quantile(np.concatenate(same), AGREE)
    apart = _apart(scaled[:, None, 0], trained[None])
    rates = np.log([one.link.one.rate_bps for one in found])
    ratio = np.abs(np.array([one.log for one in found])[:, None] - model.log_[None])
    alike = np.abs(rates[:, None] - model.rows_[None, :, -1]) < NEAR
    yield "| pairs of links whose features agree | pairs | links | goodput differs by: median | 90th percentile |"
    yield "|---|---|---|---|---|"
    chosen: dict[str, Callable[[], NDArray[np.bool_]]] = {
        "any rates": lambda: apart < limit,
        "rates within 20%": lambda: (apart < limit) & alike,
    }
    for name, select in chosen.items():
        pairs = select()
        median, most = np.exp(np.quantile(ratio[pairs], (0.5, 0.9)))
        yield f"| {name} | {pairs.sum()} | {pairs.any(axis=1).sum()} | a factor of {median:.1f} | {most:.1f} |"


def _apart(first: Floats, second: Floats) -> Floats:
    return np.asarray(np.sqrt(((first - second) ** 2).mean(axis=-1)))


def behind(found: Sequence[Probed], model: CongestionModel) -> Iterator[str]:
    """What the most similar links of the training say about a link, from one window: the range of nine in ten."""
    yield "| from the 30 most similar links | contains the truth | factor of the range | of all links |"
    yield "|---|---|---|---|"
    rtts, rates = model.rows_[:, -2], model.rows_[:, -1]
    quantities = {
        "number of flows": (rates - model.log_, [np.log(one.link.one.flows * FULL_FRAME / MSS) for one in found]),
        "mean base RTT of the flows": (rtts, [np.log(one.link.rtt_s) for one in found]),
        "rate": (rates, [np.log(one.link.one.rate_bps) for one in found]),
    }
    unit = model.rows_[:, : len(FEATURES)].std(axis=0)
    trained = model.rows_[:, : len(FEATURES)] / unit
    apart = _apart(np.array([one.features()[0] for one in found])[:, None] / unit, trained[None])
    nearest = np.argsort(apart, axis=1)[:, :30]
    for name, (known, truth) in quantities.items():
        low, high = np.quantile(known[nearest], (0.05, 0.95), axis=1)
        inside = np.mean((low <= truth) & (truth <= high))
        all_ = np.exp(np.subtract(*np.quantile(known, (0.95, 0.05))))
        yield f"| {name} | {inside:.0%} of {len(found)} | {np.exp(np.median(high - low)):.1f} | {all_:.0f} |"


def foretold(found: Sequence[Probed], model: CongestionModel) -> Iterator[str]:
    """What the command says that more knowledge would give, and what it gives."""
    yield "| what it says would help | links | factor now | said | found | said is off by, median |"
    yield "|---|---|---|---|---|---|"
    for measure, known in (("rate", "rate"), ("rtt", "RTT"), ("ten-minutes", "nothing")):
        rows = []
        for one in found:
            first = one.windows[:1]
            said = [more for more in narrower(first, None, model) if more.measure == measure]
            if measure == "ten-minutes":
                then = together(one.windows, model)
            else:
                then = estimate(one.link.series.part(slice(0, PROBES)), model, **one.given(known))[0]
            if said and then is not None and np.isfinite(then.factor):
                rows.append((said[0].now, said[0].factor, then.factor))
        if rows:
            now, told, then_ = np.array(rows).T
            off = np.median(np.abs(np.log(told) / np.log(then_) - 1))
            cells = " | ".join(f"{np.median(one):.1f}" for one in (now, told, then_))
            yield f"| {measure} | {len(rows)} | {cells} | {off:.0%} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "learn", "table"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--links", type=int, default=72)
    parser.add_argument("--kernel", type=int, default=0)
    parser.add_argument("--only", action="append", help="of the sets, like seeds; may be repeated (measure)")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    if asked.what == "measure":
        for name, links in sets(asked.links, asked.kernel).items():
            if asked.only is None or name in asked.only:
                print(f"{name}: {len(links)}", flush=True)
                make(asked.directory / name, links, jobs=asked.jobs)
        return 0
    model = CongestionModel.load(MODEL)
    found = {name: probed(asked.directory / name, model) for name in sets(0, 0)}
    both = [*found["minutes"], *found["often"]]
    if asked.what == "learn":
        model.chance_ = shares([one for one in both if one.number % 2 == 0], model)
        print(model.save(MODEL), model.chance_)
        return 0
    for name in ("minutes", "often"):
        print(f"{name}: {len(found[name])}", *parts(found[name], model), sep="\n", end="\n\n", flush=True)
    print("\n".join(trained(both)), "\n")
    print("\n".join(seeds(found["minutes"], found["seeds"], model)), "\n")
    print("\n".join(twins(both, model)), "\n")
    print("\n".join(behind(both, model)), "\n")
    unseen = [one for one in both if one.number % 2]
    print("\n".join(accuracy(unseen, model)), "\n")
    print("\n".join(foretold(unseen, model)), "\n")
    if found["real"]:
        print(f"kernel: {len(found['real'])}", *accuracy(found["real"], model), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
