"""The command ``scoreboard``: every congestion control on networks of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sawtooth.cli import complete
from sawtooth.cli.common_options import Command, engine_option
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.cli.workers import ClusterOptions, cluster_options, workers
from sawtooth.io.text_table import aligned
from sawtooth.sanitize import plain, where


@click.command(cls=Command, short_help="Compare congestion controls on networks of every kind.")
@click.argument("file", required=False)
@click.option(
    "--cc",
    "controls",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=complete.controls,
    help="Compare only this control, or a C, .npz or .py file with the others; repeatable (default: all of the file).",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PART",
    help="Run only networks with this line, condition or traffic, like lte or cable/shallow; repeatable.",
)
@click.option("--list", "listed", is_flag=True, help="List the networks and run nothing.")
@engine_option
@click.option("--out", type=str, default="results", show_default=True, help="Directory for results.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one per core).")
@cluster_options
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), help="Repeat each network with seeds 1 … N (default: the file's)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def scoreboard(
    file: str | None,
    controls: tuple[str, ...],
    only: tuple[str, ...],
    listed: bool,
    engine: str,
    out: str,
    jobs: int | None,
    cluster: ClusterOptions | None,
    seeds: int | None,
    as_json: bool,
) -> None:
    """Compare congestion controls on networks of every kind.

    Print what each control gets over all networks and where it breaks, and write a page with every network. FILE has
    the networks (default: those that come with sawtooth). The same command continues an interrupted run.

    \b
      sawtooth scoreboard
      sawtooth scoreboard --cc tcp_mine.c
      sawtooth scoreboard --cc cubic --cc bbr3 --only lte --only cable/shallow
      sawtooth scoreboard --list
    """
    from sawtooth.scoreboard import Board, Networks, words, write_page
    from sawtooth.study import StudyResult, run_study

    networks = Networks.load(file)
    chosen = networks.chosen(only)
    if listed:
        descriptions = [{"network": one.name, "title": one.title, "marks": one.marks} for one in chosen]
        lines = [["network", "what it is"], *([one.name, plain(one.title, 200)] for one in chosen)]
        say(json.dumps(descriptions, indent=2, ensure_ascii=False) if as_json else "\n".join(aligned(lines, (0, 1))))
        return
    compared = networks.controls(controls)
    done: list[tuple[Board, Path]] = []

    def ending(result: StudyResult) -> None:
        board = Board.of(result, chosen, compared)
        done.append((board, write_page(board)))

    with workers(cluster, jobs) as executor:
        run_study(
            networks.study(chosen, compared),
            engine=engine,
            out=Path(out),
            jobs=jobs,
            executor=executor,
            seeds=None if seeds is None else range(1, seeds + 1),
            quiet=is_quiet(),
            ending=ending,
        )
    board, page = done[0]
    if as_json:
        say(json.dumps(board.describe() | {"page": str(page)}, indent=2, ensure_ascii=False))
    else:
        say_folded(words(board, width()))
        say(f"\npage: {where(page)}")
