"""The trial of captures in fidelity/field: what it compares, and what counts as proof."""

from pathlib import Path

import pytest

from fidelity.field import tshark
from fidelity.field.captures import Judged, files, judge, judge_by_counts, share, table
from fidelity.field.evidence import copied, differences, first, least_trip_s, repeated
from fidelity.field.proofs import read
from fidelity.field.tallies import Pair, Tally, of_counts, of_segments, paired
from fidelity.field.tshark import Seen

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 80)
PSH_ACK = 0x18


def _seen(
    frame: int,
    seq: int,
    length: int,
    *,
    ip_id: int | None = None,
    ack: int = 1,
    said: str = "",
    t_s: float | None = None,
    way: str = "",
) -> Seen:
    said_ = frozenset(said.split())
    return Seen(
        frame,
        frame / 1e4 if t_s is None else t_s,
        0,
        CLIENT,
        SERVER,
        seq,
        ack,
        length,
        PSH_ACK,
        ip_id,
        None,
        9,
        way,
        said_,
    )


def _ack(frame: int, ack: int) -> Seen:
    return Seen(frame, frame / 1e4, 0, SERVER, CLIENT, 1, ack, 0, 0x10, 7, None, 9, "", frozenset())


def _pair(ours: Tally, theirs: Tally) -> Pair:
    return Pair(("a:1", "b:2"), ours, theirs, (0,), (0,))


def test_what_is_sent_again_and_out_of_order_is_compared_together_and_syns_apart() -> None:
    assert Tally(again=3, out_of_order=1).apart(Tally(again=1, out_of_order=3)) == 0
    assert Tally(again=3, syns=1).apart(Tally(again=3, syns=4)) == 3
    assert Tally(again=3, copies=9).apart(Tally(again=3)) == 0


def test_connections_of_the_same_ends_are_paired_in_order_of_time_or_summed() -> None:
    streams = of_segments([_seen(1, 1, 5), _seen(2, 1, 5, said="retransmission")])
    (pair,) = paired({}, streams)
    assert (pair.theirs, pair.ours, pair.indices, pair.streams) == (Tally(again=1), Tally(), (), (0,))


