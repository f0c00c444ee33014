"""The command ``results``: lists the results below a directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sawtooth.cli import complete
from sawtooth.cli.common_options import PARTLY, Command
from sawtooth.cli.terminal import say, say_folded, width
from sawtooth.io.text_table import aligned, size
from sawtooth.sanitize import plain, sentence, where

if TYPE_CHECKING:
    from sawtooth.results import Entry
    from sawtooth.results.listing import Order, State


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--in", "directory", default="results", show_default=True, metavar="DIR", help="Directory of results.")
@click.option("--latest", is_flag=True, help="List only the newest finished result of each study.")
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    shell_complete=complete.states,
    help="List only results in this state; repeatable.",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(["when", "name", "size", "points"]),
    default="when",
    show_default=True,
    help="Order: newest first, largest first, most points first, or by name.",
)
@click.option("--verify", is_flag=True, help="Read every table of every run and compare its SHA-256.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def results(
    context: click.Context,
    names: tuple[str, ...],
    directory: str,
    latest: bool,
    states: tuple[State, ...],
    order: Order,
    verify: bool,
    as_json: bool,
) -> None:
    """List the results: engine, points, size, time and state.

    NAME is the name of a study, or a pattern of names: one-percent-loss, "buffer*". A star marks the newest finished
    result of a study. States: whole; running; interrupted (the same command continues it); damaged; newer (written by
    a later sawtooth). With --verify, the exit status is 5 if a result is damaged or newer.

    \b
      sawtooth results
      sawtooth results --latest --sort size
    """
    from sawtooth.results import listing

    found = listing(directory, names=names, states=states, latest=latest, order=order, verify=verify)
    if as_json:
        say(json.dumps([one.describe() for one in found], indent=2, ensure_ascii=False))
    elif found:
        say_folded(words(found, width()))
    else:
        say_folded(f"no results {'that match ' if names or states or latest else ''}below {where(directory)}")
    if verify and any(one.problems for one in found):
        context.exit(PARTLY)


def words(found: Sequence[Entry], width: int | None = None) -> str:
    """One line per result; below it, the problems of results that are not complete."""
    header = ["", "result", "engine", "points", "size", "begun", "state"]
    lines = [header, *(_cells(one) for one in found)]
    table = aligned(lines, (0, 1, 2, 5, 6), width, keys=2)
    wrong = [f"{plain(one.name)}: {sentence(problem)}" for one in found for problem in one.problems]
    return "\n".join([*table, *([""] if wrong else []), *wrong])


def _cells(one: Entry) -> list[str]:
    points = str(one.points) if one.done == one.points else f"{one.done}/{one.points}"
    state = f"{one.state}, older format" if one.older else one.state
    begun = one.started.replace("T", " ")[:16]
    star = "*" if one.latest else ""
    return [star, plain(one.name), plain(one.engine), points if one.points else "?", size(one.bytes), begun, state]
