"""Pictures of captures: they show what the tables hold, whatever its size, and are the same each time."""

import base64
import json
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sawtooth
from expected_error import expected_error
from sawtooth.capture import Capture
from sawtooth.capture.busiest_connection import read_busiest
from sawtooth.capture.marks import LIMITS, MARKS, SACK, quantity
from sawtooth.capture.packed_columns import pack
from sawtooth.capture.page import write_page
from sawtooth.capture.pictures import draw
from sawtooth.capture.pixels import Raster
from sawtooth.capture.view import View, views
from sawtooth.capture.zoom import Zoom
from sawtooth.cli.program import status_of
from sawtooth.study.shipped import shipped

STUDY = shipped()["fiber-in-paris"]
MSS = 1448


def transfer(
    count: int = 400, file: str = "some.pcap", kinds: tuple[int, ...] = (1, 2, 3, 4), begun_s: float = 2.0
) -> Capture:
    """A download: the client requests with 100 bytes, the server sends ``count`` segments, every 50th of another kind.
    Segments are a millisecond apart; each is acknowledged 20 ms later, some with a SACK block.
    """
    at = begun_s + 0.001 * np.arange(count)
    kind = np.zeros(count, dtype=np.int64)
    odd = np.arange(50, count, 50)
    kind[odd] = [kinds[i % len(kinds)] for i in range(len(odd))]
    plain = {"flags": 0x10, "tsval": 0, "tsecr": 0, "rtt_s": np.nan}
    seq = 1 + MSS * np.arange(count)
    syn = {"t_s": [begun_s - 0.021], "direction": 0, "seq": 0, "length": 0, "ack": 0, "window": 9e8, "kind": 8, **plain}
    segments = pd.concat(
        [
            pd.DataFrame(syn | {"flags": 0x02}),
            pd.DataFrame(
                {
                    "t_s": [begun_s - 0.02],
                    "direction": 0,
                    "seq": 1,
                    "length": 100,
                    "ack": 1,
                    "window": 60_000,
                    "kind": 0,
                }
                | plain
            ),
            pd.DataFrame(
                {"t_s": at, "direction": 1, "seq": seq, "length": MSS, "ack": 101, "window": 500, "kind": kind} | plain
            ),
            pd.DataFrame(
                {
                    "t_s": at + 0.02,
                    "direction": 0,
                    "seq": 101,
                    "length": 0,
                    "ack": seq + MSS,
                    "window": 200_000,
                    "kind": 8,
                }
                | plain
                | {"rtt_s": 0.02}
            ),
        ]
    )
    segments = segments.sort_values("t_s", kind="stable").reset_index(drop=True)
    segments["frame"] = np.arange(1, len(segments) + 1)
    acks = np.flatnonzero(segments["ack"] > 101)[::10]
    start = segments["ack"].to_numpy()[acks] + MSS
    sacks = pd.DataFrame(
        {"segment": acks, "start": start, "end": start + 3 * MSS, "dsack": np.arange(len(acks)) % 7 == 0}
    )
    ends = begun_s + 0.01 * np.arange(1, count // 10 + 3)
    series = pd.DataFrame(
        {
            "connection": 0, "direction": 1, "t_s": ends, "goodput_bps": MSS * 8e3, "packets": 10, "retransmits": 0,
            "rtt_s": 0.02, "rtt_min_s": 0.02, "in_flight_bytes": 20 * MSS, "window_bytes": 200_000,
            "limit": np.arange(len(ends)) // 10 % 6,
        }
    )  # fmt: skip
    other = series.assign(direction=0, goodput_bps=0.0)
    trip = dict.fromkeys(("min_s", "mean_s", "median_s", "p95_s", "max_s"), 0.02) | {"samples": count}
    told = {
        "from": "server",
        "payload_bytes": count * MSS,
        "data_packets": count,
        "retransmits": int(np.isin(kind, (1, 2, 3, 4, 6)).sum()),
        "filled_holes": int((kind == 6).sum()),
        "acknowledged_bytes": count * MSS,
        "duration_s": count / 1000,
        "goodput_bps": MSS * 8e3,
        "rtt": {"whole": trip, "far": "receiver", "near_s": 0.0},
        "limits": {"sender_s": 0.1, "path_s": 0.3},
        "timeout_retransmits": 2,
        **dict.fromkeys(("ce_marks", "ecn_echoes", "window_reductions"), 0),
        "loss": {
            **{"rate": 0.0175, "lost": 7, "segments": count, "bursts": 1, "largest_burst": 1, "longest_run": 1},
            **{"where": "data after", "sure": "exact"},
        },
        "verdict": [
            ["What did it get?", "579 kB in 400 ms, 11.58 Mbit/s, with a minimum RTT of 20 ms."],
            ["What limited it?", "For 75% of the time the path was full."],
            ["What was lost, and where?", f"7 of {count:,} segments, 1.75%, were lost."],
        ],
    }
    ends_of = {
        "index": 0,
        "client": "10.0.0.1:4711",
        "server": "10.0.1.1:5201",
        "directions": [{"from": "client", "packets": 1, "retransmits": 0}, told],
    }
    facts = {"connections": [ends_of], "problems": []}
    return Capture(file, facts, pd.concat([series, other]), pd.DataFrame(), segments, sacks, connection=0)


@pytest.mark.parametrize(
    ("text", "zoom"),
    [
        ("0s,0.75s", Zoom(0, 0.75)),
        ("250 ms, 2 s", Zoom(0.25, 2)),
        (",1s", Zoom(0, 1)),
        ("1 min,", Zoom(60)),
    ],
)
def test_a_zoom_is_two_times_with_units(text: str, zoom: Zoom) -> None:
    assert Zoom.parse(text) == zoom


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1s", "bad-quantity"),
        ("0,1", "missing-unit"),
        ("0s,1 fortnight", "unknown-unit"),
        ("2s,1s", "out-of-range"),
        ("1s,1s", "out-of-range"),
    ],
)
def test_a_zoom_that_cannot_be_is_refused_with_its_field_and_a_fix(text: str, code: str) -> None:
    with expected_error(code=code, field="zoom") as caught:
        Zoom.parse(text)
    assert caught.value.fix


