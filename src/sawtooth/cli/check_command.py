"""The command ``check``: whether a result meets its study's expectations; also used at the end of ``run``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.terminal import say, say_folded, say_on_stderr
from sawtooth.errors import InputError

if TYPE_CHECKING:
    from sawtooth.assertions import Judgement

FAILED, CANNOT_TELL = 3, 4
"""Exit status if an expectation fails; and if none fails, but the runs are inconclusive about one."""

junit_option = click.option(
    "--junit", type=str, metavar="FILE", help="Also write the expectations to FILE as JUnit XML."
)
github_option = click.option(
    "--github", is_flag=True, help="Also print failed expectations as annotations of a GitHub workflow."
)


@click.command(cls=Command)
@click.argument("result", type=str)
@click.option("--expect", "given", multiple=True, metavar="TEXT", help="Check this expectation instead; repeatable.")
@click.option("--study", "file", type=str, metavar="FILE", help="Check the expectations of this study file instead.")
@junit_option
@github_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(
    context: click.Context,
    result: str,
    given: tuple[str, ...],
    file: str | None,
    junit: str | None,
    github: bool,
    as_json: bool,
) -> None:
    """Check a study's result against its expectations.

    RESULT is a directory, a name that sawtooth results prints, or the address of a dataset. Expectations come from the
    study's table [expect], from --study, or from --expect. The exit status is 0 if all hold by their 95% confidence
    intervals, 3 if one fails, and 4 if none fails but the runs are inconclusive about one.

    \b
      sawtooth check one-percent-loss
      sawtooth check one-percent-loss --expect "mean_mbps(cc='bbr', loss=1%) > 0.85 * mean_mbps(cc='bbr', loss=0%)"
    """
    from sawtooth.assertions import ABSENT, judge
    from sawtooth.results import place
    from sawtooth.study import Dataset, Study, StudyResult

    if given and file is not None:
        raise InputError(
            "bad-usage", "--study has its own expectations", field="--expect", fix="remove --expect or --study"
        )
    wanted, source = {text: text for text in given} or None, None
    if file is not None:
        wanted, source = Study.load(file).expect or {}, file
    seen = Dataset(result) if "://" in result else StudyResult.load(place(result))
    found = judge(seen, wanted, source=source)
    if as_json:
        say(json.dumps(found.describe(), indent=2, ensure_ascii=False))
    else:
        from sawtooth.assertions.text import words

        say_folded(words(found))
    status = report_checks(found, junit, github)
    if not status and found.count(ABSENT) == len(found.verdicts):
        # Nothing was checked, so this does not count as passed.
        status = CANNOT_TELL
    if status:
        context.exit(status)


def report_checks(found: Judgement, junit: str | None, github: bool) -> int:
    """Write the machine-readable output and return the exit status. Raises SawtoothError as ``write_bytes`` does."""
    from sawtooth.assertions import FAILS, UNKNOWN

    if junit is not None:
        from sawtooth.assertions.machine_formats import junit as xml
        from sawtooth.io.atomic_io import write_bytes

        write_bytes(Path(junit), xml(found))
    if github:
        from sawtooth.assertions.machine_formats import annotated

        for line in annotated(found):
            say_on_stderr(line)
    return FAILED if found.count(FAILS) else CANNOT_TELL if found.count(UNKNOWN) else 0
