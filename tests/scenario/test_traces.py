"""Traces of links: read strictly, repeated as by Mahimahi, the same on every engine."""

import importlib.util
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.engines import get
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled_form import RateSchedule, Trace
from sawtooth.scenario.traces import OPPORTUNITY_BYTES, Steps, read_trace, shipped

REAL = Path(__file__).parents[3] / "shared" / "traces"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "trace"
    path.write_text(text)
    return str(path)


def trace(*times_ms: int) -> Trace:
    return Trace(times_ms=times_ms, period_ms=times_ms[-1], bytes=OPPORTUNITY_BYTES)


def test_each_line_of_a_delivery_trace_is_an_opportunity_and_the_last_one_its_period(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path, "0\n5\n5\n20\n")) == trace(0, 5, 5, 20)


def test_columns_of_a_csv_are_found_by_name(tmp_path: Path) -> None:
    read = read_trace(written(tmp_path, "t_s,loss,rate_bps\n0,0.01,5e6\n1.5,0,0\n"))
    assert read == Steps(rates=((0, 5_000_000), (1_500_000_000, 0)), losses=((0, 10_000_000), (1_500_000_000, 0)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("0\n0\n", "all its times are 0"),
        ("5\n\n7\n", "line 2"),
        ("5\n4\n", "4 ms is before 5 ms"),
        ("5\n1e3\n", "line 2"),
        ("5\n-7\n", "line 2"),
        ("99999999999\n", "30 days"),
        ("t_s\n0\n", "no column but t_s"),
        ("t_s,rate_bps\n", "no rows"),
        ("t_s,rate_bps\n0,1e6\n0,2e6\n", "not after"),
        ("t_s,rate_bps\n1,1e6\n", "first time is not 0"),
        ("t_s,rate_bps\n0,1e6\n1,\n", "rate_bps is missing"),
        ("t_s,rate_bps\n0,1e6\n1\n", "1 fields, not 2"),
        ("t_s,rate_bps\n0,nan\n", "no number"),
        ("t_s,loss\n0,2\n", "not 0 … 1"),
        ("t_s,speed\n0,2\n", "'speed' is unknown"),
        ("\x1b[2J\n", "line 1"),
    ],
)
def test_a_trace_with_holes_or_times_that_go_backwards_is_refused_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    with expected_error(code="bad-trace") as caught:
        read_trace(written(tmp_path, text))
    assert words in str(caught.value)


def test_a_trace_that_is_no_file_is_named_with_its_field() -> None:
    with expected_error(code="file-not-found", field="path.trace"):
        Scenario(path={"trace": "/nowhere/lte.down"})


def test_a_name_that_no_trace_has_is_answered_by_those_that_are_shipped() -> None:
    with expected_error(code="file-not-found", field="path.trace") as caught:
        Scenario(path={"trace": "lte"})
    assert all(name in (caught.value.fix or "") for name in shipped())


def test_a_trace_is_beside_the_scenario_or_is_one_that_is_shipped(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("1\n2\n")
    file = tmp_path / "s.toml"
    file.write_text('path = { trace = "own" }')
    assert Scenario.load(file).compile().transmitters[0].pace == RateSchedule(trace=trace(1, 2))
    file.write_text('path = { trace = "lte-like.down" }')
    assert Scenario.load(file).compile().transmitters[0].pace is not None


def test_a_scenario_is_another_one_when_its_trace_says_something_else(tmp_path: Path) -> None:
    scenario = Scenario(path={"trace": written(tmp_path, "1\n2\n")})
    before = scenario.digest()
    written(tmp_path, "1\n3\n")
    assert scenario.digest() != before


def test_a_run_delivers_what_its_trace_lets_leave(tmp_path: Path) -> None:
    """One full frame each 2 ms: 1448 bytes of payload in 500 opportunities a second."""
    path = {"trace": written(tmp_path, "2\n4\n6\n"), "rtt": "20 ms", "queue": "50 packets"}
    run = get("sim").run(Scenario(duration="10 s", path=path))
    goodput = run.tables["intervals"].query("3 < t_s < 10")["goodput_bps"].mean()
    assert goodput == pytest.approx(500 * 1448 * 8, rel=0.005)


def test_the_shipped_traces_are_what_their_generator_writes() -> None:
    specification = importlib.util.spec_from_file_location("traces", Path(__file__).parents[2] / "tools" / "traces.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert set(shipped()) == set(module.TRACES)
    for name, made in module.TRACES.items():
        assert shipped()[name].read_text() == "\n".join(made()) + "\n", name


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_shipped_traces_can_be_run(name: str) -> None:
    run = get("sim").run(Scenario(duration="5 s", path={"trace": name, "queue": "200 packets"}))
    assert run.tables["intervals"]["goodput_bps"].mean() > 1e6


@pytest.mark.skipif(not REAL.exists(), reason="the data beside the checkout (../shared) is not here")
@pytest.mark.parametrize("way", ["down", "up"])
def test_recorded_traces_are_read_whole(way: str) -> None:
    path = REAL / f"ATT-LTE-driving-2016.{way}"
    read = read_trace(str(path))
    assert isinstance(read, Trace)
    assert len(read.times_ms) == len(path.read_text().split())


def test_a_trace_gives_the_kernel_and_the_simulator_the_same_throughput(kernel) -> None:
    scenario = Scenario(duration="10 s", traffic="native", path={"trace": "lte-like.down", "queue": "100 packets"})
    ours, theirs = (get(engine).run(scenario).tables["intervals"]["goodput_bps"].mean() for engine in ("sim", "kernel"))
    assert ours == pytest.approx(theirs, rel=0.03)
