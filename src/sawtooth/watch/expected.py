"""Estimates the goodput that a connection would get without its losses, or with another congestion control, by
``whatif``.

Simulations run one after the other in a separate process with low priority, using part of one core.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from enum import Enum
from multiprocessing import get_context
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io.closing import Closing
from sawtooth.watch.connection import Connection
from sawtooth.whatif import Answer, Observed, estimate, replay
from sawtooth.whatif.observation import CONTROLS
from sawtooth.whatif.replay import FEWEST_RANKED

SHARE = 0.5
"""Largest part of one core that simulations use."""
DRAWS = FEWEST_RANKED
"""Number of paths to draw: the fewest that give a 90% interval from order statistics."""
SHORTEST_S = 5.0
"""Least length of the window in seconds, before a path is estimated."""
STALE_S = 60.0
"""An estimate of a connection on the screen is renewed after this many seconds."""
FASTEST_BPS = 2e9
"""Largest rate. Above it, simulating one connection would take many minutes at this processor share."""
MOST = 256
"""Number of estimates that are kept."""
HELD = {
    "application": "application-limited: the network is not the limit",
    "idle": "idle: nothing was sent",
    "pacing": "paced by its application: the network is not the limit",
}


@dataclass(frozen=True)
class Range:
    """Goodput in bit/s with its 90% interval. If the result depends on a bottleneck that was never seen full, only
    ``low_bps`` is known and the other two are None."""

    cc: str
    goodput_bps: float | None
    low_bps: float
    high_bps: float | None


class Pending(Enum):
    """Why an estimate may still come, in the words of the live view."""

    WAITING = "not yet"
    RUNNING = "being simulated"


@dataclass(frozen=True)
class Expected:
    """An estimate. ``lossless``: the same congestion control on the same path without its random loss. ``controls``:
    each congestion control on the same path. ``test``: the verdict of the self-test. If there is no estimate,
    ``reason`` says why, in a sentence, and ``pending`` whether one may still come.
    """

    reason: str | None = None
    pending: Pending | None = None
    lossless: Range | None = None
    controls: tuple[Range, ...] = ()
    test: str | None = None
    at_s: float = 0.0

    def describe(self) -> dict[str, Any]:
        """The estimate as JSON values."""
        values = asdict(self)
        del values["at_s"], values["pending"]
        return values


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
    """Simulate. If no estimate is possible, the result has a reason."""
    begun = time.process_time()
    try:
        return _expect(seen, draws, seed)
    except SawtoothError as error:
        return Expected(reason=error.message)
    finally:
        # After each simulation, pause for as long as it took: this limits the share of the core on every path.
        with contextlib.suppress(OSError):
            if os.environ.get(_SHARED):
                time.sleep((time.process_time() - begun) * (1 / SHARE - 1))


_SHARED = "SAWTOOTH_WATCH_SHARED"
"""Environment variable that is set in the process with a limited share of its core."""


def _expect(seen: Observed, draws: int, seed: int) -> Expected:
    if None in (seen.cc, seen.goodput_bps, seen.retransmitted, seen.rtt_min_s, seen.rtt_mean_s, seen.rtt_max_s):
        return Expected(reason="the kernel does not tell enough of it: counts of segments, or round trips")
    if seen.cc not in CONTROLS:
        return Expected(reason=f"the simulator has no {seen.cc}")
    found = replay(seen, estimate(seen), draws=draws, seed=seed, more=1)
    if found.test.verdict == "fails":
        return Expected(reason=f"no estimate: {found.test.words}", test=found.test.verdict)
    clean = [replace(one, loss=0.0) for one in found.paths]
    without = found.answer(seen.cc, found.runs.of(clean, seen.cc), clean, {})
    return Expected(lossless=_range(without), controls=tuple(map(_range, found.answers)), test=found.test.verdict)


def _range(answer: Answer) -> Range:
    shown = answer.describe()
    return Range(answer.cc, shown["goodput_bps"], shown["low_bps"], shown["high_bps"])


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ[_SHARED] = "1"
    os.nice(19)
    # Threads of one replay share one processor.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Expectations(Closing):
    """Estimates for the connections on the screen, as they become ready. The newest ``MOST`` are kept."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Expected] = OrderedDict()
        self._fastest: OrderedDict[str, float] = OrderedDict()
        self._running: tuple[str, Future[Expected]] | None = None
        self._pool: ProcessPoolExecutor | None = None

    def close(self) -> None:
        """End the process, even during a simulation."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    @property
    def busy(self) -> bool:
        """Whether a simulation is running."""
        return self._running is not None

    def of(self, one: Connection) -> Expected:
        """What is known now: the estimate, or the reason why there is none."""
        if (hindrance := why_not(one)) is not None:
            return hindrance
        if (known := self._known.get(one.cookie)) is not None:
            return known
        if self._running is not None and self._running[0] == one.cookie:
            return Expected(Pending.RUNNING.value, Pending.RUNNING)
        return _waiting("other connections come first")

    def ask(self, shown: Iterable[Connection]) -> None:
        """Collect finished estimates, and start the simulation of the first of ``shown`` that has none or an old
        one."""
        shown = list(shown)
        for one in shown:
            rate = max(one.delivery_bps or 0.0, one.mean_bps or 0.0, self._fastest.get(one.cookie, 0.0))
            _keep(self._fastest, one.cookie, rate)
        if self._running is not None and self._running[1].done():
            cookie, future = self._running
            self._running = None
            _keep(self._known, cookie, self._answer(future))
        if self._running is not None:
            return
        now = time.monotonic()
        waiting = [one for one in shown if why_not(one) is None]
        waiting.sort(key=lambda one: self._known[one.cookie].at_s if one.cookie in self._known else -1.0)
        if not waiting:
            return
        first = waiting[0]
        known = self._known.get(first.cookie)
        if known is None or now - known.at_s > STALE_S:
            seen = observed(first, self._fastest.get(first.cookie))
            try:
                self._running = first.cookie, self._submit(seen)
            except OSError as error:
                # For example in a container without /dev/shm, which locks between processes need.
                why = f"no process to simulate in: {error.strerror} (is there a /dev/shm?)"
                _keep(self._known, first.cookie, Expected(reason=why, at_s=now))

    def _submit(self, seen: Observed) -> Future[Expected]:
        # The live view replaces sys.stderr with an object that has no file descriptor for a child process.
        with contextlib.redirect_stderr(sys.__stderr__):
            if self._pool is None:
                self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin)
            return self._pool.submit(expect, seen)

    def _answer(self, future: Future[Expected]) -> Expected:
        try:
            return replace(future.result(), at_s=time.monotonic())
        except BrokenExecutor:
            self._pool = None
            return Expected(reason="the process that simulates has ended: not enough memory?", at_s=time.monotonic())


def _keep(kept: OrderedDict[str, Any], cookie: str, value: Any) -> None:
    kept[cookie] = value
    kept.move_to_end(cookie)
    while len(kept) > MOST:
        kept.popitem(last=False)
