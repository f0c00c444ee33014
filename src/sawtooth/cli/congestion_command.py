"""The commands ``congestion calibrate``, ``estimate`` and ``report``: how congested is a link, measured from the edge
of the network?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import Group
from sawtooth.cli.terminal import is_quiet, say, say_folded
from sawtooth.cli.workers import ClusterOptions, cluster_options, workers
from sawtooth.errors import InputError, SawtoothError
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from sawtooth.io.progress_bar import Bar
    from sawtooth.link_estimate.estimate import Estimate
    from sawtooth.link_estimate.model import CongestionModel
    from sawtooth.link_estimate.series import RttSeries
    from sawtooth.link_estimate.together import Narrower

_SHARES = {"cubic": 1.0, "reno": 0.0, "mixed": 0.5}


@click.group(cls=Group, short_help="Estimate what TCP flows get on a congested link.")
def congestion() -> None:
    """Estimate what TCP flows get on a congested link that you can only probe.

    estimate answers from RTT series, report writes a page about them, and calibrate makes a model for another kind of
    link. See docs/reference/congestion.md.
    """


def _inputs(command: Callable[..., None]) -> Callable[..., None]:
    """The parameters that "estimate" and "report" share."""
    for option in reversed(
        [
            click.argument("files", metavar="SERIES...", nargs=-1, required=True),
            click.option("--near", metavar="FILE", help="Series to the link's near end, subtracted from each SERIES."),
            click.option(
                "--model", "model_file", metavar="FILE", help="Model written by calibrate (default: the bundled model)."
            ),
            click.option(
                "--assumed-rtt", help='Mean base RTT of the link\'s TCP flows, like "20 ms", where it is known.'
            ),
            click.option(
                "--rate", help='Rate of the link, if known, like "1 Gbit/s": it narrows the confidence interval.'
            ),
            click.option("--pace", help='Time between probes, if SERIES does not say, like "100 ms".'),
        ]
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class _Inputs:
    """The links, with the values of the options of ``_inputs``."""

    links: list[RttSeries]
    model: CongestionModel
    rtt_s: float | None
    rate_bps: float | None

    @classmethod
    def read(
        cls,
        files: tuple[str, ...],
        near: str | None,
        model_file: str | None,
        assumed_rtt: str | None,
        rate: str | None,
        pace: str | None,
    ) -> _Inputs:
        from sawtooth.link_estimate.inputs import read_series
        from sawtooth.link_estimate.model import CongestionModel

        model = CongestionModel.default() if model_file is None else CongestionModel.load(model_file)
        rtt_s = None if assumed_rtt is None else _parsed("Span", assumed_rtt, "--assumed-rtt") / 1e9
        rate_bps = None if rate is None else float(_parsed("Rate", rate, "--rate"))
        pace_s = None if pace is None else _parsed("Span", pace, "--pace") / 1e9
        base = None
        if near is not None:
            found = read_series(near, pace_s=pace_s)
            if len(found) != 1:
                fix = "give a file with one"
                raise InputError("not-a-series", f"it has {len(found)} series", file=near, field="--near", fix=fix)
            base = found[0]
        links = [link for file in files for link in _links(read_series(file, pace_s=pace_s), base)]
        return cls(links, model, rtt_s, rate_bps)


@dataclass(frozen=True)
class _Answer:
    """The windows of one series, the answer for all of them together, and what would narrow it."""

    windows: list[Estimate]
    whole: Estimate | None
    narrower: list[Narrower]

    def describe(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "source": self.windows[0].source,
            "together": None if self.whole is None else self.whole.describe(),
            "narrower": [one.describe() for one in self.narrower],
        }


@contextmanager
def _named_options() -> Iterator[None]:
    """If an assumed value is outside the model's range, the error names its option."""
    try:
        yield
    except SawtoothError as error:
        if error.code != "out-of-range" or error.field not in ("rate_bps", "rtt_s"):
            raise
        option = "--rate" if error.field == "rate_bps" else "--assumed-rtt"
        raise InputError(error.code, error.message, field=option, fix=error.fix) from None


