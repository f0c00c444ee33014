"""The command ``watch``: the connections of this host, live."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.terminal import is_quiet, say, say_folded, say_on_stderr, width
from sawtooth.errors import INTERRUPTED, InputError, SawtoothError, install_extra
from sawtooth.sanitize import plain, where

if TYPE_CHECKING:
    from sawtooth.watch import Connection, LiveMoment, Watcher
    from sawtooth.watch.expected import Expectations
    from sawtooth.watch.metrics import Metrics
    from sawtooth.watch.record import Recorder
    from sawtooth.watch.replay import RecordedMoment, Recording
    from sawtooth.watch.screen import Screen
    from sawtooth.watch.watcher import Moment

_PATIENCE_S = 120.0
_MOST_SHOWN = 50
_MOST_EXPECTED = 10
"""Default number of connections that are simulated."""
_SORTS = ["goodput", "received", "delivery", "loss", "retransmits", "rtt", "cwnd", "peer"]


@click.command(cls=Command, short_help="Show what limits the connections of this host.")
@click.argument("words", metavar="[FILTER]...", nargs=-1)
@click.option("--once", is_flag=True, help="Take two samples one interval apart, print the result, and exit.")
@click.option("--interval", type=float, metavar="SECONDS", help="Time between samples, in seconds (default: 1).")
@click.option("--count", type=click.IntRange(1), help="Exit after N samples.")
@click.option("--sort", default="goodput", show_default=True, type=click.Choice(_SORTS), help="Sort by this column.")
@click.option("--top", type=click.IntRange(1), help="Show at most N connections (default: 50; all with --json).")
@click.option("--netns", metavar="NAME|PID", help="Watch another network namespace: its name, or a process in it.")
@click.option(
    "--expect",
    "expected",
    is_flag=True,
    help="Also simulate what each connection would get with other controls; --once waits for it.",
)
@click.option("--record", "recorded", type=str, metavar="FILE", help="Also write every sample to this Parquet file.")
@click.option("--replay", "replayed", type=str, metavar="FILE", help="Show a file written by --record.")
@click.option(
    "--speed",
    type=click.FloatRange(1 / 16, 256),
    metavar="TIMES",
    help="Speed of --replay, as a multiple of real time (default: 1; without a terminal, all at once).",
)
@click.option(
    "--prometheus", "port", metavar=":PORT", help="Also serve totals for Prometheus on this port of loopback."
)
@click.option("--lines", is_flag=True, help="Print plain lines even on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per sample.")
def watch(
    words: tuple[str, ...],
    once: bool,
    interval: float | None,
    count: int | None,
    sort: str,
    top: int | None,
    netns: str | None,
    expected: bool,
    recorded: str | None,
    replayed: str | None,
    speed: float | None,
    port: str | None,
    lines: bool,
    as_json: bool,
) -> None:
    """Show what limits the TCP connections of this host, and what loss costs them.

    FILTER selects connections in the syntax of ss: dst 192.0.2.0/24, dport = :443, port 443, process NAME, cc cubic,
    joined by and, or, not and parentheses. It needs no privilege and names what it cannot see.

    \b
      sawtooth watch --once
      sawtooth watch dst 192.0.2.0/24 and not cc bbr
      sawtooth watch --json --count 60 > connections.jsonl
    """
    from sawtooth.watch import Connections, Watcher
    from sawtooth.watch.background_estimates import awaited
    from sawtooth.watch.expected import Expectations
    from sawtooth.watch.sampler import check_interval
    from sawtooth.watch.sampler import samples as samples_of

    between_s = 1.0 if interval is None else interval
    check_interval(between_s, "--interval")
    if once and count is not None:
        raise InputError("bad-usage", "--once means --count 1", field="--count", fix="remove --once or --count")
    if replayed is not None:
        live = {"--once": once or None, "--interval": interval, "--netns": netns, "--record": recorded}
        for name, value in (live | {"--prometheus": port}).items():
            if value is not None:
                fix = (
                    f"remove {name} or --replay; --count 1 shows the first sample of a recording, --speed sets its pace"
                )
                raise InputError("bad-usage", "does not apply to --replay", field=name, fix=fix)
        view = _View(sort, top, as_json=as_json)
        with _left(count is None), contextlib.ExitStack() as open_:
            recording = open_.enter_context(_recording(replayed, " ".join(words)))
            played = recording.samples()
            if (first := next(played, None)) is None:
                say_on_stderr(f"{where(replayed)}: nothing was sampled while it was recorded")
                return
            played = itertools.chain([first], played)
            if sys.stdout.isatty() and not (as_json or lines or count is not None):
                _replay(recording, played, sort, speed or 1.0)
                return
            expectations = open_.enter_context(Expectations()) if expected else None
            for moment in itertools.islice(_paced(played, speed), count):
                view.show(moment, expectations)
        return
    if speed is not None:
        raise InputError("bad-usage", "requires --replay", field="--speed", fix="remove --speed, or add --replay FILE")
    # Ctrl-C ends a recording normally, so do not suggest to repeat the command.
    with _left(recorded is not None or not (once or count)), contextlib.ExitStack() as open_:
        source = open_.enter_context(Connections(netns))
        watcher = Watcher(source, filter=" ".join(words))
        takers: list[Callable[[LiveMoment], None]] = []
        if port is not None:
            metrics = open_.enter_context(_metrics(port))
            if not is_quiet():
                say_on_stderr(f"served on http://127.0.0.1:{metrics.port}/metrics")
            takers.append(metrics.add)
        if recorded is not None:
            takers.append(open_.enter_context(_recorder(Path(recorded))).add)
        if sys.stdout.isatty() and not (once or as_json or lines or count is not None):
            _live(watcher, between_s, sort, takers)
            return
        view = _View(sort, top, as_json=as_json)
        expectations = open_.enter_context(Expectations()) if expected else None
        if once and expectations is not None:
            samples = _taken(samples_of(watcher, between_s, None), takers)
            count_all = top or (None if as_json else _MOST_SHOWN)
            seen, shown = awaited(samples, sort, count_all, top or _MOST_EXPECTED, expectations, _PATIENCE_S)
            view.show_connections(seen, shown, expectations)
            return
        for seen in _taken(samples_of(watcher, between_s, 1 if once else count), takers):
            view.show(seen, expectations)


@contextlib.contextmanager
def _left(ends: bool) -> Iterator[None]:
    """For output that only ends with Ctrl-C: leave without the message to repeat the command. Exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        if not ends:
            raise
        raise click.exceptions.Exit(INTERRUPTED) from None


