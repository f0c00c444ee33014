"""Screen: the live view in a terminal, with Textual. Only connections in the table are simulated, those on the screen
first."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from sawtooth.errors import SawtoothError
from sawtooth.watch.connection import Connection
from sawtooth.watch.expected import Expectations
from sawtooth.watch.player import Player
from sawtooth.watch.text import COLUMNS, expected_lines, heading, in_short, lost_between, unseen
from sawtooth.watch.watcher import SORTS, Moment
from sawtooth.whatif.text import rate, span

MOST = 200
"""Maximum number of connections in the table."""
REMEMBERED, POINTS = 256, 120
"""Number of connections whose past values are kept, and number of values each."""
ESTIMATE_S = 0.2
"""Seconds between checks whether an estimate came, or the cursor moved to a connection that has none."""
TICK_S = 0.1
"""Seconds between checks whether the next sample of a recording is due."""
_BARS = "▁▂▃▄▅▆▇█"
_WITHOUT = "without loss"


class Screen(App[None]):
    """The live view. ``next_sample`` returns a sample. With ``player``, samples come from a recording instead.
    ``narrow`` sets a filter.
    """

    CSS = """
    #heading { height: 1; }
    #filter { display: none; height: 3; }
    #filter.shown { display: block; }
    DataTable { height: 1fr; }
    #details { display: none; height: 60%; border-top: solid $primary; }
    #details.shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", show=False, priority=True, system=True),
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter"),
        Binding("p,space", "pause", "Pause"),
        Binding("full_stop", "step(1)", "Step", key_display="."),
        Binding("comma", "step(-1)", "Back", key_display=","),
        Binding("plus", "speed(2)", "Faster", key_display="+"),
        Binding("minus", "speed(0.5)", "Slower", key_display="-"),
        Binding("enter", "details", "Details"),
        Binding("escape", "leave", "Table"),
    ]

    def __init__(
        self,
        next_sample: Callable[[], Moment] | None = None,
        *,
        interval_s: float = TICK_S,
        sort: str,
        narrow: Callable[[str], None],
        expectations: Expectations | None,
        player: Player | None = None,
    ) -> None:
        super().__init__()
        self._next, self._interval_s, self._sort_by = next_sample, interval_s, sort
        self._narrow, self._expectations, self._player = narrow, expectations, player
        self._past: OrderedDict[str, deque[tuple[float, Connection]]] = OrderedDict()
        self._shown: dict[str, Connection] = {}
        self._seen: Moment | None = None
        self._detailed: str | None = None
        self._paused = False
        self.failed: SawtoothError | None = None
        self.interrupted = False

    def compose(self) -> ComposeResult:
        yield Static(id="heading", markup=False)
        yield Input(placeholder="dst 192.0.2.0/24 and not cc bbr", id="filter")
        yield DataTable(cursor_type="row", id="table")
        with VerticalScroll(id="details"):
            yield Static(id="detailed", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for name in [*(name for name, _, _ in COLUMNS[:5]), _WITHOUT, *(name for name, _, _ in COLUMNS[5:])]:
            table.add_column(name, key=name)
        table.focus()
        self.sample()
        self.set_interval(self._interval_s, self.sample)
        self.set_interval(ESTIMATE_S, self._show_estimates)

    def sample(self) -> None:
        """Show a new sample. A failure ends the view; the error is shown afterwards."""
        if self._player is None:
            # Recording to a file continues while the screen is paused.
            self._show(self._next, drawn=not self._paused)
        elif not self._paused:
            self._show(partial(self._player.passed, self._interval_s))

    def _show(self, take: Callable[[], Moment | None] | None, *, drawn: bool = True) -> None:
        try:
            seen = take() if take is not None else None
        except SawtoothError as error:
            self.failed = error
            self.exit()
            return
        if seen is not None and drawn:
            self._seen = seen
            self._draw()
        elif self._player is not None and self._player.ended:
            self._show_texts()

    def _draw(self) -> None:
        if self._seen is None:
            return
        shown = self._seen.first(self._sort_by, MOST)
        self._shown = {one.cookie: one for one in shown}
        self._remember(shown, self._seen.at_s)
        table = self.query_one(DataTable)
        self._estimate()
        self._fill(table, shown)
        self._show_texts()

    def _estimate(self) -> bool:
        """Ask for estimates of the connections in the table, first those on the screen. Returns whether one came."""
        if self._expectations is None:
            return False
        first = max(0, int(self.query_one(DataTable).scroll_y))
        rows = list(self._shown.values())
        last = first + max(1, self.size.height - 4)
        ordered = [*rows[first:last], *rows[last:], *rows[:first]]
        return self._expectations.ask(ordered, self._shown.get(self._detailed or self._chosen() or ""))

    def _show_estimates(self) -> None:
        if self._estimate():
            self._draw()

    def _remember(self, shown: list[Connection], at_s: float) -> None:
        # A sample that is shown again (sorted differently, or after a step back) must be in the past values only once.
        for past in self._past.values():
            while past and past[-1][0] >= at_s:
                past.pop()
        for one in shown:
            self._past.setdefault(one.cookie, deque(maxlen=POINTS)).append((at_s, one))
            self._past.move_to_end(one.cookie)
        while len(self._past) > REMEMBERED:
            self._past.popitem(last=False)

    def _fill(self, table: DataTable[Any], shown: list[Connection]) -> None:
        """Fill the rows and keep the cursor on its connection."""
        chosen, row = self._chosen(), table.cursor_row
        scroll = table.scroll_offset
        table.clear()
        for one in shown:
            cells = [Text(cell(one), no_wrap=True) for _, cell, _ in COLUMNS]
            table.add_row(*cells[:5], Text(self._without(one)), *cells[5:], key=one.cookie)
        order = list(self._shown)
        table.move_cursor(
            row=order.index(chosen) if chosen in order else min(row, max(0, len(order) - 1)), animate=False
        )
        table.scroll_to(scroll.x, scroll.y, animate=False)

    def _without(self, one: Connection) -> str:
        if self._expectations is None:
            return "-"
        expected = self._expectations.brief(one)
        if expected.lossless is not None:
            about = expected.rough and expected.lossless.goodput_bps is not None
            return f"{'~' if about else ''}{in_short(expected.lossless)}"
        # If the limit is not the network, it is shown in the next column. The details show all reasons.
        return expected.pending.value if expected.pending else "-"

    def _chosen(self) -> str | None:
        table = self.query_one(DataTable)
        if not table.row_count or not 0 <= table.cursor_row < table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def _show_texts(self) -> None:
        if self._seen is not None:
            # For the current day only the time is shown, to keep the line short.
            time = self._seen.time[11 if self._player is None else 0 : 19]
            said = heading(self._seen, len(self._shown), time) + f"; by {self._sort_by}" + "; paused" * self._paused
            if self._player is not None:
                said += f"; speed {self._player.speed:g}" + "; the end" * self._player.ended
            missing = len(self._seen.unseen)
            self.query_one("#heading", Static).update(said + f"; {missing} unseen: Enter" * bool(missing))
        if self._detailed is not None:
            self.query_one("#detailed", Static).update("\n".join(self._details(self._detailed)))

    def _details(self, cookie: str) -> list[str]:
        past = [one for _, one in self._past.get(cookie, ())]
        if not past:
            return ["This connection is closed."]
        one = past[-1]
        gone = "" if cookie in self._shown else " (closed, or not among those shown)"
        said = [f"{one.begins} to {one.ends}, {one.cc}, {one.state}{gone}"]
        said += [f"process: {one.process or 'not seen'}, user {one.uid}", f"limit: {one.limit}: {one.why}"]
        if one.segments is not None:
            said.append(f"loss: {lost_between(one)} of {one.segments} segments")
        wide = max(10, min(POINTS, self.size.width - 34))
        for name, of, form in _HISTORY:
            values = [of(each) for each in past][-wide:]
            now = "-" if values[-1] is None else form(values[-1])
            said.append(f"{name:9} {now:>14}  {bars(values)}")
        if self._expectations is not None:
            said += expected_lines(one, self._expectations.of(one))[0 if one.limit == "unknown" else 1 :] or [
                f"expected: {self._expectations.of(one).reason}"
            ]
        return [*said, *(unseen(self._seen) if self._seen is not None else [])]

    def action_interrupt(self) -> None:
        """Ctrl-C, which the terminal delivers as a key in this mode."""
        self.interrupted = True
        self.exit()

    def action_sort(self) -> None:
        """Use the next sort order."""
        self._sort_by = SORTS[(SORTS.index(self._sort_by) + 1) % len(SORTS)]
        self._draw()

    def action_pause(self) -> None:
        """Pause or continue."""
        self._paused = not self._paused
        self._show_texts()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Steps and speeds are available for recordings only."""
        return self._player is not None or action not in ("step", "speed")

    def action_step(self, way: int) -> None:
        """Pause at the next or previous sample."""
        if (player := self._player) is not None:
            self._paused = True
            self._show(player.forward if way > 0 else player.back)

    def action_speed(self, times: float) -> None:
        """Multiply the speed by ``times``."""
        if self._player is not None:
            self._player.change(times)
            self._show_texts()

    def action_filter(self) -> None:
        """Ask for a filter."""
        field = self.query_one("#filter", Input)
        field.add_class("shown")
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """An invalid filter shows an error, and the old one stays."""
        try:
            self._narrow(event.value)
        except SawtoothError as error:
            self.notify(f"{error.message}: {error.fix}", severity="error", markup=False)
            return
        self.action_leave()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter was pressed on a row."""
        self._detailed = event.row_key.value
        self.query_one("#details").add_class("shown")
        self._show_texts()

    def action_details(self) -> None:
        """Show the details of the connection under the cursor."""
        self._detailed = self._chosen()
        if self._detailed is not None:
            self.query_one("#details").add_class("shown")
            self._show_texts()

    def action_leave(self) -> None:
        """Go back to the table."""
        self._detailed = None
        self.query_one("#details").remove_class("shown")
        self.query_one("#filter").remove_class("shown")
        self.query_one(DataTable).focus()


_HISTORY: tuple[tuple[str, Callable[[Connection], float | None], Callable[[float], str]], ...] = (
    ("goodput", lambda one: one.goodput_bps, rate),
    ("loss", lambda one: one.loss, lambda value: f"{value:.2%}"),
    ("rtt", lambda one: one.rtt_s, span),
    ("cwnd", lambda one: one.cwnd_segments, lambda value: f"{value:.0f} segments"),
)


def bars(values: list[float | None]) -> str:
    """A line of bars, scaled from 0 to the largest value; a dot where the value is unknown."""
    most = max((value for value in values if value is not None), default=0.0)
    top = len(_BARS) - 1
    return "".join("·" if one is None else _BARS[round(one / most * top) if most > 0 else 0] for one in values)
