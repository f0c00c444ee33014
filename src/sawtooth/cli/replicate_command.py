"""The command ``replicate``: published results, run again and compared with what was published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli import complete
from sawtooth.cli.common_options import Command, engine_option, settings_option
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.cli.workers import ClusterOptions, cluster_options, workers
from sawtooth.errors import InputError
from sawtooth.io.text_table import aligned
from sawtooth.sanitize import plain, sentence, where

if TYPE_CHECKING:
    from sawtooth.replication import Evaluation, Replication


@click.command(cls=Command, short_help="Run a published result again, and compare every cell.")
@click.argument("name", required=False, shell_complete=complete.replications)
@click.option("--all", "every", is_flag=True, help="Run all replications that come with sawtooth.")
@click.option(
    "--only",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Run only cells with this value, like cc=cubic; repeatable.",
)
@engine_option
@click.option("--out", type=str, default="results", show_default=True, help="Directory for results.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one per core).")
@cluster_options
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), help="Repeat each cell with seeds 1 … N (default: the replication's)."
)
@settings_option("Set a field of every cell's scenario, like host.hz=1000; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replicate(
    name: str | None,
    every: bool,
    only: tuple[str, ...],
    engine: str,
    out: str,
    jobs: int | None,
    cluster: ClusterOptions | None,
    seeds: int | None,
    overrides: dict[str, Any],
    as_json: bool,
) -> None:
    """Run a published result again, and compare every cell with ours.

    NAME is a replication that comes with sawtooth, or a folder with replication.toml. Without NAME, list them. The same
    command continues an interrupted run.

    \b
      sawtooth replicate
      sawtooth replicate imc23-when-to-use-bbr
      sawtooth replicate jittertrap-loss-tolerance --engine kernel --only cc=cubic --only loss_percent=1
      sawtooth replicate --all
    """
    from sawtooth.replication import Replication, found, shipped, words
    from sawtooth.replication.text import summary

    if every and name is not None:
        raise InputError("bad-usage", "--all runs every replication", field=name, fix="remove --all, or the name")
    if not every and name is None:
        _listed({one: Replication.load(path) for one, path in shipped().items()}, as_json)
        return
    chosen: dict[str, list[str]] = {}
    for one in only:
        column, equals, value = one.partition("=")
        if not equals:
            raise InputError(
                "bad-usage", f'"{plain(one, 60)}" is not COLUMN=VALUE', field="--only", fix="write it like cc=cubic"
            )
        chosen.setdefault(column, []).append(value)
    if every and chosen:
        fix = "remove --only, or name one replication"
        raise InputError("bad-usage", "replications have different columns", field="--only", fix=fix)
    options: dict[str, Any] = {"engine": engine, "jobs": jobs, "quiet": is_quiet(), "out": Path(out)}
    options |= {"seeds": None if seeds is None else range(1, seeds + 1), "overrides": overrides}
    directories = list(shipped().values()) if every else [found(name or "")]
    with workers(cluster, jobs) as executor:
        results = [_run(Replication.load(one), chosen, executor=executor, **options) for one in directories]
    if as_json:
        described = [evaluation.describe() | {"page": str(page)} for evaluation, page in results]
        say(json.dumps(described if every else described[0], indent=2, ensure_ascii=False))
        return
    for evaluation, page in results:
        for warning in evaluation.result.warnings if not every else ():
            say_folded(f"warning: {sentence(warning)}")
        if not every:
            say_folded(words(evaluation, width()))
        say(f"{evaluation.replication.name}: {where(page)}" if every else f"\npage: {where(page)}")
    if every:
        say_folded("\n" + summary([evaluation for evaluation, _ in results], width()))


def _run(replication: Replication, only: dict[str, list[str]], **options: Any) -> tuple[Evaluation, Path]:
    from sawtooth.replication import evaluate, write_page
    from sawtooth.study import StudyResult, run_study

    done: list[tuple[Evaluation, Path]] = []

    def answer(result: StudyResult) -> None:
        found = evaluate(replication, result)
        done.append((found, write_page(found)))

    run_study(replication.study(only), ending=answer, **options)
    return done[0]


def _listed(known: dict[str, Replication], as_json: bool) -> None:
    if as_json:
        descriptions = [
            {"name": name, "title": one.about.title, "source": one.about.source.strip(), "data": one.about.data}
            | {"licence": one.about.licence, "cells": len(one.cells), "left_out": len(one.left_out)}
            | {"folder": str(one.origin.parent)}
            for name, one in known.items()
        ]
        say(json.dumps(descriptions, indent=2, ensure_ascii=False))
        return
    lines = [["name", "cells", "title"]]
    lines += [[name, str(len(one.cells)), plain(one.about.title)] for name, one in known.items()]
    say("\n".join(aligned(lines, (0, 2), width())))
    if known:
        say(f"\nfolders: {where(next(iter(known.values())).origin.parent.parent)}")
