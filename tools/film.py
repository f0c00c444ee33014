"""Makes the README's film of the laboratory, docs/images/lab-film.png: loss is moved, the window follows.

    python tools/film.py

Of `sawtooth lab` as it is built (make lab), seen by Chromium without a screen, in light colours.
"""

from __future__ import annotations

import io
import json
import shutil
import threading
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from sawtooth.lab import Server, built

PLACE = Path(__file__).resolve().parents[1] / "docs" / "images" / "lab-film.png"
LOSSES = ("0%", "0.01%", "0.1%", "1%")
QUESTION = {"duration": "20 s", "path": {"rate": "50 Mbit/s", "rtt": "40 ms", "loss": "0%"}, "flows": [{"cc": "cubic"}]}
_GAP = 24
_COLOURS = 64
"""Of a picture: lines and letters need no more."""


def frame(page: Page, loss: str) -> Image.Image:
    """The field of the loss, and below it the window."""
    page.get_by_label("Loss", exact=True).fill(loss)
    asked = f"%22loss%22:%22{quote(loss)}%22"
    page.wait_for_function("part => document.body.dataset.finished?.includes(part)", arg=asked, timeout=60_000)
    page.mouse.move(0, 0)
    field = page.locator(".field", has=page.locator("#f-path-loss"))
    figure = page.locator("#figures > div").nth(1)
    seen = [Image.open(io.BytesIO(element.screenshot())).convert("RGB") for element in (field, figure)]
    width = max(picture.width for picture in seen)
    whole = Image.new("RGB", (width, sum(picture.height for picture in seen)), "white")
    whole.paste(seen[0], (0, 0))
    whole.paste(seen[1], (0, seen[0].height))
    return whole


def strip(frames: list[Image.Image]) -> Image.Image:
    """Two beside each other, two below."""
    width, height = frames[0].size
    whole = Image.new("RGB", (2 * width + _GAP, 2 * height + _GAP), "white")
    for at, one in enumerate(frames):
        whole.paste(one, ((at % 2) * (width + _GAP), (at // 2) * (height + _GAP)))
    return whole.quantize(_COLOURS, dither=Image.Dither.NONE)


def main() -> None:
    with Server(built()) as server, sync_playwright() as driver:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000}, color_scheme="light")
        page.goto(f"{server.address}#{quote(json.dumps(QUESTION))}")
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        strip([frame(page, loss) for loss in LOSSES]).save(PLACE, optimize=True)
        browser.close()
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    main()
