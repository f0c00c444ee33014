"""The command ``find``: from which value of a field on, or up to which, a want holds."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sawtooth.cli import complete
from sawtooth.cli.command import Command
from sawtooth.cli.once import Once
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.cli.workers import Where, cluster_options, workers

UNCLEAR = 4
"""Exit status when an interval is wider than was asked for, or these runs can't tell."""


@click.command(cls=Command)
@click.argument("file", type=str, shell_complete=complete.studies)
@click.option(
    "--vary",
    multiple=True,
    metavar="FIELD=FROM..TO",
    help="The unknown and its range: path.loss=0%..5%. Two or three: what the last must be for the others.",
)
@click.option("--want", cls=Once, metavar="COMPARISON", help='What is to hold: "goodput >= 90% of path.rate".')
@click.option(
    "--scale",
    cls=Once,
    metavar="SCALE",
    help="log or linear; log for loss, rates and queues by default, also from 0 on.",
)
@click.option(
    "--within",
    cls=Once,
    metavar="SHARE",
    help="How far the interval's ends may be from the answer, as a share of it (default: 10%).",
)
@click.option(
    "--minimize", cls=Once, metavar="COST", help="Where on a frontier this is least: a field, or made of fields."
)
@click.option(
    "--runs", type=click.IntRange(1, 1_000_000), help="Runs at most: 400; of two unknowns 1200, of three 4000."
)
@click.option(
    "--set", "settings", multiple=True, metavar="K=V", shell_complete=complete.assignments, help="Change a field."
)
@click.option("--engine", shell_complete=complete.engines, default="sim", show_default=True, help="Who answers.")
@click.option(
    "--check", shell_complete=complete.engines, metavar="ENGINE", help="Ask this engine, too, at the answer: kernel."
)
@click.option("--jobs", type=click.IntRange(1), help="Runs side by side; one a core by default.")
@cluster_options
@click.option("--out", type=str, metavar="DIR", help="Also write a page, the table and the picture there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def find(
    context: click.Context,
    file: str,
    vary: tuple[str, ...],
    want: str | None,
    scale: str | None,
    within: str | None,
    minimize: str | None,
    runs: int | None,
    settings: tuple[str, ...],
    engine: str,
    check: str | None,
    jobs: int | None,
    cluster: Where,
    out: str | None,
    as_json: bool,
) -> None:
    """Find from which value of a field on something holds.

    FILE is a scenario, or a study: that has the question in its table [find], and one answer for each point of what it
    varies. The answer has a 95% interval; values and seeds are chosen so that it is as short as --within says.

    Of several unknowns the answer is a frontier: for values of the first ones what the last must be, each with its
    interval; --minimize says where on it a cost is least. The exit status is 4 when an interval is wider than --within.

    \b
      sawtooth find office.toml --vary path.loss=0.0001%..5% --want "goodput >= 90% of path.rate"
      sawtooth find office.toml --vary path.loss=0.001%..5% --want "mean_mbps(cc='bbr') > mean_mbps(cc='cubic')"
      sawtooth find call.toml --vary flows.1.count=1..64 --want "call_mos >= 3.6"
      sawtooth find office.toml --vary path.queue=0.1bdp..4bdp --vary path.loss=0.0001%..1% --want "goodput > 8 Mbit/s"
    """
    from sawtooth.finding import save, words
    from sawtooth.scenario.overrides import parse_assignment
    from sawtooth.verbs import find as asked

    overrides = dict(parse_assignment(setting) for setting in settings)
    with workers(cluster, jobs) as executor:
        found = asked(
            file,
            vary=vary or None,
            want=want,
            scale=scale,
            within=within,
            minimize=minimize,
            runs=runs,
            engine=engine,
            check=check,
            jobs=jobs,
            executor=executor,
            overrides=overrides,
            quiet=is_quiet(),
        )
    if out is not None:
        save(found, Path(out))
    if as_json:
        say(json.dumps(found.describe(), indent=2, ensure_ascii=False))
    else:
        say_folded(words(found, width()))
    if not found.enough:
        context.exit(UNCLEAR)
