"""The site: the page's files, as ``make lab`` built them into the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import write_bytes, writing

KINDS = {
    "index.html": "text/html; charset=utf-8",
    "results.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "results.js": "text/javascript; charset=utf-8",
    "worker.js": "text/javascript; charset=utf-8",
    "capture.js": "text/javascript; charset=utf-8",
    "watcher.js": "text/javascript; charset=utf-8",
    "offline.js": "text/javascript; charset=utf-8",
    "simulator.wasm.gzip": "application/octet-stream",
    "captures.wasm.gzip": "application/octet-stream",
    "preview.png": "image/png",
}
"""All files of the page, with their content types."""
SERVED = ("results.html", "results.js")
"""Files that need the server of ``sawtooth lab``. They are not exported."""


@dataclass(frozen=True)
class Site:
    """The page's files. ``files``: their content by name."""

    files: Mapping[str, bytes]

    def export(self, directory: str | PathLike[str]) -> list[Path]:
        """Write the page's files into a directory, which is created if needed. Other files in it are kept.

        Any web server can serve the directory under any path. Raises SawtoothError ``unwritable-output``, and
        InputError ``conflict`` if a file of another page would be overwritten.
        """
        home = Path(directory)
        index = home / "index.html"
        if index.exists() and b"<title>sawtooth lab</title>" not in index.read_bytes()[:4096]:
            fix = "name another directory"
            raise InputError("conflict", "this directory has another page named index.html", file=index, fix=fix)
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
        written = {home / name: content for name, content in self.files.items() if name not in SERVED}
        for path, content in written.items():
            write_bytes(path, content)
        return list(written)


def built() -> Site:
    """The page in this installation. Raises SawtoothError ``lab-missing``."""
    home = resources.files("sawtooth") / "lab" / "built"
    try:
        return Site({name: (home / name).read_bytes() for name in KINDS})
    except FileNotFoundError as error:
        message = "the page of the laboratory is not built into this installation"
        raise SawtoothError("lab-missing", message, fix="build it: make lab, in a checkout of the source") from error
