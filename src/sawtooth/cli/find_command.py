"""The command ``find``: the value of a field from which on, or up to which, a condition holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from sawtooth.cli import complete
from sawtooth.cli.common_options import Command, SingleOption, engine_option, settings_option
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.cli.workers import ClusterOptions, cluster_options, workers
from sawtooth.errors import InputError

UNCLEAR = 4
"""Exit status if an interval is wider than requested, or the runs are inconclusive."""


@click.command(cls=Command)
@click.argument("file", type=str, shell_complete=complete.studies)
@click.option(
    "--vary",
    multiple=True,
    metavar="FIELD=FROM..TO",
    help="Unknown field and its range: path.loss=0%..5%. With two or three, the last is the answer. With --worst also "
    "several values: path.loss.packets=8 of 500..10000, path.changes.rate=6 of 1..50Mbit/s.",
)
@click.option(
    "--want", cls=SingleOption, metavar="COMPARISON", help='Condition that must hold: "goodput >= 90% of path.rate".'
)
@click.option(
    "--worst",
    "measure",
    cls=SingleOption,
    metavar="MEASURE",
    help="Instead of --want: find the network on which this is smallest: \"goodput(cc='bbr') / goodput(cc='reno')\".",
)
@click.option(
    "--scale",
    cls=SingleOption,
    metavar="SCALE",
    help="Scale of the search: log or linear (default: log for loss, rates and queues; with "
    "--worst also for a range over a decade or more).",
)
@click.option(
    "--within",
    cls=SingleOption,
    metavar="SHARE",
    help="Target half-width of the confidence interval, relative to the answer (default: 10%).",
)
@click.option(
    "--minimize",
    cls=SingleOption,
    metavar="COST",
    help="Also find where on the frontier this cost is least: a field, or an expression of fields.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1_000_000),
    help="Maximum number of runs (default: 400; 1200 for two unknowns, 4000 for three). With --worst, the budget of "
    "the search (600).",
)
@settings_option()
@engine_option
@click.option(
    "--check",
    shell_complete=complete.engines,
    metavar="ENGINE",
    help="Also run this engine at the answer, like kernel.",
)
@click.option("--jobs", type=click.IntRange(1), help="Parallel runs (default: one per core).")
@cluster_options
@click.option(
    "--out",
    type=str,
    metavar="DIR",
    help="Also write an HTML page, the table and the figure into this directory; with --worst, the scenario and all "
    "candidates.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def find(
    context: click.Context,
    file: str,
    vary: tuple[str, ...],
    want: str | None,
    measure: str | None,
    scale: str | None,
    within: str | None,
    minimize: str | None,
    runs: int | None,
    overrides: dict[str, Any],
    engine: str,
    check: str | None,
    jobs: int | None,
    cluster: ClusterOptions | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Find the value of a field from which on a condition holds.

    FILE is a scenario, or a study with a table [find], which gets one answer for each point that it varies. The answer
    has a 95% confidence interval. The search chooses values and seeds until the interval is as narrow as --within says.
    If it stays wider, the exit status is 4.

    --worst searches all fields of --vary together for the network on which a measure is smallest, and sets as many of
    them back as it can.

    With several unknowns the answer is a frontier: what the last must be for values of the others, each with its
    confidence interval. --minimize finds where on it a cost is least.

    \b
      sawtooth find office.toml --vary path.loss=0.0001%..5% --want "goodput >= 90% of path.rate"
      sawtooth find office.toml --vary path.loss=0.001%..5% --want "mean_mbps(cc='bbr') > mean_mbps(cc='cubic')"
      sawtooth find call.toml --vary flows.1.count=1..64 --want "call_mos >= 3.6"
      sawtooth find office.toml --vary path.queue=0.1bdp..4bdp --vary path.loss=0.0001%..1% --want "goodput > 8 Mbit/s"
      sawtooth find mine.toml --worst "goodput / goodput(cc='reno')" --vary path.loss=0%..5% --vary path.rtt=1ms..200ms
    """
    from sawtooth.api import find as search
    from sawtooth.api import worst
    from sawtooth.search import save, save_worst, words, worst_words

    options: dict[str, Any] = {"scale": scale, "runs": runs, "engine": engine, "check": check, "jobs": jobs}
    options |= {"overrides": overrides, "quiet": is_quiet()}
    if measure is not None:
        other = next(
            (name for name, one in (("--want", want), ("--within", within), ("--minimize", minimize)) if one), ""
        )
        if other:
            fix = f"remove {other}, or --worst"
            raise InputError("bad-usage", f"{other} does not go with --worst", field=other, fix=fix)
        if not vary:
            raise InputError("missing-field", "is missing", field="vary", fix='add --vary "path.loss=0%..5%"')
        with workers(cluster, jobs) as executor:
            case = worst(file, measure, vary=vary, executor=executor, **options)
        if out is not None:
            save_worst(case, Path(out))
        if as_json:
            say(json.dumps(case.describe(), indent=2, ensure_ascii=False))
        else:
            say_folded(worst_words(case, width()))
        return
    with workers(cluster, jobs) as executor:
        found = search(
            file, vary=vary or None, want=want, within=within, minimize=minimize, executor=executor, **options
        )
    if out is not None:
        save(found, Path(out))
    if as_json:
        say(json.dumps(found.describe(), indent=2, ensure_ascii=False))
    else:
        say_folded(words(found, width()))
    if not found.enough:
        context.exit(UNCLEAR)
