"""Explain: one answer from several kinds of input, the same as the verbs for each kind give."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth.capture import read_capture
from sawtooth.capture.busiest_connection import read_busiest
from sawtooth.capture.identify.captured import identify_capture
from sawtooth.capture.summary import Judgement
from sawtooth.cli.explain_command import explain as command
from sawtooth.cli.whatif_command import whatif
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.explain import explain, live, page, words
from sawtooth.explain.explain import _together as together
from sawtooth.explain.gains import CHANGES
from sawtooth.explain.inputs import Transfer
from sawtooth.explain.judged import ONLY_CAPTURE, limit, one_answer
from sawtooth.explain.mtr import from_json, from_text, lost_from
from sawtooth.explain.text import rows
from sawtooth.figures import embedded_figures
from sawtooth.scenario import Scenario
from sawtooth.watch.expected import expect, observed
from sawtooth.whatif import Choice, estimate, observe, save_scenario
from sawtooth.whatif.from_capture import read_transfer
from sawtooth.whatif.kinds import TRAINED, Kinds, shipped
from sawtooth.whatif.observation import CONTROLS
from sawtooth.whatif.replay import CHANGES_EXPLAINED
from sawtooth.whatif.shared import LIKELY, Shared, learned, likely
from sawtooth.whatif.ss import from_ss
from tests.watch.test_watch_expected import seen

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
MTR = CORPUS / "explained" / "mtr.txt"
SS = """\
ESTAB 0 2896000 10.0.0.1:20000 10.0.0.5:5201
\t ts sack cubic wscale:7,7 rto:264 rtt:61.5/1.2 mss:1448 cwnd:420 bytes_acked:24000000 data_segs_out:17000 \
delivery_rate 19Mbps busy:10400ms retrans:0/14 minrtt:40.1
"""
PING = "PING 10.0.0.5 (10.0.0.5) 56(84) bytes of data.\n" + "".join(
    f"64 bytes from 10.0.0.5: icmp_seq={at} ttl=60 time={40 + at % 7} ms\n" for at in range(1, 31)
)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both ends of 15 s of CUBIC over a path that it fills."""
    directory = tmp_path_factory.mktemp("captures")
    path = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp", "loss": "0.01%"}
    Sim(capture=directory).run(Scenario(duration="15 s", seed=3, path=path, flows=[{"cc": "cubic"}]))
    return directory


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_a_capture_is_explained_as_the_other_verbs_say(captures: Path, side: str) -> None:
    file = captures / f"capture-{side}.pcap"
    told = explain([str(file)], draws=4)
    seen = observe(file)
    assert told.observed == seen
    assert told.path == estimate(seen).quantities
    asked = CliRunner().invoke(whatif, [str(file), "--draws", "4", "--json"], catch_exceptions=False)
    by_whatif = json.loads(asked.output)
    assert [one.describe() for one in told.controls] == by_whatif["answers"]
    assert told.test is not None
    assert told.test.describe() == by_whatif["self_test"]
    shown = {one.cc: one for one in told.controls}
    assert {one.change: one.goodput_bps for one in told.gains if one.change in shown} == {
        cc: one.median_bps for cc, one in shown.items()
    }
    capture = read_busiest(file)
    judged = Judgement.of(capture.facts["connections"][0])
    assert judged is not None
    assert told.limited.by == "path"
    assert told.limited.share == judged.limits["path"] > 0.5
    assert told.limited.why == dict(judged.facts["verdict"])["What limited it?"]
    assert told.lost.count == judged.facts["loss"]["lost"]
    assert told.control.answer == "cubic"
    assert told.control.shares == identify_capture(capture).names


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("name", ["ss-cubic.txt", "ss-bbr.txt", "iperf3.json"])
def test_totals_are_explained_as_whatif_says(name: str) -> None:
    """The path is fitted, and how many are tried depends on what an answer takes."""
    file = Path(__file__).parents[1] / "measured" / name
    told = explain([str(file)])
    asked = CliRunner().invoke(whatif, [str(file), "--json"], catch_exceptions=False)
    by_whatif = json.loads(asked.output)
    assert [one.describe() for one in told.controls] == by_whatif["answers"]
    assert told.test is not None
    assert told.test.describe() == by_whatif["self_test"]
    assert len(CHANGES) == CHANGES_EXPLAINED


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ({"queue": "1 bdp"}, "tail drop"),
        ({"queue": {"kind": "fq_codel"}}, "CoDel or fq_codel"),
        ({"rate": "200 Mbit/s", "policer": {"rate": "10 Mbit/s", "burst": "64 KiB"}}, "policer"),
    ],
)
def test_the_kind_of_queue_is_told_from_a_capture(path: dict[str, Any], kind: str, tmp_path: Path) -> None:
    asked = {"rate": "20 Mbit/s", "rtt": "30 ms", "loss": "0%"} | path
    Sim(capture=tmp_path).run(Scenario(duration="20 s", seed=4, path=asked, flows=[{"cc": "cubic"}]))
    told = explain([str(tmp_path / "capture-sender.pcap")], draws=2)
    assert told.kinds["queue_kind"].answer == kind
    assert told.kinds["cross_traffic"].answer in ("none", None)
    assert told.kinds["loss_process"].answer in ("congestion", None)
    noted = any("simulates its drops as random loss" in doubt for doubt in told.doubts)
    assert noted == (kind == "policer"), "CoDel is simulated as itself"
    if kind != "tail drop":
        assert told.lost.kind.answer not in ("random", "bursts"), "drops of the queue are not the path's"


