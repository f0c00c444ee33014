"""Draws web/lab/preview.png, what other pages show of a link to the laboratory: the picture that Share saves.

    python tools/preview.py

It needs the built page (make lab), playwright, and Chromium as `chromium`.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from sawtooth.lab import Server
from sawtooth.lab.site import built

PLACE = Path(__file__).resolve().parents[1] / "web" / "lab" / "preview.png"
LINK = "#cc=cubic,bbr&rate=100Mbit/s&rtt=20ms&loss=1%25&step=2"
NO_ADDRESS = """() => {
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (words, ...rest) {
    write.call(this, words.startsWith("http") ? "sawtooth lab: move the loss yourself" : words, ...rest);
  };
}"""


def main() -> None:
    with Server(built()) as server, sync_playwright() as driver:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme="light")
        page.goto(server.address + LINK)
        page.wait_for_selector("#story[data-drawn]")
        page.wait_for_timeout(2000)
        page.evaluate(NO_ADDRESS)
        page.click("#share")
        with page.expect_download() as saved:
            page.click("#share-picture")
        saved.value.save_as(PLACE)
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
