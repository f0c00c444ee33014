"""The command ``packetdrill``."""

from __future__ import annotations

import json
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.errors import FAILURE, InputError
from sawtooth.io.progress_bar import Bar
from sawtooth.io.text_table import aligned

if TYPE_CHECKING:
    from sawtooth.packetdrill import Script, ScriptResult

_ENGINES = ("sim", "kernel")
_SCRIPTS_EACH = 16
"""Scripts of one guest: few enough for two cores, many enough that its start does not matter."""


@click.command(cls=Command, short_help="Play packetdrill scripts to sim and to kernels.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--engine", "engines", multiple=True, help="Engines: sim, kernel, or both as sim,kernel (default: sim).")
@click.option("--hz", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="Timer ticks per second.")
@click.option("--kernel", help="Play to this user-mode kernel, by name (default: the one without additions).")
@click.option("--program", help="Packetdrill's program, for the engine kernel (default: the one on PATH).")
@click.option(
    "--tolerance",
    type=click.IntRange(0),
    metavar="US",
    help="Microseconds that a time may differ where the script does not say it; 0: not at all (default: 4000, or an "
    "eighth of the time since the last event).",
)
@click.option("--jobs", type=click.IntRange(1), help="Guests at once (default: one per core).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def packetdrill(
    context: click.Context,
    paths: tuple[Path, ...],
    engines: tuple[str, ...],
    hz: int,
    kernel: str | None,
    program: str | None,
    tolerance: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Play packetdrill scripts to the simulated TCP and to real kernels, in virtual time.

    PATH is a script, or a directory whose *.pkt are all played. The table has a row for each script that did not pass:
    the first difference, or why it is not applicable. The exit status is 1 if a script failed.

    The engine kernel runs packetdrill itself, which you build from its source, in a guest without root.

    \b
      sawtooth packetdrill gtests/net/tcp
      sawtooth packetdrill gtests/net/tcp/sack --engine sim,kernel --program ./packetdrill
    """
    from sawtooth.packetdrill import FAILED, find_scripts, played_on_sim

    named = [name.strip() for given in engines for name in given.split(",")]
    if any(name not in _ENGINES for name in named):
        fix = "give --engine sim, --engine kernel, or both: --engine sim,kernel"
        raise InputError("bad-usage", "only sim and kernel play scripts", field="--engine", fix=fix)
    chosen = tuple(dict.fromkeys(named)) or ("sim",)
    scripts = find_scripts(paths)
    found: list[ScriptResult] = []
    if "sim" in chosen:
        found += [played_on_sim(script, hz=hz, tolerance_us=tolerance) for script in scripts]
    if "kernel" in chosen:
        found += _on_kernel(scripts, program, kernel, hz, tolerance, jobs)
    data_path = {script.name for script in scripts if script.outside_data_path() is None}
    if as_json:
        rows = [{**one.describe(), "data_path": one.script in data_path} for one in found]
        say(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print(found, chosen, data_path)
    if any(one.verdict == FAILED for one in found):
        context.exit(FAILURE)


def _on_kernel(
    scripts: list[Script], program: str | None, kernel: str | None, hz: int, tolerance: int | None, jobs: int | None
) -> list[ScriptResult]:
    from sawtooth.io.parallel import fan_out
    from sawtooth.packetdrill import played_on_kernel
    from sawtooth.packetdrill.guest import find_program

    parts = [scripts[at : at + _SCRIPTS_EACH] for at in range(0, len(scripts), _SCRIPTS_EACH)]
    stop = threading.Event()
    done: dict[int, list[ScriptResult]] = {}
    play = partial(
        played_on_kernel, program=find_program(program), kernel=kernel, hz=hz, tolerance_us=tolerance, stop=stop.is_set
    )
    with Bar("packetdrill", len(parts), quiet=is_quiet()) as bar:
        fan_out(
            play,
            parts,
            done=done.__setitem__,
            poll=lambda: bar.show(len(done)),
            stop=stop.set,
            jobs=jobs,
            threads=True,
        )
    return [one for number in range(len(parts)) for one in done[number]]


def _print(found: list[ScriptResult], engines: tuple[str, ...], data_path: set[str]) -> None:
    from sawtooth.packetdrill import FAILED, NOT_APPLICABLE, PASSED

    rows = [[one.script, one.engine, one.verdict, _where(one)] for one in found if one.verdict != PASSED]
    if rows:
        say("\n".join(aligned([["script", "engine", "verdict", "reason"], *rows], (0, 1, 2, 3), width())))
        say("")
    by_directory = Counter((one.script.rpartition("/")[0] or ".", one.engine, one.verdict) for one in found)
    directories = sorted({directory for directory, _, _ in by_directory})
    if len(directories) > 1:
        verdicts = (PASSED, FAILED, NOT_APPLICABLE)
        counts = [
            [directory, engine, *(str(by_directory[directory, engine, verdict]) for verdict in verdicts)]
            for directory in directories
            for engine in engines
        ]
        say("\n".join(aligned([["directory", "engine", *verdicts], *counts], (0, 1), width())))
        say("")
    for engine in engines:
        mine = [one for one in found if one.engine == engine]
        total = Counter(one.verdict for one in mine)
        about_data = Counter(one.verdict for one in mine if one.script in data_path)
        say_folded(
            f"{engine}: {total[PASSED]} of {total[PASSED] + total[FAILED]} applicable scripts passed, "
            f"{total[FAILED]} failed; {total[NOT_APPLICABLE]} are not applicable. "
            f"Of {about_data.total()} data-path scripts {about_data[PASSED]} passed"
        )


def _where(one: ScriptResult) -> str:
    return one.reason if one.line is None else f"line {one.line}: {one.reason}"