def test_the_kind_of_a_path_slower_than_those_of_training_is_not_told(tmp_path: Path) -> None:
    path = {"rate": "200 kbit/s", "rtt": "100 ms", "queue": "20 packets"}
    Sim(capture=tmp_path).run(Scenario(duration="30 s", path=path, flows=[{"cc": "cubic"}]))
    told = explain([str(tmp_path / "capture-sender.pcap")], draws=2)
    assert {one.why for one in told.kinds.values()} == {"no simulated path has such a rate"}
    assert {one.answer for one in told.kinds.values()} == {None}


def test_a_capture_unlike_those_of_training_is_not_judged() -> None:
    kinds = shipped()
    inside = kinds.limits.mean(axis=0)
    assert all(choice.shares for choice in kinds.judge(inside).values())
    far = kinds.judge(kinds.limits[1] * 3 + 10)
    assert {choice.answer for choice in far.values()} == {None}
    assert "unlike the simulated ones" in far["queue_kind"].why
    with pytest.raises(ValueError, match="format 9"):
        Kinds.read({"format": 9})


def test_a_larger_buffer_and_fq_codel_change_the_round_trip(captures: Path) -> None:
    told = {one.change: one for one in explain([str(captures / "capture-sender.pcap")], draws=4).gains}
    cubic, codel = told["cubic"], told["fq_codel at the bottleneck"]
    assert cubic.rtt_s is not None
    assert codel.rtt_s is not None
    larger = told["a buffer 4 times as large"].rtt_s
    assert larger is not None
    assert codel.rtt_s < cubic.rtt_s - 0.01 < cubic.rtt_s + 0.02 < larger


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("name", ["ss-cubic.txt", "ss-bbr.txt", "iperf3.json"])
def test_ss_and_iperf3_are_explained_as_whatif_says(name: str) -> None:
    file = CORPUS / "measurement" / name
    told = explain([str(file)], draws=2)
    by_whatif = json.loads(CliRunner().invoke(whatif, [str(file), "--draws", "2", "--json"]).output)
    path = {name: value.describe() for name, value in told.path.items()}
    assert path == {name: by_whatif["estimate"][name] for name in path}
    assert [one.describe() for one in told.controls] == by_whatif["answers"]
    assert told.lost.where.answer is None
    assert any("a capture at the sender" in step for step in told.next)


def test_several_inputs_make_one_answer(captures: Path, tmp_path: Path) -> None:
    (tmp_path / "ss.txt").write_text(SS.replace("cubic", "bbr"))
    (tmp_path / "ping.txt").write_text(PING)
    files = [str(tmp_path / "ping.txt"), str(tmp_path / "ss.txt"), str(captures / "capture-sender.pcap"), str(MTR)]
    told = explain(files, draws=2)
    assert told.observed is not None
    assert told.observed.source == "capture"
    assert told.control.answer == "bbr", "ss knows it; a capture can only infer it"
    assert told.control.why == "ss says so"
    assert len(told.inputs) == 4
    assert [one.sent for one in told.probed] == [30, 100]
    assert told.lost.where.answer is not None
    assert "hop 3, 198.51.100.1" in told.lost.where.answer
    shown = words(told)
    assert "RTT 40 ms to 46 ms" in shown
    assert len(shown.splitlines()) < 40


