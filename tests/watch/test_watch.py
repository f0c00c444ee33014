"""Watch: sock_diag's bytes, changes between samples, what limits a connection, filters; and this host's own sockets."""

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.cli.program import sawtooth
from sawtooth.errors import SawtoothError
from sawtooth.watch import (
    LIMITS,
    MEANINGS,
    Changes,
    Connection,
    Connections,
    Sample,
    Watcher,
    Window,
    layout,
    limits,
    parse,
)
from sawtooth.watch.connection import connections
from sawtooth.watch.filter import condition
from sawtooth.watch.text import lines
from waiting import until

MAPPED = bytes(10) + b"\xff\xff"
Fields = dict[str, int]


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", len(content) + 4, kind) + content + bytes(-len(content) % 4)


def message(
    info: Fields | None = None,
    *,
    cc: bytes = b"cubic",
    cookie: int = 7,
    family: int = socket.AF_INET,
    src: bytes = bytes([127, 0, 0, 1]) + bytes(12),
    dst: bytes = bytes([192, 0, 2, 9]) + bytes(12),
    sport: int = 40000,
    dport: int = 443,
    size: int = layout.TCP_INFO.itemsize,
    bbr: tuple[int, ...] | None = None,
    queued: int = 0,
    extra: bytes = b"",
) -> bytes:
    """A socket as the kernel reports it."""
    about = np.zeros((), layout.SOCKET)
    about["family"], about["state"], about["cookie"] = family, 1, cookie
    about["sport"], about["dport"] = sport, dport
    about["src"], about["dst"] = np.frombuffer(src, np.uint8), np.frombuffer(dst, np.uint8)
    told = np.zeros((), layout.TCP_INFO)
    usual = {"snd_mss": 1448, "rtt": 20_000, "min_rtt": 20_000, "snd_cwnd": 10, "max_pacing_rate": layout.UNPACED}
    for name, value in (usual | (info or {})).items():
        told[name] = value
    buffers = struct.pack("=9I", 0, 65536, 0, 32768, 0, queued, 0, 0, 0)
    extra += attribute(layout.SKMEMINFO, buffers)
    body = about.tobytes() + extra + attribute(layout.INFO, (told.tobytes() + bytes(200))[:size])
    body += attribute(layout.CONG, cc + b"\0")
    if bbr is not None:
        body += attribute(layout.BBRINFO, struct.pack("=5I", *bbr))
    return struct.pack("=IHHII", len(body) + 16, layout.BY_FAMILY, 2, 1, 0) + body


def sample(*messages: bytes, at_s: float = 0.0) -> Sample:
    return parse([b"".join(messages)], at_s)


def changed(first: Fields, second: Fields, *, between_s: float = 1.0, **about: Any) -> Changes:
    """The change of one connection between two samples."""
    window = Window()
    window.add(sample(message(first, **about)))
    return window.add(sample(message(second, **about), at_s=between_s))


def test_fields_have_the_places_that_linux_gives_them() -> None:
    """Against uapi/linux/tcp.h of Linux 6.12, ``offsetof``."""
    places = {"rto": 8, "rtt": 68, "total_retrans": 100, "pacing_rate": 104, "segs_out": 136, "min_rtt": 148}
    places |= {"delivery_rate": 160, "busy_time": 168, "delivered": 192, "bytes_sent": 200, "snd_wnd": 228}
    assert {name: layout.offset(layout.TCP_INFO, name) for name in places} == places
    assert (layout.SOCKET.itemsize, layout.TCP_INFO.itemsize) == (72, 248)


def test_a_socket_is_read_with_its_control_addresses_and_numbers() -> None:
    read = sample(message({"rtt": 31_000, "bytes_acked": 2**40}, cc=b"reno"))
    assert len(read) == 1
    assert read.damaged == 0
    assert read.addresses(0) == ("127.0.0.1", 40000, "192.0.2.9", 443)
    assert (read.cc[0], read.field("rtt")[0], read.field("bytes_acked")[0]) == (b"reno", 31_000, 2**40)


@pytest.mark.parametrize(("size", "known"), [(104, "total_retrans"), (168, "delivery_rate"), (192, "sndbuf_limited")])
def test_a_shorter_tcp_info_of_an_older_kernel_leaves_its_newer_fields_unknown(size: int, known: str) -> None:
    read = sample(message({known: 5, "dsack_dups": 3, "snd_wnd": 9}, size=size))
    assert read.field(known)[0] == 5
    assert np.isnan(read.field("dsack_dups")[0])
    assert np.isnan(read.field("snd_wnd")[0])
    (one,) = connections(Window().add(read), np.array([0]), {})
    assert one.peer_window_bytes is None
    assert one.limit == "unknown"


