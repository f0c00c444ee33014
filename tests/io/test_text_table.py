"""Tables and sentences on a terminal of some width."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from sawtooth.capture import read_capture
from sawtooth.capture.text import describe
from sawtooth.cli.program import sawtooth
from sawtooth.io.text_table import aligned, folded

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "capture" / "pcap"
SIX = "[2001:db8:1900:2100:14:5600:24:a71]:443", "[2001:db8:5600:24:a71:1900:2100:1d]:51894"


def test_text_is_to_the_left_and_numbers_are_to_the_right() -> None:
    assert aligned([["name", "rate"], ["a", "5"]], (0,)) == ["name  rate", "a        5"]


def test_columns_that_do_not_fit_follow_below_with_the_keys_again() -> None:
    lines = [["point", "a", "mean", "std", "why"], ["x", "y", "1.0", "2.0", "none"], [], ["z", "y", "3", "4", ""]]
    told = aligned(lines, (0, 1, 4), 20, keys=2)
    assert told == [
        *("point  a  mean  std", "x      y   1.0  2.0", "", "z      y     3    4"),
        *("", "point  a  why", "x      y  none", "", "z      y"),
    ]
    assert max(map(len, aligned(lines, (0, 1, 4)))) > 20


@given(st.text(alphabet="ab ", max_size=300), st.integers(20, 120))
def test_folded_words_are_the_same_words(text: str, width: int) -> None:
    assert folded(text, width).split() == text.split()
    assert folded(text, None) == text


def test_a_sentence_continues_behind_its_label_and_a_table_stays_as_it_is() -> None:
    assert folded("  rate    one two three", 20) == "  rate    one two\n          three"
    row = "a  b  c  d  e  f  g  h  i"
    assert folded(row, 12) == row


@pytest.mark.parametrize("width", [80, 100, 200, None])
def test_addresses_of_ipv6_break_no_columns(width: int | None) -> None:
    facts = read_capture(CORPUS).facts
    ends = [{"client": SIX[0], "server": SIX[1]}, {}]
    found = [one | each for one, each in zip(facts["connections"], ends, strict=True)]
    lines = describe(facts | {"connections": found}, None, width).splitlines()[2:-2]
    assert width is None or max(map(len, lines)) <= width
    assert any(SIX[0] in line for line in lines)
    (head,) = [line for line in lines if "limit" in line]
    rows = [line for line in lines if "bytes" in line]
    assert len(rows) == 2
    end = head.index("data") + len("data")
    assert all(line[:end].endswith("bytes") and line[end] == " " for line in rows)
    assert all(line[head.index("limit") - 1] == " " != line[head.index("limit")] for line in rows)


def test_two_directions_are_seen_by_their_connection() -> None:
    facts = read_capture(CORPUS).facts
    one = facts["connections"][0]
    both = [one["directions"][1] | {"from": end} for end in ("client", "server")]
    told = describe(facts | {"connections": [one | {"directions": both}]})
    assert told.endswith("one connection in full, both ways: --connection 0")


def test_every_line_of_the_list_of_studies_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = CliRunner().invoke(sawtooth, ["studies"]).output
    assert max(len(line) for line in told.splitlines() if not line.startswith("files: ")) <= 80
    told = CliRunner().invoke(sawtooth, ["predict", "--rate", "1 Gbit/s", "--rtt", "20 ms", "--loss", "1%"]).output
    assert max(map(len, told.splitlines())) <= 80