def test_inputs_that_contradict_each_other_are_named(captures: Path, tmp_path: Path) -> None:
    slower = SS.replace("minrtt:40.1", "minrtt:4.1").replace("rtt:61.5", "rtt:8.5")
    (tmp_path / "ss.txt").write_text(slower)
    told = explain([str(tmp_path / "ss.txt"), str(captures / "capture-sender.pcap")], draws=2)
    assert told.doubts == ("capture and ss disagree about the base RTT: are both of the same connection?",)
    assert f"note: {told.doubts[0]}" in words(told)


def test_an_application_that_limits_is_the_answer_and_the_path_is_not_guessed(tmp_path: Path) -> None:
    source = {"kind": "rate", "rate": "1 Mbit/s"}
    asked = Scenario(duration="12 s", path={"rate": "20 Mbit/s", "rtt": "40 ms"}, flows=[{"source": source}])
    Sim(capture=tmp_path).run(asked)
    told = explain([str(tmp_path / "capture-sender.pcap")])
    assert told.limited.by == "nothing to send"
    assert told.path == {}
    assert told.gains == ()
    assert told.test is None
    assert "the application, not the path" in told.cannot_tell["rate"]
    assert "the application is the limit here" in told.next[0]
    assert dict(rows(told))["path"].startswith("cannot tell: the application, not the path")


def test_probes_alone_show_no_transfer(tmp_path: Path) -> None:
    (tmp_path / "ping.txt").write_text(PING)
    told = explain([str(tmp_path / "ping.txt")])
    assert told.limited.by is None
    assert {one.answer for one in told.kinds.values()} == {None}
    assert set(told.cannot_tell.values()) == {"no input shows a transfer: probes alone do not fill a path"}
    assert "tcpdump" in told.next[0]
    assert json.loads(json.dumps(told.describe(), allow_nan=False))["probed"][0]["rtt_min_s"] == 0.04


def test_mtr_names_the_hop_from_which_on_probes_are_lost() -> None:
    hops = from_text(MTR.read_text())
    assert [None if hop.best_s is None else round(hop.best_s, 6) for hop in hops] == [
        0.0004,
        None,
        0.0098,
        0.02,
        0.0206,
    ]
    found = lost_from(hops)
    assert found is not None
    assert (found.number, found.host) == (3, "198.51.100.1")
    other = from_json(json.loads((CORPUS / "explained" / "mtr.json").read_text()))
    assert [(hop.host, hop.lost) for hop in other] == [("192.168.1.1", 0), ("192.0.2.7", 2)]
    # A router that limits its own answers loses nothing of what passes it.
    limiting = MTR.read_text().replace("2.0%   100", "0.0%   100")
    assert lost_from(from_text(limiting)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no TCP socket"),
        ("HOST: a  Loss%   Snt   Last   Avg  Best  Wrst StDev\n", "no hop that answered"),
        (MTR.read_text().replace("12.0%", "120%"), "no hop has such a loss"),
        (MTR.read_text().replace("30.2", "1e999"), "line 5 of mtr's report"),
        ('{"report": {"hubs": [{"host": "a", "Loss%": "x"}]}}', "no number"),
        ('{"report": {"hubs": 3}}', "no list of objects"),
    ],
)
def test_other_text_is_refused_with_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "input").write_text(text)
    with expected_error(code="not-a-measurement", file=str(tmp_path / "input"), match=message):
        explain([str(tmp_path / "input")])


@pytest.mark.usefixtures("patience")
def test_the_page_has_the_answers_and_their_figure(captures: Path, tmp_path: Path) -> None:
    file, target = str(captures / "capture-sender.pcap"), tmp_path / "page.html"
    told = CliRunner().invoke(command, [file, "--draws", "2", "--html", str(target)], catch_exceptions=False)
    assert told.exit_code == 0
    shown = target.read_text()
    assert "Limited by: path" in shown
    (figure,) = embedded_figures(shown)
    assert "fq_codel at the bottleneck" in figure["panels"][0]["x"]["names"]
    assert page(explain([file], draws=2)) == shown
    refused = CliRunner().invoke(command, [file, "--html", file])
    assert isinstance(refused.exception, SawtoothError)
    assert refused.exception.code == "conflict"


