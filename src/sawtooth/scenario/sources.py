"""Files named in a scenario's tables: their location and content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sawtooth.scenario.traces import shipped

_BESIDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def anchored(tables: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The same tables with the full path of module sources that are in ``directory``."""
    tables = _with_traces(tables, directory)
    programs = tables.get("programs")
    if isinstance(programs, list):
        tables = {**tables, "programs": [_placed(one, directory) for one in programs]}
    flows = tables.get("flows")
    if not isinstance(flows, list):
        return tables
    moved = [
        {**flow, "cc": _anchored(flow["cc"], directory)} if isinstance(flow, Mapping) and "cc" in flow else flow
        for flow in flows
    ]
    moved = [
        {**flow, "source": _listed(flow["source"], directory)}
        if isinstance(flow, Mapping) and "source" in flow
        else flow
        for flow in moved
    ]
    return {**tables, "flows": moved}


def _placed(program: Any, directory: Path) -> Any:
    """A program with its directory and files by their whole paths; without a directory, in the file's."""
    if not isinstance(program, Mapping):
        return program
    own, files = program.get("directory", "."), program.get("files")
    placed = dict(program)
    if isinstance(own, str):
        placed["directory"] = str((directory / own).absolute())
    if isinstance(files, list):
        placed["files"] = [str((directory / one).absolute()) if isinstance(one, str) else one for one in files]
    return placed


def _listed(source: Any, directory: Path) -> Any:
    """A flow's source with the full path of its transfers file."""
    if not isinstance(source, Mapping):
        return source
    source = {key: _listed(value, directory) if key == "sizes" else value for key, value in source.items()}
    for name in ("times", "file"):
        given = source.get(name)
        if isinstance(given, str) and given:
            source[name] = str((directory / given).absolute())
    return source


def _with_traces(tables: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The same with the full path of traces, except bundled ones."""

    def moved(table: Any) -> Any:
        if not isinstance(table, Mapping):
            return table
        table = {key: moved(value) if key in ("forward", "backward") else value for key, value in table.items()}
        name = table.get("trace")
        if isinstance(name, str) and name and (name not in shipped() or (directory / name).exists()):
            table["trace"] = str((directory / name).absolute())
        if "jitter" in table:
            table["jitter"] = _tabled(table["jitter"], directory)
        return table

    links = tables.get("links")
    changed = {"links": [moved(link) for link in links]} if isinstance(links, list) else {}
    changed |= {"path": moved(tables["path"])} if "path" in tables else {}
    return tables | changed


def _tabled(jitter: Any, directory: Path) -> Any:
    """A jitter with the full path of its deviations file."""
    if not isinstance(jitter, Mapping) or not isinstance(jitter.get("table"), str) or not jitter["table"]:
        return jitter
    return {**jitter, "table": str((directory / jitter["table"]).absolute())}


def anchored_axes(axes: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The same for values of fields by dotted path, as a study varies them."""
    return {field: _values(field.split("."), values, directory) for field, values in axes.items()}


def _values(steps: Sequence[str], values: Any, directory: Path) -> Any:
    if steps[-1] == "jitter" and isinstance(values, list):
        return [_tabled(value, directory) for value in values]
    if steps[0] != "flows" or not isinstance(values, list):
        return values
    if steps[-1] == "source":
        values = [_listed(value, directory) for value in values]
    if steps[-2:] == ["source", "times"] or steps[-2:] == ["sizes", "file"]:
        return [_listed({"times": value}, directory)["times"] for value in values]
    if steps[-1] == "sizes":
        return [_listed(value, directory) for value in values]
    if steps[-2:] == ["cc", "source"]:
        return [_anchored({"source": value}, directory)["source"] for value in values]
    return [_anchored(value, directory) for value in values] if steps[-1] == "cc" else values


def _anchored(cc: Any, directory: Path) -> Any:
    if not isinstance(cc, Mapping) or "source" not in cc:
        return cc
    given = cc["source"]
    if isinstance(given, str) and given:
        return {**cc, "source": str((directory / given).absolute())}
    if isinstance(given, list) and all(isinstance(one, str) and one for one in given):
        return {**cc, "source": [str((directory / one).absolute()) for one in given]}
    return cc


def content_digest(sources: Sequence[str]) -> str:
    """SHA-256 of the files' content, with included headers next to them; empty if files are gone."""
    found, seen = hashlib.sha256(), set()
    waiting = [Path(source) for source in sources]
    while waiting:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            text = path.read_bytes() if path.is_file() else b""
        except OSError:
            text = b""
        found.update(b"%d " % len(text) + text)
        waiting += [path.parent / name.decode(errors="replace") for name in _BESIDE.findall(text)]
    return found.hexdigest()
