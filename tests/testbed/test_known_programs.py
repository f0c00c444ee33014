"""Well-known servers and clients, unmodified, on the real kernel: the scenarios of studies/programs. tools/programs.py
counts how often each gives the same, because that takes longer.
"""

from pathlib import Path

import pytest

import sawtooth
from sawtooth.programs import finished
from sawtooth.scenario import Scenario
from tools import programs

FILES = programs.files()
LARGER = {"caddy", "hls", "pgbench", "postgresql-replication", "quic-aioquic", "quic-go", "quic-quinn", "redis"}
"""Tested only if their programs are installed. All others are installed for the tests (tools/laboratory)."""
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "programs.md"


@pytest.mark.parametrize("name", [name for name in FILES if name not in LARGER or not programs.absent(FILES[name])])
def test_it_runs(kernel: object, name: str) -> None:
    assert programs.absent(FILES[name]) == [], "run tools/laboratory"
    run = sawtooth.run(Scenario.load(FILES[name]), engine="kernel")
    last = finished(run)[-1]
    assert last.status == 0, last.stderr.decode(errors="replace")
    assert run.meta["measured"]
    assert None not in run.meta["measured"].values()


def test_the_page_lists_each() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in FILES if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", FILES)
def test_each_says_what_it_needs_and_measures(name: str) -> None:
    assert isinstance(programs.absent(FILES[name]), list)
    assert any(one.measure for one in Scenario.load(FILES[name]).programs)
