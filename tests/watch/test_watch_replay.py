"""Replaying a recording: the same samples in the same views, at any speed; anything but a recording is refused."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import DataTable, Static

from expected_error import expected_error
from sawtooth.cli.program import sawtooth
from sawtooth.errors import SawtoothError
from sawtooth.watch import Watcher
from sawtooth.watch.player import Player
from sawtooth.watch.record import KEY, OF_SAMPLE, SINCE_2, Recorder
from sawtooth.watch.replay import Recording
from sawtooth.watch.screen import Screen
from sawtooth.watch.text import lines
from sawtooth.watch.watcher import SORTS, Moment, described
from tests.watch.test_watch_screen import Played

SAMPLES = 5


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Moment]]:
    """A recording, and its samples."""
    path = tmp_path_factory.mktemp("recorded") / "samples.parquet"
    watcher = Watcher(Played())
    seen = [watcher.sample() for _ in range(SAMPLES)]
    with Recorder(path) as recorder:
        for one in seen:
            recorder.add(one)
    return path, list(seen)


def changed(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def samples(path: Path, filter: str = "") -> list[Moment]:
    with Recording(path, filter=filter) as recording:
        return list(recording.samples())


def refused(path: Path) -> SawtoothError:
    with pytest.raises(SawtoothError) as found:
        samples(path)
    return found.value


@pytest.mark.parametrize("sort", SORTS)
def test_lines_and_json_of_a_recording_are_those_of_the_samples(recorded: tuple[Path, list[Moment]], sort: str) -> None:
    path, seen = recorded
    again = samples(path)
    assert len(again) == SAMPLES
    for one, other in zip(again, seen, strict=True):
        assert lines(one, one.first(sort)) == lines(other, other.first(sort))
        assert described(one, one.first(sort)) == described(other, other.first(sort))


def test_a_sample_without_connections_is_one_again(tmp_path: Path) -> None:
    watcher = Watcher(Played(), filter="cc none")
    with Recorder(tmp_path / "samples.parquet") as recorder:
        recorder.add(watcher.sample())
        recorder.add(watcher.sample())
    again = samples(tmp_path / "samples.parquet")
    assert [(one.at_s, one.total, one.matching) for one in again] == [(1.0, 2, 0), (2.0, 2, 0)]


def test_a_sample_that_continues_in_the_next_part_of_the_file_is_one(
    recorded: tuple[Path, list[Moment]], tmp_path: Path
) -> None:
    pq.write_table(pq.read_table(recorded[0]), tmp_path / "samples.parquet", row_group_size=3)
    assert [one.matching for one in samples(tmp_path / "samples.parquet")] == [2] * SAMPLES


@pytest.mark.parametrize(
    ("filter", "ports"), [("cc reno", [80]), ("dport = :443", [443]), ("dst 192.0.2.0/24", [80, 443]), ("cc bbr", [])]
)
def test_filters_mean_what_they_mean_live(recorded: tuple[Path, list[Moment]], filter: str, ports: list[int]) -> None:
    last = samples(recorded[0], filter)[-1]
    assert sorted(one.peer_port for one in last.first()) == ports


def test_an_earlier_format_is_shown_with_a_word_of_what_it_has_not(
    recorded: tuple[Path, list[Moment]], tmp_path: Path
) -> None:
    table = pq.read_table(recorded[0]).drop_columns([*OF_SAMPLE, *SINCE_2]).replace_schema_metadata({})
    last = samples(changed(tmp_path / "old.parquet", table))[-1]
    assert last.total is None
    assert "format 1" in last.unseen[0]
    assert [one.peer_port for one in last.first()] == [443, 80]
    assert "2 connections" in lines(last, last.first())[0]


def test_a_later_format_is_refused(recorded: tuple[Path, list[Moment]], tmp_path: Path) -> None:
    table = pq.read_table(recorded[0]).replace_schema_metadata({KEY: b"3"})
    error = refused(changed(tmp_path / "new.parquet", table))
    assert (error.code, "format 3" in error.message) == ("not-a-recording", True)


def replaced(name: str, values: list[Any], kind: pa.DataType | None = None) -> Any:
    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(name)
        return table.set_column(at, name, pa.array(values, kind or table.schema.field(name).type))

    return change


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda table: table.drop_columns(["peer"]), "peer"),
        (replaced("goodput_bps", ["fast"] * 10, pa.string()), "goodput_bps"),
        (replaced("at_s", [5.0] * 2 + [4.0] * 8), "clock"),
        (replaced("at_s", [math.nan] * 10), "clock"),
        (replaced("limit", [None] * 10), "limit"),
    ],
)
def test_what_no_recording_has_is_named(
    recorded: tuple[Path, list[Moment]], tmp_path: Path, change: Any, word: str
) -> None:
    path = changed(tmp_path / "samples.parquet", change(pq.read_table(recorded[0])))
    with expected_error(code="not-a-recording") as found:
        [one.first() for one in samples(path)]
    assert word in found.value.message


def test_addresses_that_are_none_are_refused_where_they_are_compared(
    recorded: tuple[Path, list[Moment]], tmp_path: Path
) -> None:
    path = changed(tmp_path / "samples.parquet", replaced("peer", ["nowhere"] * 10)(pq.read_table(recorded[0])))
    with expected_error(code="not-a-recording"):
        samples(path, "dst 192.0.2.0/24")


def test_words_of_a_file_move_no_cursor_and_numbers_are_finite(
    recorded: tuple[Path, list[Moment]], tmp_path: Path
) -> None:
    table = replaced("process", ["\x1b[2J"] * 10)(pq.read_table(recorded[0]))
    table = replaced("goodput_bps", [math.inf] * 10)(table)
    (one, _) = samples(changed(tmp_path / "samples.parquet", table))[0].first()
    assert (one.process, one.goodput_bps) == ("\\u001b[2J", None)


@pytest.mark.usefixtures("patience")
@given(st.data())
def test_a_damaged_file_is_read_or_refused(recorded: tuple[Path, list[Moment]], data: st.DataObject) -> None:
    content = bytearray(recorded[0].read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = recorded[0].with_name("damaged.parquet")
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        for one in samples(path):
            lines(one, one.first())
    except SawtoothError as error:
        assert error.code == "not-a-recording"


def test_a_file_that_is_not_there_or_a_directory_says_so(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.parquet").code == "file-not-found"
    assert refused(tmp_path).code == "file-unreadable"


LIVE = [["--netns", "a"], ["--once"], ["--interval", "5"], ["--record", "b.parquet"], ["--prometheus", ":0"]]


@pytest.mark.parametrize("arguments", LIVE)
def test_what_only_live_samples_have_is_refused(recorded: tuple[Path, list[Moment]], arguments: list[str]) -> None:
    with expected_error(code="bad-usage"):
        CliRunner().invoke(sawtooth, ["watch", "--replay", str(recorded[0]), *arguments], catch_exceptions=False)
    with expected_error(code="bad-usage"):
        CliRunner().invoke(sawtooth, ["watch", "--speed", "2"], catch_exceptions=False)


def test_the_command_prints_a_line_of_json_for_each_sample(recorded: tuple[Path, list[Moment]]) -> None:
    asked = ["watch", "--replay", str(recorded[0]), "--json", "--count", "3", "cc", "reno"]
    told = CliRunner().invoke(sawtooth, asked, catch_exceptions=False).output.splitlines()
    assert [json.loads(line)["connections_matching"] for line in told] == [1, 1, 1]


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_recording_without_any_sample_says_so(tmp_path: Path, arguments: list[str]) -> None:
    Recorder(tmp_path / "samples.parquet").close()
    asked = ["watch", "--replay", str(tmp_path / "samples.parquet"), *arguments]
    told = CliRunner().invoke(sawtooth, asked, catch_exceptions=False)
    assert (told.exit_code, told.stdout) == (0, "")
    assert "nothing was sampled" in told.stderr


def test_a_player_keeps_the_time_of_the_recording_at_its_speed(recorded: tuple[Path, list[Moment]]) -> None:
    player = Player(iter(samples(recorded[0])), 2.0)

    def times(count: int) -> list[float | None]:
        return [None if (one := player.passed(0.25)) is None else one.at_s for _ in range(count)]

    assert times(6) == [1.0, None, 2.0, None, 3.0, None]
    player.change(8.0)
    # Samples due in between are skipped.
    assert times(2) == [5.0, None]
    assert player.ended


def test_a_player_steps_forward_and_back_as_far_as_it_remembers(recorded: tuple[Path, list[Moment]]) -> None:
    player = Player(iter(samples(recorded[0])))
    ways = [player.forward, player.forward, player.forward, player.back, player.back, player.back, player.forward]
    assert [None if (one := way()) is None else one.at_s for way in ways] == [1.0, 2.0, 3.0, 2.0, 1.0, None, 2.0]
    assert [one.at_s for _ in range(4) if (one := player.forward()) is not None] == [3.0, 4.0, 5.0]
    assert player.forward() is None


def test_the_live_view_of_a_recording_steps_and_changes_its_speed(recorded: tuple[Path, list[Moment]]) -> None:
    async def run() -> None:
        with Recording(recorded[0]) as recording:
            player = Player(recording.samples())
            screen = Screen(interval_s=3600, sort="goodput", narrow=recording.narrow, expectations=None, player=player)
            async with screen.run_test(size=(120, 24)) as pilot:

                def heading() -> str:
                    return str(screen.query_one("#heading", Static).render())

                await pilot.pause()
                begun = heading()
                assert screen.query_one(DataTable).row_count == 2
                await pilot.press("full_stop", "full_stop")
                assert "paused" in heading()
                assert len(screen._past["1"]) == 3
                await pilot.press("comma", "comma")
                assert heading().partition("  ")[0] == begun.partition("  ")[0]
                assert len(screen._past["1"]) == 1
                await pilot.press("plus", "plus")
                assert "speed 4" in heading()
                for _ in range(SAMPLES):
                    await pilot.press("full_stop")
                assert "the end" in heading()

    asyncio.run(run())


def test_a_recording_of_many_connections_stays_in_bounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from sawtooth.watch import player

    monkeypatch.setattr(player, "BEHIND", 7)

    class Sample:
        matching = 2

        def __init__(self, at: int) -> None:
            self.at_s = float(at)

    played = Player(map(Sample, range(10)))
    while played.forward() is not None:
        pass
    assert [int(one.at_s) for one in played._kept] == [8, 9]
    assert np.isfinite(played.speed)
