"""Random arrivals of transfers: their fields in a scenario, and how the engines run them."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.arrivals import read_transfers
from sawtooth.scenario.compiled import Compiled
from sawtooth.scenario.compiled_form import Arrivals, Sizes, Times
from sawtooth.scenario.sizes import read_cdf
from sawtooth.testbed.outcome import transfers

PATH = {"rate": "50 Mbit/s", "rtt": "20 ms", "queue": "1 bdp"}


def of(source: dict[str, Any], **tables: Any) -> Scenario:
    return Scenario(
        **{"path": PATH, "duration": "10 s", "flows": [{"source": {"kind": "arrivals", **source}}], **tables}
    )


def compiled(source: dict[str, Any], **tables: Any) -> Arrivals:
    found = of(source, **tables).compile().flows[0].arrivals
    assert found is not None
    return found


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "list"
    path.write_text(text)
    return str(path)


def test_a_load_is_a_rate_of_the_payload_or_a_share_of_the_bottleneck() -> None:
    assert compiled({"load": "40 Mbit/s", "sizes": "100 kB"}).times == Times(poisson_ns=20 * 10**6)
    assert compiled({"load": "80%", "sizes": "100 kB"}).times == Times(poisson_ns=20 * 10**6)
    assert compiled({"every": "20 ms", "sizes": "100 kB"}).times == Times(poisson_ns=20 * 10**6)


@pytest.mark.parametrize(
    ("source", "code", "field"),
    [
        ({"sizes": "1 kB"}, "missing-field", "every"),
        ({"every": "1 s"}, "missing-field", "sizes"),
        ({"every": "1 s", "load": "1%", "sizes": "1 kB"}, "conflict", "load"),
        ({"every": "1 s", "sizes": "0 bytes"}, "out-of-range", "sizes"),
        ({"load": "0%", "sizes": "1 kB"}, "out-of-range", "load"),
        ({"load": "100%", "sizes": "1 byte"}, "out-of-range", "load"),
        ({"load": "5", "sizes": "1 kB"}, "missing-unit", "load"),
        ({"every": "1 s", "sizes": {"kind": "normal"}}, "unknown-name", "sizes.kind"),
        ({"every": "1 s", "sizes": {"kind": "lognormal", "mean": "1 kB", "sigma": 9}}, "out-of-range", "sizes.sigma"),
        (
            {"every": "1 s", "sizes": {"kind": "pareto", "least": "2 kB", "most": "1 kB", "shape": 1.2}},
            "out-of-range",
            "sizes.least",
        ),
        ({"every": "1 s", "sizes": {"kind": "cdf", "file": "/nowhere/cdf"}}, "file-not-found", "sizes.file"),
        ({"times": "/nowhere/list"}, "file-not-found", "times"),
        ({"every": "1 s", "sizes": "1 kB", "open": 0}, "out-of-range", "open"),
    ],
)
def test_what_is_wrong_with_a_source_is_reported_with_its_field(source: dict[str, Any], code: str, field: str) -> None:
    with expected_error(code=code, field=f"flows.0.source.{field}"):
        of(source)


def test_transfers_are_neither_counted_nor_replaced_and_end_with_their_bytes() -> None:
    source = {"kind": "arrivals", "every": "1 s", "sizes": "1 kB"}
    for given, field in (
        ({"count": 2}, "count"),
        ({"replace": {"lifetime": ["1 s", "2 s"]}}, "replace"),
        ({"bytes": "1 MB"}, "source"),
    ):
        with expected_error(code="conflict", field=f"flows.0.{field}"):
            Scenario(path=PATH, flows=[{"source": source, **given}])
    pairs = Scenario(topology="dumbbell", dumbbell={"pairs": 3}, flows=[{"source": source, "from": "s*", "count": 3}])
    assert [flow.count for flow in pairs.compile().flows] == [1, 1, 1]


def test_a_share_needs_a_transmitter_on_the_way() -> None:
    with expected_error(code="conflict", field="flows.0.source.load"):
        of(
            {"load": "10%", "sizes": "1 kB"},
            flows=[
                {"source": {"kind": "arrivals", "load": "10%", "sizes": "1 kB"}, "from": "receiver", "to": "sender"}
            ],
        )


def test_means_of_distributions_are_those_of_what_is_drawn(tmp_path: Path) -> None:
    points = written(tmp_path, "# bytes, share\n0 0\n1000 50\n10000 100\n")
    for sizes, mean in (
        ({"kind": "lognormal", "mean": "50 kB", "sigma": 1}, 50_000),
        ({"kind": "pareto", "least": "1 kB", "most": "1 MB", "shape": 1.2}, None),
        ({"kind": "pareto", "least": "1 kB", "most": "1 MB", "shape": 1}, None),
        ({"kind": "cdf", "file": points}, 0.5 * 500 + 0.5 * 5_500),
    ):
        drawn = transfers(of({"every": "100 us", "sizes": sizes}, duration="20 s").compile(), 0)[:, 1]
        # With an offered load, transfers arrive as often as their mean size requires.
        asked = of({"load": "1 Mbit/s", "sizes": sizes}).compile().flows[0].arrivals
        assert asked is not None
        found = asked.times.value / 8000
        assert mean is None or found == pytest.approx(mean)
        assert drawn.mean() == pytest.approx(found, rel=6 * drawn.std() / drawn.mean() / math.sqrt(len(drawn)))


def refusal(read: Callable[[str], object], tmp_path: Path, text: str, words: str) -> str:
    """The code with which `read` refuses a file with this text, with these words in its message."""
    with pytest.raises(SawtoothError, match=re.escape(words)) as caught:
        read(written(tmp_path, text))
    return caught.value.code


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no points"),
        ("# nothing\n", "no points"),
        ("100 0.5\n200 0.4\n300 1\n", "line 2: the share falls"),
        ("100 0.5\n50 1\n", "line 2"),
        ("100 0.5\n200 0.9\n", "neither 1 nor 100"),
        ("0 0.5\n200 1\n", "line 1: transfers of 0 bytes"),
        ("0 0\n0 1\n", "0 bytes"),
        ("-5 0\n10 1\n", "line 1"),
        ("100\n200 1\n", "line 1 has 1 fields"),
        ("100 0.5 3\n", "line 1 has 3 fields"),
        ("100 nan\n", "line 1"),
        ("100 1e400\n", "line 1"),
        ("100 101\n", "line 1"),
        ("1e16 1\n", "line 1"),
    ],
)
def test_a_bad_distribution_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    assert refusal(read_cdf, tmp_path, text, words) == "bad-cdf"


def test_a_distribution_is_in_shares_or_percent_with_commas_or_without(tmp_path: Path) -> None:
    expected = ((100, 250_000_000), (200, 10**9))
    assert read_cdf(written(tmp_path, "100 0.25\n200 1\n")) == expected
    assert read_cdf(written(tmp_path, "100, 25\n200, 100\n")) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("t_s,bytes\n", "no transfers"),
        ("bytes\n5\n", "line 1"),
        ("t_s,size\n0,5\n", "line 1"),
        ("t_s,bytes\n1,5\n0.5,5\n", "line 3: 0.5 s is before"),
        ("t_s,bytes\n1,\n", "line 2: bytes is missing"),
        ("t_s,bytes\n,5\n", "line 2: t_s is missing"),
        ("t_s,bytes\n1\n", "line 2 has 1 fields"),
        ("t_s,bytes\n1,0\n", "line 2: 0 is no number of bytes"),
        ("t_s,bytes\n1,1.5\n", "line 2"),
        ("t_s,bytes\n-1,5\n", "line 2"),
        ("t_s,bytes\n1e9,5\n", "line 2"),
        ('t_s,bytes\n"1",5\n', "quoted"),
    ],
)
def test_a_bad_list_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    assert refusal(read_transfers, tmp_path, text, words) == "bad-transfers"


def test_a_list_is_beside_the_scenario_and_counts_by_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("bytes,t_s\n100,0\n200,0.5\n")
    (tmp_path / "sizes.cdf").write_text("100 0.5\n200 1\n")
    file = tmp_path / "s.toml"
    file.write_text(
        '[[flows]]\nsource = { kind = "arrivals", times = "list.csv" }\n'
        '[[flows]]\nsource = { kind = "arrivals", every = "1 s", sizes = { kind = "cdf", file = "sizes.cdf" } }\n'
    )
    scenario = Scenario.load(file)
    first, second = (flow.arrivals for flow in scenario.compile().flows)
    assert first == Arrivals(times=Times(at_ns=(0, 500_000_000)), sizes=Sizes(each=(100, 200)), open=10_000)
    assert second is not None
    assert second.sizes == Sizes(cdf=((100, 500_000_000), (200, 10**9)))
    before = scenario.digest()
    (tmp_path / "sizes.cdf").write_text("100 0.6\n200 1\n")
    assert Scenario.load(file).digest() != before
    assert Scenario.from_dict(scenario.to_dict()) == scenario


def test_the_compiled_form_is_read_back(tmp_path: Path) -> None:
    for source in ({"every": "1 s", "sizes": "1 kB"}, {"times": written(tmp_path, "t_s,bytes\n0,5\n")}):
        told = of(source).compile()
        again = Compiled.from_dict(told.to_dict())
        assert again.to_json() == told.to_json()


def test_a_run_has_the_transfers_that_every_engine_has() -> None:
    scenario = of({"load": "30%", "sizes": {"kind": "lognormal", "mean": "20 kB", "sigma": 1}}, duration="3 s")
    expected = transfers(scenario.compile(), 0)
    rows = engines.get("sim").run(scenario).tables["flows"].sort_values("generation")
    assert len(rows) == len(expected) > 100
    assert np.array_equal(rows["asked_bytes"], expected[:, 1])
    assert np.allclose(rows["start_s"], expected[:, 0] / 1e9)


def test_the_model_and_iperf3_have_no_such_transfers() -> None:
    for engine in ("model", "kernel"):
        with expected_error(code="unsupported", field="flows.0.source"):
            engines.get(engine).check(of({"every": "1 s", "sizes": "1 kB"}))


def took_ms(run: Run) -> Any:
    rows = run.tables["flows"].query("completed == 1").set_index("generation").sort_index()
    return (rows["end_s"] - rows["start_s"]) * 1e3


@pytest.mark.usefixtures("kernel")
def test_completion_times_are_the_kernels() -> None:
    source = {"load": "50%", "sizes": {"kind": "lognormal", "mean": "100 kB", "sigma": 1.5}}
    scenario = of(source, traffic="native")
    simulated, measured = (engines.get(name).run(scenario) for name in ("sim", "kernel"))
    ours, theirs = took_ms(simulated), took_ms(measured)
    assert len(ours) == pytest.approx(len(theirs), abs=3)
    assert ours.median() == pytest.approx(theirs.median(), rel=0.05)
    both = simulated.tables["flows"].merge(measured.tables["flows"], on="generation", suffixes=("", "_kernel"))
    assert (both["asked_bytes"] == both["asked_bytes_kernel"]).all()
    assert (both["start_s"] - both["start_s_kernel"]).abs().max() < 20e-6


@pytest.mark.usefixtures("kernel")
def test_as_many_are_open_on_the_kernel_as_the_scenario_allows() -> None:
    # A process usually may open 4096 files, and such a guest 8000 threads.
    source = {"every": "0.2 ms", "sizes": "100 kB"}
    path = {"rate": "10 Mbit/s", "rtt": "2 ms", "queue": "1000 packets"}
    made = engines.get("kernel").run(of(source, path=path, duration="1.9 s", traffic="native"))
    rows = made.tables["flows"]
    assert len(rows) == len(transfers(made.scenario.compile(), 0))
    assert (rows["completed"] == 0).sum() > 9000