@pytest.mark.usefixtures("patience")
def test_a_note_says_that_losses_may_be_a_policers_where_the_kind_of_queue_is_not_judged(tmp_path: Path) -> None:
    for loss, noted in (("1%", True), ("0%", False)):
        scenario = Scenario(
            duration="3 s", path={"rate": "400 Mbit/s", "rtt": "10 ms", "loss": loss}, flows=[{"cc": "bbr"}]
        )
        Sim(capture=tmp_path / loss).run(scenario)
        told = explain([str(tmp_path / loss / "capture-sender.pcap")], draws=2)
        assert told.kinds["queue_kind"].answer is None
        assert any("policer" in one for one in told.doubts) == noted
        assert all(gain.goodput_bps is not None for gain in told.gains if gain.cc == "cubic")


def test_a_transfer_too_short_says_so_once_a_group_and_what_to_measure(tmp_path: Path) -> None:
    path = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"}
    Sim(capture=tmp_path).run(Scenario(duration="1 s", path=path))
    told = explain([str(tmp_path / "capture-sender.pcap")])
    assert dict(rows(told))["path"].startswith("cannot tell: the transfer lasted")
    assert words(told).count("mostly slow start") == 3  # of the input, the path, and the kinds
    assert told.lost.where.answer == "nowhere"
    assert told.lost.where.why == "nothing was lost"
    assert any("at least ten seconds" in step for step in told.next)
    # Only a whole group is one row.
    partly = {**told.cannot_tell, "queue": "another reason"}
    known = {**told.kinds, "queue_kind": Choice("tail drop", "its drops")}
    shown = dict(rows(replace(told, cannot_tell=partly, kinds=known)))
    names = {"rate", "base RTT", "queue", "queue kind", "loss process", "other traffic"}
    assert names <= shown.keys()
    assert {"path", "kinds"} & shown.keys() == set()


def test_a_transfer_that_its_window_limits_needs_a_larger_one(tmp_path: Path) -> None:
    path = {"rate": "50 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"}
    Sim(capture=tmp_path).run(Scenario(duration="5 s", path=path, host={"receive_buffer": "64 KiB"}))
    told = explain([str(tmp_path / "capture-sender.pcap")], draws=2)
    assert told.limited.by == "receive window"
    assert any("larger receive buffer" in step for step in told.next)
    assert not any("CUBIC" in step for step in told.next)


def sampled(monkeypatch: pytest.MonkeyPatch, *connections: Any) -> None:
    """``live`` sees these connections, in place of this host's."""

    class Sample:
        def first(self) -> list[Any]:
            return list(connections)

    module = sys.modules["sawtooth.explain.live"]
    monkeypatch.setattr(module, "samples", lambda _watcher, _interval_s, count: [Sample()] * count)


@pytest.mark.usefixtures("patience")
def test_a_live_connection_is_explained_as_watch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = seen(limit="congestion window", why="losses keep it small")
    sampled(monkeypatch, seen(limit="application", mean_bps=1e3), sending)
    told = explain([], live=live(), draws=8)
    assert told.limited.by == "congestion window"
    assert told.control.answer == "cubic"
    assert told.lost.count == 60
    assert {gain.change for gain in told.gains} >= {"reno", "cubic", "bbr", "fq_codel at the bottleneck"}
    # ``watch`` estimates it with the same code: the same seed gives the same numbers.
    watched = expect(observed(sending), draws=8)
    (again,) = [one for one in watched.controls if one.cc == "reno"]
    (gain,) = [one for one in told.gains if one.change == "reno"]
    assert (again.goodput_bps, again.low_bps, again.high_bps) == (gain.goodput_bps, gain.low_bps, gain.high_bps)


def test_a_live_connection_that_its_application_limits_is_not_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled(monkeypatch, seen(limit="application"))
    told = explain([], live=live())
    assert told.limited.by == "application"
    assert told.control.answer == "cubic"
    assert told.path == {}
    assert told.gains == ()


