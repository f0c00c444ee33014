"""Writes docs/architecture.md and its drawing from the code: packages and crates by layer, and what each one uses.

    python tools/architecture.py

The layers are those of the table in docs/design.md. Run it after an import between packages changes; a test compares.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "sawtooth"
PAGE = ROOT / "docs" / "architecture.md"
DRAWING = ROOT / "docs" / "images" / "architecture.svg"
ROW, LETTER = 34, 7.3
"""Sizes in the drawing, in pixels: a row's height, a letter's width."""


@dataclass(frozen=True)
class Import:
    source: str
    target: str
    typing: bool
    """Under ``if TYPE_CHECKING``: neither module needs the other one to run."""


def _named(path: Path) -> str:
    """A file's module: ``sawtooth.study.axis``."""
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {_named(path): path for ending in ("py", "pyi") for path in sorted(SOURCES.rglob(f"*.{ending}"))}


def imported(tree: ast.AST, *, typing: bool = False) -> Iterator[tuple[str, str | None, bool]]:
    """Module, the name imported from it, and whether for types only; from anywhere in the file."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(names):
                yield from ((one.name, None, typing) for one in names)
            case ast.ImportFrom(module, names, level):
                assert level == 0, "imports are absolute"
                yield from ((module or "", one.name, typing) for one in names)
            case ast.If(ast.Name("TYPE_CHECKING"), body, rest):
                yield from imported(ast.Module(body, []), typing=True)
                yield from imported(ast.Module(rest, []), typing=typing)
            case _:
                yield from imported(node, typing=typing)


@cache
def imports() -> tuple[Import, ...]:
    """All imports between modules of the package."""
    found = []
    for source, path in MODULES.items():
        for module, name, typing in imported(ast.parse(path.read_text(encoding="utf-8"))):
            target = next((one for one in (f"{module}.{name}", module) if one in MODULES), None)
            if target and target != source:
                found.append(Import(source, target, typing))
    return tuple(found)


@cache
def layers() -> list[tuple[str, list[str]]]:
    """The rows of the table in docs/design.md: a layer's name, and the paths in its second column."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = text.partition("\n## Layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", section, re.MULTILINE)
    return [(name, found) for name, where in rows if (found := re.findall(r"`([^`]+)`", where))]


@cache
def crates() -> dict[str, set[str]]:
    """The crates by their path, each with the crates that it depends on."""
    manifests = {str(path.parent.relative_to(ROOT)): path for path in ROOT.glob("crates/**/Cargo.toml")}
    named = {tomllib.loads(path.read_text())["package"]["name"]: where for where, path in manifests.items()}
    return {
        where: {named[one] for one in tomllib.loads(path.read_text()).get("dependencies", {}) if one in named}
        for where, path in manifests.items()
    }


def unit(module: str) -> str:
    """The path in the table of layers that a module belongs to."""
    path = MODULES[module].relative_to(ROOT)
    return str(path) if len(path.parts) == 3 else "/".join(path.parts[:3]) + "/"


@cache
def uses() -> dict[str, set[str]]:
    """What each unit of the table imports or depends on, by the paths of the table."""
    found: dict[str, set[str]] = {path: set() for _, paths in layers() for path in paths} | crates()
    for one in imports():
        if unit(one.source) != unit(one.target):
            found[unit(one.source)].add(unit(one.target))
    return found


def _short(path: str) -> str:
    return path.removeprefix("src/sawtooth/").rstrip("/")


def floors() -> list[list[str]]:
    """The parts by the number of layers below them; the lowest layer uses nothing of ours."""
    used, height = uses(), dict[str, int]()
    for path in reversed([path for _, paths in layers() for path in paths]):
        height[path] = max((height[one] + 1 for one in used[path]), default=0)
    return [[path for path in used if height[path] == floor] for floor in range(max(height.values()), -1, -1)]


def drawing() -> str:
    """The layers from top to bottom as SVG, with a box for each package and crate."""
    rows, right = [], 0.0
    for floor, paths in enumerate(floors()):
        x, y = 8.0, 8 + ROW * floor
        for path in paths:
            kind, width = ("crate" if path.startswith("crates/") else "package"), len(_short(path)) * LETTER + 16
            rows.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="24" rx="4" class="{kind}"/>')
            rows.append(f'<text x="{x + 8:.0f}" y="{y + 16}">{_short(path)}</text>')
            x += width + 8
        right = max(right, x)
    bottom = 8 + ROW * len(floors())
    style = (
        "text{font:12px ui-monospace,monospace;fill:#1b1f24}svg{background:#fff}"
        ".package{fill:#dbe9fb;stroke:#3b76c4}.crate{fill:#fde8d3;stroke:#c46a1b}"
    )
    size = f'width="{right:.0f}" height="{bottom}" viewBox="0 0 {right:.0f} {bottom}"'
    title = "<title>Packages (blue) and crates (orange); each uses only what is below it</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{title}<style>{style}</style>'
    return "\n".join([head, *rows, "</svg>", ""])


def page() -> str:
    """The expected content of docs/architecture.md."""
    used = uses()
    lines = [
        "# Architecture",
        "",
        "Packages (blue) and crates (orange), from the command line down to units. Each one uses only what",
        "is below it: `tests/project/test_layers.py` checks every import. What each of them does is in",
        "[design](design.md#layers).",
        "",
        "![Packages and crates by floor](images/architecture.svg)",
        "",
        "| part | uses |",
        "|---|---|",
    ]
    order = [path for _, paths in layers() for path in paths]
    for path in order:
        below = ", ".join(f"`{_short(one)}`" for one in order if one in used[path])
        lines.append(f"| `{_short(path)}` | {below or 'nothing of ours'} |")
    return "\n".join(
        [*lines, "", "Written by `python tools/architecture.py` from the imports and from each crate's manifest.", ""]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    DRAWING.write_text(drawing(), encoding="utf-8")
    units = [path for _, paths in layers() for path in paths]
    print(f"{len(units)} parts on {len(floors())} floors, {len(MODULES)} Python modules")
