"""What if, end to end: from a capture of the real kernel's CUBIC to the path, and to what CUBIC and BBR get there."""

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth.capture.busiest_connection import read_busiest
from sawtooth.capture.page import write_page
from sawtooth.capture.text import describe
from sawtooth.cli.whatif_command import whatif
from sawtooth.engines.kernel import Kernel
from sawtooth.engines.sim import Sim
from sawtooth.scenario import Scenario
from sawtooth.whatif import estimate, observe
from sawtooth.whatif.from_numbers import from_numbers
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.runs import Drawn, scenario

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


def test_the_command_reports_what_cubic_got_and_bbr_would(captures: Path) -> None:
    arguments = [str(captures / "capture-sender.pcap"), "--cc", "cubic", "--draws", "8", "--json"]
    told = json.loads(CliRunner().invoke(whatif, arguments, catch_exceptions=False).output)
    answers = {one["cc"]: one for one in told["answers"]}
    assert told["self_test"]["verdict"] in ("agrees", "roughly")
    assert answers["cubic"]["low_bps"] * 0.8 < told["observed"]["goodput_bps"] < answers["cubic"]["high_bps"] * 1.25
    # 20 Mbit/s of frames are 19.1 of payload; 0.2% loss costs BBR little of it.
    assert 17e6 < answers["bbr"]["goodput_bps"] < 19.1e6


def test_the_control_is_identified_unless_it_is_given(captures: Path) -> None:
    for given, cc, how in (([], "cubic", "identified, "), (["--cc", "reno"], "reno", "given")):
        arguments = [str(captures / "capture-sender.pcap"), *given, "--draws", "2"]
        told = json.loads(CliRunner().invoke(whatif, [*arguments, "--json"], catch_exceptions=False).output)
        assert told["observed"]["cc"] == cc
        assert told["observed"]["cc_how"].startswith(how)
        assert told["self_test"]["words"].startswith(f"{cc} on the estimated path gets ")


def test_goodput_duration_and_segments_are_the_capture_s_in_text_page_json_and_what_if(tmp_path: Path) -> None:
    Sim(capture=tmp_path).run(Scenario(topology="path", duration="5 s", path=PATH, flows=[{"cc": "cubic"}]))
    capture = read_busiest(tmp_path / "capture-receiver.pcap")
    facts = capture.facts["connections"][0]["directions"][0]
    goodput = f"{facts['goodput_bps'] / 1e6:.4g} Mbit/s"
    seen = observe(tmp_path / "capture-receiver.pcap")
    told = seen.describe()
    for name in ("goodput_bps", "duration_s", "retransmits"):
        assert told[name] == facts[name]
    assert told["segments"] == facts["data_packets"] > facts["retransmits"] > 0
    assert f" s, {goodput}, " in describe(capture.facts)
    assert f"retransmitted {facts['retransmits']} of {facts['data_packets']} segments" in describe(capture.facts)
    page = write_page(capture, tmp_path / "page.html").read_text()
    assert f", {goodput}, with a minimum RTT" in page
    assert f"{facts['retransmits']:,} of {facts['data_packets']:,} segments were retransmitted" in page
    words = CliRunner().invoke(whatif, [str(tmp_path / "capture-receiver.pcap"), "--draws", "2"]).output
    assert f"{goodput} over " in words
    assert f"{facts['retransmits']} of {facts['data_packets']} segments (" in words


def test_a_replay_is_measured_from_its_first_data_on_where_the_capture_is() -> None:
    path = Drawn(seed=1, rate_bps=20e6, rtt_s=0.2, queue=400, loss=0, burst=1, ack_loss=0)
    estimated = estimate(from_numbers(rate="20 Mbit/s", rtt="200 ms", loss="0%"))
    since_handshake = Observed("capture", "", goodput_bps=1e7, duration_s=3.0)
    since_data = dataclasses.replace(since_handshake, since_data=True)
    lengths = [scenario(one, estimated, path, "cubic").duration.seconds for one in (since_handshake, since_data)]
    assert lengths == [3.0, 3.2]


def test_a_capture_too_short_to_identify_the_control_says_so(tmp_path: Path) -> None:
    Sim(capture=tmp_path).run(Scenario(topology="path", duration="5 s", path=PATH, flows=[{"cc": "cubic"}]))
    seen = observe(tmp_path / "capture-sender.pcap")
    assert seen.cc is None
    assert "too short" in seen.cc_how


def test_a_connection_that_is_not_there_is_refused(captures: Path) -> None:
    for name, code in (("7", "no-such-connection"), ("first", "bad-usage")):
        with expected_error(code=code):
            observe(captures / "capture-sender.pcap", connection=name)


@pytest.mark.usefixtures("patience")
def test_whatif_says_why_the_interval_of_bbr_begins_at_what_cubic_got(tmp_path: Path) -> None:
    path = {"rate": "400 Mbit/s", "rtt": "10 ms", "loss": "1%"}
    Sim(capture=tmp_path).run(Scenario(duration="3 s", path=path, flows=[{"cc": "cubic"}]))
    asked = [str(tmp_path / "capture-sender.pcap"), "--cc", "cubic", "--draws", "2"]
    told = CliRunner().invoke(whatif, asked).stdout
    assert told.endswith("if a policer dropped what was lost, BBR gets no more\n")
    answers = json.loads(CliRunner().invoke(whatif, [*asked, "--json"]).stdout)
    (bbr,) = (one for one in answers["answers"] if one["cc"] == "bbr")
    assert bbr["low_bps"] <= answers["observed"]["goodput_bps"]
