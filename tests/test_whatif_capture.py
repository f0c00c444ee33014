"""What if, end to end: a capture of the real kernel's CUBIC tells the path, and what CUBIC and BBR get there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sawtooth.cli.whatif_command import whatif
from sawtooth.engines.kernel import Kernel
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.whatif import estimate, observe

PATH = {"rate": "20 Mbit/s", "rtt": "30 ms", "queue": "1 bdp", "loss": "0.2%"}


@pytest.fixture(scope="module")
def captures(kernel: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both ends of 15 s of CUBIC."""
    directory = tmp_path_factory.mktemp("captures")
    asked = Scenario(duration="15 s", traffic="native", path=PATH, flows=[{"cc": "cubic"}])
    Kernel(capture=directory).run(asked)
    return directory


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_the_path_is_estimated_from_either_end(captures: Path, side: str) -> None:
    found = estimate(observe(captures / f"capture-{side}.pcap"))
    assert found.rate.low <= 20e6 <= found.rate.high
    assert found.rtt.low <= 0.03 <= found.rtt.high
    assert found.loss.low <= 0.002 <= found.loss.high
    assert found.delayed_ack


def test_the_command_tells_what_cubic_got_and_bbr_would(captures: Path) -> None:
    arguments = [str(captures / "capture-sender.pcap"), "--cc", "cubic", "--draws", "8", "--json"]
    told = json.loads(CliRunner().invoke(whatif, arguments, catch_exceptions=False).output)
    answers = {one["cc"]: one for one in told["answers"]}
    assert told["self_test"]["verdict"] in ("agrees", "roughly")
    assert answers["cubic"]["low_bps"] * 0.8 < told["observed"]["throughput_bps"] < answers["cubic"]["high_bps"] * 1.25
    # 20 Mbit/s of frames are 19.1 of payload; BBR loses little of it to 0.2%.
    assert 17e6 < answers["bbr"]["throughput_bps"] < 19.1e6


def test_the_control_is_identified_unless_it_is_given(captures: Path) -> None:
    for given, cc, how in (([], "cubic", "identified, "), (["--cc", "reno"], "reno", "given")):
        arguments = [str(captures / "capture-sender.pcap"), *given, "--draws", "2"]
        told = json.loads(CliRunner().invoke(whatif, [*arguments, "--json"], catch_exceptions=False).output)
        assert told["observed"]["cc"] == cc
        assert told["observed"]["cc_how"].startswith(how)
        assert told["self_test"]["words"].startswith(f"{cc} replayed")


def test_a_capture_too_short_to_identify_the_control_says_so(tmp_path: Path) -> None:
    Sim(capture=tmp_path).run(Scenario(topology="path", duration="5 s", path=PATH, flows=[{"cc": "cubic"}]))
    seen = observe(tmp_path / "capture-sender.pcap")
    assert seen.cc is None
    assert "too short" in seen.cc_how


def test_a_connection_that_is_not_there_is_refused(captures: Path) -> None:
    for name, code in (("7", "no-such-connection"), ("first", "bad-usage")):
        with pytest.raises(SawtoothError) as caught:
            observe(captures / "capture-sender.pcap", connection=name)
        assert caught.value.code == code
