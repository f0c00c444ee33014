"""The command ``explain``: what limits a connection, where data is lost, and what would help, from whatever there
is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sawtooth.cli.common_options import PARTLY, Command, control_option
from sawtooth.cli.terminal import is_quiet, say, say_folded, say_on_stderr
from sawtooth.errors import InputError
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from sawtooth.explain.inputs import Transfer


@click.command(cls=Command, short_help="Explain what limits a connection, and what would help.")
@click.argument("files", nargs=-1, metavar="[FILE]…")
@click.option(
    "--connection",
    metavar="N",
    help="Connection: its index in a capture, or part of its addresses (default: the one with most bytes). "
    "With --live it selects the live connection.",
)
@click.option("--live", "from_host", is_flag=True, help="Also sample a connection of this host that sends data.")
@click.option("--seconds", type=int, metavar="N", help="How long --live samples: 6 to 600 seconds (default: 10).")
@click.option("--netns", metavar="NAME|PID", help="The network namespace of --live: its name, or a process in it.")
@control_option("The sender's congestion control (default: the one that a FILE names or shows).")
@click.option(
    "--draws", type=click.IntRange(2, 1000), help="Paths drawn from the estimate (default: 24, fewer on fast paths)."
)
@click.option("--seed", type=click.IntRange(0, 10**9), default=1, show_default=True, help="Seed of the drawn paths.")
@click.option("--html", type=str, metavar="PAGE", help="Also write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def explain(
    context: click.Context,
    /,
    files: tuple[str, ...],
    connection: str | None,
    from_host: bool,
    seconds: int | None,
    netns: str | None,
    cc: str | None,
    draws: int | None,
    seed: int,
    html: str | None,
    as_json: bool,
) -> None:
    """Explain what limits a connection, where data is lost, and what would help.

    FILE is a capture (pcap, pcapng), what ss -tin printed at the sender, the JSON of iperf3 -J, a series of probes
    (ping, sawtooth probe), a report of mtr, or - for standard input. Several files are taken to be of the same
    connection. What the files do not show says "cannot tell" and why. If a capture is damaged, the exit status is 5.

    \b
      sawtooth explain download.pcap
      sawtooth explain download.pcap ping.txt mtr.txt --html download.html
      ss -tin dst 192.0.2.1 | sawtooth explain -
      sawtooth explain --live --connection 192.0.2.1
    """
    from sawtooth.explain import explain as of_files
    from sawtooth.explain import page, words
    from sawtooth.io.atomic_io import write_bytes
    from sawtooth.io.progress_bar import Bar
    from sawtooth.whatif.runs import DRAWS

    if not files and not from_host:
        raise InputError("bad-usage", "there is no FILE", field="FILE", fix="name a file, or add --live")
    for name, value in {"--seconds": seconds, "--netns": netns}.items():
        if value is not None and not from_host:
            raise InputError("bad-usage", "only applies to --live", field=name, fix=f"remove {name}, or add --live")
    if html is not None and any(
        Path(one).exists() and Path(html).exists() and Path(one).samefile(html) for one in files
    ):
        fix = "name another file after --html"
        raise InputError("conflict", "is a FILE, which the page would overwrite", file=html, fix=fix)
    sampled = _sampled(connection, seconds, netns) if from_host else None
    index = None if from_host else connection
    with Bar("explain", 1, quiet=is_quiet()) as bar:
        explanation = of_files(
            files, connection=index, cc=cc, draws=draws or DRAWS, seed=seed, progress=bar.show, live=sampled
        )
    if as_json:
        say(json.dumps(explanation.describe(), indent=2, ensure_ascii=False))
    else:
        say_folded(words(explanation))
    if html is not None:
        write_bytes(Path(html), page(explanation).encode())
        (say_on_stderr if as_json else say)(f"wrote {where(html)}")
    if explanation.problems:
        context.exit(PARTLY)


def _sampled(connection: str | None, seconds: int | None, netns: str | None) -> Transfer:
    from sawtooth.explain.live import SECONDS, live
    from sawtooth.io.progress_bar import Bar

    with Bar("sampling", 1, quiet=is_quiet()) as bar:
        return live(connection, seconds=SECONDS if seconds is None else seconds, netns=netns, progress=bar.show)