@contextlib.contextmanager
def _recorder(path: Path) -> Iterator[Recorder]:
    """At the end, print what was written, and where."""
    from sawtooth.watch.record import Recorder

    recorder = Recorder(path)
    try:
        with recorder:
            yield recorder
    finally:
        if not is_quiet():
            kept = path if recorder.whole else recorder.parts
            say_on_stderr(f"{where(kept)}: {recorder.samples} sample{'s' * (recorder.samples != 1)}")


def _taken(samples: Iterable[LiveMoment], takers: Sequence[Callable[[LiveMoment], None]]) -> Iterator[LiveMoment]:
    for seen in samples:
        _take(takers, seen)
        yield seen


def _take(takers: Sequence[Callable[[LiveMoment], None]], seen: LiveMoment) -> None:
    for taker in takers:
        taker(seen)


def _metrics(port: str) -> Metrics:
    digits = port.removeprefix(":")
    if not (digits.isascii() and digits.isdecimal() and int(digits[:6]) <= 65535 and len(digits) <= 5):
        fix = "write it like --prometheus :9090; only this machine can read it"
        raise InputError("bad-usage", f'"{plain(port, 40)}" is not a port', field="--prometheus", fix=fix)
    try:
        from sawtooth.watch.metrics import Metrics
    except ImportError as error:
        raise _extra("--prometheus", error) from error
    return Metrics(int(digits))


