"""Utilization and the ceiling: the share of a rate that headers take, and the share in use on the wire."""

import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import sawtooth
from expected_error import expected_error
from sawtooth.cli.program import sawtooth as program
from sawtooth.scenario import Scenario
from sawtooth.stats import ceiling, throughput, utilization
from sawtooth.stats.queueing import bottleneck

PATH = {"rate": "50 Mbit/s", "rtt": "10 ms", "queue": "1 bdp"}


def asked(changes: dict[str, object], **more: object) -> Scenario:
    scenario = Scenario.from_dict({"path": PATH, "flows": [{"cc": "cubic"}], **more})
    if changes != {"topology": "custom"}:
        return scenario.set(changes)
    tables = scenario.as_custom().to_dict()
    for link in tables["links"]:
        link["overhead"] = "24 bytes"
    return Scenario.from_dict(tables)


def used(**changes: object) -> tuple[float, float]:
    """Utilization of the bottleneck, and goodput over the rate."""
    run = sawtooth.run(asked(changes, **{"duration": "20 s", "warmup": "5 s"}))
    return utilization(run, bottleneck(run)), float(throughput(run).mean()) / 50


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 1448 / 1514),
        ({"host.timestamps": False}, 1448 / 1502),
        ({"host.mss": 536}, 536 / 602),
        ({"ip": 6}, 1428 / 1514),
        ({"topology": "custom"}, 1448 / 1538),
    ],
)
def test_goodput_on_a_full_line_is_the_ceiling_and_the_line_is_in_use_whole(
    changes: dict[str, object], share: float
) -> None:
    most = ceiling(asked(changes).compile())
    assert most is not None
    on_wire, goodput = used(**changes)
    assert goodput == pytest.approx(most.share, rel=2e-3)
    assert on_wire == pytest.approx(1, rel=2e-3)
    if "ip" not in changes:
        assert most.share == pytest.approx(share)


def test_what_is_sent_again_is_in_use_and_no_goodput() -> None:
    on_wire, goodput = used(**{"path.loss": "10%", "flows.0.cc": "bbr"})
    assert on_wire > goodput * 1514 / 1448 * 1.08


def test_a_rate_that_changes_counts_as_it_was() -> None:
    changes = {"path.changes": [{"at": "0 s", "rate": "50 Mbit/s"}, {"at": "10 s", "rate": "20 Mbit/s"}]}
    on_wire, _ = used(**changes, duration="20 s", warmup="0 s")
    assert on_wire == pytest.approx(1, abs=0.03)


@pytest.mark.usefixtures("patience")
def test_the_engine_model_has_goodput_and_its_headers_and_no_interval(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('duration = "30 s"\n[path]\nrate = "50 Mbit/s"\nrtt = "10 ms"\nloss = "1%"\n')
    asked = ["run", str(tmp_path / "one.toml"), "--engine", "model", "--out", str(tmp_path / "r"), "--jobs", "1"]
    told = CliRunner().invoke(program, asked).output
    assert " … " not in told
    assert "95% interval:" not in told
    result = sawtooth.run(
        sawtooth.Study.from_dict({"name": "one", "scenario": {"duration": "30 s", "path": {**PATH, "loss": "1%"}}}),
        engine="model",
        out=tmp_path / "s",
        jobs=1,
    )
    row = result.records[0]
    assert row["utilization_percent"] == pytest.approx(row["mean_mbps"] * 1514 / 1448 / 50 * 100)
    assert math.isnan(row["ci_low_mbps"])
    assert result.describe()["rows"][0]["ci_low_mbps"] is None


@pytest.mark.usefixtures("patience")
def test_a_run_says_the_ceiling_and_the_utilization(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('duration = "30 s"\n[path]\nrate = "50 Mbit/s"\nrtt = "10 ms"\n')
    told = CliRunner().invoke(program, ["run", str(tmp_path / "one.toml"), "--out", str(tmp_path / "r")]).output
    assert "goodput is at most 47.82 Mbit/s, 95.6% of the rate of 50 Mbit/s; headers take the rest" in " ".join(
        told.split()
    )
    lines = told.splitlines()
    head = next(index for index, line in enumerate(lines) if re.match(r"goodput .* utilization$", line))
    row = lines[head + 1]
    assert row.split()[-1].endswith("%")


@pytest.mark.parametrize("want", ["goodput >= 97% of path.rate", "48 Mbit/s < mean_mbps", "goodput / path.rate > 0.96"])
def test_a_want_above_the_ceiling_is_refused_with_it_before_anything_runs(want: str) -> None:
    with expected_error(code="out-of-range", field="want", match=r"headers limit goodput to 47\.82 Mbit/s") as caught:
        sawtooth.find(Scenario(path=PATH), vary="path.loss=0.001%..5%", want=want, engine="sim")
    assert "95%" in str(caught.value.fix)


@pytest.mark.usefixtures("patience")
def test_a_want_of_utilization_may_be_above_it() -> None:
    found = sawtooth.find(
        Scenario(path=PATH, duration="10 s", warmup="5 s"),
        vary="path.loss=0.001%..5%",
        want="utilization >= 97%",
        runs=30,
        within="50%",
    )
    assert found is not None


def test_an_expectation_above_the_ceiling_is_refused_with_it_before_anything_runs(tmp_path: Path) -> None:
    given = {"name": "s", "scenario": {"path": PATH, "duration": "5 s"}, "vary": {"path.loss": ["0%", "1%"]}}
    study = sawtooth.Study.from_dict(given | {"expect": {"full": "mean_mbps(loss='0%') >= 97% of path.rate"}})
    with expected_error(field="expect.full", match=r"headers limit goodput to 47\.82 Mbit/s"):
        sawtooth.run(study, out=tmp_path)
    assert not list(tmp_path.iterdir())
