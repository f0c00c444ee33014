"""The comparison with ns-3: its questions and counts. It does not need ns-3: `make bench-ns3` runs that."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[2] / "bench" / "side_by_side.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("side_by_side", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def program(directory: Path, text: str) -> Path:
    path = directory / "bulk"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_ns3_is_asked_what_the_scenario_asks(bench: ModuleType) -> None:
    for question in (*bench.SPEED, *bench.FIDELITY):
        asked = dict(argument.removeprefix("--").split("=") for argument in question.arguments(7))
        compiled = question.scenario(7).compile()
        assert {t.rate_bps for t in compiled.transmitters} == {int(asked["rate"])}
        assert {t.queue_packets for t in compiled.transmitters} == {int(asked["queue"])}
        assert sum(link.delay_ns for link in compiled.links) == int(asked["rtt"])
        assert sum(link.loss_ppb for link in compiled.links) == round(float(asked["loss"]) * 1e9)
        assert compiled.duration_ns == int(asked["seconds"]) * 10**9
        assert [(f.cc, f.count) for f in compiled.flows] == [(asked["cc"], int(asked["flows"]))]
        assert compiled.seed == int(asked["seed"]) == 7


def test_ns3_answers_a_line_of_json(bench: ModuleType, tmp_path: Path) -> None:
    fake = program(tmp_path, 'echo "{\\"packets\\": 1000, \\"cpu_s\\": 0.5, \\"mean_mbps\\": 9}"')
    assert bench.ns3(fake, bench.SPEED[0], 1) == {"packets": 1000, "cpu_s": 0.5, "mean_mbps": 9}


def test_a_failure_of_ns3_is_reported_with_its_command(bench: ModuleType, tmp_path: Path) -> None:
    fake = program(tmp_path, "echo out of memory >&2; exit 3")
    with pytest.raises(SystemExit, match=r"ns-3 failed: .*--topology=chain(.|\n)*out of memory"):
        bench.ns3(fake, bench.SPEED[0], 1)


def test_an_ns3_run_is_bounded_in_time(bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PATIENCE_S", 0.2)
    with pytest.raises(SystemExit, match=r"took over 0\.2 s"):
        bench.ns3(program(tmp_path, "exec sleep 60"), bench.SPEED[0], 1)


def test_the_ratio_is_the_simulators_packets_a_cpu_second_to_those_of_ns3(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "sim_speed", lambda question, seed: {1: 3e6, 2: 4e6, 3: 9e6}[seed])
    fake = program(tmp_path, 'echo "{\\"packets\\": 10000, \\"cpu_s\\": 0.5}"')
    (row,) = bench.speed(fake, bench.SPEED[:1])
    assert row["ns3_packets_per_cpu_s"] == 20_000
    assert row["sim_packets_per_cpu_s"] == 4_000_000
    assert (row["ratio"], row["least_ratio"]) == (200, 150)


def test_a_difference_is_of_the_means_in_percent_of_the_kernels(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {"kernel": {1: 9.0, 2: 10.0, 3: 11.0}, "sim": {1: 10.0, 2: 10.0, 3: 11.5}}
    monkeypatch.setattr(bench, "throughput", lambda question, engine, seed: seen[engine][seed])
    (row,) = bench.fidelity(program(tmp_path, 'echo "{\\"mean_mbps\\": 4}"'), bench.FIDELITY[:1])
    assert (row["kernel_mbps"], row["kernel_error_mbps"]) == (10, 0.58)
    assert (row["sim_difference_percent"], row["ns3_difference_percent"]) == (5, -60)
    assert "`sim`: median 5.0%, worst 5.0%; ns-3: median 60.0%, worst 60.0%" in bench.summary([row])


def test_throughput_is_of_all_flows_together(bench: ModuleType) -> None:
    question = bench.Question("path", "reno", 0, 4, rate=10, rtt=10, queue=20, flows=3)
    # 10 Mbit/s less 66 bytes of headers in 1514, and less the first second of slow start.
    assert 9.3 < bench.throughput(question, "sim", 1) < 10 * 1448 / 1514


def test_tables_replace_what_stood_between_their_marks(bench: ModuleType) -> None:
    page = "a\n<!-- speed -->\nold\n<!-- /speed -->\nz\n"
    assert bench.fill(page, "speed", "new") == "a\n<!-- speed -->\n\nnew\n\n<!-- /speed -->\nz\n"
    with pytest.raises(ValueError, match="the page has no"):
        bench.fill(page, "fidelity", "new")
