"""The command ``whatif``: estimates the path behind a measurement, and what other congestion controls would get on
it."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import PARTLY, Command, control_option
from sawtooth.cli.terminal import is_quiet, say, say_folded
from sawtooth.errors import InputError
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from sawtooth.whatif import Observed

_NUMBERS = ("rate", "rtt", "loss")


@click.command(cls=Command, short_help="Estimate a path, and what other controls would get.")
@click.argument("file", metavar="[INPUT]", required=False)
@click.option(
    "--connection",
    metavar="N",
    help="Connection: its index in a capture, or part of its addresses in ss (default: the one with most bytes).",
)
@click.option("--rate", help='Rate of the bottleneck, instead of INPUT, like "800 Mbit/s".')
@click.option("--rtt", help='Base round-trip time, like "20 ms".')
@click.option("--loss", help='Random loss, like "0.5%".')
@click.option("--queue", help='Buffer of the bottleneck, like "1 bdp" or "1000 packets".')
@click.option("--throughput", help="Goodput of the transfer, for the self-test.")
@click.option("--duration", help="Duration of the transfer (default: 30 s).")
@control_option("The sender's congestion control (default: the one INPUT names or shows).")
@click.option(
    "--draws", type=click.IntRange(2, 1000), help="Paths drawn from the estimate (default: 24, fewer on fast paths)."
)
@click.option("--seed", type=click.IntRange(0, 10**9), default=1, show_default=True, help="Seed of the drawn paths.")
@click.option("--scenario", "out", metavar="FILE", help="Also write the estimated path to this scenario file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def whatif(
    context: click.Context,
    /,
    file: str | None,
    connection: str | None,
    cc: str | None,
    draws: int | None,
    seed: int,
    out: str | None,
    as_json: bool,
    **numbers: str | None,
) -> None:
    """Estimate a path from a measurement, and what reno, cubic, bbr or bbr3 would get on it.

    INPUT is a capture of a bulk transfer (pcap, pcapng), the JSON of iperf3 -J, the output of ss -tin at the sender, or
    - for standard input. The path is estimated with its uncertainty and replayed in the simulator, first with the
    observed control as a test of the estimate. If a capture is damaged, the exit status is 5.

    \b
      sawtooth whatif download.pcap
      ss -tin dst 192.0.2.1 | sawtooth whatif -
      sawtooth whatif --rate "800 Mbit/s" --rtt "20 ms" --loss 0.5%
    """
    from sawtooth.io.progress_bar import Bar
    from sawtooth.whatif import estimate, replay, save_scenario, words
    from sawtooth.whatif.runs import DRAWS

    observed = _observed(file, connection, cc, numbers)
    with Bar("what if", 1, quiet=is_quiet()) as bar:
        replayed = replay(observed, estimate(observed), draws=draws or DRAWS, seed=seed, progress=bar.show)
    path, test, answers = replayed.estimate, replayed.test, replayed.answers
    if out is not None:
        save_scenario(out, observed, path, seed=seed)
    if as_json:
        described = {
            "observed": observed.describe(),
            "estimate": path.describe(),
            "self_test": test.describe(),
            "answers": [answer.describe() for answer in answers],
        }
        say(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        say_folded(words(observed, path, test, answers))
        if out is not None:
            say(f"scenario: {where(out)}")
    if observed.problems:
        context.exit(PARTLY)


def _observed(file: str | None, connection: str | None, cc: str | None, numbers: dict[str, str | None]) -> Observed:
    from sawtooth.whatif import from_numbers, observe

    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    if file is None:
        missing = [name for name in _NUMBERS if name not in given]
        if missing:
            fix = "add a file, or --rate, --rtt and --loss"
            what = "there is no INPUT" if len(missing) == len(_NUMBERS) else "is required without INPUT"
            raise InputError("bad-usage", what, field=f"--{missing[0]}", fix=fix)
        if connection is not None:
            raise InputError("bad-usage", "requires INPUT", field="--connection", fix="remove --connection")
        return from_numbers(**given, cc=cc)
    if given:
        message = "INPUT already describes the path"
        raise InputError(
            "bad-usage", message, field=f"--{next(iter(given))}", fix="remove INPUT, or --rate, --rtt and --loss"
        )
    seen = observe(file, connection=connection)
    return seen if cc is None else dataclasses.replace(seen, cc=cc, cc_how="given")