def test_a_file_of_counts_replaces_tshark(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("file,stream,ends,retransmissions,out_of_order,syn_retransmissions\na.pcap,0,80-40000,2,1,0\n")
    (pair,) = paired(of_segments([_seen(1, 1, 5)]), of_counts(path)["a.pcap"])
    assert (pair.theirs, pair.apart) == (Tally(2, 1, 0), 3)


def test_a_packet_with_the_same_header_and_identification_soon_or_from_elsewhere_is_a_copy() -> None:
    first = _seen(2, 100, 10, ip_id=5)
    before = [_seen(0, 80, 10, ip_id=3), _seen(1, 90, 10, ip_id=4), first]
    assert copied(_seen(3, 100, 10, ip_id=5), before, 0.02) == 2
    assert copied(_seen(3, 100, 10, ip_id=6), before, 0.02) is None
    # Some senders keep the identification in retransmissions: a round trip later, in the same direction.
    assert copied(_seen(3, 100, 10, ip_id=5, t_s=0.1), before, 0.02) is None
    assert copied(_seen(3, 100, 10, ip_id=5, t_s=0.1, way="63"), before, 0.02) == 2
    # Without its own identification, it must follow at once.
    constant = [_seen(number, 10 * number, 10, ip_id=4) for number in (8, 9, 10)]
    assert copied(_seen(11, 100, 10, ip_id=4), constant, 0.02) == 10
    assert copied(_seen(11, 100, 10, ip_id=4, t_s=0.003), constant, 0.02) is None


def test_bytes_sent_once_more_before_they_are_acknowledged_are_repeated() -> None:
    before = [_seen(1, 100, 10, ip_id=4), _ack(2, 105)]
    assert repeated(_seen(3, 100, 10, ip_id=5), before) == 1
    assert repeated(_seen(3, 110, 10, ip_id=5), before) is None
    assert repeated(_seen(3, 100, 10, ip_id=5), [*before, _ack(3, 110)]) is None


def test_bytes_seen_for_the_first_time_right_after_their_acknowledgement_are_captured_late() -> None:
    before = [_seen(1, 90, 10, ip_id=4), _ack(20, 110)]
    assert first(_seen(21, 100, 10), before, 0.02) == 20
    assert first(_seen(21, 95, 10), before, 0.02) is None
    assert first(_seen(21, 100, 10, t_s=1.0), before, 0.02) is None


def test_the_least_round_trip_is_of_both_directions() -> None:
    assert least_trip_s([_seen(1, 100, 10), _ack(4, 110), _ack(9, 110)]) == pytest.approx(3e-4)
    assert least_trip_s([_ack(4, 110)]) is None


def test_the_packets_that_only_one_counts_are_named_with_their_proof() -> None:
    segments = [_seen(1, 100, 10, ip_id=4), _seen(2, 110, 10, ip_id=5), _seen(3, 110, 10, ip_id=5, said="out_of_order")]
    segments.append(_seen(4, 100, 10, ip_id=9))
    found = differences(segments, {4})
    assert [(one.frame, one.counted_by, one.claim, one.of) for one in found] == [
        (3, "tshark", "copy", 2),
        (4, "sawtooth", "repeats", 1),
    ]


@pytest.mark.parametrize(("again", "within"), [(1, True), (2, False)])
def test_the_share_is_of_connections_within_one_that_have_no_proof(again: int, within: bool) -> None:
    agreed, other = _pair(Tally(), Tally()), _pair(Tally(), Tally(again=again))
    judged = [Judged("a", agreed), Judged("b", other)]
    assert share(judged) == (1.0 if within else 0.5)
    assert f"{share(judged):.2%}" in table(judged)


def test_a_connection_is_proven_when_all_of_its_differing_packets_but_one_are() -> None:
    segments = [_seen(number, 100 * number, 10, ip_id=number) for number in (1, 2)]
    segments += [_seen(3, 100, 10, ip_id=1, said="retransmission"), _seen(4, 200, 10, ip_id=2, said="retransmission")]
    one = Judged("a", _pair(Tally(), Tally(again=2)), tuple(differences(segments, ())))
    assert (one.within, one.proven, share([one])) == (False, True, 1.0)
    assert "3 (copy of 1), 4 (copy of 2)" in table([one])
    open_ = [_seen(5, 100, 10, ip_id=8, said="retransmission"), _seen(6, 200, 10, ip_id=9, said="retransmission")]
    assert not Judged("a", _pair(Tally(), Tally(again=2)), tuple(differences([*segments, *open_], ()))).proven


WILD = Path(__file__).parents[3] / "shared" / "captures" / "wild"
PROOFS = Path(__file__).parents[2] / "fidelity" / "field" / "proofs.csv"
shared = pytest.mark.skipif(not WILD.is_dir(), reason="the captures of ../shared are not there")


@shared
def test_every_connection_of_the_shared_captures_is_within_one_or_in_the_table_of_proofs() -> None:
    proofs = read(PROOFS)
    judged = [one for path in files(WILD) for one in judge_by_counts(path, WILD / "tshark-4.0.17.csv", proofs)]
    assert len(judged) == 94
    assert [(one.file, one.pair) for one in judged if not one.within and not one.proven] == []


@shared
@pytest.mark.skipif(tshark.version() is None, reason="tshark is not installed: the proofs cannot be checked")
@pytest.mark.usefixtures("patience")
def test_the_proofs_of_the_table_are_what_the_headers_show() -> None:
    found = {}
    for name in sorted({file for file, _ in read(PROOFS)}):
        found |= {(one.file, one.pair.ends): one.differing for one in judge(WILD / name) if one.proven}
    assert found == read(PROOFS)