def test_a_longer_tcp_info_of_a_newer_kernel_is_read_as_far_as_it_is_known() -> None:
    read = sample(message({"rtt": 5, "total_rto_time": 77}, size=280))
    assert (read.field("rtt")[0], read.field("total_rto_time")[0]) == (5, 77)


def test_ipv4_in_ipv6_is_shown_as_ipv4() -> None:
    ends = {"src": MAPPED + bytes([10, 0, 0, 1]), "dst": MAPPED + bytes([10, 0, 0, 2])}
    assert sample(message(family=socket.AF_INET6, **ends)).addresses(0)[::2] == ("10.0.0.1", "10.0.0.2")
    plain = {"src": socket.inet_pton(socket.AF_INET6, "2001:db8::1"), "dst": socket.inet_pton(socket.AF_INET6, "::1")}
    assert sample(message(family=socket.AF_INET6, **plain)).addresses(0)[::2] == ("2001:db8::1", "::1")


def test_both_ends_of_ipv6_are_written_in_brackets() -> None:
    ends = {"src": socket.inet_pton(socket.AF_INET6, "2001:db8::1"), "dst": socket.inet_pton(socket.AF_INET6, "::1")}
    told = connections(Window().add(sample(message(family=socket.AF_INET6, **ends))), np.array([0]), {})
    seen = SimpleNamespace(time="now", matching=1, total=1, short=0)
    words = lines(seen, told)[-1].split()
    assert (words[0], words[-1]) == ("[::1]:443", "[2001:db8::1]:40000")


def test_a_path_of_an_mptcp_connection_is_marked() -> None:
    # Linux appends more to the name: tokens and numbers of the path.
    within = attribute(layout.ULP, attribute(1, b"mptcp\0") + attribute(3, attribute(1, bytes([5, 0, 0, 0]))))
    (one,) = connections(Window().add(sample(message(extra=within))), np.array([0]), {})
    assert one.mptcp


def test_bbr_reports_the_rate_that_it_found() -> None:
    read = sample(message(cc=b"bbr", bbr=(1_250_000, 0, 20_000, 256, 512)), message(cookie=8))
    assert read.bbr_bps[0] == 10e6
    assert np.isnan(read.bbr_bps[1])


def test_a_socket_that_is_reported_twice_counts_once() -> None:
    assert len(sample(message(cookie=1), message(cookie=1), message(cookie=2))) == 2


def test_a_message_that_is_cut_is_counted_and_the_others_are_read() -> None:
    read = parse([message(cookie=1) + message(cookie=2)[:-9], message(cookie=3)], 0.0)
    assert sorted(read.cookie.tolist()) == [1, 3]
    assert read.damaged == 1


@given(st.lists(st.binary(max_size=700), max_size=3))
def test_any_bytes_are_read_or_counted(content: list[bytes]) -> None:
    read = parse(content, 0.0)
    assert len(limits(Window().add(read))) == len(read)


@given(st.integers(0, 480), st.integers(0, 255), st.integers(0, 480), st.integers(0, 255))
def test_a_changed_byte_leaves_the_other_sockets_as_they_are(at: int, to: int, then: int, other: int) -> None:
    damaged = bytearray(message(cookie=5, bbr=(1, 2, 3, 4, 5), cc=b"bbr"))
    for place, value in ((at, to), (then, other)):
        damaged[place % len(damaged)] = value
    read = parse([message(cookie=1, info={"rtt": 11}), bytes(damaged)], 0.0)
    assert read.field("rtt")[read.cookie.tolist().index(1)] == 11
    connections(Window().add(read), limits(Window().add(read)), {})


def test_goodput_is_of_the_interval_and_loss_of_the_window() -> None:
    window = Window()
    for at in range(4):
        info = {"bytes_acked": 125_000 * at**2, "data_segs_out": 100 * at, "total_retrans": 2 * at, "dsack_dups": at}
        changes = window.add(sample(message(info), at_s=2.0 * at))
    assert changes.goodput_bps[0] == 125_000 * (9 - 4) * 8 / 2
    assert changes.mean_bps[0] == 125_000 * 9 * 8 / 6
    assert (changes.segments[0], changes.retransmits[0], changes.lost[0]) == (300, 6, 3)
    assert changes.loss[0] == 0.01