@congestion.command(short_help="Estimate the goodput of a TCP flow from RTT series.")
@_inputs
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(assumed_rtt: str | None, rate: str | None, as_json: bool, **given: Any) -> None:
    """Estimate the mean goodput of a TCP flow on the link that SERIES crossed, per 1,000 probes.

    SERIES is a file from sawtooth probe, output of ping, results of scamper or RIPE Atlas, CSV, or a saved run. A file
    from probe link is one link: its far series minus its near one. If a series does not allow an answer, the command
    says "inconclusive" and why.

    \b
      sawtooth congestion estimate far.csv --near near.csv --rate "1 Gbit/s"
    """
    from sawtooth.io.progress_bar import Bar
    from sawtooth.link_estimate.estimate import estimate as estimated
    from sawtooth.link_estimate.together import narrower, together

    answers: list[_Answer] = []
    with Bar("estimating", 1, quiet=is_quiet()) as bar, _named_options():
        with _ticking(bar):
            inputs = _Inputs.read(assumed_rtt=assumed_rtt, rate=rate, **given)
        for number, link in enumerate(inputs.links):

            def show(done: float, before: int = number) -> None:
                bar.show((before + done) / len(inputs.links))

            known = {"rtt_s": inputs.rtt_s, "rate_bps": inputs.rate_bps}
            windows = estimated(link, inputs.model, **known, progress=show)
            whole = together(windows, inputs.model, **known)
            answers.append(_Answer(windows, whole, narrower(windows, whole, inputs.model, **known)))
    if as_json:
        assumed = {"rtt_s": inputs.rtt_s, "rate_bps": inputs.rate_bps, "level": inputs.model.level}
        windows = [one for answer in answers for one in answer.windows]
        values = {
            "assumed": assumed,
            "estimates": [one.describe() for one in windows],
            "series": [answer.describe() for answer in answers],
        }
        say(json.dumps(values, indent=2, ensure_ascii=False))
    else:
        say_folded(_text(answers, inputs.model, assumed_rtt, rate))


@congestion.command(short_help="Write a page about a link from RTT series.")
@_inputs
@click.option("--out", required=True, metavar="DIRECTORY", help="New directory for the page and its figures.")
def report(out: str, **given: Any) -> None:
    """Write a page about SERIES: the estimate, with figures and their tables.

    The page has the verdict, the RTTs, their distribution, the pattern over the hours of the day if the series is long
    enough, goodput per flow over time, and the link's place on the calibration curves. It writes DIRECTORY/report.html,
    which needs no network, and DIRECTORY/plots.

    \b
      sawtooth congestion report link.csv --rate "1 Gbit/s" --out link
    """
    from sawtooth.io.progress_bar import Bar
    from sawtooth.link_estimate.report import Assumed, write_report

    with Bar("reporting", 1, quiet=is_quiet()) as bar, _named_options():
        with _ticking(bar):
            inputs = _Inputs.read(**given)
        page = write_report(inputs.links, Path(out), inputs.model, Assumed(inputs.rtt_s, inputs.rate_bps), bar.show)
    say(f"report: {where(page)}")


@contextmanager
def _ticking(bar: Bar) -> Iterator[None]:
    """Keeps the bar's clock running during work that cannot report its progress."""
    done = Event()

    def tick() -> None:
        while not done.wait(0.5):
            bar.show(0)

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _links(found: list[RttSeries], base: RttSeries | None) -> list[RttSeries]:
    """The series of a file, with the link's near end subtracted if it is known."""
    from sawtooth.link_estimate.series import difference

    if base is None and [series.label for series in found] == ["near", "far"]:
        return [difference(found[1], found[0])]
    return found if base is None else [difference(series, base) for series in found]


