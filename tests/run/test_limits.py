"""What limits a flow has one answer, in Python, on the command line and on the page."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sawtooth import Run, Scenario, _core
from sawtooth.cli.commands import sawtooth
from sawtooth.engines.sim import Sim
from sawtooth.run.metadata import limit_lines
from sawtooth.scenario.toml import toml_text
from tests.lab.test_lab_language import ask
from tests.lab.test_lab_summary import BBR, CUBIC, LIMITS, Question, question

NAMES = {
    "together, where the one makes room for the other by mistake": ["path loss", "shared rate"],
    "one after the other: none is limited by what the other lost, or got": ["growth", "rate"],
    "for two of ten seconds": ["rate", "rate"],
    "drops of a short queue": ["queue drops"],
    "connections of one flow": ["rate"],
    "a window of the receiver": ["receive window"],
    "a window that holds a fast path back for less than half of the time, beside loss that BBR ignores": [
        "receive window"
    ],
    "the same with a buffer that is large enough": ["send buffer"],
    "acknowledgements": ["return path"],
    "a shaper below the line's rate": ["rate"],
    "marks": ["marks"],
    "loss that BBR v1 passes on": ["path loss"],
    "hardly begun": ["rate", "start"],
    "a handshake that takes longer than the run": ["start"],
    "timers that do not wait for a round trip": ["start"],
    "a path that nothing passes": ["path loss"],
}
"""For each case of the page in which flows run together: the names of the limits."""


def scenario(asked: Question) -> dict[str, Any]:
    """Runs it like the page: about 400 intervals of 1, 2 or 5 times a power of ten."""
    seconds = float(asked["scenario"]["duration"].removesuffix(" s"))
    power = 10 ** math.floor(math.log10(seconds / 400))
    length = next(times * power for times in (1, 2, 5, 10) if times * power >= seconds / 400 * 0.999)
    return asked["scenario"] | {"interval": f"{length * 1e3:g} ms"}


def test_every_case_of_the_page_in_which_flows_run_together_has_its_names() -> None:
    assert set(NAMES) == {name for name, (asked, _) in LIMITS.items() if not asked["alone"]}


@pytest.fixture(scope="module")
def page(lab: Path) -> dict[str, list[dict[str, Any]]]:
    return dict(zip(NAMES, ask(lab, "summary", [LIMITS[name][0] for name in NAMES]), strict=True))


@pytest.mark.parametrize("case", NAMES)
def test_python_and_the_page_name_the_same_limit(page: dict[str, list[dict[str, Any]]], case: str) -> None:
    run = Sim().run(Scenario.from_dict(scenario(LIMITS[case][0])))
    assert [one["limit"] for one in run.limits] == NAMES[case]
    assert [one["words"] for one in run.limits] == [row["limit"] for row in page[case]]
    for one in run.limits:
        assert dict(one["shares"]).get(one["limit"], 0.0) == one["share"]


def test_super_packets_lost_on_the_path_are_no_drops_of_a_queue() -> None:
    """Each loss takes up to 45 segments, so there are fewer losses than retransmissions."""
    link = {"from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "0.2 ms", "forward": {"loss": "1%"}}
    hosts = {"a": {"offload": True}, "b": {}}
    flow = {"from": "a", "to": "b", "cc": "cubic"}
    run = Sim().run(
        Scenario.from_dict({"topology": "custom", "duration": "3 s", "hosts": hosts, "links": [link], "flows": [flow]})
    )
    assert run.tables["queues"]["drops"].sum() == 0
    assert [one["limit"] for one in run.limits] == ["path loss"]


@pytest.mark.parametrize("interval", ["1 s", "100 ms"])
@pytest.mark.usefixtures("patience")
def test_the_command_line_prints_the_same_limit(tmp_path: Path, interval: str) -> None:
    given = question(BBR, CUBIC, rate="20 Mbit/s")["scenario"] | {"interval": interval}
    expected = Sim().run(Scenario.from_dict(given)).limits
    assert [one["limit"] for one in expected] == ["shared rate", "shared rate"]
    (tmp_path / "two.toml").write_text(toml_text(given))
    told = CliRunner().invoke(sawtooth, ["run", str(tmp_path / "two.toml"), "--out", str(tmp_path / "results")])
    words = " ".join(told.stdout.split())
    for line in limit_lines(expected):
        assert f"limit of {line}" in words
    again = ["run", str(tmp_path / "two.toml"), "--out", str(tmp_path / "again"), "--json"]
    found = json.loads(CliRunner().invoke(sawtooth, again).stdout)["limits"]
    assert [{name: value for name, value in one.items() if name in expected[0]} for one in found] == expected


def test_a_buffer_that_limits_is_warned_of_with_the_same_share() -> None:
    run = Sim().run(Scenario.from_dict(question(CUBIC, rtt="50 ms", host={"receive_buffer": "100 KiB"})["scenario"]))
    (one,) = run.limits
    assert f"{one['share']:.0%} of the time" in next(line for line in run.warnings if "receive buffer" in line)
    assert "limit of cubic: the receiver's window" in str(run)


def test_a_saved_run_keeps_its_limits(tmp_path: Path) -> None:
    run = Sim().run(Scenario.from_dict(question(CUBIC, rate="5 Mbit/s", duration="2 s")["scenario"]))
    run.save(tmp_path / "run")
    assert Run.load(tmp_path / "run").limits == run.limits


def test_the_flows_with_the_same_rate_are_named_by_what_they_take() -> None:
    flows = [{"name": name, "cc": "cubic", "count": count} for name, count in (("one", 1), ("three", 3), ("two", 2))]
    run = Sim().run(Scenario.from_dict(question(*flows, rate="60 Mbit/s")["scenario"]))
    first = run.limits[0]
    assert first["limit"] == "shared rate"
    assert [taker["flow"] for taker in first["takers"]] == ["three", "two"]
    goodput = run.tables["intervals"].groupby("flow")["goodput_bps"].mean()
    assert first["takers"][0]["goodput_bps"] == pytest.approx(goodput[1])
    assert sum(one["share_of_rate"] for one in run.limits) == pytest.approx(1, abs=0.05)


def test_the_largest_share_is_the_limit_and_of_equal_ones_the_first() -> None:
    shares = np.array([[0.47, 0.53, 0.0], [0.5, 0.5, 0.0], [0.0, np.nan, 0.1], [0.0, 0.0, np.nan]])
    assert _core.largest_shares(shares).tolist() == [1, 0, 2, -1]
    assert _core.largest_shares(np.asfortranarray(shares)).tolist() == [1, 0, 2, -1]
