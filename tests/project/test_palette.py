"""Colours: distinguishable on light and dark pages, with any colour vision, and visible against their background."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from sawtooth.figures import palette

CONTROLS = ("cubic", "bbr", "bbr3", "reno", "dctcp", "prague")
PRINTED = {cc: palette.colour(cc, 0) for cc in CONTROLS}
LIGHT = {cc: palette.LIGHT[colour] for cc, colour in PRINTED.items()}
DARK = {cc: palette.DARK[colour] for cc, colour in PRINTED.items()}
# Machado, Oliveira and Fernandes 2009, severity 1.
VISIONS = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}
APART = {
    ("printed", "all"): 0.15,
    ("printed", "some"): 0.07,
    ("light", "all"): 0.16,
    ("light", "some"): 0.09,
    ("dark", "all"): 0.15,
    ("dark", "some"): 0.1,
}
"""In Oklab, whose lightness goes from 0 to 1."""


def linear(colour: str) -> np.ndarray:
    encoded = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def oklab(light: np.ndarray) -> np.ndarray:
    """Ottosson 2020."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.asarray(lab @ np.cbrt(cones @ np.clip(light, 0, 1)))


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("page", "colours"), [("printed", PRINTED), ("light", LIGHT), ("dark", DARK)])
def test_controls_are_distinguished(page: str, colours: dict[str, str], vision: str) -> None:
    seen = {cc: oklab(np.asarray(VISIONS[vision]) @ linear(colour)) for cc, colour in colours.items()}
    for one, other in itertools.combinations(CONTROLS, 2):
        apart = float(np.linalg.norm(seen[one] - seen[other]))
        assert apart >= APART[page, "all" if vision == "all" else "some"], (one, other, apart)


def test_lines_and_words_are_seen_before_their_page() -> None:
    dark = palette.DARK[palette.PAPER]
    assert min(contrast(colour, dark) for colour in DARK.values()) >= 4.5
    assert min(contrast(colour, palette.PAPER) for colour in LIGHT.values()) >= 3
    assert set(palette.LIGHT) == set(PRINTED.values())
    for ink in (palette.INK, palette.MUTED, palette.ACCENT):
        assert contrast(ink, palette.PAPER) >= 4.5
        assert contrast(palette.DARK[ink], dark) >= 4.5


def test_the_laboratory_has_these_colours() -> None:
    """It adds the colour for errors."""
    light, dark = roles((ROOT / "web" / "lab" / "style.css").read_text("utf-8"))
    for name, colour in palette.ROLES.items():
        assert dark[name] == palette.DARK[colour]
        assert light[name] == colour


ROOT = Path(__file__).parents[2]
TEMPLATES = [
    *sorted((ROOT / "src" / "sawtooth").rglob("templates/*.j2")),
    ROOT / "src" / "sawtooth" / "figures" / "templates" / "page.css",
    ROOT / "web" / "draw" / "draw.css",
]
LABORATORY = [ROOT / "web" / "lab" / "style.css", ROOT / "web" / "lab" / "understand" / "understand.css"]


def roles(text: str) -> list[dict[str, str]]:
    """A page's colours by role, light and dark."""
    blocks = re.findall(r":root \{[^}]*--paper[^}]*\}", text)
    return [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in blocks]


def over(one: str, share: float, below: str) -> str:
    """A partly transparent colour over another."""
    mixed = (share * int(one[at : at + 2], 16) + (1 - share) * int(below[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def value(text: str, known: dict[str, str]) -> str | None:
    """``var(--ink)``, ``#e69f00``, or a mix of two, as #rrggbb; None without its own colour."""
    mixed = re.fullmatch(r"color-mix\(in srgb, (\S+) (\d+)%, (\S+)\)", text)
    if mixed is not None:
        one, below = value(mixed[1], known), value(mixed[3], known)
        return over(one, int(mixed[2]) / 100, below) if one and below else None
    role = re.fullmatch(r"var\(--(\w+)\)", text)
    return known[role[1]] if role else text if re.fullmatch(r"#\w{6}", text) else None


def pairs(files: list[Path], known: dict[str, str]) -> list[tuple[str, str, str]]:
    """For each rule that sets a text's colour: that colour, and each background that the text may have: its own, or
    else any in these files. Transparent text is blended with the background.
    """
    rules = []
    for file in files:
        for selector, body in re.findall(
            r"([^{}]+)\{([^{}]*)\}", re.sub(r"\{[%#].*?[%#]\}", "", file.read_text("utf-8"))
        ):
            said = dict(re.findall(r"(?:^|[;\s])([\w-]+):\s*([^;]+)", body))
            rules.append((f"{file.name}: {selector.strip()[-60:]}", said))
    grounds = {
        value(said[name], known) for _, said in rules for name in ("background", "background-color") if name in said
    }
    grounds = {known["paper"], known["soft"], *(one for one in grounds if one)} - {known["accent"]}
    found = []
    for selector, said in rules:
        ink = value(said.get("color", ""), known)
        own = value(said.get("background", ""), known)
        if ink:
            shown = float(said.get("opacity", 1))
            found += [(selector, over(ink, shown, one), one) for one in ((own,) if own else sorted(grounds))]
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("pages", ["reports", "laboratory"])
def test_every_text_of_the_pages_is_read_on_every_background(pages: str, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5:1."""
    at = ["light", "dark"].index(scheme)
    if pages == "reports":
        known = {name: palette.DARK[one] if at else one for name, one in palette.ROLES.items()}
        found = pairs(TEMPLATES, known)
    else:
        known = roles(LABORATORY[0].read_text("utf-8"))[at]
        found = pairs([*LABORATORY, ROOT / "web" / "draw" / "draw.css"], known)
    assert len(found) >= 10
    pale = {(selector, ground): round(contrast(ink, ground), 2) for selector, ink, ground in found}
    assert not {pair: ratio for pair, ratio in pale.items() if ratio < 4.5}
