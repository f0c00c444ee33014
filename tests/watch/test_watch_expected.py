"""What a watched connection should get: when there is a number, when a reason instead, and the order of answers."""

import dataclasses
import math
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from sawtooth.watch import Connection, limits
from sawtooth.watch.connection import connections
from sawtooth.watch.estimated import Expected, Pending
from sawtooth.watch.expected import (
    SHARE,
    SHORTEST_S,
    Expectations,
    _Process,
    expect,
    observed,
    why_not,
)
from sawtooth.watch.rough import rough
from sawtooth.watch.text import between
from sawtooth.whatif import Estimate, estimate
from sawtooth.whatif.replay import BY_TOTALS
from sawtooth.whatif.runs import Drawn, middle
from tests.watch.test_watch import SENT, changed

LOSSY = SENT | {"data_segs_out": 6000, "total_retrans": 60, "bytes_acked": 8_600_000, "busy_time": 10_000_000}


def seen(**changes: object) -> Connection:
    """Ten seconds of CUBIC at 7 Mbit/s, 20 ms, 1%."""
    changed_ = changed({"notsent_bytes": 50_000, "unacked": 10}, LOSSY, between_s=10.0)
    (one,) = connections(changed_, limits(changed_), {})
    return dataclasses.replace(one, **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"limit": "application"}, "application-limited"),
        ({"limit": "idle"}, "idle"),
        ({"window_s": SHORTEST_S / 2}, "not yet"),
        ({"cc": "vegas"}, "the simulator has no vegas"),
        ({"delivery_bps": 1e10}, "too fast"),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(changes: dict[str, object], reason: str) -> None:
    told = why_not(seen(**changes))
    assert told is not None
    assert (told.reason or "").startswith(reason)


def test_the_window_becomes_an_observation() -> None:
    of = observed(seen())
    assert of.goodput_bps == pytest.approx(6.88e6)
    assert (of.cc, of.segments, of.retransmits, of.rtt_min_s) == ("cubic", 6000, 60, 0.02)
    of.check()


def test_deliveries_while_a_queue_was_standing_are_the_rate_of_the_bottleneck_where_none_were_faster() -> None:
    path = estimate(observed(seen(standing_bps=8e6), fastest_bps=8.4e6))
    assert 7.5e6 < path.rate.low < path.rate.high < 10.5e6
    # Twice as fast is no contradiction: the queue was not the bottleneck's.
    faster = estimate(observed(seen(standing_bps=8e6), fastest_bps=16e6))
    assert faster.rate.value == pytest.approx(16e6 * 1514 / 1448)
    assert faster.rate.high == pytest.approx(5 * faster.rate.value)
    # A round trip of 20 ms has 27.6 segments, one of which may be of the one before.
    assert faster.rate.low == pytest.approx(faster.rate.value * 27.6 / 28.6 * 0.99, rel=1e-3)
    # BBR reports its own bandwidth.
    assert estimate(observed(seen(limit="path", bbr_bps=8.1e6), fastest_bps=16e6)).rate.high < 10.5e6


def test_a_round_trip_of_whole_milliseconds_is_up_to_one_more() -> None:
    frame_s = 1514 * 8 / estimate(observed(seen())).rate.value
    assert estimate(observed(seen(rtt_min_s=0.02))).rtt.high == pytest.approx(0.021)
    exact = estimate(observed(seen(rtt_min_s=0.020203))).rtt
    assert (exact.low, exact.high) == (pytest.approx(0.020203 - frame_s, rel=1e-3), 0.020203)


def test_a_queue_that_was_seen_is_no_shorter_and_one_that_was_not_has_no_lower_end_of_its_own() -> None:
    stood = seen(standing_bps=8e6, rtt_min_s=0.020203, rtt_max_s=0.06, rtt_mean_s=0.05)
    packets = (0.06 - 0.020203) * 8e6 / 8 / 1514
    assert estimate(observed(stood, fastest_bps=8e6)).queue.low == pytest.approx(packets, rel=0.1)
    assert estimate(observed(stood, fastest_bps=30e6)).queue.low < packets / 2


@pytest.mark.usefixtures("patience")
def test_of_a_bottleneck_that_was_never_full_only_the_low_end_is_reported_where_it_decides() -> None:
    told = expect(dataclasses.replace(observed(seen()), duration_s=4.0, rtt_max_s=0.0215), draws=8)
    assert told.reason is None
    assert told.lossless is not None
    of = {one.cc: one for one in told.controls}
    assert list(of) == ["reno", "cubic", "bbr", "bbr3"]
    # Losses limit them, so they have both ends.
    for name in ("reno", "cubic"):
        assert of[name].high_bps is not None
        assert of[name].low_bps < (of[name].goodput_bps or 0) < of[name].high_bps
    for one in (told.lossless, of["bbr"]):
        assert (one.goodput_bps, one.high_bps) == (None, None)
        assert between(one).startswith("at least ")
        # Totals do not show others, which the low end allows for.
        assert one.low_bps * math.exp(BY_TOTALS["another"][0]) > 5e6


def test_what_no_estimate_can_come_from_says_why() -> None:
    told = expect(dataclasses.replace(observed(seen()), segments=5))
    assert told.reason is not None
    assert "segments" in told.reason


def test_an_answer_comes_from_a_process_of_its_own_which_ends() -> None:
    one = seen(segments=5)
    with Expectations() as expectations:
        assert expectations.of(one).pending is Pending.WAITING
        expectations.ask([one])
        assert expectations.busy
        deadline = time.monotonic() + 60
        while expectations.busy and time.monotonic() < deadline:
            time.sleep(0.05)
            expectations.ask([one])
        assert "segments" in (expectations.of(one).reason or "")


