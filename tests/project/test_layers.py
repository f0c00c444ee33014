"""Dependencies point down only: the imports of the package and of the crates, against the table in docs/design.md."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "sawtooth"
OUTSIDE = ("bench", "experiments", "fidelity", "fuzz", "tests", "tools")


@dataclass(frozen=True)
class Import:
    source: str
    target: str
    typing: bool
    """Under ``if TYPE_CHECKING``: no module needs the other one to run."""


def named(path: Path) -> str:
    """A file's module: ``sawtooth.study.axis``."""
    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {named(path): path for ending in ("py", "pyi") for path in SOURCES.rglob(f"*.{ending}")}


def imported(tree: ast.AST, *, typing: bool = False) -> Iterator[tuple[str, str | None, bool]]:
    """Module, name that is taken out of it, whether for types only; wherever in the file it stands."""
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


def imports() -> Iterator[Import]:
    for source, path in MODULES.items():
        for module, name, typing in imported(ast.parse(path.read_text(encoding="utf-8"))):
            assert module.partition(".")[0] not in OUTSIDE, f"{source} imports {module}"
            targets = [target for target in (f"{module}.{name}", module) if target in MODULES]
            if targets and targets[0] != source:
                yield Import(source, targets[0], typing)


IMPORTS = list(imports())


def layers() -> list[list[str]]:
    """The table's second column: of each row the paths that it names."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = text.partition("\n## Layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", section, re.MULTILINE)
    return [found for row in rows if (found := re.findall(r"`([^`]+)`", row))]


LAYERS = layers()
DEPTH = {path: depth for depth, row in enumerate(LAYERS) for path in row}


def unit(module: str) -> str:
    """The path in the table that a module belongs to."""
    path = MODULES[module].relative_to(ROOT)
    return str(path) if len(path.parts) == 3 else "/".join(path.parts[:3]) + "/"


def test_every_module_and_every_crate_is_in_the_table_once_and_nothing_else_is() -> None:
    crates = {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("crates/**/Cargo.toml")}
    named = [path for row in LAYERS for path in row]
    assert sorted(named) == sorted({unit(module) for module in MODULES} | crates)


@pytest.mark.parametrize("source", sorted({unit(module) for module in MODULES}))
def test_imports_point_down(source: str) -> None:
    ups = [
        f"{one.source} imports {one.target}"
        for one in IMPORTS
        if unit(one.source) == source != unit(one.target) and DEPTH[unit(one.target)] <= DEPTH[source]
    ]
    assert ups == []


def test_no_module_leads_back_to_itself() -> None:
    """Imports within functions count. Those for types do not: what is told of a type may be told on both sides."""
    known: dict[str, set[str]] = {module: set() for module in MODULES}
    for one in IMPORTS:
        if not one.typing:
            known[one.source].add(one.target)
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("crate", [path for path in DEPTH if path.startswith("crates/")])
def test_crates_point_down(crate: str) -> None:
    manifest = tomllib.loads((ROOT / crate / "Cargo.toml").read_text())
    ours = [name.removeprefix("sawtooth-") for name in manifest.get("dependencies", {}) if name.startswith("sawtooth-")]
    assert [name for name in ours if DEPTH[f"crates/{name}"] <= DEPTH[crate]] == []