def test_the_highest_delivery_rate_is_kept_of_samples_at_which_a_queue_was_standing() -> None:
    window = Window()
    for at, (rtt, rate) in enumerate([(20_000, 900_000), (50_000, 1_000_000), (60_000, 1_200_000)]):
        changes = window.add(sample(message({"rtt": rtt, "delivery_rate": rate}), at_s=float(at)))
    assert (changes.standing[0], changes.standing_bps[0]) == (pytest.approx(2 / 3), 9.6e6)


@pytest.mark.parametrize(("rate", "stood"), [(400_000, 0), (1_000_000, 1)])
def test_the_time_to_send_two_segments_is_no_queue(rate: int, stood: int) -> None:
    told = {"rtt": 28_000, "rttvar": 0, "min_rtt": 20_000, "snd_mss": 1448, "delivery_rate": rate}
    assert Window().add(sample(message(told))).standing == [stood]


def test_the_window_is_as_long_as_it_was_asked_to_be() -> None:
    window = Window(samples=2)
    for at in range(6):
        changes = window.add(sample(message({"data_segs_out": at}), at_s=float(at)))
    assert (changes.window_s[0], changes.segments[0]) == (2, 2)


def test_counters_of_32_bits_go_around_their_end() -> None:
    changes = changed({"data_segs_out": 2**32 - 10}, {"data_segs_out": 30})
    assert changes.segments[0] == 40


def test_a_socket_that_vanishes_and_one_that_comes_are_no_change_of_the_others() -> None:
    window = Window()
    window.add(sample(message({"bytes_acked": 0}, cookie=1), message({"bytes_acked": 0}, cookie=2)))
    second = [message({"bytes_acked": 1000}, cookie=2), message({"bytes_acked": 9}, cookie=3)]
    changes = window.add(sample(*second, at_s=1.0))
    assert changes.sample.cookie.tolist() == [2, 3]
    assert changes.goodput_bps[0] == 8000
    assert np.isnan(changes.goodput_bps[1])


SENT = {"data_segs_out": 1000, "bytes_acked": 10**6, "busy_time": 1_000_000, "notsent_bytes": 50_000, "unacked": 10}
BBR = (1_250_000, 0, 20_000, 256, 512)
BEFORE_CLOCKS = layout.offset(layout.TCP_INFO, "busy_time")
"""Bytes of ``tcp_info`` in Linux 4.9."""


@pytest.mark.parametrize(
    ("expected", "now", "about"),
    [
        ("idle", {}, {}),
        ("application", SENT | {"busy_time": 300_000}, {}),
        ("application", SENT | {"notsent_bytes": 0, "unacked": 2}, {}),
        ("receive window", SENT | {"rwnd_limited": 700_000, "notsent_bytes": 0, "unacked": 2}, {}),
        ("send buffer", SENT | {"sndbuf_limited": 600_000, "notsent_bytes": 0, "unacked": 2}, {}),
        ("send buffer", SENT | {"notsent_bytes": 0, "unacked": 4}, {"queued": 30_000}),
        ("send buffer", SENT | {"notsent_bytes": 0, "unacked": 4}, {"queued": 30_000, "size": BEFORE_CLOCKS}),
        ("application", SENT | {"notsent_bytes": 1000, "unacked": 4}, {"queued": 12_000}),
        ("congestion window", SENT | {"total_retrans": 20}, {}),
        ("path", SENT | {"rtt": 45_000}, {}),
        ("path", SENT, {"cc": b"bbr", "bbr": BBR}),
        ("congestion window", SENT, {"cc": b"bbr", "bbr": (*BBR[:3], 739, 739)}),
        ("pacing", SENT | {"max_pacing_rate": 130_000, "pacing_rate": 130_000}, {}),
    ],
)
def test_what_limits_a_connection(expected: str, now: Fields, about: dict[str, Any]) -> None:
    """Two samples of a connection that does the same in both."""
    counters = dict.fromkeys(("data_segs_out", "bytes_acked", "busy_time", "total_retrans"), 0)
    counters |= dict.fromkeys(("rwnd_limited", "sndbuf_limited"), 0)
    changes = changed(now | counters, now, **about)
    assert LIMITS[limits(changes)[0]] == expected
    (one,) = connections(changes, limits(changes), {})
    assert one.why
    assert "nan%" not in one.why


