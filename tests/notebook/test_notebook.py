"""How a shell and a notebook display results: few lines, one figure, tables without anything from other machines."""

import re
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from sawtooth.compare import compare
from sawtooth.io.displayable import Displayable
from sawtooth.link_estimate.estimate import Estimate

PCAP = Path(__file__).parents[2] / "fuzz" / "corpus" / "capture" / "pcap"


@pytest.fixture(scope="module")
def run() -> sawtooth.Run:
    flows = [
        {"cc": "cubic"},
        {"cc": "bbr", "count": 2},
        {"source": {"kind": "arrivals", "load": "5%", "sizes": "9 kB"}},
    ]
    return sawtooth.run(sawtooth.Scenario(duration="4 s", flows=flows, probes=[{"interval": "100 ms"}]))


@pytest.fixture(scope="module")
def found(run: sawtooth.Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    kept = tmp_path_factory.mktemp("display")
    study = sawtooth.Study.from_dict(
        {"name": "two", "question": "<b>?", "scenario": {"duration": "2 s"}, "vary": {"path.loss": ["0%", "1%"]}}
    )
    other = sawtooth.run(sawtooth.Scenario(duration="4 s"))
    directories = [one.save(kept / name) for name, one in (("a", run), ("b", other))]
    return {
        "Run": run,
        "Capture": sawtooth.read_capture(PCAP, 0),
        "Study": study,
        "StudyResult": sawtooth.run(study, out=kept / "results", jobs=1),
        "Comparison": compare(directories),
        "Estimate": Estimate("far <i>", 0.0, 100.0, 1000, "congested", 5e6, 3e6, 8e6, measured={"loss": 0.01}),
    }


KINDS = ("Run", "Capture", "Study", "StudyResult", "Comparison", "Estimate")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("patience")
def test_a_value_says_what_it_holds_in_a_few_lines(found: dict[str, Any], kind: str) -> None:
    told = repr(found[kind])
    assert 1 <= len(told.splitlines()) <= 16
    assert max(map(len, told.splitlines())) < 250
    assert isinstance(found[kind], Displayable)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("patience")
def test_a_notebook_shows_it_without_scripts_and_without_the_network(found: dict[str, Any], kind: str) -> None:
    told = found[kind]._repr_html_()
    assert told.startswith("<div>")
    assert not re.search(r"<script|https?://|<b>\?|<i>", told)
    assert len(told) < 600_000
    assert ("<img" in told) == (kind not in ("Study", "Estimate"))
    assert ("<table" in told) == (kind != "Study")


def test_each_flow_of_a_run_has_a_line(run: sawtooth.Run) -> None:
    first, *lines = repr(run).splitlines()
    assert first == "Run of scenario on sim: path, 4 s, seed 1"
    assert re.fullmatch(r"  cubic: [\d.]+ Mbit/s, RTT [\d.]+ ms, \d+ retransmits.*", lines[0])
    assert lines[1].startswith("  bbr × 2: ")
    assert re.search(r"\d+ transfers, median [\d.]+ ms$", lines[2])
    assert lines[3].startswith("  queue router>loss: ")
    assert re.fullmatch(r"  probe: median [\d.]+ ms, \d of 40 lost", lines[4])


def test_a_run_of_many_flows_stays_short() -> None:
    flows = [{"cc": "reno", "name": f"f{number}"} for number in range(30)]
    told = repr(sawtooth.run(sawtooth.Scenario(duration="1 s", flows=flows)))
    assert "… and 22 more flows" in told
    assert len(told.splitlines()) < 14


def test_a_run_of_the_closed_forms_is_shown_too() -> None:
    found = sawtooth.run(sawtooth.Scenario(duration="2 s", path={"loss": "1%"}), engine="model")
    assert "Mbit/s" in repr(found)
    assert "<table" in found._repr_html_()


def test_the_mean_of_a_flow_is_its_bytes_over_the_time(run: sawtooth.Run) -> None:
    from sawtooth.stats.summary import summary

    rows = summary(run).set_index("flow")
    intervals = run.tables["intervals"]
    for index, name in enumerate(("cubic", "bbr")):
        own = intervals[intervals["flow"] == index]
        assert rows.loc[name, "mean_mbps"] == pytest.approx(own["goodput_bps"].sum() / 4 / 1e6)
        assert rows.loc[name, "retransmits"] == own["retransmits"].sum()
