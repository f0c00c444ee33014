"""Captures of the engine sim: read back, they agree with the run's tables, and no other program complains."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from expected_error import expected_error
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.study import Study, run_study

PATH: dict[str, Any] = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "100 packets"}
BURSTS = {"gilbert_elliott": {"p": "0.4%", "r": "30%", "bad": "100%", "good": "0%"}}


def _scenario(cc: str = "cubic", duration: str = "20 s", **path: Any) -> Scenario:
    return Scenario(topology="path", duration=duration, path={**PATH, **path}, flows=[{"cc": cc}])


def _captured(scenario: Scenario, directory: Path, *at: str) -> Run:
    return Sim(capture=directory, capture_at=at).run(scenario)


def _directions(directory: Path, host: str) -> list[dict[str, Any]]:
    """Facts about the data that each connection's client sent."""
    facts = sawtooth.read_capture(directory / f"capture-{host}.pcap").facts
    assert facts["problems"] == []
    return [connection["directions"][0] for connection in facts["connections"]]


@pytest.mark.usefixtures("patience")
def test_run_writes_a_capture_of_each_end_and_point(tmp_path: Path) -> None:
    study = Study.from_dict({"name": "captured", "scenario": _scenario(duration="1 s").to_dict()})
    result = run_study(study, engine="sim", out=tmp_path, jobs=1, seeds=[1, 2], quiet=True, capture=True)
    files = sorted(path.relative_to(result.directory).as_posix() for path in result.directory.glob("captures/*/*"))
    assert files == [
        f"captures/{seed - 1}-seed{seed}/capture-{host}.pcap" for seed in (1, 2) for host in ("receiver", "sender")
    ]


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
@pytest.mark.parametrize("loss", ["2%", "10%", BURSTS])
def test_a_senders_capture_reports_the_retransmissions_timeouts_and_tail_probes_of_the_tables(
    cc: str, loss: Any, tmp_path: Path
) -> None:
    run = _captured(_scenario(cc, loss=loss), tmp_path, "sender")
    counted = run.tables["intervals"][["segments_out", "retransmits", "timeouts", "tail_probes"]].sum()
    (told,) = _directions(tmp_path, "sender")
    assert told["data_packets"] == counted["segments_out"]
    assert told["retransmits"] == counted["retransmits"]
    assert told["timeouts"] == pytest.approx(counted["timeouts"], abs=2)
    # A probe with new data looks like any other segment.
    assert told["tail_probes"] <= counted["tail_probes"]
    lost = run.tables["links"]["lost"].sum() + run.tables["queues"]["drops"].sum()
    # Packets in transit at the end are not yet missing.
    assert told["loss"]["lost_copies"] == pytest.approx(lost, rel=0.02, abs=5)
    assert told["acknowledged_bytes"] == run.tables["flows"]["delivered_bytes"].sum()


def test_both_ends_tell_on_which_side_of_them_the_loss_is(tmp_path: Path) -> None:
    _captured(_scenario(loss="2%"), tmp_path)
    assert _directions(tmp_path, "sender")[0]["loss"]["where"] == "data after"
    assert _directions(tmp_path, "receiver")[0]["loss"]["where"] == "data before"


def test_a_capture_changes_no_table_and_is_the_same_each_time(tmp_path: Path) -> None:
    scenario = _scenario("bbr", duration="5 s", loss="2%")
    plain = Sim().run(scenario)
    digests = set()
    for directory in ("one", "two"):
        run = _captured(scenario, tmp_path / directory, "sender", "loss", "receiver")
        assert all(run.tables[name].equals(table) for name, table in plain.tables.items())
        content = b"".join(path.read_bytes() for path in sorted((tmp_path / directory).iterdir()))
        digests.add(hashlib.sha256(content).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize(("place", "code"), [("full", "disk-full"), ("file", "unwritable-output")])
def test_a_capture_that_cannot_be_written_fails_the_run(place: str, code: str, tmp_path: Path) -> None:
    target = tmp_path / "captures"
    if place == "full":
        target.mkdir()
        (target / "capture-sender.pcap.part").symlink_to("/dev/full")
    else:
        target.write_text("in the way")
    with expected_error(code=code, file=str(target)):
        _captured(_scenario(duration="2 s"), target)
    assert place == "file" or list(target.iterdir()) == []


def test_a_run_that_is_stopped_leaves_no_capture(tmp_path: Path) -> None:
    with pytest.raises(SawtoothError, match="stopped"):
        Sim(capture=tmp_path).run(_scenario(), stop=lambda: True)
    assert list(tmp_path.iterdir()) == []


def test_hosts_that_are_not_there_and_connections_without_ports_are_refused(tmp_path: Path) -> None:
    many = Scenario(flows=[{"cc": "reno", "count": 50_000}])
    Sim().check(many)
    for engine, scenario, refusal in (
        (Sim(tmp_path, ("sendr",)), _scenario(), ("unknown-name", "capture-at")),
        (Sim(tmp_path), many, ("unsupported", "flows.0.count")),
    ):
        with pytest.raises(SawtoothError) as caught:
            engine.check(scenario)
        assert (caught.value.code, caught.value.field) == refusal


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: its opinion cannot be asked")
@pytest.mark.usefixtures("patience")
def test_tshark_finds_nothing_to_complain_of(tmp_path: Path) -> None:
    flows: list[dict[str, Any]] = [{"cc": "cubic"}, {"cc": "bbr", "bytes": "100 kB", "count": 2}]
    flows.append({"cc": "reno", "replace": {"lifetime": ["0.5 s", "1 s"]}})
    probes = [{"interval": "50 ms", "count": 50}]
    scenario = Scenario(
        topology="path", duration="5 s", path={**PATH, "loss": "2%", "ack_loss": "2%"}, flows=flows, probes=probes
    )
    _captured(scenario, tmp_path)

    def frames(host: str, such: str) -> int:
        command = ["tshark", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-n"]
        command += ["-r", str(tmp_path / f"capture-{host}.pcap"), "-Y", such]
        return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())

    for host in ("sender", "receiver"):
        assert frames(host, "tcp.flags.syn == 1") > 10
        assert frames(host, "_ws.malformed or _ws.expert.severity == error") == 0
        assert frames(host, "tcp.checksum.status == 0 or ip.checksum.status == 0") == 0
        assert frames(host, "icmp") > 80
    # The receiver cannot have acknowledged what the sender did not capture.
    assert frames("sender", "tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment") == 0
    assert frames("sender", "tcp.analysis.reused_ports or tcp.analysis.zero_window") == 0
