"""The page's scripts, run by node if it is installed (Debian's package nodejs). Nothing else in sawtooth needs node."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sawtooth.capture.marks import MARKS
from sawtooth.capture.page import write_page
from sawtooth.capture.view import View
from tests.capture.test_capture_pictures import transfer

HARNESS = Path(__file__).parents[1] / "page_in_node.js"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="the page's scripts are run by node: apt install nodejs")


def run(page: Path) -> dict[str, Any]:
    assert NODE is not None
    done = subprocess.run([NODE, HARNESS, page], capture_output=True, text=True, timeout=200, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_scripts_read_what_the_tables_hold_and_draw_it(tmp_path: Path) -> None:
    capture = transfer()
    found, view = run(write_page(capture, tmp_path / "page.html")), View.of(capture, "some.pcap")
    assert found["failures"] == []
    assert (found["segments"], found["seq"]) == (len(view.data), view.data["seq"].sum())
    assert found["acks"] == view.acks["ack"].sum()
    assert found["t_s"] == pytest.approx(view.data["t_s"].sum())
    others = view.data.loc[view.data["kind"] != 0, "kind"].value_counts()
    assert found["kinds"] == {MARKS[int(kind)].name: count for kind, count in others.items()}
    assert found["shown"] == pytest.approx([0, view.end_s], abs=1e-5)
    assert found["first"] > 0
    t, seq, length, frame = view.data.loc[view.data.index[0], ["t_s", "seq", "length", "frame"]]
    said = f"packet {frame:,.0f}, {t:.6f} s, bytes {seq:,.0f} to {seq + length:,.0f}"
    assert found["said"] == said


def test_what_is_shown_is_reported_in_words(tmp_path: Path) -> None:
    capture = transfer()
    found, view = run(write_page(capture, tmp_path / "page.html")), View.of(capture, "some.pcap")
    assert found["whole"].startswith(f"0 to {view.end_s + 1e-6:.6g} s: 400 captured segments with data, 579.2 kB ack")
    assert "fast retransmission 2, timeout 2, tail loss probe 2, spurious retransmission 1" in found["whole"]
    start, end = found["zoomed"]
    assert (start, end) == pytest.approx((view.end_s / 4, view.end_s * 3 / 4), abs=1e-5)
    inside = view.data["t_s"].between(start, end)
    assert f" s: {inside.sum():,} captured segments with data" in found["told"]


def test_a_page_that_cannot_be_drawn_says_so(tmp_path: Path) -> None:
    page = write_page(transfer(), tmp_path / "page.html")
    page.write_text(page.read_text().replace('"length":', '"length":-', 1))
    assert "could not be drawn" in run(page)["failures"][0]