@pytest.mark.parametrize(
    ("connection", "connections", "code"),
    [(None, (), "not-a-measurement"), ("192.0.2.77", (seen(),), "unknown-name")],
)
def test_no_such_live_connection_says_so(
    connection: str | None, connections: tuple[Any, ...], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(monkeypatch, *connections)
    with expected_error(code=code) as caught:
        live(connection)
    assert "sawtooth watch" in caught.value.fix


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both ends of CUBIC beside three others."""
    directory = tmp_path_factory.mktemp("shared")
    Sim(capture=directory).run(beside_others("cubic", 4))
    return directory


def beside_others(cc: str, seed: int) -> Scenario:
    flows = [{"name": "own", "cc": cc}, {"name": "other", "cc": "cubic", "count": 3}]
    path = {"rate": "20 Mbit/s", "rtt": "30 ms", "queue": "1 bdp"}
    return Scenario(duration="20 s", seed=seed, path=path, flows=flows)


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_what_others_yield_was_learned(shared_path: Path, side: str) -> None:
    file = str(shared_path / f"capture-{side}.pcap")
    told = explain([file], connection="0", cc="cubic", draws=8)
    assert told.kinds["cross_traffic"].answer == "present"
    assert told.test is not None
    assert told.test.verdict == "none"
    assert len(told.gains) == len(CONTROLS) + sum(told.lost.by_path or not one.only_lossy for one in CHANGES)
    for gain in told.gains:
        assert gain.low_bps is not None
        assert gain.goodput_bps is not None
        assert gain.high_bps is not None
        assert 0 < gain.low_bps <= gain.goodput_bps <= gain.high_bps
    of = {gain.change: gain for gain in told.gains}
    for cc in CONTROLS:
        intervals = Sim().run(beside_others(cc, 5)).tables["intervals"]
        gets = intervals.loc[intervals["flow"] == 0, "goodput_bps"].mean()
        low, high = of[cc].low_bps, of[cc].high_bps
        assert low is not None
        assert high is not None
        assert low <= gets <= high, cc
    shown = words(told)
    (line,) = [line for line in shown.splitlines() if line.startswith("note: ")]
    assert told.observed is not None
    sure = f"others may use the bottleneck ({likely(told.observed):.0%}); "
    assert sure in line
    assert "learned from simulated paths with other traffic" in line
    assert told.test.words.startswith(f"not possible, because {sure}")
    for name, true in (("rate", 20e6), ("queue", 50)):
        assert told.path[name].bound == "at least"
        assert told.path[name].low <= true
        assert "what others leave" in told.path[name].how
    assert "tried up to" not in shown
    by_whatif = CliRunner().invoke(whatif, [file, "--connection", "0", "--cc", "cubic"], catch_exceptions=False)
    assert by_whatif.output.count("learned") == len(CONTROLS) + 1


def test_what_others_yield_is_not_told_of_a_path_unlike_those_that_were_learned(
    shared_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = replace(learned(), limits=learned().limits * 0 + 1e6)
    for name in ("whatif.replay", "whatif.estimators", "explain.explain"):
        monkeypatch.setattr(sys.modules[f"sawtooth.{name}"], "learned", lambda: far)
    told = explain([str(shared_path / "capture-sender.pcap")], connection="0", cc="cubic", draws=8)
    of = {gain.change: gain for gain in told.gains}
    for cc in ("bbr", "bbr3"):
        assert of[cc].low_bps is None
        assert "others use the bottleneck" in of[cc].why
    assert of["reno"].low_bps is not None
    (line,) = [line for line in words(told).splitlines() if line.startswith("bbr ")]
    assert "cannot tell" in line
    with pytest.raises(ValueError, match="format 9"):
        Shared.read({"format": 9})


@pytest.fixture(scope="module")
def begun_later(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A capture of CUBIC that began after three others, and the index of its connection."""
    directory = tmp_path_factory.mktemp("later")
    Sim(capture=directory).run(beside_others("cubic", 4).set({"flows.own.start": "4 s", "path.queue": "3 bdp"}))
    file = directory / "capture-sender.pcap"
    connections = read_capture(file, 0).facts["connections"]
    return str(file), next(str(at) for at, one in enumerate(connections) if one["server"].endswith(":5201"))


def test_a_queue_that_others_filled_before_bounds_the_base_round_trip(begun_later: tuple[str, str]) -> None:
    file, at = begun_later
    observed = observe(file, connection=at)
    found = estimate(observed).rtt
    assert found.bound == "at most"
    assert found.low <= 0.030 <= found.high
    assert found.high > 0.033, "others' packets waited before this flow's"
    assert "may have filled" in found.how


@pytest.mark.parametrize(("trip", "taken"), [(30.0, True), (150.0, False)])
def test_another_inputs_value_counts_within_a_bound(begun_later: tuple[str, str], trip: float, taken: bool) -> None:
    observed = observe(begun_later[0], connection=begun_later[1])
    other = from_ss(SS.replace("minrtt:40.1", f"minrtt:{trip}").replace("rtt:61.5", "rtt:170"))
    assert not estimate(other).rtt.bound
    path, doubts = together(observed, [other])
    assert (path.rtt.bound == "") == taken
    assert (path.rtt == estimate(observed).rtt) != taken
    about_rtt = "capture and ss disagree about the base RTT: are both of the same connection?"
    assert (about_rtt in doubts) != taken
    assert path.rate.bound == "at least", "what ss shows is what others leave, too"


def test_no_queue_is_called_empty_where_the_base_round_trip_is_a_bound(captures: Path) -> None:
    capture = read_transfer(captures / "capture-sender.pcap")
    said = "For 90% of the time the sender's congestion window was full while the bottleneck's queue was empty."
    way = capture.facts["connections"][capture.connection]["directions"]
    for one in way:
        one["verdict"] = [(asked, said if "limited" in asked else told) for asked, told in one.get("verdict", [])]
    transfer = Transfer("capture", None, capture=capture)
    path = estimate(observe(captures / "capture-sender.pcap"))
    assert limit(transfer, path).why == said
    bounded = replace(path, rtt=replace(path.rtt, bound="at most"))
    assert limit(transfer, bounded).why == said.replace(
        "the bottleneck's queue was empty", "no queue was seen beyond the shortest"
    )


@pytest.mark.parametrize("others", [0, 5])
def test_a_slow_rate_is_judged_only_where_others_may_have_left_it(tmp_path: Path, others: int) -> None:
    flows: list[dict[str, Any]] = [{"name": "own", "cc": "cubic" if others else "bbr"}]
    flows += [{"name": "other", "cc": "cubic", "count": others}] if others else []
    path = {"rate": "4 Mbit/s" if others else "800 kbit/s", "rtt": "60 ms", "queue": "1 bdp"}
    Sim(capture=tmp_path).run(Scenario(duration="30 s", seed=3, path=path, flows=flows))
    observed = observe(tmp_path / "capture-sender.pcap", connection="0")
    assert observed.path is not None
    assert observed.path.rate.value < TRAINED["rate"][0]
    assert likely(observed) >= LIKELY
    assert observed.kinds["cross_traffic"].answer == ("present" if others else None)
    assert learned().knows(observed) == bool(others)


def test_nothing_gives_more_than_a_steady_rate(shared_path: Path) -> None:
    observed = observe(shared_path / "capture-sender.pcap", connection="0")
    assert observed.path is not None
    high = learned().gives(observed, "bbr").goodput_bps[2]
    for width, capped in ((1.01, True), (2.0, False)):
        rate = replace(observed.path.rate, low=high / 2 / width, value=high / 2, high=high / 2, bound="")
        seen_so = replace(observed, path=replace(observed.path, rate=rate))
        _, middle, most = learned().gives(seen_so, "bbr").goodput_bps
        assert middle <= most
        assert (most == rate.high) == capped


def test_a_scenario_says_that_others_are_missing(shared_path: Path, captures: Path, tmp_path: Path) -> None:
    for home, told in ((shared_path, True), (captures, False)):
        observed = observe(home / "capture-sender.pcap", connection="0")
        save_scenario(tmp_path / "path.toml", observed, estimate(observed))
        assert ("# others may use the bottleneck" in (tmp_path / "path.toml").read_text()) == told


def test_a_path_of_ones_own_is_simulated(captures: Path) -> None:
    observed = observe(captures / "capture-sender.pcap")
    assert likely(observed) < LIKELY
    assert not learned().knows(observed)
    assert likely(replace(observed, signs=None)) == 0


@pytest.mark.usefixtures("patience")
def test_random_loss_under_codel_names_both(tmp_path: Path) -> None:
    path = {"rate": "20 Mbit/s", "rtt": "30 ms", "loss": "0.2%", "queue": {"kind": "fq_codel"}}
    Sim(capture=tmp_path).run(Scenario(duration="30 s", seed=4, path=path, flows=[{"cc": "bbr"}]))
    told = explain([str(tmp_path / "capture-sender.pcap")], draws=2)
    assert told.kinds["queue_kind"].answer == "CoDel or fq_codel"
    assert "CoDel" in (told.lost.kind.answer or told.lost.kind.why)


LIKELIER = (("congestion", 0.73), ("random", 0.22), ("bursts", 0.05))


@pytest.mark.parametrize(
    ("rule", "queue", "process", "shares", "by", "then"),
    [
        # The classifier of the process decides where it is sure.
        ("random", "CoDel or fq_codel", "congestion", LIKELIER, "a queue managed by CoDel or fq_codel", "congestion"),
        ("full queue and random", "tail drop", "congestion", LIKELIER, "full queue", "congestion"),
        ("bursts", None, "congestion", LIKELIER, "the bottleneck's queue or a policer", "congestion"),
        ("full queue and random", "tail drop", "bursts", LIKELIER, "full queue and bursts", "bursts"),
        ("bursts", "none seen", "bursts", LIKELIER, "bursts", "bursts"),
        ("random", "policer", "random", LIKELIER, "a policer and random", "random"),
        # Where it is not, both must say the same.
        ("full queue", "tail drop", None, LIKELIER, "full queue", "congestion"),
        ("bursts", None, None, LIKELIER, None, None),
        ("full queue", "RED", None, LIKELIER, None, None),
        (None, "tail drop", None, LIKELIER, None, None),
        # Where it is not asked, losses outside a full queue may be a policer's.
        ("full queue", None, None, (), "full queue", None),
        ("bursts", None, None, (), "bursts, by the path or a policer", None),
        ("none", None, None, (), "none", None),
    ],
)
def test_what_lost_data_and_the_loss_process_are_one_answer(
    rule: str | None,
    queue: str | None,
    process: str | None,
    shares: tuple[tuple[str, float], ...],
    by: str | None,
    then: str | None,
) -> None:
    kinds = {"queue_kind": Choice(queue, "why"), "loss_process": Choice(process, "why", shares)}
    told, same = one_answer(Choice(rule, "why"), kinds)
    assert (told.answer, same.answer) == (by, then)


def test_half_the_loss_is_tried_only_where_the_path_may_lose(tmp_path: Path) -> None:
    for loss, tried in (("0%", False), ("0.3%", True)):
        path = {"rate": "20 Mbit/s", "rtt": "30 ms", "queue": "1 bdp", "loss": loss}
        Sim(capture=tmp_path / loss).run(Scenario(duration="15 s", seed=4, path=path, flows=[{"cc": "cubic"}]))
        told = explain([str(tmp_path / loss / "capture-sender.pcap")], draws=2)
        assert told.lost.by_path == tried
        assert any("half the loss" in one.change for one in told.gains) == tried


def test_a_round_trip_of_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "ss.txt").write_text(SS.replace("minrtt:40.1", "minrtt:0"), encoding="utf-8")
    assert explain([str(tmp_path / "ss.txt")], draws=2).control.answer == "cubic"


