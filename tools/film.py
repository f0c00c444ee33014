"""Makes pictures of the laboratory: docs/images/lab.png, the page; lab-film.png, loss is moved and the
window follows; lab-why.png, what Understand explains.

    python tools/film.py

They show `sawtooth lab` as built by make lab, in headless Chromium, in light colours.
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

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LOSSES = ("0%", "0.01%", "0.1%", "1%")
QUESTION = {"duration": "20 s", "path": {"rate": "50 Mbit/s", "rtt": "40 ms", "loss": "0%"}, "flows": [{"cc": "cubic"}]}
_GAP = 24
_ROOM = 6
_COLOURS = 64
"""Colours of a picture, enough for lines and text."""
_ANSWERED = "() => document.body.dataset.finished !== undefined"
_SWEPT = (
    "() => document.querySelector('#response canvas') && !document.getElementById('swept').innerText.endsWith('losses')"
)


def part(page: Page, selector: str) -> Image.Image:
    """A picture of an element with a margin."""
    page.evaluate("scrollTo(0, 0)")
    box = page.locator(selector).bounding_box()
    if box is None:
        raise SystemExit(f"{selector} is not in the page")
    clip = {"x": box["x"] - _ROOM, "y": box["y"] - 2, "width": box["width"] + 2 * _ROOM, "height": box["height"] + 2}
    seen = page.screenshot(clip=clip, full_page=True)
    return Image.open(io.BytesIO(seen)).convert("RGB")


def frame(page: Page, loss: str) -> Image.Image:
    """The input field of the loss, and the window curve below it."""
    page.get_by_label("Loss", exact=True).fill(loss)
    asked = f"%22loss%22:%22{quote(loss)}%22"
    page.wait_for_function("part => document.body.dataset.finished?.includes(part)", arg=asked, timeout=60_000)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    seen = [part(page, selector) for selector in (".field:has(#f-path-loss)", "#figures > div:nth-child(2)")]
    width = max(picture.width for picture in seen)
    whole = Image.new("RGB", (width, sum(picture.height for picture in seen)), "white")
    whole.paste(seen[0], (0, 0))
    whole.paste(seen[1], (0, seen[0].height))
    return whole


def strip(frames: list[Image.Image]) -> Image.Image:
    """Combine four frames: two side by side, two below."""
    width, height = frames[0].size
    whole = Image.new("RGB", (2 * width + _GAP, 2 * height + _GAP), "white")
    for at, one in enumerate(frames):
        whole.paste(one, ((at % 2) * (width + _GAP), (at // 2) * (height + _GAP)))
    return whole


def film(page: Page, address: str) -> Image.Image:
    page.goto(f"{address}#{quote(json.dumps(QUESTION))}")
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    return strip([frame(page, loss) for loss in LOSSES])


def whole(page: Page, address: str) -> Image.Image:
    """The page with the published study's path, when its response to loss is complete."""
    page.goto(address)
    page.wait_for_selector("body[data-ready]", timeout=60_000)
    page.get_by_label("Start from a question").select_option("laboratory-path")
    page.wait_for_function(_SWEPT, timeout=120_000)
    return Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")


def why(page: Page, address: str) -> Image.Image:
    """The page's explanation of the first question, down to the packets in transit."""
    page.goto(address)
    page.wait_for_function(_ANSWERED, timeout=60_000)
    page.locator("#understand > summary").click()
    page.wait_for_selector("#understand[data-drawn]", timeout=60_000)
    page.mouse.move(0, 0)
    told = part(page, "#understand")
    top, paths = (page.locator(one).bounding_box() for one in ("#understand", "#understand .ways"))
    return told.crop((0, 0, told.width, round(paths["y"] + paths["height"] - top["y"]) + _ROOM))


PICTURES = {"lab-film": film, "lab": whole, "lab-why": why}


def main() -> None:
    with Server(built()) as server, sync_playwright() as driver:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, picture in PICTURES.items():
            # Use a new page: changing only the part after "#" does not load the page again.
            page = browser.new_page(viewport={"width": 1400, "height": 1000}, color_scheme="light")
            few = picture(page, server.address).quantize(_COLOURS, dither=Image.Dither.NONE)
            few.save(IMAGES / f"{name}.png", optimize=True)
            page.close()
        browser.close()
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    main()
