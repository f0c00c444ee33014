"""The command ``compare``."""

from __future__ import annotations

import json
from pathlib import Path

import click

DIFFERS = 3
"""Exit status when a mean is outside the tolerance."""


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN…")
@click.option("--within", default="10%", show_default=True, help="Tolerance of the means, of the reference's mean.")
@click.option("--out", type=str, metavar="DIR", help="Also write comparison.csv, .json, .png and .svg there.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
@click.pass_context
def compare(context: click.Context, runs: tuple[str, ...], within: str, out: str | None, form: str | None) -> None:
    """Compare the answers of several engines or settings.

    Each RUN is the directory of a saved run, or of a study's results; the first is the reference. The exit status is 3
    when the mean of one of the others, at any point, differs from the reference's by more than --within.
    """
    from sawtooth.compare import compare as compare_runs
    from sawtooth.compare.text import words
    from sawtooth.study.result import csv_text

    found = compare_runs(runs, within=within)
    described = json.dumps(found.describe(), indent=2, ensure_ascii=False)
    if out is not None:
        from sawtooth.compare import draw
        from sawtooth.storage import write_bytes, writing

        directory = Path(out)
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        write_bytes(directory / "comparison.csv", csv_text(found.table).encode())
        write_bytes(directory / "comparison.json", f"{described}\n".encode())
        draw(found, directory)
    if form == "json":
        click.echo(described)
    elif form == "csv":
        click.echo(csv_text(found.table), nl=False)
    else:
        click.echo(words(found))
    if found.outside:
        context.exit(DIFFERS)
