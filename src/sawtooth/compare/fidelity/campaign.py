"""Campaign: runs one engine on a grid, with one seed after another, until the noise of each point is small or its
budget is used up.

Each finished run is saved at once, so a stopped campaign can be continued.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from sawtooth.compare.fidelity import measurements as ledgers
from sawtooth.compare.fidelity.engine_build import build
from sawtooth.compare.fidelity.grid import Budget, Point
from sawtooth.compare.fidelity.measurements import Ledger, Row
from sawtooth.compare.fidelity.measures import measure
from sawtooth.engines import get
from sawtooth.errors import SawtoothError
from sawtooth.io.parallel import Workers, fan_out, stop_requested
from sawtooth.io.progress_bar import Bar
from sawtooth.stats.interval import Mean

WANTED_NOISE = 0.01
"""Wanted standard error of the mean throughput, relative. The 95% interval's half-width is twice that with many runs;
with few runs it is larger, so they must agree better."""
_PATIENCE = 20.0
"""A run hangs if its wall time exceeds the point's budget of processor time by this factor."""


def enough(rows: Sequence[Row], budget: Budget) -> bool:
    """Whether to stop: more runs would not help or are not allowed. At least two runs are made, even if the processor
    time is used up."""
    n = len(rows)
    spent_s = math.fsum(row["cpu_s"] for row in rows)
    if n >= budget.runs or (n >= 2 and budget.cpu is not None and spent_s * (n + 1) / n > budget.cpu.seconds):
        return True
    if n < budget.least:
        return False
    mean = Mean.of([row["mean_mbps"] for row in rows])
    return mean.half() <= 2 * WANTED_NOISE * mean.value


@dataclass
class Campaign:
    """``jobs`` points run in parallel, or as many as ``executor`` takes. ``done`` is called in the caller's thread with
    each point's rows, in any order.

    Runs of the same build in this user's cache are reused.
    """

    engine: str
    jobs: int
    done: Callable[[Point, list[Row]], None]
    quiet: bool = False
    executor: Executor | Workers | None = None
    failures: dict[str, SawtoothError] = field(default_factory=dict)
    _books: dict[str, Ledger] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _running: dict[str, float] = field(default_factory=dict)

    def run(self, points: Sequence[Point]) -> None:
        """Run all points. If one fails, the others continue. Raises SawtoothError: the first failure, at the end; as
        the engine's ``check``, before the start; ``interrupted`` after Ctrl-C."""
        engine = get(self.engine)
        for point in points:
            try:
                engine.check(point.scenario)
            except SawtoothError as error:
                raise error.at(field=f"point {point.name}") from error
        finished = 0
        # In the order of digests, which is random but fixed: the remaining time can be estimated, and every part of the
        # work is a sample of the grid.
        order = sorted(points, key=lambda point: point.question)

        def done(number: int, answer: list[Row] | SawtoothError) -> None:
            nonlocal finished
            finished += 1
            try:
                if isinstance(answer, SawtoothError):
                    raise answer
                self.done(order[number], answer)
            except SawtoothError as error:
                self.failures[order[number].name] = error

        def poll() -> None:
            with self._lock:
                bar.show(min(len(points), finished + math.fsum(self._running.values())))

        with Bar(self.engine, len(points), quiet=self.quiet) as bar:
            try:
                if self.executor is None:
                    # Threads are enough, because engines do not hold Python's lock: the core releases it, and a guest
                    # is another process.
                    fan_out(self._tried, order, done=done, poll=poll, stop=self._stop.set, jobs=self.jobs, threads=True)
                else:
                    self._elsewhere(self.executor, order, done, poll)
            except KeyboardInterrupt:
                message = (
                    f"interrupted; {finished} of {len(points)} points are finished, and every finished run is kept"
                )
                fix = "run the same command again: it continues where this one stopped"
                raise SawtoothError("interrupted", message, fix=fix) from None
        if self.failures:
            name, first = next(iter(self.failures.items()))
            others = [other for other in self.failures if other != name]
            message = first.message + (f" (failed as well: {', '.join(others)})" if others else "")
            raise SawtoothError(first.code, message, file=first.file, field=f"point {name}", fix=first.fix)

    def _tried(self, point: Point) -> list[Row] | SawtoothError:
        try:
            return self._point(point)
        except SawtoothError as error:
            return error

    def _point(self, point: Point) -> list[Row]:
        with self._lock:
            book, digest, rows = self._known(point)
        budget = point.budget.of(self.engine)
        try:
            made = _further(self.engine, point, digest, rows, self._stop.is_set)
            while True:
                with self._lock:
                    self._running[point.name] = min(0.9, _share(rows, budget))
                row = next(made, None)
                if row is None:
                    return rows
                rows.append(row)
                with self._lock:
                    book.append(row)
        finally:
            with self._lock:
                self._running.pop(point.name, None)

    def _known(self, point: Point) -> tuple[Ledger, str, list[Row]]:
        """The file for a point's runs, the build that makes them on this machine, and the existing runs."""
        digest, about = build(self.engine, point.scenario)
        if digest not in self._books:
            self._books[digest] = Ledger.load(ledgers.cache(self.engine, digest))
        book = self._books[digest]
        book.about[digest] = about
        return book, digest, book.of(point.question, digest)

    def _elsewhere(
        self,
        executor: Executor | Workers,
        order: list[Point],
        done: Callable[[int, list[Row] | SawtoothError], None],
        poll: Callable[[], None],
    ) -> None:
        """All further runs of a point are returned together. If a worker dies, another repeats them all."""
        known = [self._known(point) for point in order]
        tasks = [(point, digest, rows) for point, (_, digest, rows) in zip(order, known, strict=True)]

        def keep(number: int, answer: list[Row] | SawtoothError) -> None:
            if isinstance(answer, SawtoothError):
                done(number, answer)
                return
            book, _, rows = known[number]
            for row in answer:
                book.append(row)
            done(number, [*rows, *answer])

        fan_out(partial(_away, self.engine), tasks, done=keep, poll=poll, stop=self._stop.set, executor=executor)

    def about(self, digest: str) -> object:
        """What a build's digest in the rows stands for."""
        return self._books[digest].about[digest]


