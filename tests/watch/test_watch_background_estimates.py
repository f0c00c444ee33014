"""``watch --once --expect``: connections are reported as sampled, whatever happens to them meanwhile."""

from collections.abc import Collection, Iterator

import pytest

from sawtooth.watch import Connection, Sample, Watcher
from sawtooth.watch.background_estimates import awaited
from sawtooth.watch.estimated import Expected, Pending
from sawtooth.watch.expected import Expectations, why_not
from sawtooth.watch.watcher import LiveMoment
from tests.watch.test_watch import SENT, Fields, message, sample


class Ends:
    """Stands in for the kernel: two sending connections, the first of which disappears after ``last`` samples."""

    reports_ends = False

    def __init__(self, last: int) -> None:
        self.at, self.last = 0, last

    def sample(self) -> Sample:
        self.at += 1
        counted = {"data_segs_out", "bytes_acked", "busy_time"}
        sent: Fields = {name: value * self.at if name in counted else value for name, value in SENT.items()}
        sent |= {"notsent_bytes": 50_000, "unacked": 10}
        told = [message(sent, cookie=2, dport=80)] + [message(sent, cookie=1)] * (self.at <= self.last)
        return sample(*told, at_s=float(self.at))


class Answering(Expectations):
    """An answer after three more requests, without a simulating process."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 3

    def ask(self, shown: Collection[Connection], chosen: Connection | None = None) -> bool:
        self.left -= 1
        return False

    def of(self, one: Connection) -> Expected:
        if (hindrance := why_not(one)) is not None:
            return hindrance
        return Expected(pending=Pending.RUNNING) if self.left > 0 else Expected(test="fitted")


def sampled(last: int) -> tuple[LiveMoment, dict[int, Connection], Answering, int]:
    source, expectations = Ends(last), Answering()
    watcher = Watcher(source)
    watcher.sample()

    def samples() -> Iterator[LiveMoment]:
        while True:
            yield watcher.sample()

    seen, shown = awaited(samples(), "goodput", None, 10, expectations, 60.0)
    return seen, {one.peer_port: one for one in shown}, expectations, source.at


@pytest.mark.parametrize("last", [3, 6])
def test_a_connection_that_ends_meanwhile_is_reported_as_it_was_seen(last: int) -> None:
    seen, told, expectations, samples = sampled(last)
    assert (seen.matching, set(told)) == (2, {80, 443})
    # As long as the connection existed, and no longer than an answer takes.
    assert told[443].window_s == min(last - 1, 5)
    assert told[443].segments is not None
    assert expectations.of(told[80]).test == "fitted"
    if last == 6:
        assert expectations.of(told[443]).test == "fitted"
    else:
        assert "5 s of samples" in (expectations.of(told[443]).reason or "")
    # No more samples are taken while answers are computed.
    assert samples == 6


def test_what_nothing_can_be_expected_of_is_reported_at_once() -> None:
    source = Ends(9)
    watcher = Watcher(source, filter="cc vegas")
    watcher.sample()
    _, shown = awaited(iter([watcher.sample()]), "goodput", None, 10, Answering(), 60.0)
    assert not shown