pixels = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 59), st.integers(0, 8)), min_size=1, max_size=80)


@pytest.mark.usefixtures("patience")
@given(pixels)
def test_bars_put_together_cover_the_same_pixels_and_no_others(found: list[tuple[int, int, int]]) -> None:
    x, low, height = np.array(found, dtype=np.float64).T
    raster = Raster(0, 40, 0, 80, columns=40, rows=80)

    def covered(bars: tuple[Any, Any, Any]) -> set[tuple[int, int]]:
        return {(int(at), row) for at, foot, top in zip(*bars, strict=True) for row in range(int(foot), int(top) + 1)}

    fewer = raster.bars(x, low, low + height)
    assert covered(fewer) == covered((x, low, low + height))
    assert len(fewer[0]) <= len(x)


def test_a_million_bars_become_no_more_than_the_columns_of_a_line() -> None:
    at = np.arange(1_000_000.0)
    x, low, high = Raster(0, 1e6, 0, 1.448e9).bars(at, at * MSS, (at + 1) * MSS)
    assert len(x) <= 1601
    assert low.min() == 0
    assert high.max() == 1e6 * MSS


@given(st.integers(0, 2**32 - 1))
def test_a_line_keeps_its_extremes_and_its_ends(seed: int) -> None:
    y = np.random.default_rng(seed).normal(size=5_000)
    x = np.sort(np.random.default_rng(seed + 1).uniform(0, 10, size=5_000))
    kept_x, kept_y = Raster(0, 10, -5, 5, columns=50).line(x, y)
    assert len(kept_x) <= 200
    assert (np.diff(kept_x) >= 0).all()
    assert {y.min(), y.max(), y[0], y[-1]} <= set(kept_y)


def test_of_the_dots_in_a_cell_the_first_is_drawn_and_none_outside() -> None:
    raster = Raster(0, 10, 0, 10, columns=10, rows=10)
    x, y = np.array([0.1, 0.2, 5.5, 11.0, 5.6]), np.array([0.1, 0.3, 5.5, 5.0, 7.5])
    assert raster.dots(x, y).tolist() == [0, 2, 4]