def _away(engine: str, task: tuple[Point, str, list[Row]]) -> list[Row] | SawtoothError:
    """Runs in a worker. The worker must have the same build as the caller."""
    point, digest, rows = task
    try:
        here, _ = build(engine, point.scenario)
        if here != digest:
            fix = "build the same kernel there (sawtooth kernel build), with the same sawtooth"
            raise SawtoothError("unsupported", f"a worker's {engine} is another build: {here}, not {digest}", fix=fix)
        return list(_further(engine, point, digest, rows, stop_requested))
    except SawtoothError as error:
        return error


def _further(
    engine: str, point: Point, digest: str, there: Sequence[Row], cancelled: Callable[[], bool]
) -> Iterator[Row]:
    """Make runs in addition to the existing ones, until there are enough."""
    rows = list(there)
    while not enough(rows, point.budget.of(engine)):
        seed = 1 + max((int(row["seed"]) for row in rows), default=0)
        rows.append(_run(engine, point, seed, cancelled) | {"engine": digest})
        yield rows[-1]


def _run(engine: str, point: Point, seed: int, cancelled: Callable[[], bool]) -> Row:
    begun, used_s = time.monotonic(), time.thread_time()
    allowed = point.budget.of(engine).cpu
    limit_s = allowed.seconds * _PATIENCE if allowed is not None else math.inf

    def stop() -> bool:
        return cancelled() or time.monotonic() - begun > limit_s

    try:
        run = get(engine).run(point.scenario.set({"seed": seed}), stop=stop)
    except SawtoothError as error:
        if error.code != "interrupted" or cancelled():
            raise
        message = f"took longer than {limit_s:.0f} s with the seed {seed}"
        raise SawtoothError("guest-timeout", message, fix="shorten its duration") from error
    return {
        "point": point.name,
        "question": point.question,
        "seed": seed,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu_s": float(run.meta.get("cpu_s", time.thread_time() - used_s)),
        **measure(run),
    }


def _share(rows: Sequence[Row], budget: Budget) -> float:
    """Estimated fraction of a point's work that is done, for the progress bar."""
    if len(rows) < 2:
        return len(rows) / (budget.least + 1)
    means = [row["mean_mbps"] for row in rows]
    noise = statistics.stdev(means) / math.sqrt(len(rows)) / (statistics.fmean(means) or 1)
    return max(len(rows) / budget.runs, min(1.0, (WANTED_NOISE / noise) ** 2 if noise else 1.0))