def _extra(what: str, error: ImportError) -> SawtoothError:
    message = f"{what} needs {plain((error.name or 'a package').partition('.')[0], 40)}"
    fix = f"{install_extra('watch')}; --lines, --once and --json work without it"
    return SawtoothError("tool-missing", message, fix=fix)


def _live(watcher: Watcher, interval: float, sort: str, takers: Sequence[Callable[[LiveMoment], None]] = ()) -> None:
    """Show the live view until the user quits. Raises SawtoothError ``tool-missing`` without Textual."""

    def sample() -> LiveMoment:
        seen = watcher.sample()
        _take(takers, seen)
        return seen

    _show(next_sample=sample, interval_s=interval, sort=sort, narrow=watcher.narrow)


def _show(**view: Any) -> None:
    from sawtooth.watch.expected import Expectations

    try:
        from sawtooth.watch.screen import Screen
    except ImportError as error:
        raise _extra("the live view", error) from error
    with Expectations(in_table=True) as expectations:
        _run(Screen(**view, expectations=expectations))


def _run(screen: Screen) -> None:
    with contextlib.redirect_stdout(getattr(sys.stdout, "_stream", sys.stdout)):
        screen.run()
    if screen.failed is not None:
        raise screen.failed
    if screen.return_code:
        fix = "this is a defect of sawtooth: please report it; --lines, --once and --json work without the view"
        raise SawtoothError("internal", "the live view failed", fix=fix)
    if screen.interrupted:
        raise KeyboardInterrupt


def _recording(path: str, filter: str) -> Recording:
    from sawtooth.watch.replay import Recording

    return Recording(Path(path), filter=filter)


def _replay(recording: Recording, samples: Iterator[RecordedMoment], sort: str, speed: float) -> None:
    """Show a recording in the live view. Raises SawtoothError ``not-a-recording``, ``tool-missing``."""
    from sawtooth.watch.player import Player

    _show(sort=sort, narrow=recording.narrow, player=Player(samples, speed))


def _paced(samples: Iterator[RecordedMoment], speed: float | None) -> Iterator[RecordedMoment]:
    """All samples; with a speed, at the original intervals divided by it."""
    before = None
    for sample in samples:
        if speed is not None and before is not None:
            time.sleep((sample.at_s - before) / speed)
        before = sample.at_s
        yield sample


class _View:
    """Prints samples, one after the other."""

    def __init__(self, sort: str, top: int | None, *, as_json: bool) -> None:
        self._sort, self._top, self._as_json = sort, top, as_json
        self._said: list[str] = []
        self._begun = False

    def show(self, seen: Moment, expectations: Expectations | None) -> None:
        """One sample."""
        shown = seen.first(self._sort, self._top or (None if self._as_json else _MOST_SHOWN))
        if expectations is not None:
            expectations.ask(shown[: self._top or _MOST_EXPECTED])
        self.show_connections(seen, shown, expectations)

    def show_connections(self, seen: Moment, shown: Sequence[Connection], expectations: Expectations | None) -> None:
        """Print these connections of a sample, with their estimates as far as known."""
        from sawtooth.watch.text import expected_lines, lines, unseen
        from sawtooth.watch.watcher import described

        if self._as_json:
            values = described(seen, shown)
            if expectations is not None:
                for row, one in zip(values["connections"], shown, strict=True):
                    row["expected"] = expectations.of(one).describe()
            say(json.dumps(values, ensure_ascii=False, allow_nan=False))
            return
        if self._begun:
            say("")
        self._begun = True
        say("\n".join(lines(seen, shown, width())))
        if expectations is not None:
            for one in shown[: self._top or _MOST_EXPECTED]:
                say_folded("\n".join(expected_lines(one, expectations.of(one))))
        new = [line for line in unseen(seen) if line not in self._said]
        if new and not is_quiet():
            say_on_stderr("\n".join(new))
            self._said += new