def unpacked(packed: dict[str, Any]) -> list[int]:
    """As the page's script reads it."""
    data = zlib.decompress(base64.b64decode(packed["data"]))
    coded = [
        sum(data[plane * packed["length"] + i] << (8 * plane) for plane in range(packed["planes"]))
        for i in range(packed["length"])
    ]
    return np.cumsum([-(one + 1) // 2 if one % 2 else one // 2 for one in coded]).tolist()


@given(st.lists(st.integers(-(2**52), 2**52)))
def test_a_packed_column_is_read_back_exactly(numbers: list[int]) -> None:
    assert unpacked(pack(np.array(numbers, dtype=np.int64))) == numbers


def test_a_regular_column_takes_less_than_a_byte_a_number() -> None:
    assert len(pack(1_000_000 + 1448 * np.arange(100_000))["data"]) < 10_000


def test_the_direction_with_most_data_is_drawn_from_the_first_segment_on() -> None:
    view = View.of(transfer(), "some")
    assert view.ends == "10.0.1.1:5201 → 10.0.0.1:4711"
    assert len(view.data) == 400
    assert view.data["t_s"].iloc[0] == pytest.approx(0.021)
    assert view.series["t_s"].iloc[0] == pytest.approx(0.031)
    assert (view.series["goodput_bps"] > 0).all()
    assert view.rtt_s == pytest.approx(0.02)
    assert view.end_s == pytest.approx(0.44)


def test_the_window_of_a_syn_is_no_window_of_the_connection() -> None:
    assert View.of(transfer(), "some").acks["window"].max() == 200_000


def test_a_sack_block_has_the_time_of_the_acknowledgement_that_brought_it() -> None:
    capture = transfer()
    view = View.of(capture, "some")
    first = capture.segments.loc[capture.sacks["segment"].iloc[0]]
    assert view.sacks["t_s"].iloc[0] == pytest.approx(first["t_s"] - capture.segments["t_s"].iloc[0])
    assert len(view.sacks) == len(capture.sacks)


def test_a_capture_without_data_or_without_its_segments_is_refused_by_name() -> None:
    whole = transfer()
    for capture in (
        replace(whole, segments=whole.segments[whole.segments["length"] == 0]),
        replace(whole, segments=pd.DataFrame(), sacks=pd.DataFrame(), connection=None),
    ):
        with expected_error(code="conflict", file="some.pcap"):
            View.of(capture, "some")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/cubic.pcap"], ["cubic.pcap"]),
        (["a/cubic.pcap", "b/bbr.pcap"], ["cubic.pcap", "bbr.pcap"]),
        (["run/cubic/sender.pcap", "run/bbr/sender.pcap"], ["cubic/sender.pcap", "bbr/sender.pcap"]),
        (["same.pcap", "same.pcap"], ["same.pcap", "same.pcap"]),
    ],
)
def test_captures_are_distinguished_by_the_shortest_names(files: list[str], names: list[str]) -> None:
    assert [view.name for view in views([transfer(file=file) for file in files])] == names


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(44.9e6, "bit/s", "44.9 Mbit/s"), (0.0114, "s", "11.4 ms"), (0.2, "B", "0.2 B"), (999.9, "B", "1000 B")],
)
def test_quantities_are_written_with_a_prefix(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.usefixtures("patience")
def test_each_picture_is_a_png_and_an_svg_and_the_same_each_time(tmp_path: Path) -> None:
    first = draw(transfer(), tmp_path / "new" / "first")
    again = draw([transfer()], tmp_path / "again")
    assert [path.name for path in first] == ["time-sequence.png", "time-sequence.svg", "over-time.png", "over-time.svg"]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
    for path in (first[1], first[3]):
        ElementTree.parse(path)


@pytest.mark.usefixtures("patience")
def test_retransmissions_have_a_colour_by_kind_and_only_where_they_are_in_view(tmp_path: Path) -> None:
    whole = draw(transfer(), tmp_path / "whole")[1].read_text()
    early = draw(transfer(), tmp_path / "early", Zoom(0.0, 0.1))[1].read_text()
    for number in (1, 2, 3, 4):
        assert MARKS[number].colour in whole
    assert MARKS[1].colour in early  # the 50th segment
    assert MARKS[2].colour not in early
    assert SACK in whole


@pytest.mark.usefixtures("patience")
def test_two_captures_are_side_by_side_each_on_its_own_axes(tmp_path: Path) -> None:
    from matplotlib import image

    one = image.imread(draw(transfer(), tmp_path / "one")[0])
    two = image.imread(draw([transfer(file="a.pcap"), transfer(4_000, "b.pcap")], tmp_path / "two")[0])
    assert two.shape[1] > 1.5 * one.shape[1]
    assert two.shape[0] == one.shape[0]


@pytest.mark.usefixtures("patience")
def test_many_segments_make_no_large_picture(tmp_path: Path) -> None:
    for path in draw(transfer(60_000), tmp_path):
        assert path.stat().st_size < 3_000_000


@pytest.mark.usefixtures("patience")
def test_a_zoom_beyond_the_end_draws_empty_axes(tmp_path: Path) -> None:
    assert len(draw(transfer(), tmp_path, Zoom(60, 61))) == 4


def content(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_holds_every_segment(tmp_path: Path) -> None:
    capture = transfer()
    found = content(write_page(capture, tmp_path / "page.html", Zoom(0, 0.75)))
    view = View.of(capture, "some.pcap")
    assert found["zoom"] == [0, 0.75]
    (packed,) = found["views"]
    assert unpacked(packed["data"]["seq"]) == view.data["seq"].tolist()
    assert unpacked(packed["data"]["kind"]) == view.data["kind"].tolist()
    assert unpacked(packed["data"]["t_s"]) == np.round(view.data["t_s"] * 1e9).astype(int).tolist()
    assert unpacked(packed["acks"]["ack"]) == view.acks["ack"].tolist()
    assert sum(unpacked(packed["sacks"]["dsack"])) == view.sacks["dsack"].sum()


def test_of_many_segments_a_part_is_drawn_at_once_that_reaches_as_far(tmp_path: Path) -> None:
    capture = transfer(20_000)
    first = content(write_page(capture, tmp_path / "page.html"))["views"][0]["first"]
    view = View.of(capture, "some.pcap")
    kind, seq = np.array(first["data"]["kind"]), np.array(first["data"]["seq"])
    assert len(kind) < 2000
    top = seq + np.array(first["data"]["size"])
    assert (seq[kind == 0].min(), top[kind == 0].max()) == (1, (view.data["seq"] + view.data["length"]).max())
    assert set(kind) == set(view.data["kind"])
    assert first["acks"]["ack"][-1] == view.acks["ack"].iloc[-1]


def test_a_transfer_without_round_trips_has_curves_all_the_same(tmp_path: Path) -> None:
    capture = transfer()
    capture.segments["rtt_s"] = np.nan
    capture.series["in_flight_bytes"] = np.nan
    figures = json.loads(drawn(write_page(capture, tmp_path / "page.html")))
    assert [panel["y"]["label"] for panel in figures[0]["panels"]] == ["goodput", "in flight", "round-trip time"]


def test_one_capture_is_shaded_and_several_are_on_the_same_axes(tmp_path: Path) -> None:
    (alone,) = json.loads(drawn(write_page(transfer(), tmp_path / "page.html")))
    shaded = alone["panels"][0]["spans"]
    assert {span["colour"] for span in shaded} < {limit.colour for limit in LIMITS.values()}
    assert {span["name"] for span in shaded} == {f"limited by: {LIMITS[at].name}" for at in (1, 2, 3, 4)}
    both = [transfer(file="a.pcap"), transfer(600, file="b.pcap")]
    (together,) = json.loads(drawn(write_page(both, tmp_path / "page.html")))
    for panel in together["panels"]:
        assert [one["name"] for one in panel["series"]] == ["a.pcap", "b.pcap"]
        assert len({one["colour"] for one in panel["series"]}) == 2
        assert "spans" not in panel


def drawn(page: Path) -> str:
    found = re.search(r'<script type="application/json" class="figures">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_the_page_needs_no_network_and_says_the_same_in_words(tmp_path: Path) -> None:
    text = write_page([transfer(file="a.pcap"), transfer(file="b.pcap")], tmp_path / "page.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert text.count('class="view graphed"') == 2
    assert "on the\nsame axes" in text
    assert "<noscript>" in text
    for number in (1, 2, 3, 4):
        assert MARKS[number].name in text
    assert f"time limited by: {LIMITS[4].name}" in text


def test_the_page_s_figures_are_the_capture_s_facts_and_what_is_drawn_is_counted_apart(tmp_path: Path) -> None:
    capture = transfer(count=600)
    # As if segments were merged: facts count packets on the wire, tables count captured segments.
    told = {"data_packets": 1800, "filled_holes": 3, "verdict": [["What was lost?", "1 & 2 of 1,800 segments."]]}
    capture.facts["connections"][0]["directions"][1] |= told
    text = " ".join(write_page(capture, tmp_path / "page.html").read_text().split())
    assert "<dt>What was lost?</dt><dd>1 &amp; 2 of 1,800 segments.</dd>" in text
    assert "<dt>Which congestion control?</dt>" in text
    assert "of these, retransmitted to fill holes</td><td>3</td>" in text
    assert "captured segments with data ( 1,800 on the wire, before offload joined them)</td><td>600</td>" in text


def test_a_name_cannot_leave_its_place_in_the_page(tmp_path: Path) -> None:
    page = write_page(transfer(file="</script><script>alert(1)</script>.pcap"), tmp_path / "page.html")
    assert "<script>alert" not in page.read_text()
    assert content(page)["views"][0]["name"].endswith("script>.pcap")


def test_the_source_s_contrast_is_reproduced_by_the_study() -> None:
    study = sawtooth.load(STUDY)
    points = {point.key["cc"]: point for point in study.points() if point.seed == 1}
    means = {}
    for cc, point in points.items():
        goodput = sawtooth.run(point.scenario).tables["intervals"]["goodput_bps"].iloc[1:]
        means[cc] = goodput.mean() / 1e6
    # The output says 46.9 and 805 Mbit/s. One short run of CUBIC is occasionally off by a third.
    assert 25 < means["cubic"] < 75
    assert means["bbr"] == pytest.approx(805.4, rel=0.03)


def pcap(path: Path, *transfers: tuple[int, int]) -> Path:
    """Raw IPv4 packets, one a millisecond: for each port the handshake and ``count`` segments with their ACKs."""
    packets = []
    for port, segments in transfers:

        def packet(ours: bool, flags: int, seq: int, ack: int, payload: int = 0, port: int = port) -> None:
            ports = (port, 80) if ours else (80, port)
            tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 5 << 4, flags, 60_000, 0, 0) + bytes(payload)
            ends = (bytes([10, 0, 0, 1]), bytes([10, 0, 1, 1]))
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0) + b"".join(
                ends if ours else ends[::-1]
            )
            packets.append(ip + tcp)

        packet(True, 0x02, 0, 0)
        packet(False, 0x12, 0, 1)
        packet(True, 0x10, 1, 1)
        for number in range(segments):
            packet(False, 0x18, 1 + 1000 * number, 1, 1000)
            packet(True, 0x10, 1, 1001 + 1000 * number)
    records = [
        struct.pack("<IIII", at // 1000, at % 1000 * 1000, len(raw), len(raw)) + raw for at, raw in enumerate(packets)
    ]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(records))
    return path


def command(*words: object) -> int:
    return status_of(["capture", *map(str, words)])


@pytest.mark.usefixtures("patience")
def test_the_command_draws_two_files_and_writes_their_page(tmp_path: Path) -> None:
    one, other = pcap(tmp_path / "one.pcap", (4000, 20)), pcap(tmp_path / "other.pcap", (4000, 60))
    out, page = tmp_path / "pictures", tmp_path / "page.html"
    assert command(one, other, "--pictures", out, "--html", page, "--zoom", "0s,20ms") == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "over-time.png", "over-time.svg", "time-sequence.png", "time-sequence.svg",
    ]  # fmt: skip
    found = content(page)
    assert found["zoom"] == [0, 0.02]
    assert [len(unpacked(view["data"]["seq"])) for view in found["views"]] == [20, 60]


def test_the_connection_with_the_most_data_is_drawn_unless_another_is_asked_for(tmp_path: Path) -> None:
    file, page = pcap(tmp_path / "both.pcap", (4000, 5), (4001, 50), (4002, 9)), tmp_path / "page.html"
    assert read_busiest(file).connection == 1
    assert command(file, "--html", page) == 0
    assert content(page)["views"][0]["ends"].endswith(":4001")
    assert command(file, "--html", page, "--connection", "2") == 0
    assert content(page)["views"][0]["ends"].endswith(":4002")


def test_a_zoom_without_a_picture_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(pcap(tmp_path / "one.pcap", (4000, 5)), "--zoom", "0s,1s") == 2
    assert "--zoom needs --pictures or --html" in capsys.readouterr().err


def test_a_few_round_trips_that_are_many_times_the_others_do_not_flatten_them(tmp_path: Path) -> None:
    capture = transfer()
    rows = np.flatnonzero(capture.segments["rtt_s"].notna())
    capture.segments.loc[rows[-1:], "rtt_s"] = 3.0
    (figure,) = json.loads(drawn(write_page(capture, tmp_path / "page.html")))
    axis, (trips,) = figure["panels"][2]["y"], figure["panels"][2]["series"]
    assert axis["unit"] == "ms"
    assert max(trips["high"]) == pytest.approx(20)
