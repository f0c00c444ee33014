"""Trains and validates ``sawtooth congestion``: the model that is shipped, and its errors on links that it never saw.

    python experiments/validate_congestion.py measure DIRECTORY [--links N] [--kernel N] [--only SET] [--jobs N]
    python experiments/validate_congestion.py train DIRECTORY                  # src/sawtooth/data/congestion.json
    python experiments/validate_congestion.py table DIRECTORY [--figures DIR]  # Markdown, and a picture
    python experiments/validate_congestion.py features DIRECTORY  # fewer features
    python experiments/validate_congestion.py field DIRECTORY OUT              # the kernel's series for fidelity/field

Links are drawn at random (sawtooth.link_estimate.random_links). Errors are |estimate / truth − 1|,
truth being the mean goodput of a flow over the same time. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sawtooth.link_estimate import RttSeries
from sawtooth.link_estimate.calibrate import Measured, corpus, learn, make, read
from sawtooth.link_estimate.estimate import Estimate, estimate
from sawtooth.link_estimate.features import FEATURES, OF_LOSS, features, vector
from sawtooth.link_estimate.gaussian import Gaussian
from sawtooth.link_estimate.model import COLUMNS, CongestionModel
from sawtooth.link_estimate.random_links import ALL, PROBES, USUAL, Link, LinkRanges, draw
from sawtooth.link_estimate.surrogate import surrogates

MODEL = Path(__file__).resolve().parents[1] / "src" / "sawtooth" / "data" / "congestion.json"
SHORT, STREAMS = 300, 5
"""For training links: 30 s with five series of probes give about as much information as 100 s with one, at a third of
the cost. Links with occasional transfers are observed for 100 s."""
DEAR_BPS = 1.5e9
"""Links faster than this cost as much as many slower ones, so only every fourth is made, and above twice this rate
every sixteenth."""
KERNEL = LinkRanges(rates_bps=(50e6, 400e6))
"""Links that the real kernel can run in reasonable time, about 100,000 packets per second."""
CALM, CALM_LINKS = LinkRanges(rates_bps=(50e6, 500e6), quiet=1.0), 150
"""Additional links without congestion, which cost almost nothing."""
SLOW = LinkRanges(rates_bps=(50e6, 150e6), quiet=0.0, flow_bps=(0.8e6, 1.2e6))
FAST = LinkRanges(rates_bps=(300e6, 700e6), quiet=0.0, flow_bps=(80e6, 120e6))
"""The source's question: does a flow get 1 or 100 Mbit/s?"""
BETWEEN_BPS = 10e6
SPLITS: dict[str, Callable[[Measured], bool]] = {
    "all": lambda _: True,
    "CUBIC, NewReno and both": lambda one: "bbr" not in controls(one),
    "some BBR, or BBR alone": lambda one: "bbr" in controls(one),
    "flows of one RTT": lambda one: len(rtts(one)) == 1,
    "flows of several RTTs": lambda one: len(rtts(one)) > 1,
    "up to 200 Mbit/s": lambda one: one.one.rate_bps <= 200e6,
    "200 Mbit/s to 1 Gbit/s": lambda one: 200e6 < one.one.rate_bps <= 1e9,
    "above 1 Gbit/s": lambda one: one.one.rate_bps > 1e9,
    "below 2 Mbit/s a flow": lambda one: one.throughput_bps < 2e6,
    "2 to 20 Mbit/s a flow": lambda one: 2e6 <= one.throughput_bps < 20e6,
    "above 20 Mbit/s a flow": lambda one: one.throughput_bps >= 20e6,
}

LAGS = tuple(name for name in FEATURES if name.startswith("lag"))
SOURCES = ("std_s", "increasing")
SUBSETS: dict[str, tuple[str, ...]] = {
    "standard deviation": ("std_s",),
    "mean, standard deviation": ("mean_s", "std_s"),
    "standard deviation, percent increasing": SOURCES,
    "these and loss": (*SOURCES, "loss"),
    "these, loss and asymmetry": (*SOURCES, "loss", "asymmetry"),
    "these, loss, asymmetry and autocorrelation": (*SOURCES, "loss", "asymmetry", *LAGS),
    "all": tuple(FEATURES),
    "all but the standard deviation": tuple(name for name in FEATURES if name != "std_s"),
    "all but percent increasing": tuple(name for name in FEATURES if name != "increasing"),
    "all but the losses": tuple(name for name in FEATURES if name not in OF_LOSS),
    "all but mean and range": tuple(name for name in FEATURES if name not in ("mean_s", "range_s")),
}


