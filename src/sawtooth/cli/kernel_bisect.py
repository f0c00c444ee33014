"""The command ``kernel bisect``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.compare_command import CANNOT_TELL
from sawtooth.cli.kernel_commands import Lines
from sawtooth.cli.terminal import say, say_on_stderr, width
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.text_table import aligned
from sawtooth.sanitize import plain, where

if TYPE_CHECKING:
    from sawtooth.behaviors.bisect import Bisected, Judge, Step
    from sawtooth.kernel import Kernel
    from sawtooth.study import Study


@click.command(cls=Command, short_help="Find the commit that changed TCP.")
@click.argument("file", required=False, metavar="[SCENARIO.toml]")
@click.option("--tree", type=str, metavar="DIR", required=True, help="Clone of the kernel's git repository; only read.")
@click.option("--good", metavar="COMMIT", required=True, help="An older commit, before the change.")
@click.option("--bad", metavar="COMMIT", required=True, help="A commit after the change.")
@click.option(
    "--behavior",
    "behaviors",
    multiple=True,
    metavar="NAME",
    help="What changed: PART:MEASURE, or PART for all its measures, as kernel compare has them; repeatable.",
)
@click.option(
    "--expect", "expected", multiple=True, metavar="TEXT", help="What good kernels do in SCENARIO.toml; repeatable."
)
@click.option(
    "--path", "paths", multiple=True, help="Try only commits that change this part of the tree, like net/ipv4."
)
@click.option("--file", "catalogue", metavar="FILE", help="Catalogue of behaviors (default: the one of sawtooth).")
@click.option("--hz", default=250, show_default=True, help="Timer ticks per second of the kernels.")
@click.option("--seeds", type=click.IntRange(2, 1000), default=3, show_default=True, help="Run with seeds 1 … N.")
@click.option("--within", default="1%", show_default=True, help="Largest difference of a behavior that is no change.")
@click.option("--out", default="results/bisect", show_default=True, help="Directory for what was tried.")
@click.option("--jobs", type=click.IntRange(1), help="Compilers and guests at once (default: one per core).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def bisect(
    context: click.Context,
    file: str | None,
    tree: str,
    good: str,
    bad: str,
    behaviors: tuple[str, ...],
    expected: tuple[str, ...],
    paths: tuple[str, ...],
    catalogue: str | None,
    hz: int,
    seeds: int,
    within: str,
    out: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Find the commit that changed a behavior of TCP, or broke an expectation.

    Like git bisect: it builds the commit that halves the rest best, runs only what is asked, and judges by intervals
    as kernel compare and check do. Commits that do not build are skipped. The same command continues an interrupted
    one. The exit status is 0 if the first bad commit is found, and 4 if skipped commits hide it.

    \b
      sawtooth kernel bisect --tree linux --good v6.6 --bad v6.12 --behavior loss/cubic:timeouts
      sawtooth kernel bisect slow.toml --tree linux --good v6.6 --bad v6.12 --expect "mean_mbps > 9 Mbit/s"
    """
    from sawtooth.behaviors import Catalogue
    from sawtooth.behaviors.bisect import Bisection, ByBehavior, ByExpectation
    from sawtooth.compare import tolerance
    from sawtooth.kernel import build
    from sawtooth.kernel.history import History

    if bool(behaviors) == bool(file) or bool(file) != bool(expected):
        fix = "give --behavior, or a scenario and --expect"
        raise InputError("bad-usage", "this command needs one thing to judge commits by", fix=fix)
    limit = tolerance(within)
    history = History.open(tree)
    ends = [history.resolve(one) for one in (good, bad)]
    directory, numbers = Path(out), range(1, seeds + 1)
    count = history.count([ends[0]], ends[1], paths)

    def show(step: Step) -> None:
        if not as_json:
            say(f"{step.verdict:8}{step.commit.short}  {plain(step.commit.subject, 70)}\n        {plain(step.detail)}")

    with Lines() as lines:
        judge: Judge
        if file is None:
            chosen = Catalogue.load(catalogue).of(behaviors)
            judge = ByBehavior(
                chosen,
                directory / "measured",
                seeds=numbers,
                within=limit,
                jobs=jobs,
                show=lambda done, all_: lines.show("measuring", done / all_ if all_ else None),
            )
        else:
            judge = ByExpectation(
                _study(file), expected, directory, overrides={"host.hz": hz}, seeds=numbers, jobs=jobs
            )

        def built(commit: str) -> Kernel:
            name = f"bisect-{commit[:12]}"
            return build(hz=hz, source_path=tree, commit=commit, name=name, jobs=jobs, progress=lines.show)

        if not as_json:
            say(f"{count} commits, about {max(1, count).bit_length()} steps")
        search = Bisection(history, judge, built, directory, hz, paths=paths, show=show)
        try:
            found = search.find(*ends)
        except (KeyboardInterrupt, SawtoothError):
            for one in search.kept:
                say_on_stderr(f"kept for the same command: {one.name}, or: sawtooth kernel remove {one.name}")
            raise
    assert found.before.kernel is not None
    assert found.after.kernel is not None
    values, rows = judge.report(found.before.kernel, found.after.kernel)
    if as_json:
        say(json.dumps(_described(found, values), indent=2, ensure_ascii=False))
    else:
        say(_words(found, rows, paths))
        say(f"tried: {where(directory)}")
    if len(found.suspects) > 1:
        context.exit(CANNOT_TELL)


def _study(file: str) -> Study:
    """A scenario becomes a study with one point."""
    from sawtooth.api import load
    from sawtooth.study import Study

    loaded = load(file)
    if isinstance(loaded, Study):
        return loaded
    return Study.from_dict({"name": loaded.name, "scenario": loaded.to_dict()}, source=file)


def _described(found: Bisected, values: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "first_bad": found.suspects[0].describe() if len(found.suspects) == 1 else None,
        "suspects": [one.describe() for one in found.suspects],
        "compared": {"good": found.before.describe(), "bad": found.after.describe()},
        "changes": values,
        "steps": [one.describe() for one in found.steps],
    }


def _words(found: Bisected, rows: list[list[str]], paths: Sequence[str]) -> str:
    if len(found.suspects) == 1:
        one = found.suspects[0]
        lines = ["", f"first bad commit: {one.hash}", one.subject, f"{one.author}, {one.date}"]
    else:
        other = f", or one that does not change {', '.join(map(plain, paths))}" if paths else ""
        lines = ["", f"skipped commits hide the first bad one, which is one of {len(found.suspects)}{other}:"]
        lines += [f"{one.hash}  {one.subject}" for one in found.suspects]
    head = ["", f"at {found.before.commit.short}", f"at {found.after.commit.short}", "change"]
    return "\n".join([*lines, "", *aligned([head, *rows], (0,), width())])