@pytest.mark.parametrize(
    ("limit", "said", "acked"),
    [("path", "95% of the bottleneck's rate", 118_750), ("congestion window", "sometimes has a queue", 80_000)],
)
def test_behind_a_short_queue_the_path_limits_what_uses_its_rate(limit: str, said: str, acked: int) -> None:
    """A queue in three of ten samples, whose packets leave at 1 Mbit/s; ``acked`` bytes per second of that."""
    window = Window()
    for at in range(10):
        rtt = 60_000 if at % 4 == 1 else 20_000
        counters = {
            "data_segs_out": 80 * at,
            "bytes_acked": acked * at,
            "busy_time": 1_000_000 * at,
            "total_retrans": at,
        }
        state = {"notsent_bytes": 50_000, "unacked": 10, "rtt": rtt, "delivery_rate": 125_000}
        changes = window.add(sample(message(counters | state), at_s=float(at)))
    (one,) = connections(changes, limits(changes), {})
    assert one.standing == pytest.approx(0.3)
    assert one.limit == limit
    assert said in one.why


def test_loss_has_an_interval_that_holds_it() -> None:
    changes = changed({}, SENT | {"total_retrans": 10})
    (one,) = connections(changes, limits(changes), {})
    assert one.loss_low is not None
    assert one.loss_high is not None
    assert one.loss_low < 0.01 == one.loss < one.loss_high < 0.02


def test_escape_sequences_in_a_process_name_are_written_out() -> None:
    read = message()
    about = sample(read)
    about.sockets["inode"] = 5
    (one,) = connections(Window().add(about), np.array([0]), {5: (1, "\x1b[31mred")})
    assert one.process == "\\u001b[31mred"


def test_the_schema_names_every_field_of_a_connection() -> None:
    assert list(MEANINGS) == list(Connection.__dataclass_fields__)


def test_the_page_has_the_schema() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "watch.md").read_text(encoding="utf-8")
    for name, meaning in MEANINGS.items():
        assert f"| `{name}` | {meaning} |" in page


FILTERED = [
    ("", "1 2 3"),
    ("dst 192.0.2.0/24", "1"),
    ("dst 192.0.2.9:443", "1"),
    ("dst 10.0.0.0/8", "2"),
    ("dst ::ffff:10.0.0.2", "2"),
    ("dst [::ffff:192.0.2.9]:443", "1"),
    ("dst ::ffff:10.0.0.0/104", "2"),
    ("dst ::ffff:0:0/96", "1 2"),
    ("dst 2001:db8::/32", "3"),
    ("dst [2001:db8::1]:80", "3"),
    ("dport = :443", "1 2"),
    ("dport > 443 or sport 5", "1"),
    ("port 80", "3"),
    ("not cc bbr", "1 3"),
    ("cc bbr or ( dport 80 and not dst 10.0.0.2 )", "2 3"),
    ("! dst 192.0.2.9 cc bbr", "2"),
    ("process curl", "1"),
    ("state established", "1 2 3"),
]


@pytest.mark.parametrize(("text", "expected"), FILTERED)
def test_a_filter_means_what_it_means_to_ss(text: str, expected: str) -> None:
    read = sample(
        message(cookie=1, sport=5),
        message(cookie=2, family=socket.AF_INET6, dst=MAPPED + bytes([10, 0, 0, 2]), cc=b"bbr"),
        message(cookie=3, family=socket.AF_INET6, dst=socket.inet_pton(socket.AF_INET6, "2001:db8::1"), dport=80),
    )
    found = condition(text)(read, lambda _: ["curl", "sshd", ""])
    assert " ".join(map(str, read.cookie[found].tolist())) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("dst", "bad-usage"),
        ("dst nowhere.example", "bad-usage"),
        ("dport 70000", "out-of-range"),
        ("dport no-such-service", "bad-usage"),
        ("( cc bbr", "bad-usage"),
        ("cc bbr )", "bad-usage"),
        ("host 1.2.3.4", "unknown-name"),
        ("state asleep", "unknown-name"),
        ("and", "bad-usage"),
        ("cc bbr or and port 80", "bad-usage"),
        ("not )", "bad-usage"),
        ("not " * 300, "bad-usage"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(text: str, code: str) -> None:
    with expected_error(code=code):
        condition(text)


@given(st.text(max_size=80))
def test_any_filter_is_understood_or_refused(text: str) -> None:
    try:
        found = condition(text)
    except SawtoothError:
        return
    assert found(sample(message()), lambda _: [""]).shape == (1,)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection over loopback; data that reaches the second is read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    reading = threading.Thread(target=lambda: [None for _ in iter(lambda: far.recv(1 << 16), b"")])
    reading.start()
    yield near, far
    near.close()
    reading.join()
    far.close()


def acked(near: socket.socket) -> int:
    """Bytes, as counted by the socket itself."""
    place = layout.offset(layout.TCP_INFO, "bytes_acked")
    return int.from_bytes(near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 248)[place : place + 8], "little")