def affordable(link: Link, number: int) -> bool:
    return link.rate_bps <= DEAR_BPS or number % (4 if link.rate_bps <= 2 * DEAR_BPS else 16) == 0


def sets(links: int, kernel: int) -> dict[str, list[Link]]:
    """``links`` is the number of draws. In addition, there are half as many usual links, and a twelfth for tests."""

    def drawn(purpose: str, count: int, within: LinkRanges) -> list[Link]:
        found = [draw(purpose, number, within) for number in range(count)]
        return [one for number, one in enumerate(found) if within is USUAL or affordable(one, number)]

    def short(found: list[Link]) -> list[Link]:
        return [one if one.kind == "bursts" else replace(one, probes=SHORT, streams=STREAMS) for one in found]

    return {
        "train": short(drawn("train", links, ALL)),
        "calm": short([draw("calm", number, CALM) for number in range(CALM_LINKS)]),
        "usual": short(drawn("usual", links // 2, USUAL)),
        "test": drawn("test", links // 12, ALL),
        "kernel": [draw("kernel", number, KERNEL, engine="kernel") for number in range(kernel)],
        "question": [draw(name, at, which) for name, which in (("slow", SLOW), ("fast", FAST)) for at in range(25)],
    }


def controls(one: Measured) -> set[str]:
    assert isinstance(one.one, Link)
    return {group.cc for group in one.one.groups if not group.window_bytes}


def rtts(one: Measured) -> set[float]:
    assert isinstance(one.one, Link)
    return {group.rtt_s for group in one.one.groups if not group.window_bytes}


@dataclass(frozen=True)
class Trial:
    """A link that was not used for training, and its estimate."""

    link: Measured
    said: Estimate

    @property
    def error(self) -> float:
        return abs((self.said.throughput_bps or np.nan) / self.link.throughput_bps - 1)

    @property
    def holds(self) -> bool:
        high = np.inf if self.said.high_bps is None else self.said.high_bps
        return (self.said.low_bps or 0.0) <= self.link.throughput_bps <= high

    @property
    def factor(self) -> float:
        return self.said.high_bps / self.said.low_bps if self.said.high_bps and self.said.low_bps else np.inf


def trials(found: Sequence[Measured], model: CongestionModel, *, rate: bool = True) -> list[Trial]:
    return [
        Trial(one, estimate(one.series, model, rate_bps=float(one.one.rate_bps) if rate else None)[0]) for one in found
    ]


def accuracy(found: Sequence[Measured], model: CongestionModel, name: str) -> Iterator[str]:
    """For congested links: answers with the rate, then without."""
    congested = [one for one in found if one.state == "congested"]
    both = trials(congested, model), trials(congested, model, rate=False)
    for split, chosen in SPLITS.items():
        cells = []
        for tried in both:
            kept = [one for one in tried if chosen(one.link)]
            told = [one for one in kept if one.said.throughput_bps is not None]
            if not told:
                cells.append(f"0 of {len(kept)} | | | | ")
                continue
            errors = [one.error for one in told]
            cells.append(
                f"{len(told)} of {len(kept)} | {np.median(errors):.0%} | {np.quantile(errors, 0.9):.0%} | "
                f"{np.mean([one.holds for one in told]):.0%} | {np.median([one.factor for one in told]):.1f}"
            )
        if not cells[0].startswith("0 of 0"):
            yield f"| {name}: {split} | {' | '.join(cells)} |"


def states(found: dict[str, Sequence[tuple[str, RttSeries]]], model: CongestionModel) -> Iterator[str]:
    yield "| series, not trained on | called |"
    yield "|---|---|"
    for name, series in found.items():
        called = Counter((said := estimate(one, model)[0]).state or f"inconclusive: {said.reason}" for _, one in series)
        yield f"| {name} ({len(series)}) | {', '.join(f'{state}: {count}' for state, count in called.most_common())} |"


def state_series(found: Sequence[Measured]) -> dict[str, Sequence[tuple[str, RttSeries]]]:
    """Links by state, and variants of congested ones: idle at the end, another order, noise."""
    random = np.random.default_rng(77)
    congested = [one.series for one in found if one.state == "congested" and one.series.loss < 0.5]
    idle = [replace(one, rtt_s=np.where(np.arange(len(one)) < PROBES - 8, one.rtt_s, 0.002)) for one in congested]
    still = congested[0]
    quiet = [replace(still, rtt_s=0.02 + random.exponential(10**at, PROBES)) for at in np.linspace(-5.3, -3.7, 12)]
    uniform = [replace(still, rtt_s=random.uniform(0.02, 0.05, PROBES)) for _ in range(12)]
    noise = list(surrogates(congested, 60, random, still))
    made = {
        "congested": congested,
        "– the same with 8 idle probes at the end": idle,
        "busy": [one.series for one in found if one.state == "busy"],
        "idle": quiet,
        "uniform random RTTs of 20 to 50 ms": uniform,
        "noise of six kinds": noise,
    }
    return {name: [("", one) for one in series] for name, series in made.items()}


def unrecorded(found: Sequence[Measured], model: CongestionModel) -> Iterator[str]:
    """Only the answers of congested links, one after the other as if none were missing."""
    yield "| lost probes | told with them | without, and missed | without, and not missed | without: inconclusive |"
    yield "|---|---|---|---|---|"
    rows: dict[str, list[tuple[Trial, Trial]]] = {"up to 1%": [], "1 to 5%": [], "above 5%": []}
    for one in found:
        if one.state != "congested" or not 0 < one.series.loss < 0.5:
            continue
        known = one.series.rtt_s[one.series.answered]
        series = replace(one.series, rtt_s=np.resize(known, PROBES), clock="counted")
        name = "up to 1%" if one.series.loss <= 0.01 else "1 to 5%" if one.series.loss <= 0.05 else "above 5%"
        lacking = replace(one, streams=(series,))
        rows[name].append((trials([one], model)[0], trials([lacking], model)[0]))
    for name, pairs in rows.items():
        parts = {
            "with": [whole for whole, _ in pairs if whole.said.throughput_bps],
            "missed": [bare for _, bare in pairs if bare.said.throughput_bps and not bare.said.losses_known],
            "not": [bare for _, bare in pairs if bare.said.throughput_bps and bare.said.losses_known],
        }
        cells = [f"{len(part)}, {sum(one.holds for one in part)} inside" for part in parts.values()]
        yield f"| {name} ({len(pairs)}) | {' | '.join(cells)} | {sum(bare.said.state is None for _, bare in pairs)} |"


def question(found: Sequence[Measured], model: CongestionModel) -> Iterator[str]:
    """1 or 100 Mbit/s: which side of 10 the estimate is on."""
    yield "| a flow gets | rate given: right | wrong | inconclusive | no rate: right | wrong | inconclusive |"
    yield "|---|---|---|---|---|---|---|"
    for name in ("slow", "fast"):
        chosen = [one for one in found if one.one.name.startswith(name)]
        cells = []
        for rate in (True, False):
            told = [one for one in trials(chosen, model, rate=rate) if one.said.throughput_bps is not None]
            right = sum(((one.said.throughput_bps or 0) < BETWEEN_BPS) == (name == "slow") for one in told)
            cells += [str(right), str(len(told) - right), str(len(chosen) - len(told))]
        yield f"| {'1' if name == 'slow' else '100'} Mbit/s ({len(chosen)}) | {' | '.join(cells)} |"


def worth(found: Sequence[Measured], model: CongestionModel) -> Iterator[str]:
    """One process per subset, trained on the model's own rows with known rate: links left out, and the kernel's."""
    yield "| features | links left out: median | 90th percentile | kernel: median | 90th percentile |"
    yield "|---|---|---|---|---|"
    known = [one for one in found if one.state == "congested"]
    asked = np.array([[*vector(features(one.series)), 0.0, np.log(one.one.rate_bps)] for one in known])
    truth = np.log([one.throughput_bps for one in known])
    groups = np.round(30 * model.log_).astype(int)
    for name, chosen in SUBSETS.items():
        places = [COLUMNS.index(one) for one in (*chosen, "rate_bps")]
        process = Gaussian.learn(model.rows_[:, places], model.log_)
        pairs = ((process.held_out(groups)[0], model.log_), (process.predict(asked[:, places])[0], truth))
        errors = [np.abs(np.exp(mean - log) - 1) for mean, log in pairs]
        yield f"| {name} | {' | '.join(f'{np.median(one):.0%} | {np.quantile(one, 0.9):.0%}' for one in errors)} |"


def field(found: Sequence[Measured], out: Path) -> None:
    """The folder that ``python -m fidelity.field probes`` reads."""
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for one in found:
        if one.state is None:
            continue
        assert isinstance(one.one, Link)
        name = f"{one.one.name}.csv"
        lines = [
            f"{at * 0.1:.1f},{'' if np.isnan(rtt_s) else f'{rtt_s * 1e3:.3f}'}"
            for at, rtt_s in enumerate(one.series.rtt_s)
        ]
        (out / name).write_text("sent_s,rtt_ms\n" + "\n".join(lines) + "\n", encoding="utf-8")
        flow = f"{one.throughput_bps / 1e6:.4g}" if one.state == "congested" else ""
        rows.append([name, one.state, f"{one.one.rate_bps / 1e6:.4g}", flow, about(one.one)])
    with (out / "truth.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["file", "state", "rate_mbps", "flow_mbps", "about"])
        writer.writerows(rows)


def about(link: Link) -> str:
    """Like "210 Mbit/s, 43 ms of queue; 12 cubic at 20 ms; lives of 1 to 5 s"."""
    groups = [
        f"{group.count} {group.cc} at {group.rtt_s * 1e3:g} ms{' held' if group.window_bytes else ''}"
        for group in link.groups
    ]
    lives = f"lives of {link.lifetime_s[0]:.2g} to {link.lifetime_s[1]:.2g} s"
    return "; ".join([f"{link.rate_bps / 1e6:.0f} Mbit/s, {link.queue_s * 1e3:.0f} ms of queue", *groups, lives])


def picture(model: CongestionModel, found: dict[str, list[Measured]], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    figure, axis = plt.subplots(figsize=(6, 5.2), layout="constrained")
    looks = {"test": ("o", "#0072b2", "simulator"), "kernel": ("^", "#d55e00", "kernel")}
    for name, (mark, colour, label) in looks.items():
        tried = trials([one for one in found[name] if one.state == "congested"], model)
        told = [one for one in tried if one.said.throughput_bps and one.said.high_bps and one.said.low_bps]
        truth = np.array([one.link.throughput_bps for one in told]) / 1e6
        middle, low, high = (
            np.array([getattr(one.said, end) for one in told]) / 1e6
            for end in ("throughput_bps", "low_bps", "high_bps")
        )
        spread = [np.maximum(middle - low, 0), np.maximum(high - middle, 0)]
        axis.errorbar(truth, middle, spread, fmt=mark, ms=4, lw=0.8, color=colour, label=label)
    axis.plot([0.3, 150], [0.3, 150], color="black", lw=0.8)
    axis.set(xscale="log", yscale="log", xlabel="true goodput of a flow, Mbit/s", ylabel="estimate, Mbit/s")
    axis.set_title("Links that were not trained on, rate given, 90% intervals")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(out / "congestion-estimates.png", dpi=90)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "train", "table", "features", "field"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--links", type=int, default=1000)
    parser.add_argument("--kernel", type=int, default=0)
    parser.add_argument("--only", action="append", help="of the sets, like test; may be repeated (measure)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figures", type=Path)
    asked = parser.parse_args()
    if asked.what == "measure":
        for name, links in sets(asked.links, asked.kernel).items():
            if asked.only is not None and name not in asked.only:
                continue
            print(f"{name}: {len(links)}", flush=True)
            make(asked.directory / name, links, jobs=asked.jobs)
        return 0
    if asked.what == "train":
        model = learn(corpus(*(asked.directory / name for name in ("train", "usual", "calm"))))
        model.save(MODEL)
        print(f"{MODEL}: {MODEL.stat().st_size / 1e3:.0f} kB, {model.trained_on_}, held out {model.held_out_}")
        return 0
    found = {name: list(read(asked.directory / name)) for name in ("test", "kernel", "question")}
    if asked.what == "field":
        field(found["kernel"], asked.out)
        return 0
    model = CongestionModel.load(MODEL)
    if asked.what == "features":
        for line in worth(found["kernel"], model):
            print(line, flush=True)
        return 0
    heads = "answered | median error | 90th percentile | inside | factor"
    print(f"| links | {heads} | no rate: {heads} |\n|---|{'---|' * 10}")
    for name in ("test", "kernel"):
        print("\n".join(accuracy(found[name], model, name)), flush=True)
    print("\n" + "\n".join(states(state_series(found["test"]), model)), flush=True)
    print("\n" + "\n".join(unrecorded(found["test"], model)), flush=True)
    if found["question"]:
        print("\n" + "\n".join(question(found["question"], model)), flush=True)
    if asked.figures is not None:
        picture(model, found, asked.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
