"""The command ``compare``: compares saved runs with each other, or the simulator with the real kernel on a grid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.output_format import form_options
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.cli.workers import ClusterOptions, cluster_options, workers
from sawtooth.errors import InputError

if TYPE_CHECKING:
    from sawtooth.compare.fidelity.record import Measuring

DIFFERS, CANNOT_TELL = 3, 4
"""Exit status if a mean is outside the tolerance; and if none is, but the runs are inconclusive about one."""


@click.command(cls=Command, short_help="Compare runs or studies, or sim with the kernel.")
@click.argument("runs", nargs=-1, metavar="[RUN RUN…]")
@click.option(
    "--within", help="Largest difference of means, relative to the reference (default: 10%; with --grid: none)."
)
@click.option("--omit", metavar="TIME", help='Discard the first part of every run, like "5 s" (default: its warmup).')
@click.option("--out", type=str, metavar="DIR", help="Also write tables and the figure into this directory.")
@form_options
@click.option(
    "--grid", type=str, metavar="FILE", help="Compare sim with the recorded kernel on this grid of scenarios instead."
)
@click.option("--tag", help="Use only the points of --grid with this tag, or of this block.")
@click.option(
    "--measure",
    type=click.Choice(["missing", "all"]),
    help="Run the kernel on points of --grid first: missing ones, or all.",
)
@click.option(
    "--record", type=str, metavar="FILE", help="File with the kernel's results (default: kernel.csv beside the grid)."
)
@click.option("--jobs", type=click.IntRange(1), help="Parallel runs with --grid (default: one per core).")
@cluster_options
@click.pass_context
def compare(
    context: click.Context,
    /,
    runs: tuple[str, ...],
    within: str | None,
    omit: str | None,
    out: str | None,
    form: str | None,
    grid: str | None,
    **options: Any,
) -> None:
    """Compare runs or studies, or the simulator with the recorded kernel.

    Each RUN is the directory of a saved run or of a study's results. The first is the reference. The exit status is 0
    if at every point the means differ by at most --within, by the 95% confidence interval of the difference; 3 if one
    differs by more; 4 if none does but the runs are inconclusive.

    With --grid, the simulator runs every point of the grid and is compared with the kernel's recorded results.
    --measure missing runs the kernel on points without a record. --measure all also repeats points that another kernel
    or testbed measured. The same command continues an interrupted measurement.

    \b
      sawtooth compare results/office/latest kernel/office/latest --within 10%
      sawtooth compare --grid fidelity/grid.toml --tag short
    """
    if grid is None:
        for name, value in options.items():
            if value:
                raise InputError(
                    "bad-usage", "needs --grid", field=f"--{name}", fix=f"add --grid FILE, or remove --{name}"
                )
        status = _runs(runs, within, omit, out, form)
    else:
        if runs:
            raise InputError(
                "bad-usage",
                "--grid compares engines, not runs",
                field=runs[0],
                fix="remove --grid, or the names of runs",
            )
        if omit is not None:
            fix = "remove --omit: the warmup of each scenario of the grid applies"
            raise InputError("bad-usage", "does not apply to --grid", field="--omit", fix=fix)
        status = DIFFERS if _grid(Path(grid), within, out, form, **options) else 0
    if status:
        context.exit(status)


def _runs(runs: tuple[str, ...], within: str | None, omit: str | None, out: str | None, form: str | None) -> int:
    from sawtooth.compare import compare as compare_runs
    from sawtooth.compare.comparison import DEFAULT_TOLERANCE
    from sawtooth.compare.text import words
    from sawtooth.io.csv import csv_text

    found = compare_runs(runs, within=within or DEFAULT_TOLERANCE, omit=omit)
    described = json.dumps(found.describe(), indent=2, ensure_ascii=False)
    if out is not None:
        from sawtooth.compare import draw
        from sawtooth.io.atomic_io import write_bytes

        directory = _directory(out)
        write_bytes(directory / "comparison.csv", csv_text(found.table).encode())
        write_bytes(directory / "comparison.json", f"{described}\n".encode())
        draw(found, directory)
    _print(form, described, csv_text(found.table), words(found, width()))
    return DIFFERS if found.outside else CANNOT_TELL if found.unknown else 0


def _grid(
    grid: Path,
    within: str | None,
    out: str | None,
    form: str | None,
    *,
    tag: str | None,
    measure: Measuring | None,
    record: str | None,
    jobs: int | None,
    cluster: ClusterOptions | None,
) -> bool:
    from sawtooth.compare import tolerance
    from sawtooth.compare.fidelity import compare_on, outside, words
    from sawtooth.io.csv import csv_text

    limit = None if within is None else tolerance(within)
    path = None if record is None else Path(record)
    with workers(cluster, jobs) as executor:
        found = compare_on(
            grid, tag=tag, record_file=path, measure=measure, jobs=jobs, executor=executor, quiet=is_quiet()
        )
    far = [] if limit is None else outside(found.differences, limit)["point"].tolist()
    if out is not None:
        found.save(_directory(out))
    text = words(found)
    if limit is not None:
        verdict = f"{len(far)} of {len(found.points)} points" if far else "no point"
        text += f"\n\noutside {limit * 100:g}% of the kernel's mean throughput: {verdict}"
    _print(form, json.dumps(found.describe() | {"outside": far}, indent=2), csv_text(found.differences), text)
    return bool(far)


def _directory(out: str) -> Path:
    from sawtooth.io.atomic_io import writing

    directory = Path(out)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def _print(form: str | None, as_json: str, as_csv: str, text: str) -> None:
    if form == "csv":
        say(as_csv, end="")
    elif form == "json":
        say(as_json)
    else:
        say_folded(text)