@pytest.mark.usefixtures("patience")
def test_a_process_begins_beside_a_view_that_takes_standard_error_for_itself() -> None:
    code = (
        "import os, sys; from sawtooth.watch.expected import Expectations\n"
        "from tests.watch.test_watch_expected import seen\n"
        "class Taken:\n"
        "    def fileno(self): return -1\n"
        "    def write(self, text): return len(text)\n"
        "    def flush(self): pass\n"
        "if __name__ == '__main__':\n"
        "    sys.stderr = Taken()\n"
        "    with Expectations() as expectations:\n"
        "        expectations.ask([seen(segments=5)])\n"
        "        assert expectations.busy\n"
        "    os.write(1, b'begun')\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    told = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, check=False
    )
    assert told.stdout == b"begun"


def test_where_no_process_can_be_begun_that_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(sys.modules[Expectations.__module__], "ProcessPoolExecutor", refuse)
    with Expectations() as expectations:
        expectations.ask([seen()], chosen=seen(cookie="2", window_s=1.0))
        assert "/dev/shm" in (expectations.of(seen()).reason or "")
        assert not expectations.busy


def test_the_chosen_connection_does_not_wait_for_others_and_is_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[float, str]] = []

    def start(self: _Process, cookie: str, seen: object) -> None:
        started.append((self._share, cookie))
        self.cookie = cookie

    monkeypatch.setattr(_Process, "start", start)
    first, second, third = (seen(cookie=name) for name in ("1", "2", "3"))
    with Expectations() as expectations:
        expectations.ask([first, second, third])
        expectations.ask([first, second, third], chosen=second)
        expectations.ask([first, second, third], chosen=first)
        assert [expectations.of(one).pending for one in (first, second, third)] == [
            Pending.RUNNING, Pending.RUNNING, Pending.WAITING
        ]  # fmt: skip
    assert started == [(SHARE, "1"), (1.0, "2")]


@pytest.mark.parametrize("full", [True, False])
def test_the_rough_number_is_of_the_same_path_as_the_whole_answer(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    of = dataclasses.replace(observed(seen()), duration_s=4.0, standing_bps=7.5e6 if full else None)
    paths: list[Estimate] = []

    def drawn(path: Estimate) -> Drawn:
        paths.append(path)
        return middle(path)

    monkeypatch.setattr(sys.modules[rough.__module__], "middle", drawn)
    short, whole = rough(of), expect(of, draws=8)
    assert paths == [estimate(of)]
    assert short.lossless is not None
    assert whole.lossless is not None
    assert (short.lossless.goodput_bps is None) == (whole.lossless.goodput_bps is None) == (not full)
    if full:
        assert whole.lossless.low_bps < (short.lossless.goodput_bps or 0) < (whole.lossless.high_bps or 0)
    else:
        assert short.lossless.low_bps == pytest.approx(whole.lossless.low_bps, rel=0.1)
    assert short.rough
    assert not whole.rough


def test_a_rough_number_is_refused_where_no_path_explains_what_was_observed() -> None:
    # A path of 7 Mbit/s whose sender got a third of it, without a loss.
    of = dataclasses.replace(observed(seen()), duration_s=4.0, goodput_bps=2e6, retransmits=0, bottleneck_bps=7e6)
    told = rough(of)
    assert told.lossless is None
    assert "no path" in (told.reason or "")


def test_what_is_not_enough_for_a_rough_number_says_why() -> None:
    told = rough(dataclasses.replace(observed(seen()), segments=5))
    assert "segments" in (told.reason or "")
    assert told.rough


def test_the_table_shows_the_newer_of_the_rough_and_the_whole_answer() -> None:
    one = seen()
    with Expectations(in_table=True) as expectations:
        expectations._rough[one.cookie] = Expected(reason="rough", rough=True, at_s=1.0)
        assert expectations.of(one).pending is Pending.WAITING, "the details wait for the whole answer"
        assert expectations.brief(one).reason == "rough"
        expectations._known[one.cookie] = Expected(reason="whole", at_s=2.0)
        assert expectations.brief(one).reason == "whole"
        expectations._rough[one.cookie] = Expected(reason="rough", rough=True, at_s=3.0)
        assert expectations.brief(one).reason == "rough"


@pytest.mark.parametrize("in_table", [True, False])
def test_a_background_process_that_died_hides_no_whole_answer_of_the_other(in_table: bool) -> None:
    one = seen()
    with Expectations(in_table=in_table) as expectations:
        expectations._known[one.cookie] = Expected(reason="whole", at_s=1.0)
        died: Future[Expected] = Future()
        died.set_exception(BrokenProcessPool())
        expectations._background.cookie, expectations._background._future = one.cookie, died
        assert expectations.ask([])
        assert "has ended" in (expectations.brief(one).reason or "")
        assert (expectations.of(one).reason == "whole") is in_table


def test_answers_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from sawtooth.watch import expected

    with Expectations() as expectations:
        monkeypatch.setattr(expected, "MOST", 3)
        for at in range(10):
            expectations.ask([seen(cookie=f"{at:x}", limit="application")])
        assert len(expectations._fastest) == 3


def test_an_expectation_is_json() -> None:
    assert Expected(reason="idle").describe() == {"reason": "idle", "lossless": None, "controls": (), "test": None}
    assert np.isfinite(Expected().at_s)
