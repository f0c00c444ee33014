"""The page's scripts, run by node where there is one: Debian has it as nodejs. Nothing else of sawtooth needs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

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
    assert found["kinds"] == {str(kind): count for kind, count in others.items()}
    assert found["shown"] == pytest.approx([0, view.end_s], abs=1e-5)
    assert found["images"] >= 2


def test_a_page_that_cannot_be_drawn_says_so(tmp_path: Path) -> None:
    page = write_page(transfer(), tmp_path / "page.html")
    page.write_text(page.read_text().replace('"length":', '"length":-', 1))
    assert "could not be drawn" in run(page)["failures"][0]