def test_a_connection_of_our_own_is_seen_with_what_it_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    near, _ = pair
    port = near.getsockname()[1]
    with Connections() as source:
        watcher = Watcher(source, filter=f"sport {port}")
        watcher.sample()
        near.sendall(bytes(300_000))
        while acked(near) < 300_000:
            time.sleep(0.001)
        seen = watcher.sample()
    (one,) = seen.first()
    assert (one.local_port, one.peer, one.state) == (port, "127.0.0.1", "ESTAB")
    assert one.process is not None
    assert one.pid == os.getpid()
    assert one.goodput_bps is not None
    assert one.window_s is not None
    assert round(one.goodput_bps * one.window_s / 8) == 300_000


def test_numbers_are_those_that_the_socket_itself_reports(pair: tuple[socket.socket, socket.socket]) -> None:
    near, _ = pair
    near.sendall(bytes(50_000))
    with Connections() as source:
        read = source.sample()
    own = np.frombuffer(near.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 248).ljust(248, b"\0"), layout.TCP_INFO)[0]
    at = read.sockets["sport"].tolist().index(near.getsockname()[1])
    for name in ("snd_mss", "advmss", "pmtu", "options", "wscales", "max_pacing_rate"):
        assert read.info[name][at] == own[name], name


def test_pyroute2_reads_the_same(pair: tuple[socket.socket, socket.socket]) -> None:
    from pyroute2 import DiagSocket

    near, _ = pair
    port = near.getsockname()[1]
    with DiagSocket() as asked, Connections() as source:
        asked.bind()
        (theirs,) = [
            one
            for one in asked.get_sock_stats(family=socket.AF_INET, extensions=0xFF)
            if one["idiag_sport"] == port and one["idiag_state"] == 1
        ]
        read = source.sample()
    at = read.sockets["sport"].tolist().index(port)
    assert read.addresses(at) == tuple(theirs[f"idiag_{name}"] for name in ("src", "sport", "dst", "dport"))
    assert read.cookie[at] == theirs["idiag_cookie"]
    assert read.cc[at].decode() == theirs.get_attr("INET_DIAG_CONG")
    assert read.info["rto"][at] == theirs.get_attr("INET_DIAG_INFO")["tcpi_rto"]


def test_a_connection_that_came_and_went_between_two_samples_is_counted() -> None:
    with Connections() as source:
        if not source.reports_ends:
            pytest.skip("this kernel does not tell which connections ended")
        watcher = Watcher(source)
        watcher.sample()
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as near,
            server.accept()[0] as far,
        ):
            near.sendall(b"x" * 1000)
            near.shutdown(socket.SHUT_WR)
            while far.recv(4096):
                pass
        until(lambda: watcher.sample().short, 10)


def test_json_is_a_line_a_sample_with_the_fields_of_the_schema(pair: tuple[socket.socket, socket.socket]) -> None:
    port = pair[0].getsockname()[1]
    asked = ["watch", "--json", "--count", "2", "--interval", "0.1", "sport", str(port)]
    lines = CliRunner().invoke(sawtooth, asked, catch_exceptions=False).output.splitlines()
    assert len(lines) == 2
    first = json.loads(lines[0])
    assert first["connections_matching"] == 1
    assert list(first["connections"][0]) == list(MEANINGS)


@pytest.mark.parametrize("width", ["60", "200"])
def test_lines_keep_to_the_width(pair: tuple[socket.socket, socket.socket], width: str) -> None:
    asked = ["watch", "--once", "--interval", "0.1", "sport", str(pair[0].getsockname()[1])]
    told = CliRunner().invoke(sawtooth, asked, env={"COLUMNS": width}, catch_exceptions=False).output.splitlines()
    # Other programs on this machine open and close connections, and the heading that counts them is wrapped.
    (headings,) = [at for at, line in enumerate(told) if line.startswith("peer")]
    assert headings <= 2
    assert all(len(line) <= int(width) for line in told)


def test_a_heading_that_counts_short_connections_is_folded() -> None:
    seen = SimpleNamespace(time="2026-11-23T16:40:18.179+00:00", matching=1, total=3, short=1588)
    told = lines(seen, [], 60)
    assert all(len(line) <= 60 for line in told)
    assert "1588 opened and closed since the last sample" in " ".join(" ".join(told).split())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--interval", "0.01"], "out-of-range"),
        (["--once", "--count", "2"], "bad-usage"),
        (["--netns", "no-such-namespace"], "unknown-name"),
        (["--netns", "../root"], "unknown-name"),
        (["--netns", "999999999"], "unknown-name"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], code: str) -> None:
    with expected_error(code=code):
        CliRunner().invoke(sawtooth, ["watch", *arguments], catch_exceptions=False)
