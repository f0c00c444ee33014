"""The command ``capture``: what a pcap or pcapng file shows about its TCP connections."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sawtooth.cli.common_options import PARTLY, Command
from sawtooth.cli.terminal import is_watched, redraw, say, say_folded, say_on_stderr, width
from sawtooth.errors import InputError
from sawtooth.io.closing import Closing
from sawtooth.sanitize import where


@click.command(cls=Command, short_help="Show what connections in captures do, and what limits them.")
@click.argument("files", type=str, nargs=-1, required=True, metavar="FILE…")
@click.option("--connection", type=click.IntRange(0), metavar="N", help="Show connection N in full, counting from 0.")
@click.option(
    "--identify", is_flag=True, help="Identify the congestion control that sent the data, with probabilities."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list where several files are given.")
@click.option("--out", type=str, metavar="DIR", help="Write tables (Parquet) and facts.json into this new directory.")
@click.option(
    "--pictures",
    type=str,
    metavar="DIR",
    help="Write time-sequence and other graphs into this directory, as PNG and SVG.",
)
@click.option("--html", type=str, metavar="FILE", help="Write an HTML page with the same graphs, zoomable.")
@click.option(
    "--zoom", type=str, metavar="FROM,TO", help='Draw only this part, in time after the first segment: "0s,0.75s".'
)
@click.pass_context
def capture(
    context: click.Context,
    /,
    files: tuple[str, ...],
    connection: int | None,
    identify: bool,
    as_json: bool,
    out: str | None,
    pictures: str | None,
    html: str | None,
    zoom: str | None,
) -> None:
    """Show what the TCP connections in captures do, and what limits them.

    FILE is pcap or pcapng, plain or compressed with gzip or Zstandard, or - for standard input. You get handshake,
    goodput, round trips, retransmissions by cause, and losses with their place on the path. Graphs show the connection
    with the most data unless you give --connection. Several captures are shown side by side. If a file is damaged, the
    answer covers what could be read and names each problem, and the exit status is 5.

    \b
      sawtooth capture slow.pcap
      sawtooth capture slow.pcap --html slow.html --identify
    """
    from sawtooth.capture import read_capture
    from sawtooth.capture.busiest_connection import read_busiest
    from sawtooth.capture.identify.captured import identify_capture
    from sawtooth.capture.text import describe
    from sawtooth.capture.zoom import Zoom

    if identify and all(file.endswith(".csv") for file in files):
        _identify_segments(files, connection, as_json)
        return
    drawn = pictures is not None or html is not None or identify
    if zoom is not None and pictures is None and html is None:
        raise click.UsageError("--zoom needs --pictures or --html")
    part = None if zoom is None else Zoom.parse(zoom)
    if html is not None and any(_is_same(file, html) for file in files):
        fix = "name another file after --html"
        raise InputError("conflict", "is the capture itself, which the page would overwrite", file=html, fix=fix)
    captures = []
    with _Progress() as progress:
        for file in files:
            if drawn and connection is None:
                captures.append(read_busiest(file, progress=progress.show))
            else:
                captures.append(read_capture(file, connection, progress=progress.show))
    wrote: list[Path] = []
    if out is not None:
        for number, one in enumerate(captures):
            wrote.append(one.save(Path(out) if len(captures) == 1 else Path(out) / str(number)))
    if pictures is not None:
        from sawtooth.capture.pictures import draw

        wrote += draw(captures, Path(pictures), part)
    found = [identify_capture(one) for one in captures] if identify or html is not None else []
    if html is not None:
        from sawtooth.capture.page import write_page

        wrote.append(write_page(captures, Path(html), part, found))
    identified = found if identify else [None] * len(captures)
    if as_json:
        facts = [
            one.facts if found is None else one.facts | {"identified": found.to_dict()}
            for one, found in zip(captures, identified, strict=True)
        ]
        say(json.dumps(facts[0] if len(facts) == 1 else facts, indent=2))
    else:
        texts = [
            "\n\n".join([describe(one.facts, connection, width()), *([] if found is None else [found.text()])])
            for one, found in zip(captures, identified, strict=True)
        ]
        say_folded("\n\n".join(texts))
    for path in wrote:
        (say_on_stderr if as_json else say)(f"wrote {where(path)}")
    if any(one.problems for one in captures):
        context.exit(PARTLY)


def _is_same(one: str, other: str) -> bool:
    return Path(one).exists() and Path(other).exists() and Path(one).samefile(other)


def _identify_segments(files: tuple[str, ...], connection: int | None, as_json: bool) -> None:
    """Identification from tshark's per-packet CSV files, which contain nothing else to report."""
    from sawtooth.capture.identify.captured import identify_file

    for file in files:
        found = identify_file(file, connection)
        if as_json:
            say(json.dumps({"file": file, "identified": found.to_dict()}))
        else:
            say(f"{where(file)}\n{found.text()}")


class _Progress(Closing):
    """Shows how much of the file has been read, only on a terminal."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, done: int, size: int) -> None:
        if is_watched():
            share = f" {done / size:4.0%}" if size else ""
            redraw(f"reading {done / 1e6:.0f} MB{share}")
            self._shown = True

    def close(self) -> None:
        if self._shown:
            redraw("")