PACED = """\
ESTAB 0 0 192.0.2.1:40000 192.0.2.7:5201
\t cubic wscale:7,7 rto:240 rtt:40.5/1.2 mss:1448 cwnd:64 bytes_acked:2990001 segs_out:2100 data_segs_out:2080 \
lastsnd:3 lastrcv:10020 delivery_rate 12Mbps retrans:0/3 busy:428ms minrtt:40.1
"""


@pytest.mark.parametrize(
    ("printed", "by", "why"),
    [
        (PACED, "application", "96% of the time"),
        (PACED.replace("lastrcv:10020 ", ""), None, "data was in flight for only 0.408 s"),
    ],
    ids=["for its application", "for an unknown reason"],
)
def test_ss_of_a_sender_that_pauses_names_the_control_and_why_no_path_shows(
    printed: str, by: str | None, why: str, tmp_path: Path
) -> None:
    (tmp_path / "ss.txt").write_text(printed, encoding="utf-8")
    told = explain([str(tmp_path / "ss.txt")])
    assert told.control.answer == "cubic"
    assert (told.limited.by, told.path) == (by, {})
    assert why in told.limited.why
    assert (told.lost.count, told.lost.segments, told.lost.kind.answer) == (3, 2080, None)
    assert told.lost.kind.why == ONLY_CAPTURE
