"""Estimates the goodput that a connection would get without its losses, or with another congestion control, by
``whatif``.

Simulations run in separate processes: one after the other on part of one core with the lowest priority, and that of the
connection that the user chose at once. The table of the live view needs one number of each connection, which is rough
(``rough.py``); the chosen one gets the whole answer.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io.closing import Closing
from sawtooth.watch.connection import Connection
from sawtooth.watch.estimated import Expected, Pending, Range, untold
from sawtooth.watch.rough import rough
from sawtooth.whatif import Answer, Observed, estimate, replay
from sawtooth.whatif.observation import CONTROLS
from sawtooth.whatif.replay import FEWEST_RANKED

SHARE = 0.5
"""Largest part of one core that simulations in the background use."""
DRAWS = FEWEST_RANKED
"""Number of paths to draw: the fewest that give a 90% interval from order statistics."""
SHORTEST_S = 5.0
"""Least length of the window in seconds, before a path is estimated."""
STALE_S = 60.0
"""An estimate of a connection on the screen is renewed after this many seconds."""
FASTEST_BPS = 2e9
"""Largest rate. Above it, simulating one connection would take many minutes at this processor share."""
MOST = 2048
"""Number of estimates that are kept."""
Answering = Callable[[Observed], Expected]
HELD = {
    "application": "application-limited: the network is not the limit",
    "idle": "idle: nothing was sent",
    "pacing": "paced by its application: the network is not the limit",
}


def _waiting(what: str) -> Expected:
    return Expected(f"{Pending.WAITING.value}: {what}", Pending.WAITING)


def why_not(one: Connection) -> Expected | None:
    """Why a connection cannot be estimated, or not yet; None if it can."""
    if one.limit in HELD:
        return Expected(HELD[one.limit])
    if one.limit == "unknown":
        return _waiting("needs two samples")
    if one.window_s is None or one.window_s < SHORTEST_S:
        return _waiting(f"needs {SHORTEST_S:g} s of samples")
    if one.cc not in CONTROLS:
        return Expected(f"the simulator has no {one.cc}")
    if max(one.delivery_bps or 0, one.mean_bps or 0) > FASTEST_BPS:
        return Expected("too fast to simulate live: use sawtooth whatif")
    return None


def observed(one: Connection, fastest_bps: float | None = None) -> Observed:
    """The window of a connection as input of ``whatif``. ``fastest_bps``: highest delivery rate seen."""
    limited = {"receive window": one.receive_window_limited or 0.0, "send buffer": one.send_buffer_limited or 0.0}
    lost = (one.retransmits or 0) - (one.spurious or 0)
    return Observed(
        source="watch",
        what=f"watch, {one.ends}, {one.window_s or 0:.0f} s",
        goodput_bps=one.mean_bps,
        duration_s=one.window_s,
        from_start=False,
        cc=one.cc or None,
        cc_how="the kernel says so",
        mss=min(65400, max(48, one.mss_bytes or 1448)),
        segments=one.segments,
        retransmits=max(0, lost),
        rtt_min_s=one.rtt_min_s,
        rtt_mean_s=max(one.rtt_mean_s or 0, one.rtt_min_s or 0) or None,
        rtt_max_s=one.rtt_max_s,
        window_bytes=one.peer_window_bytes,
        limited={name: share for name, share in limited.items() if share > 0},
        delivery_bps=fastest_bps or one.delivery_bps,
        standing_bps=one.standing_bps,
        bottleneck_bps=one.bbr_bps if one.limit == "path" else None,
    )


def expect(seen: Observed, *, draws: int = DRAWS, seed: int = 1) -> Expected:
    """The whole answer. If no estimate is possible, it has a reason."""
    try:
        return _expect(seen, draws, seed)
    except SawtoothError as error:
        return Expected(reason=error.message)


def _paused(answer: Answering, seen: Observed, share: float) -> Expected:
    """Simulate, then pause for so long that the mean use of the processor is ``share`` of one core."""
    begun = time.process_time()
    try:
        return answer(seen)
    finally:
        time.sleep((time.process_time() - begun) * (1 / share - 1))


def _expect(seen: Observed, draws: int, seed: int) -> Expected:
    if (hindrance := untold(seen)) is not None:
        return hindrance
    assert seen.cc is not None
    found = replay(seen, estimate(seen), draws=draws, seed=seed, more=1)
    if found.test.verdict == "fails":
        return Expected(reason=f"no estimate: {found.test.words}", test=found.test.verdict)
    clean = [replace(one, loss=0.0) for one in found.paths]
    without = found.answer(seen.cc, found.runs.some(clean, seen.cc), clean, {})
    return Expected(lossless=_range(without), controls=tuple(map(_range, found.answers)), test=found.test.verdict)


def _range(answer: Answer) -> Range:
    shown = answer.describe()
    return Range(answer.cc, shown["goodput_bps"], shown["low_bps"], shown["high_bps"])


def _begin(share: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if share < 1:
        os.nice(19)
        # Threads of one replay share one processor.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class _Process:
    """A process that simulates one connection at a time; if ``share`` is below 1, on that part of one core with the
    lowest priority. ``answer`` is what it runs."""

    def __init__(self, share: float, answer: Answering) -> None:
        self._share, self._answer = share, answer
        self._pool: ProcessPoolExecutor | None = None
        self._future: Future[Expected] | None = None
        self.cookie: str | None = None
        """The connection that is being simulated."""

    def prepare(self) -> None:
        """Start the process, which takes most of a second. Raises OSError if there can be no process."""
        if self._pool is not None:
            return
        # The live view replaces sys.stderr with an object that has no file descriptor for a child process.
        with contextlib.redirect_stderr(sys.__stderr__):
            pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=(self._share,))
            pool.submit(os.getpid)
        self._pool = pool

    def start(self, cookie: str, seen: Observed) -> None:
        """Begin with a connection. Raises OSError as ``prepare`` does."""
        self.prepare()
        assert self._pool is not None
        try:
            self._future = self._pool.submit(_paused, self._answer, seen, self._share)
        except BrokenExecutor:
            # The process was killed while it waited.
            self._pool = None
            self.start(cookie, seen)
        self.cookie = cookie

    def finished(self) -> tuple[str, Expected] | None:
        """The connection that was simulated and its estimate, once."""
        if self.cookie is None or self._future is None or not self._future.done():
            return None
        cookie, self.cookie = self.cookie, None
        try:
            return cookie, replace(self._future.result(), at_s=time.monotonic())
        except BrokenExecutor:
            self._pool = None
            return cookie, self.none("the process that simulates has ended: not enough memory?")

    def none(self, why: str) -> Expected:
        """The reason why there is no estimate of the kind that this process gives."""
        return Expected(reason=why, at_s=time.monotonic(), rough=self._answer is rough)

    def close(self) -> None:
        """End the process, even during a simulation."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


