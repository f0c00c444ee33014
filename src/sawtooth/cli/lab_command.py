"""The command ``lab``: a page to try out paths and flows."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.terminal import say
from sawtooth.errors import SawtoothError
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from sawtooth.lab import Site


@click.command(cls=Command, short_help="Simulate in the browser while you move sliders.")
@click.option(
    "--export",
    "directory",
    type=str,
    metavar="DIR",
    help="Write the page into this directory instead, for any web server.",
)
@click.option(
    "--results",
    type=str,
    metavar="DIR",
    default="results",
    show_default=True,
    help="Directory of the results that the page lists.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback (default: any free port).")
@click.option("--no-browser", is_flag=True, help="Print the address of the page; do not open a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def lab(directory: str | None, results: str, port: int, no_browser: bool, as_json: bool) -> None:
    """Open the laboratory: a page that simulates in your browser while you move loss, rate, delay and queue.

    Only this machine can reach it, until Ctrl-C, and it contacts no network. Whoever has its address with the key can
    also run simulations on this machine and read the results below --results.

    \b
      sawtooth lab
      sawtooth lab --export site/lab
    """
    from sawtooth.lab import built

    page = built()
    if directory is not None:
        written = page.export(Path(directory))
        if as_json:
            say(json.dumps({"written": [str(path) for path in written]}, indent=2))
        else:
            say(f"wrote {where(Path(directory))}: {len(written)} files, for any web server")
        return
    serve(page, port, results=Path(results), browser=not no_browser, as_json=as_json)


def serve(page: Site, port: int, *, results: Path | None = None, browser: bool, as_json: bool) -> None:
    """Serve the page until Ctrl-C. Raises SawtoothError ``port-taken``."""
    from sawtooth.lab import Server

    try:
        server = Server(page, port, results)
    except OSError as error:
        message = f"port {port} cannot be opened: {error.strerror}"
        raise SawtoothError("port-taken", message, fix="remove --port to get a free port") from error
    with server:
        address = server.opened
        say(json.dumps({"address": address}) if as_json else f"the laboratory is at {address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
