"""The live view: rows, sorting, filtering, pausing, details, on wide and narrow terminals. No socket is read."""

import asyncio
import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.watch import Sample, Watcher
from sawtooth.watch.replay import Recording
from sawtooth.watch.screen import Screen, bars
from tests.watch.test_watch import SENT, Fields, message, sample


class Played:
    """Stands in for the kernel: two sending connections, one of them with losses."""

    reports_ends = False

    def __init__(self) -> None:
        self.at = 0

    def sample(self) -> Sample:
        self.at += 1
        counted = {"data_segs_out", "bytes_acked", "busy_time"}
        sent: Fields = {name: value * self.at if name in counted else value for name, value in SENT.items()}
        lossy = sent | {"bytes_acked": 10**5 * self.at, "total_retrans": 30 * self.at}
        told = [message(sent, cookie=1), message(lossy, cookie=2, cc=b"reno", dport=80)]
        return sample(*told, at_s=float(self.at))


def driven(steps: Callable[[Screen, Pilot[None]], Awaitable[None]], *, width: int = 120) -> Screen:
    """The view, refreshed by hand: its own clock does not move."""
    watcher = Watcher(Played())
    screen = Screen(watcher.sample, interval_s=3600, sort="goodput", narrow=watcher.narrow, expectations=None)

    async def run() -> None:
        async with screen.run_test(size=(width, 24)) as pilot:
            screen.sample()
            await pilot.pause()
            await steps(screen, pilot)

    asyncio.run(run())
    return screen


def first(screen: Screen) -> str:
    return str(screen.query_one(DataTable).get_row_at(0)[0])


def text(screen: Screen, where: str) -> str:
    return str(screen.query_one(where, Static).render())


@pytest.mark.parametrize("width", [60, 200])
def test_every_connection_has_a_row(width: int) -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        table = screen.query_one(DataTable)
        assert table.row_count == 2
        assert first(screen) == "192.0.2.9:443"
        assert table.size.width <= width

    driven(steps, width=width)


def test_another_order_puts_another_connection_first() -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        await pilot.press("s", "s", "s")
        assert first(screen) == "192.0.2.9:80"
        assert "by loss" in text(screen, "#heading")

    driven(steps)


def test_a_filter_is_asked_for_and_a_wrong_one_leaves_the_old() -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        screen.query_one(Input).value = "dport"
        await pilot.press("enter")
        screen.sample()
        assert screen.query_one(DataTable).row_count == 2
        screen.query_one(Input).value = "cc reno"
        await pilot.press("enter")
        screen.sample()
        await pilot.pause()
        assert screen.query_one(DataTable).row_count == 1
        assert first(screen) == "192.0.2.9:80"

    driven(steps)


def test_a_pause_holds_what_is_shown_and_says_so() -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        before = text(screen, "#heading").partition(" ")[0]
        await pilot.press("p")
        screen.sample()
        assert text(screen, "#heading").startswith(before)
        assert "paused" in text(screen, "#heading")

    driven(steps)


def test_details_have_the_past_as_lines() -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        screen.sample()
        await pilot.press("enter")
        told = text(screen, "#detailed")
        assert "losses keep it small" not in told
        assert "goodput" in told
        assert "·" in told
        await pilot.press("escape")
        assert not screen.query_one("#details").has_class("shown")

    driven(steps)


def test_a_terminal_that_changes_its_size_is_followed() -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(60, 12)
        # The layout follows in a later message. If it never does, the test's time limit ends this.
        while screen.query_one(DataTable).size.width > 60:
            await pilot.pause(0.01)

    driven(steps)


@pytest.mark.usefixtures("patience")
def test_a_sample_that_fails_ends_the_view_with_its_error() -> None:
    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        def fails() -> None:
            raise SawtoothError("unsupported", "the kernel does not tell", fix="use Linux")

        screen._next = fails
        screen.sample()

    failed = driven(steps).failed
    assert failed is not None
    assert failed.code == "unsupported"


def test_ctrl_c_leaves_as_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    from sawtooth.cli import watch_command

    async def steps(screen: Screen, pilot: Pilot[None]) -> None:
        await pilot.press("slash", "ctrl+c")

    screen = driven(steps)
    assert screen.interrupted
    monkeypatch.setattr(screen, "run", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        watch_command._run(screen)


@pytest.mark.usefixtures("patience")
def test_ctrl_c_on_a_terminal_ends_with_130_and_a_whole_recording(tmp_path: Path) -> None:
    recording = tmp_path / "samples.parquet"
    code = "from sawtooth.cli import main; main()"
    command = [sys.executable, "-c", code, "watch", "--interval", "0.1", "--record", str(recording)]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(command[0], command, os.environ | {"TERM": "xterm-256color"})
    try:
        said = b""
        while b"connections" not in said:
            said += os.read(terminal, 65536)
        os.write(terminal, b"\x03")
        said = b""
        with contextlib.suppress(OSError):
            # Ends when the other end is closed.
            while more := os.read(terminal, 65536):
                said += more
        assert b"error" not in said
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    finally:
        os.close(terminal)
    with Recording(recording) as samples:
        assert list(samples.samples())


def test_bars_are_as_high_as_their_share_of_the_largest() -> None:
    assert bars([0.0, 5.0, 10.0, None]) == "▁▅█·"
    assert bars([0.0, None]) == "▁·"


@pytest.mark.usefixtures("patience")
def test_without_textual_lines_and_json_continue_and_the_live_view_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sawtooth.cli import watch_command

    monkeypatch.setitem(sys.modules, "sawtooth.watch.screen", None)
    with expected_error(code="tool-missing") as missing:
        watch_command._live(Watcher(Played()), 1.0, "goodput")
    assert 'pip install "$(ls dist/sawtooth-*.whl)[watch]"' in str(missing.value)
    code = "import sys; sys.modules['textual'] = sys.modules['rich'] = None; from sawtooth.cli import main; main()"
    command = [sys.executable, "-c", code, "watch", "--once", "--json", "--interval", "0.1"]
    assert b'"connections"' in subprocess.run(command, capture_output=True, check=True).stdout