class Expectations(Closing):
    """Estimates for the connections on the screen, as they become ready. The newest ``MOST`` are kept. With
    ``in_table``, those in the background are rough.

    The connection that the user chose has a separate process, which may use all cores. It waits at most for the one
    that was chosen before.
    """

    def __init__(self, *, in_table: bool = False) -> None:
        self._known: OrderedDict[str, Expected] = OrderedDict()
        self._rough: OrderedDict[str, Expected] = OrderedDict()
        self._fastest: OrderedDict[str, float] = OrderedDict()
        self._background, self._at_once = _Process(SHARE, rough if in_table else expect), _Process(1.0, expect)

    def close(self) -> None:
        """End the processes, even during a simulation."""
        self._background.close()
        self._at_once.close()

    @property
    def busy(self) -> bool:
        """Whether a simulation is running."""
        return self._background.cookie is not None or self._at_once.cookie is not None

    def brief(self, one: Connection) -> Expected:
        """What the table shows: the newer of the whole answer and the rough one, or the reason why there is none."""
        known, rough_ = self._known.get(one.cookie), self._rough.get(one.cookie)
        if rough_ is None or why_not(one) is not None or (known is not None and known.at_s >= rough_.at_s):
            return self.of(one)
        return rough_

    def of(self, one: Connection) -> Expected:
        """What is known now: the whole estimate, or the reason why there is none."""
        if (hindrance := why_not(one)) is not None:
            return hindrance
        if (known := self._known.get(one.cookie)) is not None:
            return known
        if one.cookie in (self._background.cookie, self._at_once.cookie):
            return Expected(Pending.RUNNING.value, Pending.RUNNING)
        return _waiting("other connections come first")

    def ask(self, shown: Collection[Connection], chosen: Connection | None = None) -> bool:
        """Collect finished estimates. Start the simulation of the first of ``shown`` that has none or an old one, and
        at once that of ``chosen``. Returns whether an estimate came."""
        for one in (*shown, *([] if chosen is None else [chosen])):
            rate = max(one.delivery_bps or 0.0, one.mean_bps or 0.0, self._fastest.get(one.cookie, 0.0))
            _keep(self._fastest, one.cookie, rate)
        came = [done for process in (self._background, self._at_once) if (done := process.finished()) is not None]
        for cookie, expected in came:
            self._add(cookie, expected)
        if chosen is not None:
            self._start(self._at_once, [chosen])
            if (reason := why_not(chosen)) is not None and reason.pending:
                # A connection's first seconds are enough to start the process.
                with contextlib.suppress(OSError):
                    self._at_once.prepare()
        self._start(self._background, shown)
        return bool(came)

    def _start(self, process: _Process, asked: Collection[Connection]) -> None:
        """Start the simulation of the connection whose estimate is missing or oldest, unless it is new enough."""
        now = time.monotonic()
        answers = [self._known] if process is self._at_once else [self._known, self._rough]
        age = {
            one.cookie: min(
                (now - known[one.cookie].at_s for known in answers if one.cookie in known), default=math.inf
            )
            for one in asked
            if why_not(one) is None
        }
        simulated = (self._background.cookie, self._at_once.cookie)
        old = [one for one in asked if age.get(one.cookie, 0.0) > STALE_S and one.cookie not in simulated]
        if process.cookie is not None or not old:
            return
        oldest = max(old, key=lambda one: age[one.cookie])
        try:
            process.start(oldest.cookie, observed(oldest, self._fastest.get(oldest.cookie)))
        except OSError as error:
            # For example in a container without /dev/shm, which locks between processes need.
            why = f"no process to simulate in: {error.strerror} (is there a /dev/shm?)"
            self._add(oldest.cookie, process.none(why))

    def _add(self, cookie: str, expected: Expected) -> None:
        _keep(self._rough if expected.rough else self._known, cookie, expected)


def _keep(kept: OrderedDict[str, Any], cookie: str, value: Any) -> None:
    kept[cookie] = value
    kept.move_to_end(cookie)
    while len(kept) > MOST:
        kept.popitem(last=False)
