"""Identifying a congestion control: from captures to windows, from windows to features, and the answer or the reason
for none.
"""

import json
import math
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth.capture.csv import read_csv
from sawtooth.capture.identify import Identification, identify
from sawtooth.capture.identify.captured import identify_file
from sawtooth.capture.identify.classifier import Classifier, calibrated, like, path_class, shipped, vector
from sawtooth.capture.identify.features import features
from sawtooth.capture.identify.forest import Forest
from sawtooth.capture.identify.laws import CONTROLS, Epochs, epochs, law_features
from sawtooth.capture.identify.rounds import rounds
from sawtooth.capture.identify.trace import Segments, TooLittle, Trace, trace
from sawtooth.cli.capture_command import capture
from sawtooth.engines.sim import Sim
from sawtooth.scenario import LINUX_CONTROLS, Scenario

pytestmark = pytest.mark.usefixtures("patience")

MSS, RTT_S = 1000, 0.1037
SYN, ACK = 2, 16


def transfer(windows: list[int], *, to_receiver_s: float = 0.0, stamped: bool = True) -> Segments:
    """One window per round trip, clocked by acknowledgements of every segment; captured ``to_receiver_s`` from the
    sender. No loss, no queue.
    """
    rows: list[tuple[float, int, int, int, int, int, int, int]] = []
    half = RTT_S / 2

    def add(t_s: float, way: int, seq: int, length: int, ack: int, flags: int, echoed_s: float) -> None:
        # For data, the time here is the sender's; for acknowledgements, the receiver's. Timestamps tick every 0.1 ms.
        passed = t_s + (to_receiver_s if way == 0 else half - to_receiver_s)
        stamps = (round(10_000 + t_s * 1e4), round(10_000 + echoed_s * 1e4)) if stamped else (0, 0)
        rows.append((passed, way, seq, length, ack, flags, *stamps))

    add(0.0, 0, 0, 0, 0, SYN, -1.0)
    add(half, 1, 0, 0, 1, SYN | ACK, 0.0)
    add(RTT_S, 0, 1, 0, 1, ACK, half)
    seq = 1
    sent = [RTT_S + 0.8 * RTT_S * number / 10 for number in range(10)]
    for round_trip, window in enumerate(windows):
        if round_trip:
            before = sent
            clocks = [before[number * len(before) // window] for number in range(window)]
            sent = [clock + RTT_S + number * 1e-8 for number, clock in enumerate(clocks)]
        for at in sent[:window]:
            add(at, 0, seq, MSS, 1, ACK, half if not round_trip else at - half)
            seq += MSS
            add(at + half, 1, 1, 0, seq, ACK, at)
    rows.sort()
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    names = ("t_s", "direction", "seq", "length", "ack", "flags", "tsval", "tsecr")
    return Segments(**dict(zip(names, columns, strict=True)), window=np.zeros(len(rows), dtype=np.int64))


def test_the_window_is_seen_where_one_acknowledgement_a_round_trip_lets_all_of_it_out() -> None:
    windows = [6, 7, 8, 9, 10] * 20
    t_s = np.concatenate([number * RTT_S + 1e-5 * np.arange(window) for number, window in enumerate(windows)])
    known = np.repeat(np.cumsum([0, *windows[:-1]]), windows)
    seen = Trace(
        t_s=t_s,
        end=np.arange(1, sum(windows) + 1),
        known=known,
        known_s=t_s,
        again=np.zeros(len(t_s), dtype=bool),
        mss=1,
        window=math.nan,
    )
    assert rounds(seen).flight.tolist() == windows[:-1]


GROWING = [10, 20, *range(20, 150)]


@pytest.mark.parametrize("to_receiver_s", [0.0, 0.02, 0.05])
def test_the_window_in_flight_is_the_senders_at_every_capture_point(to_receiver_s: float) -> None:
    seen = trace(transfer(GROWING, to_receiver_s=to_receiver_s))
    made = rounds(seen)
    assert seen.mss == MSS
    # Acknowledgements with the same timestamp are treated as simultaneous.
    slack = 0.15 if to_receiver_s else 0.0
    assert made.flight[2:].tolist() == pytest.approx(GROWING[2 : len(made)], rel=slack, abs=1.5)
    assert made.min_rtt_s == pytest.approx(RTT_S, rel=0.01)


def test_without_timestamps_the_handshake_reports_how_far_the_sender_is() -> None:
    with_stamps = rounds(trace(transfer(GROWING, to_receiver_s=0.02)))
    without = rounds(trace(transfer(GROWING, to_receiver_s=0.02, stamped=False)))
    assert without.flight.tolist() == pytest.approx(with_stamps.flight.tolist(), rel=0.2)


def test_without_timestamps_a_capture_nearer_the_receiver_is_unknown() -> None:
    answer = identify(transfer(GROWING, to_receiver_s=0.04, stamped=False))
    assert answer.unknown is not None
    assert "timestamps" in answer.unknown
    assert answer.best is None


def without_handshake(one: Segments, packets: int) -> Segments:
    """As if captured from packet ``packets`` of the handshake on."""
    return Segments(**{name: values[packets:] for name, values in vars(one).items()})


@pytest.mark.parametrize("packets", [1, 2, 3])
def test_a_capture_at_the_sender_that_lacks_the_handshake_or_its_syn_shows_the_windows(packets: int) -> None:
    seen = trace(without_handshake(transfer(GROWING, to_receiver_s=1e-5, stamped=False), packets))
    assert not seen.hidden
    made = rounds(seen)
    assert made.flight[2:].tolist() == pytest.approx(GROWING[2 : len(made)], rel=0.15, abs=1.5)


@pytest.mark.parametrize("packets", [1, 2, 3])
def test_a_capture_at_the_receiver_is_identified_without_the_handshake_too(packets: int) -> None:
    assert trace(without_handshake(transfer(GROWING, to_receiver_s=RTT_S / 2 - 1e-5, stamped=False), packets)).hidden


def test_one_segment_a_round_trip_is_a_step_of_one_and_linear() -> None:
    found = features(trace(transfer(GROWING)))
    assert found["step"] == pytest.approx(0.75, abs=0.3)
    assert found["wide_step_0.5"] == pytest.approx(1.0, abs=0.3)
    assert found["log_loss"] == pytest.approx(math.log(1e-5))
    assert path_class(found) == "no back-offs, large windows"


def test_a_window_that_falls_without_loss_is_counted() -> None:
    teeth = ([20, 22, 24, 26, 28, 30, 15] * 20)[:130]
    found = features(trace(transfer(teeth)))
    assert found["falls_a_round"] == pytest.approx(1 / 7, rel=0.3)
    assert found["fall"] == pytest.approx(0.5, abs=0.2)
    assert features(trace(transfer([20] * 130)))["falls_a_round"] == 0


def test_features_do_not_depend_on_the_time_of_day_or_the_numbers() -> None:
    one = transfer(GROWING)
    later = replace(one, t_s=one.t_s + 1024)
    a, b = features(trace(one)), features(trace(later))
    assert list(a) == list(b)
    assert vector(a) == pytest.approx(vector(b), rel=0.05, abs=0.1)


def test_a_capture_of_no_data_or_of_few_round_trips_shows_too_little() -> None:
    with pytest.raises(TooLittle):
        trace(transfer([]))
    with pytest.raises(TooLittle):
        features(trace(transfer([10] * 6)))
    assert "round trips" in (identify(transfer([10] * 6)).unknown or "")


def test_less_than_ten_seconds_is_unknown() -> None:
    assert "too short" in (identify(transfer([20] * 60)).unknown or "")
    assert identify(transfer([20] * 60)).helps == "a transfer that is 30 s longer"
    assert "too short" not in (identify(transfer([20] * 120)).unknown or "")


def test_a_sender_that_waits_for_one_acknowledgement_a_round_trip_is_not_idle() -> None:
    rounds_seen, window = 120, 6
    rows = []
    for number in range(rounds_seen):
        at, sent = number * RTT_S, 1 + number * window * MSS
        rows.append((at, 1, 1, 0, sent, ACK))
        rows += [(at + 1e-5 * (one + 1), 0, sent + one * MSS, MSS, 1, ACK) for one in range(window)]
    t_s, way, seq, length, ack, flags = (np.array(column) for column in zip(*rows, strict=True))
    nothing = np.zeros_like(seq)
    seen = trace(Segments(t_s, way, seq, length, ack, flags, nothing, nothing, nothing))
    assert seen.idle_s == pytest.approx(0, abs=0.01)
    assert seen.stretch == pytest.approx(window)


def with_losses(windows: list[int], lost_in: set[int]) -> Trace:
    """One window per round trip. In rounds ``lost_in`` the first segment is lost and retransmitted a round trip later,
    after two duplicate acknowledgements have allowed two more segments. Later acknowledgements release the next
    window.
    """
    t_s, end, known, again = [], [], [], []
    newest = acknowledged = 0

    def send(at: float, last: int, *, repeated: bool = False) -> None:
        t_s.append(at)
        end.append(last)
        known.append(acknowledged)
        again.append(repeated)

    for number, window in enumerate(windows):
        at = number * RTT_S
        for one in range(window):
            # The data in flight is acknowledged segment by segment; the window is refilled at once.
            acknowledged = min(acknowledged + 1, newest) if number else 0
            while newest - acknowledged < window:
                newest += 1
                send(at + one * RTT_S / (window + 1), newest)
        if number in lost_in:
            hole = acknowledged + 1
            send(at + 0.97 * RTT_S, newest := newest + 1)
            send(at + 0.98 * RTT_S, newest := newest + 1)
            send(at + 0.99 * RTT_S, hole, repeated=True)
            lost_with = newest
            for _ in range(windows[number + 1] - 1):
                send(at + 0.99 * RTT_S, newest := newest + 1)
            acknowledged = lost_with
    return Trace(
        t_s=np.array(t_s),
        end=np.array(end),
        known=np.array(known),
        known_s=np.array(t_s),
        again=np.array(again),
        mss=1,
        window=math.nan,
    )


def test_the_window_of_a_loss_is_the_one_before_duplicate_acknowledgements_let_more_out() -> None:
    teeth = [10, 11, 12, 13, 14, 15, 16] * 5
    made = rounds(with_losses(teeth, {6, 13, 20, 27}))
    assert made.top.tolist() == [16.0] * 4
    lasted = epochs(made, 10.0, 1.0)
    assert len(lasted.top) == 4
    assert lasted.low.tolist() == pytest.approx([10.0] * 4, abs=1)


def epoch_table(top: float, window: list[float], rtt_s: float, base_s: float) -> Epochs:
    """Ten identical epochs."""
    own = np.tile(np.array(window), (10, 1))
    ten = np.ones(10)
    return Epochs(
        top=top * ten,
        reached=top * ten,
        delay_s=(rtt_s - base_s) * ten,
        queued=30 * ten,
        window=own,
        t_s=np.tile(rtt_s * np.arange(len(window)), (10, 1)),
        rtt_s=np.full_like(own, rtt_s),
        base_s=base_s,
        far_s=rtt_s,
        bdp=0.6 * top,
        stretch=2.0,
    )


@pytest.mark.parametrize(
    ("control", "top", "window"),
    [
        ("reno", 40, [20.0 + number for number in range(20)]),
        ("scalable", 40, [35.0 + number for number in range(5)]),
        ("highspeed", 30, [15.0 + number / 2 for number in range(30)]),
        ("bic", 40, [32.0, 34.0, 35.0, *(35.2 + number / 5 for number in range(20))]),
        ("bbr", 40, [40.0] * 20),
    ],
)
def test_a_law_explains_what_its_control_does_best(control: str, top: float, window: list[float]) -> None:
    found = law_features(epoch_table(top, window, 0.1, 0.05))
    assert found[f"law_{control}"] == 0
    assert all(found[f"law_{other}"] >= 0 for other in CONTROLS)
    assert found[f"law_{'cubic' if control == 'reno' else 'reno'}"] > 0.5


def test_without_a_loss_no_law_is_compared() -> None:
    made = rounds(trace(transfer(GROWING)))
    assert all(math.isnan(value) for value in law_features(epochs(made, 10.0, 1.0)).values())


def test_a_full_receive_window_is_unknown() -> None:
    one = transfer([20] * 150)
    answer = identify(replace(one, window=np.full_like(one.seq, 20 * MSS)))
    assert "receive window" in (answer.unknown or "")
    assert answer.helps is None


def test_an_idle_sender_is_unknown() -> None:
    burst, rounds_a_burst = transfer([20] * 10, stamped=False), 10
    parts = []
    for number in range(8):
        moved = replace(
            burst,
            t_s=burst.t_s + 3 * number,
            seq=burst.seq + np.where(burst.direction == 0, number * rounds_a_burst * 20 * MSS, 0),
            ack=burst.ack + np.where(burst.direction == 1, number * rounds_a_burst * 20 * MSS, 0),
        )
        parts.append(moved if number == 0 else moved.part(1.01 * RTT_S, 3))
    paused = Segments(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(burst)})
    assert "idle" in (identify(paused).unknown or "")


def test_an_answer_is_the_same_each_time_and_its_probabilities_add_up() -> None:
    first, second = identify(transfer(GROWING)), identify(transfer(GROWING))
    assert first == second
    assert sum(probability for _, probability in first.ranked) == pytest.approx(1)
    assert sum(probability for _, probability in first.names) == pytest.approx(1)
    assert [one for _, one in first.ranked] == sorted((one for _, one in first.ranked), reverse=True)


def test_the_text_names_groups_with_their_probabilities() -> None:
    alone = [" 75%  cubic", " 20%  dctcp or lp or reno", "  5%  bbr"]
    names = (("cubic", 0.75), ("reno", 0.2), ("bbr", 0.05))
    told = Identification(((("cubic", "dctcp", "lp", "reno"), 0.95), (("bbr",), 0.05)), names, helps="a longer one")
    said = "congestion control: cubic or dctcp or lp or reno, 95%"
    assert told.text().splitlines() == [said, "what would help: a longer one", *alone]
    assert told.best == ("cubic", "dctcp", "lp", "reno")
    sure = replace(told, ranked=((("dctcp", "lp", "reno"), 0.999),), names=(("reno", 0.999),))
    assert sure.text().splitlines() == [
        "congestion control: dctcp or lp or reno, over 99%",
        "100%  dctcp or lp or reno",
    ]
    doubtful = replace(told, unknown="it is too short")
    assert doubtful.text().splitlines()[:2] == [
        "congestion control: unknown: it is too short",
        "what would help: a longer one",
    ]
    assert doubtful.best is None


def classifier(level: float, widest: int) -> Classifier:
    """A model without preference: every control is as likely as the trees' first values say."""
    shares = {"bbr": 0.5, "reno": 0.3, "cubic": 0.15, "vegas": 0.05}
    kept = {
        "format": 2,
        "classes": list(shares),
        "features": [],
        "trees": [{"feature": [-1], "threshold": [], "value": [math.log(share)]} for share in shares.values()],
        "base": [0.0] * 4,
        "temperature": 1.0,
        "level": level,
        "widest": widest,
        "strange": 1.0,
        "limits": [[-1e9], [1e9]],
    }
    return Classifier.read(kept)


@pytest.mark.parametrize(
    ("level", "group", "share"),
    [
        (0.4, ("bbr",), 0.5),
        (0.7, ("bbr", "dctcp", "lp", "reno"), 0.8),
        (0.9, ("bbr", "cubic", "dctcp", "lp", "reno"), 0.95),
    ],
)
def test_a_group_is_the_likeliest_controls_that_reach_the_level_together(
    level: float, group: tuple[str, ...], share: float
) -> None:
    answer = classifier(level, 3).identify(transfer(GROWING))
    assert answer.best == group
    assert answer.ranked[0][1] == pytest.approx(share)
    assert sum(probability for _, probability in answer.ranked) == pytest.approx(1)


def test_evidence_that_fits_too_many_controls_is_unknown_and_says_what_would_tell_more() -> None:
    answer = classifier(0.9, 2).identify(transfer(GROWING))
    assert answer.unknown == "more than 2 controls explain what the capture shows"
    assert "a transfer that is" in (answer.helps or "")
    assert "to see 5 losses" in (answer.helps or "")


def test_small_windows_would_tell_more_on_a_path_that_holds_more() -> None:
    small, large = transfer([8] * 150), transfer([30] * 150)
    assert "holds more than 15 segments" in (classifier(0.9, 3).identify(small).helps or "")
    assert "holds more" not in (classifier(0.9, 3).identify(large).helps or "")


def test_the_model_file_is_small_and_covers_every_congestion_control_of_linux_and_bbr3() -> None:
    content = (files("sawtooth") / "data" / "identify.json").read_bytes()
    assert len(content) < 2_000_000
    assert sorted(name for one in shipped().classes for name in like(one)) == sorted((*LINUX_CONTROLS, "bbr3"))
    assert list(features(trace(transfer(GROWING)))) == list(shipped().features)


def test_a_model_file_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 99"):
        Classifier.read({"format": 99})


def test_each_tree_adds_to_the_logit_of_its_class() -> None:
    tree = {"feature": [1, -1, -1], "threshold": [5.0], "value": [1.0, 2.0]}
    sure = {"feature": [-1], "threshold": [], "value": [0.5]}
    forest = Forest.read(json.loads(json.dumps([tree, sure, sure, sure])), [0.0, 10.0])
    assert forest.logits(np.array([0.0, 5.0])).tolist() == [1.5, 11.0]
    assert forest.logits(np.array([0.0, 5.1])).tolist() == [2.5, 11.0]


def test_a_tree_is_its_nodes_in_preorder() -> None:
    #       x0 <= 1 ? (x1 <= 1 ? 0 : 1) : (x1 <= 2 ? 2 : 3)
    tree = {"feature": [0, 1, -1, -1, 1, -1, -1], "threshold": [1.0, 1.0, 2.0], "value": [0, 1, 2, 3]}
    forest = Forest.read([tree], [0.0])
    found = [forest.logits(np.array(at)).tolist() for at in ([0.0, 1.0], [1.0, 1.5], [2.0, 1.5], [2.0, 3.0])]
    assert found == [[0], [1], [2], [3]]


def test_a_temperature_below_one_sharpens() -> None:
    logits = np.log([0.6, 0.4])
    assert calibrated(logits, 1.0).tolist() == pytest.approx([0.6, 0.4])
    assert calibrated(logits, 0.5)[0] > 0.6


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
@pytest.mark.parametrize(("rate", "rtt", "loss"), [("2 Mbit/s", "120 ms", "0%"), ("8 Mbit/s", "40 ms", "0.1%")])
def test_captures_of_the_simulator_are_distinguished_at_both_ends(
    tmp_path: Path, cc: str, rate: str, rtt: str, loss: str
) -> None:
    # Training has seen only the kernel's captures.
    path = {"rate": rate, "rtt": rtt, "loss": loss}
    Sim(capture=tmp_path).run(Scenario(path=path, duration="25 s", flows=[{"cc": cc}]))
    for end in ("sender", "receiver"):
        answer = identify_file(tmp_path / f"capture-{end}.pcap")
        assert cc in (answer.best or ())
        assert answer.ranked[0][1] > 0.5


def test_the_command_line_says_which_it_is(tmp_path: Path) -> None:
    Sim(capture=tmp_path).run(
        Scenario(path={"rate": "4 Mbit/s", "rtt": "60 ms"}, duration="25 s", flows=[{"cc": "bbr"}])
    )
    called = CliRunner().invoke(capture, [str(tmp_path / "capture-sender.pcap"), "--identify"])
    assert called.exit_code == 0
    told = called.output.splitlines()
    assert "TCP connection" in " ".join(called.output.partition("\n\n")[0].split())
    assert re.match(r" *\d+%  bbr", told[next(at for at, line in enumerate(told) if line.startswith("congestion")) + 1])
    called = CliRunner().invoke(capture, [str(tmp_path / "capture-sender.pcap"), "--identify", "--json"])
    assert json.loads(called.output)["identified"]["ranked"][0]["controls"] == ["bbr"]


HEAD = "frame.number,tcp.seq,tcp.dstport,tcp.len,tcp.ack,tcp.srcport,frame.time_relative\n"


def test_a_per_packet_csv_of_tshark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text(
        HEAD
        + '"1",,,,,,"0.0"\n'
        + '"2","0","5000","0",,"4711","0.1"\n'
        + '"3","0","4711","0","1","5000","0.2"\n'
        + '"4","1","5000","48","1","4711","0.21"\n'
        + '"5","1","99","10","1","98","0.22"\n'
        + '"6","1","4711","0","49","5000","0.3"\n'
    )
    found = read_csv(file)
    assert found.t_s.tolist() == [0.1, 0.2, 0.21, 0.3]
    assert found.direction.tolist() == [0, 1, 0, 1]
    assert found.seq.tolist() == [0, 0, 1, 1]
    assert found.ack.tolist() == [0, 1, 1, 49]
    assert found.flags.tolist() == [SYN, SYN | ACK, ACK, ACK]


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", HEAD, HEAD + '"1","0","5000","0",,"4711","0.1"\n', "\0\xff\n"])
def test_a_csv_without_the_columns_or_without_data_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "one.csv"
    file.write_text(content, encoding="latin-1")
    with expected_error(code="not-a-capture"):
        read_csv(file)
    with expected_error(code="file-not-found"):
        read_csv(tmp_path / "none.csv")
