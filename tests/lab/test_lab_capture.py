"""A capture dropped on the laboratory's page: read there, described, drawn, and its path tried."""

import gzip
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from opened_lab import Opened, by_keyboard, serious
from sawtooth import Scenario
from sawtooth.capture.identify.captured import identify_capture
from sawtooth.capture.summary import Judgement
from sawtooth.capture.verdict import verdict
from sawtooth.engines import get
from sawtooth.engines.sim import Sim
from sawtooth.whatif import estimate, observe
from sawtooth.whatif.observation import CONTROLS
from sawtooth.whatif.runs import middle, scenario
from tests.whatif.test_whatif_page import as_the_page

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
NONE = "() => document.getElementById('capture-busy').hidden"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two connections on 20 Mbit/s, 30 ms, 0.5% loss; the first is alone on the path for 1.5 s."""
    directory = tmp_path_factory.mktemp("captures")
    path = {"rate": "20 Mbit/s", "rtt": "30 ms", "loss": "0.5%"}
    flows = [{"cc": "bbr"}, {"cc": "cubic", "start": "1.5 s"}]
    given = {"duration": "4 s", "interval": "100 ms", "seed": 7, "path": path, "flows": flows}
    Sim(capture=directory, capture_at=("sender",)).run(Scenario.from_dict(given))
    return directory / "capture-sender.pcap"


@pytest.fixture(params=[1400, 390])
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    opened = Opened(browser, address, width=request.param)
    yield opened
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= request.param
    opened.context.close()
    assert opened.said == []
    assert all(one.startswith((address, "data:", "blob:")) for one in opened.asked)


def drop(page: Opened, file: Path) -> None:
    """Opens the file, and waits until all of it is shown or refused."""
    page.page.set_input_files("#capture-file", file)
    page.page.wait_for_function(
        "() => !document.getElementById('capture-wrong').hidden"
        " || document.querySelector('#capture-time-sequence canvas')"
        " || (document.getElementById('capture-list').hidden && document.getElementById('capture-said').textContent)"
    )
    page.page.wait_for_function(NONE)


def refused(page: Opened, file: Path) -> str:
    drop(page, file)
    return str(page.page.inner_text("#capture-wrong"))


def records(file: Path) -> list[tuple[bytes, bytes]]:
    """Times and frames of a pcap file."""
    content, at, found = file.read_bytes(), 24, []
    while at < len(content):
        (kept,) = struct.unpack_from("<I", content, at + 8)
        found.append((content[at : at + 16], content[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def six(file: Path, out: Path) -> Path:
    """The same capture with IPv6 and long addresses."""
    written = [file.read_bytes()[:24]]
    for about, frame in records(file):
        seconds, part, kept, long = struct.unpack("<IIII", about)
        (total,) = struct.unpack_from(">H", frame, 16)
        ends = [b"\x20\x01\x0d\xb8\x85\xa3\x12\x34\x56\x78\x8a\x2e\x03\x70" + frame[at + 2 : at + 4] for at in (26, 30)]
        ip = struct.pack(">IHBB", 6 << 28, total - 20, 6, 64) + ends[0] + ends[1]
        written += [
            struct.pack("<IIII", seconds, part, kept + 20, long + 20),
            frame[:12] + b"\x86\xdd" + ip + frame[34:],
        ]
    out.write_bytes(b"".join(written))
    return out


def test_a_capture_is_reported_in_the_words_of_the_command_line(page: Opened, capture: Path) -> None:
    drop(page, capture)
    facts = sawtooth.read_capture(capture).facts
    assert page.page.inner_text("#capture-said").startswith(
        f"capture-sender.pcap: {facts['packets']:,} packets, 2 TCP connections; read in "
    )
    for one in facts["connections"]:
        judged = Judgement.of(one)
        assert judged is not None
        # Except for the control, which the page does not identify.
        sayings = verdict(judged, identify_capture(sawtooth.read_capture(capture, one["index"])))[:3]
        button = page.page.locator(f"[data-connection='{one['index']}']")
        button.click()
        told = page.page.locator("#capture-ends")
        ends = f"{one['client']} → {one['server']}"
        page.page.wait_for_function("ends => document.getElementById('capture-ends').textContent === ends", arg=ends)
        assert told.inner_text() == button.inner_text()
        assert button.get_attribute("aria-pressed") == "true"
        said = page.page.locator("#capture-verdict > *").all_inner_texts()
        assert list(zip(said[::2], said[1::2], strict=True)) == sayings
    assert page.page.locator("#capture-over-time canvas").count() == 3


def test_what_ecn_said_is_reported_in_the_words_of_the_command_line(page: Opened, tmp_path: Path) -> None:
    queue = {"kind": "fq_codel", "ecn": True}
    marking = {"host": {"ecn": 1}, "path": {"rate": "20 Mbit/s", "rtt": "30 ms", "queue": queue}}
    Sim(capture=tmp_path).run(Scenario.from_dict({**marking, "duration": "5 s", "flows": [{"cc": "cubic"}]}))
    file = tmp_path / "capture-sender.pcap"
    drop(page, file)
    read = sawtooth.read_capture(file, 0)
    judged = Judgement.of(read.facts["connections"][0])
    assert judged is not None
    told = dict(verdict(judged, identify_capture(read)))["What was lost, and where?"]
    assert "echoed an ECN mark" in told
    page.page.locator("#capture-verdict", has_text=told).wait_for()


def test_every_segment_is_drawn_and_what_is_seen_is_reported(page: Opened, capture: Path) -> None:
    drop(page, capture)
    index = int(page.page.locator("#capture-rows [aria-pressed='true']").get_attribute("data-connection") or -1)
    segments = sawtooth.read_capture(capture, index).segments
    data = segments[(segments["direction"] == 0) & (segments["length"] > 0)]
    drawn = page.page.locator("#capture-drawn")
    again = int((data["kind"] == 1).sum())
    assert again > 0
    whole = drawn.inner_text()
    assert f"{len(data):,} captured segments with data" in whole
    assert f"fast retransmission {again:,}" in whole
    plot = page.page.locator("#capture-time-sequence .plot")
    plot.focus()
    for _ in range(4):
        page.page.keyboard.press("+")
    found = re.match(r"([\d.]+) to ([\d.]+) s: ([\d,]+) captured segments", drawn.inner_text())
    assert found is not None
    start, end, count = (float(one.replace(",", "")) for one in found.groups())
    t = data["t_s"] - segments["t_s"].min()
    # Times at the ends have six digits after the point.
    assert abs(count - int(t.between(start, end).sum())) <= 2
    assert 0 < end - start < 0.5
    page.page.keyboard.press("Escape")
    assert drawn.inner_text() == whole


def test_a_segment_is_reported_with_its_number_in_the_file(page: Opened, capture: Path) -> None:
    drop(page, capture)
    index = int(page.page.locator("#capture-rows [aria-pressed='true']").get_attribute("data-connection") or -1)
    segments = sawtooth.read_capture(capture, index).segments
    first = segments[(segments["direction"] == 0) & (segments["length"] > 0)].iloc[0]
    plot = page.page.locator("#capture-time-sequence .plot")
    plot.focus()
    page.page.keyboard.press("ArrowRight")
    readout = page.page.locator("#capture-time-sequence .readout")
    frame, seq, length = (int(first[name]) for name in ("frame", "seq", "length"))
    assert f"packet {frame:,}, " in readout.inner_text()
    assert f"bytes {seq:,} to {seq + length:,}" in readout.inner_text()


def test_a_drag_over_some_height_zooms_both_ways_and_the_wheel_and_shift_move(page: Opened, capture: Path) -> None:
    drop(page, capture)
    over = page.page.locator("#capture-time-sequence .u-over")
    over.scroll_into_view_if_needed()
    drawn = page.page.locator("#capture-drawn")

    def shown() -> tuple[float, float]:
        found = re.match(r"([\d.]+) to ([\d.]+) s", drawn.inner_text())
        assert found is not None
        return float(found[1]), float(found[2])

    def drag(start: float, end: float, up: float) -> None:
        box = over.bounding_box()
        x, y, width = box["x"], box["y"] + box["height"] / 2, box["width"]
        page.page.mouse.move(x + start * width, y)
        page.page.mouse.down()
        page.page.mouse.move(x + end * width, y - up, steps=4)
        page.page.mouse.up()

    whole = shown()
    drag(0.25, 0.5, 60)
    zoomed = shown()
    assert zoomed[1] - zoomed[0] == pytest.approx((whole[1] - whole[0]) / 4, rel=0.05)
    page.page.keyboard.down("Shift")
    drag(0.5, 0.25, 0)
    page.page.keyboard.up("Shift")
    moved = shown()
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0], rel=1e-3)
    assert moved[0] - zoomed[0] == pytest.approx((zoomed[1] - zoomed[0]) / 4, rel=0.05)
    told = drawn.inner_text()
    page.page.mouse.wheel(0, -500)
    page.page.wait_for_function("told => document.getElementById('capture-drawn').textContent !== told", arg=told)
    assert shown()[1] - shown()[0] < moved[1] - moved[0]
    over.dblclick()
    assert shown() == whole


def test_the_file_is_read_once_whatever_connection_is_looked_at(page: Opened, capture: Path, tmp_path: Path) -> None:
    file = tmp_path / "once.pcap"
    file.write_bytes(capture.read_bytes())
    drop(page, file)
    # A browser does not read a file that has changed since it was chosen.
    file.write_bytes(b"")
    drawn = {}
    for index in (1, 0, 1):
        page.page.locator(f"[data-connection='{index}']").click()
        page.page.locator("#capture-time-sequence canvas").wait_for()
        told = page.page.inner_text("#capture-drawn")
        assert drawn.setdefault(index, told) == told
    assert len(set(drawn.values())) == 2
    assert page.page.locator("#capture-wrong").is_hidden()


def test_try_this_path_puts_what_it_shows_into_the_fields(page: Opened, capture: Path) -> None:
    drop(page, capture)
    seen = observe(capture)
    found = estimate(seen)
    page.page.get_by_role("button", name="Try this path").click()
    page.finish()
    values = [page.page.get_by_label(name, exact=True).input_value() for name in ("Rate", "Round-trip time", "Loss")]
    asked = scenario(seen, found, middle(found), "cubic").path_table
    ours = Scenario(path=dict(zip(("rate", "rtt", "loss"), values, strict=True))).path_table
    assert (ours.rate, ours.rtt, ours.loss) == (asked.rate, asked.rtt, asked.loss)
    told = page.page.inner_text("#capture-path")
    alone = as_the_page(found, seen)
    for quantity in (alone.rate, alone.rtt, alone.queue, alone.loss):
        assert quantity.how in told
    assert f"{values[2]} loss" in page.sentence


def test_what_other_controls_would_get_on_its_path_is_simulated(page: Opened, capture: Path) -> None:
    drop(page, capture)
    page.page.wait_for_function(
        "() => document.getElementById('capture-others').textContent.startsWith('On this path, by itself for ')"
    )
    told = page.page.inner_text("#capture-others")
    found = re.match(r"On this path, by itself for ([\d.]+ s), each would get: (.*?)\. This transfer got ", told)
    assert found is not None, told
    answers = dict(one.removesuffix(" Mbit/s").split(" ") for one in found[2].split(", "))
    assert set(answers) == set(CONTROLS)
    page.page.get_by_role("button", name="Try this path").click()
    page.finish()
    asked = json.loads(page.page.evaluate("decodeURIComponent(location.hash.slice(1))"))
    for cc in ("cubic", "bbr"):
        given = {"path": asked["path"], "host": asked.get("host", {}), "duration": found[1], "flows": [{"cc": cc}]}
        mean = get("sim").run(Scenario.from_dict(given)).tables["intervals"]["goodput_bps"].mean() / 1e6
        assert float(answers[cc]) == pytest.approx(mean, rel=0.02)
    page.page.get_by_role("button", name="Close the capture").click()
    assert page.page.inner_text("#capture-others") == ""


def test_the_verdict_comes_first(page: Opened, capture: Path) -> None:
    drop(page, capture)
    places = ["#capture-verdict", "#capture-list", "#capture-path", "#capture-time-sequence"]
    tops = [page.page.locator(one).bounding_box()["y"] for one in places]
    assert tops == sorted(tops)


def test_addresses_of_ipv6_have_room_on_a_narrow_screen(page: Opened, capture: Path, tmp_path: Path) -> None:
    drop(page, six(capture, tmp_path / "six.pcap"))
    rows = page.page.locator("#capture-rows tr")
    assert rows.count() == 3
    assert "[2001:db8:85a3:1234:5678:8a2e:370:" in rows.nth(1).inner_text()
    table = page.page.evaluate("document.getElementById('capture-list').scrollWidth")
    assert table <= page.page.evaluate("document.getElementById('capture-list').clientWidth")


def test_one_that_is_packed_with_gzip_is_read_and_one_that_breaks_says_where(
    page: Opened, capture: Path, tmp_path: Path
) -> None:
    packed, broken = tmp_path / "packed.pcap.gz", tmp_path / "broken.pcap"
    packed.write_bytes(gzip.compress(capture.read_bytes(), 1))
    drop(page, packed)
    assert "2 TCP connections" in page.page.inner_text("#capture-said")
    assert page.page.locator("#capture-problems").is_hidden()
    broken.write_bytes(capture.read_bytes()[:100_003])
    drop(page, broken)
    assert page.page.inner_text("#capture-problems").startswith("The file is incomplete")
    (problem,) = sawtooth.read_capture(broken).problems
    assert problem in page.page.inner_text("#capture-problems")
    assert page.page.locator("#capture-time-sequence canvas").count() == 1


def test_what_it_cannot_read_it_says(page: Opened, tmp_path: Path) -> None:
    file = tmp_path / "what.pcap"
    for content, words in (
        (b"these are words, and no capture", "it begins neither like pcap nor like pcapng"),
        (b"", "it has less than 4 bytes"),
        (b"\x28\xb5\x2f\xfd" + bytes(60), "it is packed with Zstandard, which is not read here: unpack it first"),
    ):
        file.write_bytes(content)
        assert words in refused(page, file)
        assert "A pcap or pcapng file is needed" in page.page.inner_text("#capture-wrong")
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    for content, words in (
        (HEADER + struct.pack("<IIII", 0, 0, 2**31 - 1, 2**31 - 1), "the record claims 2147483663 bytes"),
        # The number of 16-byte records exceeds 32 bits, in a page whose lengths have 32 bits, too.
        (HEADER + struct.pack("<IIII", 0, 0, 2**32 - 1, 2**32 - 1) + bytes(50), "the record claims 4294967311 bytes"),
        (section + struct.pack("<II", 6, 2**32 - 4) + bytes(50), "the file ends inside a block of 4294967292 bytes"),
        (section + struct.pack("<II", 6, 0) + bytes(50), "a block claims 0 bytes"),
    ):
        file.write_bytes(content)
        assert refused(page, file) == ""
        assert words in page.page.inner_text("#capture-problems")
        assert any(words in problem for problem in sawtooth.read_capture(file).problems)
    frame = bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, 28, 1, 0, 64, 17, 0) + bytes(16)
    file.write_bytes(HEADER + struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame)
    assert refused(page, file) == ""
    said = page.page.inner_text("#capture-said")
    assert said == "what.pcap: 1 packet, and no TCP among them that could be read: 1 of other protocols."


def test_a_file_can_be_dropped_anywhere(page: Opened) -> None:
    page.page.evaluate(
        """() => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(["no capture at all"], "dropped.txt"));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }"""
    )
    page.page.wait_for_function("() => !document.getElementById('capture-wrong').hidden")
    assert page.page.inner_text("#capture-wrong").startswith("dropped.txt: it begins neither like")


def test_reading_a_long_one_reports_how_far_it_is_and_can_be_cancelled(
    page: Opened, capture: Path, tmp_path: Path
) -> None:
    content = capture.read_bytes()
    long = tmp_path / "long.pcap"
    long.write_bytes(content[:24] + content[24:] * 60)
    # The end is not announced, however fast the file is read.
    page.page.evaluate(
        """() => {
          const Reader = Worker;
          window.Worker = class extends Reader {
            set onmessage(told) {
              super.onmessage = (event) => event.data.kind === "progress" && told(event);
            }
          };
          window.heard = () => { window.Worker = Reader; };
        }"""
    )
    page.page.set_input_files("#capture-file", long)
    page.page.wait_for_function("() => document.getElementById('capture-progress').value > 0")
    assert re.search(r"Reading long.pcap: [\d.]+ MB of [\d.]+ MB", page.page.inner_text("#capture-far"))
    page.page.get_by_role("button", name="Cancel").click()
    assert page.page.inner_text("#capture-said") == "Cancelled."
    page.page.evaluate("heard()")
    drop(page, capture)
    page.page.get_by_role("button", name="Close the capture").click()
    assert page.page.locator("#capture-shown").is_hidden()
    assert page.page.locator("#capture canvas").count() == 0


def test_all_of_it_is_reached_by_keyboard(page: Opened, capture: Path) -> None:
    page.page.emulate_media(reduced_motion="reduce")
    # After the story.
    for _ in range(30):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.id") == "capture-file":
            break
    assert page.page.evaluate("document.activeElement.id") == "capture-file"
    drop(page, capture)
    reached = set()
    for _ in range(12):
        page.page.keyboard.press("Tab")
        reached.add(page.page.evaluate("document.activeElement.id || document.activeElement.dataset.connection"))
    assert {"capture-close", "capture-list", "0", "1", "capture-try"} <= reached
    assert by_keyboard(page.page, "#capture") == []


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(browser: Any, address: str, capture: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, address, width=width, color_scheme=scheme, bypass_csp=True)
    drop(opened, capture)
    assert serious(opened.page) == []
    opened.context.close()