@congestion.command(short_help="Calibrate a model from series of known goodput.")
@click.option("--out", required=True, metavar="DIRECTORY", help="Directory for the series, their table and the model.")
@click.option(
    "--rate", "rates", multiple=True, default=("1 Gbit/s",), show_default=True, help="Rate of the link; repeatable."
)
@click.option("--queue", default="48 ms", show_default=True, help="Buffer of the link, as a time at its rate.")
@click.option(
    "--rtt", "rtts", multiple=True, default=("20 ms",), show_default=True, help="Base RTT of the flows; repeatable."
)
@click.option(
    "--cc",
    "controls",
    multiple=True,
    type=click.Choice(list(_SHARES)),
    help="Congestion control of the flows; repeatable (default: all).",
)
@click.option(
    "--flows",
    multiple=True,
    type=click.IntRange(1, 20_000),
    help="Number of flows; repeatable (default: so that each gets 100 … 1 Mbit/s).",
)
@click.option("--seeds", type=click.IntRange(1, 100), default=1, show_default=True, help="Seeds per combination.")
@click.option(
    "--engine",
    type=click.Choice(["sim", "kernel"]),
    default="sim",
    show_default=True,
    help="Engine that makes the series.",
)
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one per core).")
@cluster_options
def calibrate(
    out: str,
    rates: tuple[str, ...],
    queue: str,
    rtts: tuple[str, ...],
    controls: tuple[str, ...],
    flows: tuple[int, ...],
    seeds: int,
    engine: str,
    jobs: int | None,
    cluster: ClusterOptions | None,
) -> None:
    """Calibrate a model for a kind of link, from simulated series of known goodput.

    A measurement of 100 s at 1 Gbit/s takes about 3 s on one core. Ctrl-C keeps what is finished, and the same command
    continues. Needs scikit-learn.

    \b
      sawtooth congestion calibrate --rate "100 Mbit/s" --queue "100 ms" --out my-link
    """
    from sawtooth.link_estimate.calibrate import corpus, grid, learn, make, usual_flows
    from sawtooth.link_estimate.gaussian import scikit

    # Check for scikit-learn now, not after the long work.
    scikit("gaussian_process")
    rates_bps = [_parsed("Rate", rate, "--rate") for rate in rates]
    measurements = [
        one
        for rate_bps in dict.fromkeys(rates_bps)
        for one in grid(
            rates_bps=[rate_bps],
            queue_s=_parsed("Span", queue, "--queue") / 1e9,
            rtts_s=[_parsed("Span", rtt, "--rtt") / 1e9 for rtt in dict.fromkeys(rtts)],
            cubic_shares=[_SHARES[cc] for cc in dict.fromkeys(controls or _SHARES)],
            flows=flows or usual_flows(rate_bps),
            seeds=range(1, seeds + 1),
            engine=engine,
        )
    ]
    directory, start = Path(out), time.monotonic()
    with workers(cluster, jobs) as executor:
        make(directory / "series", measurements, jobs=jobs, executor=executor, quiet=is_quiet())
    table = corpus(directory / "series")
    try:
        model = learn(table)
    except ValueError as error:
        raise InputError("out-of-range", str(error), fix="give more --flows, --cc or --seeds") from None
    from sawtooth.io.atomic_io import write_bytes

    write_bytes(directory / "corpus.csv", table.to_csv(index=False).encode())
    model.save(directory / "model.json")
    say(f"{len(measurements)} measurements, {time.monotonic() - start:.0f} s")
    for name, errors in model.held_out_.items():
        median, p90 = errors["median"], errors["p90"]
        say(f"  held-out numbers of flows, {name}: median error {median:.1%}, 90th percentile {p90:.1%}")
    for name, made in (("series", "series"), ("table", "corpus.csv"), ("model", "model.json")):
        say(f"{name}: {where(directory / made)}")


def _parsed(unit: str, given: str, option: str) -> int:
    """A quantity in ns or bit/s."""
    from sawtooth.scenario import Rate, Span

    try:
        return Span.parse(given).ns if unit == "Span" else Rate.parse(given).bps
    except SawtoothError as error:
        raise error.at(field=option) from None


def _text(answers: list[_Answer], model: CongestionModel, assumed_rtt: str | None, rate: str | None) -> str:
    from sawtooth.link_estimate.together import narrower_text

    low, high = (f"{end / 1e6:,.0f}" for end in model.trained_on_["rate_bps"])
    link = f"a link of {rate}" if rate else f"a link of unknown rate, {low} to {high} Mbit/s"
    flows = f"{assumed_rtt} base RTT" if assumed_rtt else "any base RTT"
    lines = [f"assumed: TCP flows of {flows}, {link}; {model.level:.0%} intervals"]
    source: Any = None
    for answer in answers:
        for one in [*answer.windows, *([answer.whole] if answer.whole else [])]:
            if one.source != source:
                source = one.source
                lines.append(f"{where(source)}:")
            lines.append(f"  {_seconds(one.start_s)} … {_seconds(one.end_s)} s: {_answer(one)}")
        if answer.narrower:
            lines.append(f"  {narrower_text(answer.narrower)}")
    return "\n".join(lines)


def _seconds(value_s: float) -> str:
    # A series that is refused because of a wrong unit may have values with 20 digits.
    return f"{value_s:.1f}" if abs(value_s) < 1e12 else f"{value_s:.4g}"


def _answer(one: Estimate) -> str:
    if one.state is None:
        return f"inconclusive ({one.reason}): {one.text}"
    if one.throughput_bps is None:
        return f"{one.state}: {one.text}"
    return f"{one.text}: {one.gets} a flow ({one.within})"
