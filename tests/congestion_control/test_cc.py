"""Congestion controls as the command line lists and shows them."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from sawtooth import _core
from sawtooth.cli.program import status_of
from sawtooth.congestion_control import distance, having, response
from sawtooth.congestion_control.response import LOSSES
from sawtooth.engines import model
from sawtooth.scenario import CONTROLS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    ended = status_of(["cc", *words])
    captured = capsys.readouterr()
    assert ended == status, captured.err
    return captured.err if status else captured.out


def test_there_are_facts_of_every_control_that_scenarios_know() -> None:
    for name, facts in CONTROLS.items():
        assert facts.law.endswith("."), name
        assert re.search(r"RFC \d{4}|draft-|(?:19|20)\d\d", facts.source), name


def test_the_list_says_which_engine_has_which(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {line.split()[0]: line.split() for line in told(capsys, "list").splitlines()[1:]}
    assert list(rows) == sorted(CONTROLS)
    assert {name for name, row in rows.items() if row[1] == "own"} == set(_core.congestion_controls())
    assert {name for name, row in rows.items() if row[2] == "formula"} == set(model.CONTROLS)
    assert {row[4] for row in rows.values()} == {"–"}
    found = json.loads(told(capsys, "list", "--json"))
    assert [one["name"] for one in found] == list(rows)
    assert found[list(rows).index("hybla")]["parameters"] == "rtt0 25"
    assert [one.name for one in having()] == list(rows)


def test_a_control_is_shown_with_its_law_its_source_and_its_engines(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "show", "westwood")
    assert "smallest RTT" in text
    assert "Mascolo" in text
    assert "The engine sim has none of its own" in text
    assert "variants    draft, ecn (engine sim)" in told(capsys, "show", "bbr3", "--no-curve")
    assert "loss    mean" not in told(capsys, "show", "reno", "--no-curve")
    assert 'did you mean "cubic"?' in told(capsys, "show", "cubik", status=2)


@pytest.mark.usefixtures("patience")
def test_the_curve_falls_with_loss_and_follows_the_closed_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, "show", "reno", "--seeds", "2", "--out", str(tmp_path / "out"))
    table = pd.read_csv(tmp_path / "out" / "response-reno.csv")
    assert list(table["loss"]) == list(LOSSES)
    assert table["mean_mbps"].is_monotonic_decreasing
    between = table.iloc[4:8]
    assert (between["mean_mbps"] / between["formula_mbps"]).between(0.75, 1.35).all()
    assert (table["least_mbps"] <= table["mean_mbps"]).all()
    assert f"{table['mean_mbps'].iloc[4]:.2f}" in text
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".csv", ".png", ".svg"}
    again = response("reno", seeds=2, jobs=1).table
    pd.testing.assert_frame_equal(again, table, rtol=1e-5)


def test_the_distance_from_the_kernel_is_known_for_each_control_of_the_simulator() -> None:
    for name in _core.congestion_controls():
        found = distance(name)
        if name == "prague":
            assert found is None, "no kernel of the record has it"
            continue
        assert found is not None, "run experiments/controls.py"
        assert 0 <= found.median <= found.p90 <= found.worst
        # DCTCP is measured without marks, among Linux's other controls.
        assert found.points > (5 if name == "dctcp" else 30)
    assert distance("vegas") is None


@pytest.mark.usefixtures("patience")
def test_the_picture_of_a_curve_without_spread_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If all seeds give the same, rounding may put an end of the interval on the other side of the mean."""
    told(capsys, "show", "reno", "--engine", "model", "--out", str(tmp_path / "curve"))
    assert (tmp_path / "curve" / "response-reno.png").exists()
