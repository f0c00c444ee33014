"""The command ``exec``: runs a user's program on a path, on the real kernel, in virtual time. One
file: most of it is the options, their help, and what the command prints."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth import engines
from sawtooth.cli import complete
from sawtooth.cli.common_options import Command, SingleOption, settings_option
from sawtooth.cli.terminal import is_answered_on_a_terminal, is_quiet, pass_on, say, say_on_stderr, width
from sawtooth.errors import InputError
from sawtooth.io.progress_bar import Bar
from sawtooth.io.text_table import aligned
from sawtooth.programs import Finished, finished
from sawtooth.sanitize import where

if TYPE_CHECKING:
    from sawtooth.engines import Engine
    from sawtooth.run import Run
    from sawtooth.scenario import Scenario
    from sawtooth.testbed.program_output import Output
    from sawtooth.testbed.pseudo_terminal import Terminal

_ROW = ("cc", "seed", "status", "seconds")
"""Columns of every table of several runs."""
_SHELLS = ("bash", "dash", "fish", "ksh", "sh", "zsh")
"""Alone and on a terminal, they get it."""
_FOR_A_PERSON = "1 h"
_SHOWN = 10
"""Maximum number of connections in the summary."""


class _Exec(Command):
    """The words after ``--`` are the program to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        if "--" in args:
            at = args.index("--")
            args, words = args[:at], args[at + 1 :]
        ctx.meta["command"] = words
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


@click.command("exec", cls=_Exec, short_help="Run your own program on a path, in virtual time.")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=complete.studies)
@click.option("--rate", cls=SingleOption, help='Rate of the bottleneck, like "20 Mbit/s", instead of FILE.')
@click.option("--rtt", cls=SingleOption, help='Base round-trip time, like "40 ms".')
@click.option("--loss", cls=SingleOption, help="Random loss from server to client, like 1%.")
@click.option("--queue", cls=SingleOption, help='Buffer of the bottleneck, like "1 bdp" or "1000 packets".')
@click.option("--reverse-rate", cls=SingleOption, help="Rate from client to server (default: unlimited).")
@settings_option()
@click.option("--server", multiple=True, metavar="COMMAND", help="First start this on the server; repeatable.")
@click.option(
    "--ready",
    cls=SingleOption,
    metavar="WHEN",
    help='When the last server is ready: "port 8000", or a text that it prints (default: it listens on a port).',
)
@click.option("--on", default="client", show_default=True, metavar="HOST", help="Host of the command.")
@click.option("--server-on", default="server", show_default=True, metavar="HOST", help="Host of the servers.")
@click.option(
    "--cc", multiple=True, shell_complete=complete.controls, help="Congestion control of all sockets; several compare."
)
@click.option("--seed", type=click.IntRange(1), help="Seed of losses and of the kernel's random numbers (default: 1).")
@click.option("--seeds", type=click.IntRange(1, 10_000), help="Run with the seeds 1 … N, and print a table.")
@click.option(
    "--measure",
    multiple=True,
    metavar="NAME=PLACE",
    help="A number of the output for the table: time=stdout:/time_total or rate='stdout:([0-9.]+) Mbit'; repeatable.",
)
@click.option("--duration", cls=SingleOption, help="Virtual time after which the command is ended (default: 60 s).")
@click.option("--collect", multiple=True, metavar="PATTERN", help="Bring these files of the command back; repeatable.")
@click.option("--see", multiple=True, metavar="PATH", help="Also show this file or directory; repeatable.")
@click.option(
    "--memory", cls=SingleOption, help='Memory of all programs and their files together, like "3 GiB" (default: 2 GiB).'
)
@click.option(
    "--engine",
    default="kernel",
    show_default=True,
    metavar="ENGINE",
    help="Engine: kernel, or netns (real time, as root).",
)
@click.option("--jobs", type=click.IntRange(1), help="Runs at once (default: one per core).")
@click.option("--out", type=str, metavar="DIR", help="Also write outputs and tables into this directory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: status, times, output and measures of each run.")
@click.pass_context
def exec_(
    context: click.Context,
    /,
    file: str | None,
    overrides: dict[str, Any],
    server: tuple[str, ...],
    ready: str | None,
    on: str,
    server_on: str,
    cc: tuple[str, ...],
    seed: int | None,
    seeds: int | None,
    measure: tuple[str, ...],
    duration: str | None,
    collect: tuple[str, ...],
    see: tuple[str, ...],
    memory: str | None,
    engine: str,
    jobs: int | None,
    out: str | None,
    as_json: bool,
    **path: str | None,
) -> None:
    """Run a program on a path: the real Linux kernel, your program as it is, in virtual time and without root.

    The path is a scenario FILE, or the options from --rate on. The server's end has the name server, the client's end
    the name client. COMMAND runs on the client and sees this machine's files read-only; what it writes stays private
    unless you --collect it. Its output is printed as it comes, and its exit status is the command's; 124 means that
    the run's time was up.

    With several --cc, or --seeds, the answer is a table with a row for each run.

    \b
      sawtooth exec --rate "20 Mbit/s" --rtt "40 ms" --loss 1% --server "python3 -m http.server" -- \\
          curl -sfo /dev/null -w "%{time_total} s\\n" http://server:8000/file
      sawtooth exec office.toml --cc cubic --cc bbr --seeds 5 --server "iperf3 -s" -- iperf3 -c server -R
    """
    words: list[str] = context.meta["command"]
    if not words:
        fix = "put it after two dashes: sawtooth exec --rate ... -- curl http://server:8000/"
        raise InputError("bad-usage", "there is no command", field="COMMAND", fix=fix)
    given = {name: value for name, value in path.items() if value is not None}
    if duration is None and file is None and _is_shell_of_a_person(words):
        duration = _FOR_A_PERSON
    scenario = _scenario(file, given, overrides, duration, seed)
    mine = {"collect": collect, "files": see, "measure": _measures(measure), "memory": memory}
    scenario = _with_programs(scenario, server, ready, server_on, {"host": on, "command": words, **mine})
    chosen = engines.get(engine)
    if cc and (own := next((name for name, host in scenario.hosts.items() if host.cc is not None), None)):
        fix = f"leave out --cc, or hosts.{own}.cc"
        raise InputError("bad-usage", f"the host {own} has a congestion control already", field="--cc", fix=fix)
    if seeds is not None or len(cc) > 1:
        several = "--seeds" if seeds is not None else "--cc"
        for name, one_run in (("--seed", seed and seeds), ("--out", out), ("--collect", collect)):
            if one_run:
                fix = f"leave out {name}, or {several}"
                raise InputError("bad-usage", f"it is for one run, and {several} asks for several", field=name, fix=fix)
        numbers = [scenario.seed] if seeds is None else [*range(1, seeds + 1)]
        _table(context, scenario, chosen, cc, numbers, jobs, as_json)
        return
    scenario = scenario.set({"host.cc": cc[0]} if cc else {})
    quiet = is_quiet() or is_answered_on_a_terminal()
    with Bar("exec", 1, quiet=quiet) as bar, _terminal(words, as_json) as terminal:
        printer = None if as_json else _Printer(len(scenario.programs) - 1, raw=terminal is not None)
        run = _engine(chosen, printer, terminal).run(scenario, progress=bar.show)
    if out is not None:
        run.save(Path(out))
    programs = finished(run)
    if as_json:
        say(json.dumps(_described(run, programs), indent=2, ensure_ascii=False))
    else:
        for name, value in run.meta["measured"].items():
            say_on_stderr(f"{name}: {_cell(value)}")
        if not is_quiet():
            say_on_stderr("\n".join(_summary(run, programs)))
        if out is not None:
            say_on_stderr(f"results: {where(out)}")
    _bring(run, programs[-1].host)
    context.exit(programs[-1].exit_status)


@contextlib.contextmanager
def _terminal(words: Sequence[str], as_json: bool) -> Iterator[Terminal | None]:
    """This terminal, for a shell without other programs: its keys go to the shell unchanged."""
    if as_json or not _is_shell_of_a_person(words):
        yield None
        return
    import select
    import termios
    import tty

    from sawtooth.testbed.pseudo_terminal import Terminal

    keyboard = sys.stdin.fileno()

    def typed() -> bytes:
        return os.read(keyboard, 1 << 16) if select.select([keyboard], [], [], 0)[0] else b""

    before = termios.tcgetattr(keyboard)
    size = os.get_terminal_size()
    try:
        # Keeps what was already typed.
        tty.setraw(keyboard, termios.TCSADRAIN)
        yield Terminal(size.lines, size.columns, os.environ.get("TERM", "dumb"), typed)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _is_shell_of_a_person(words: Sequence[str]) -> bool:
    is_typed = sys.stdin is not None and sys.stdin.isatty() and is_answered_on_a_terminal()
    return len(words) == 1 and Path(words[0]).name in _SHELLS and is_typed


def _engine(chosen: Engine, output: Output | None, terminal: Terminal | None) -> Engine:
    """The one that passes on what programs print; one that runs none says so itself."""
    from sawtooth.engines.kernel import Kernel
    from sawtooth.engines.netns import Netns

    return replace(chosen, output=output, terminal=terminal) if isinstance(chosen, (Kernel, Netns)) else chosen


def _scenario(
    file: str | None, path: dict[str, str], overrides: dict[str, Any], duration: str | None, seed: int | None
) -> Scenario:
    from sawtooth.api import load
    from sawtooth.scenario import Scenario
    from sawtooth.study import Study

    if file is None and not path:
        fix = 'give a FILE, or --rate "20 Mbit/s" --rtt "40 ms"'
        raise InputError("bad-usage", "there is no path", field="--rate", fix=fix)
    if file is not None and path:
        given = f"--{next(iter(path)).replace('_', '-')}"
        raise InputError("bad-usage", "FILE has a path already", field=given, fix=f"leave out {given}, or FILE")
    more = {"duration": duration, "seed": seed}
    changes = overrides | {name: value for name, value in more.items() if value is not None}
    if file is None:
        described = {"topology": "path", "interval": "100 ms", "path": {"rtt": "0 ms", **path}}
        return Scenario.from_dict(described).set(changes)
    loaded = load(file)
    if not isinstance(loaded, Study):
        return loaded.set(changes)
    first = loaded.first()
    say_on_stderr(f"{file} is a study: this is its point {first.id}")
    return first.scenario.set(changes)


def _with_programs(
    scenario: Scenario, server: tuple[str, ...], ready: str | None, server_on: str, command: dict[str, Any]
) -> Scenario:
    """The scenario with the servers and the command after the programs that it has."""
    if ready is not None and not server:
        raise InputError("bad-usage", "there is no server", field="--ready", fix="add --server COMMAND")
    programs = [{"host": server_on, "command": one, "ready": "listening"} for one in server]
    if ready is not None:
        programs[-1]["ready"] = ready
    added = [{**one, "directory": os.getcwd()} for one in (*programs, command)]
    given = {name: value for name, value in added[-1].items() if value not in (None, (), {})}
    added[-1] = {name: [*value] if isinstance(value, tuple) else value for name, value in given.items()}
    return scenario.set({"programs": [*scenario.given().get("programs", []), *added]})


def _measures(given: tuple[str, ...]) -> dict[str, str]:
    places = {}
    for one in given:
        name, equals, place = one.partition("=")
        if not equals or not name.isidentifier():
            fix = "write it like --measure time=stdout:/time_total"
            raise InputError("bad-measure", f'"{one[:80]}" has no name', field="--measure", fix=fix)
        if name in _ROW:
            fix = f"give it another name, like my_{name}"
            raise InputError("conflict", f"every table has a column {name}", field="--measure", fix=fix)
        places[name] = place
    return places


class _Printer:
    """Prints the command's output as it arrives; the servers' output is not printed."""

    def __init__(self, number: int, *, raw: bool) -> None:
        """``raw``: to a terminal that is the command's own, with its control characters."""
        self._number = number
        self._raw = raw

    def __call__(self, number: int, stdout: bytes, stderr: bytes) -> None:
        if number != self._number:
            return
        if self._raw:
            os.write(1, stdout)
        else:
            pass_on(stdout, stderr)


def _bring(run: Run, host: str) -> None:
    """Writes the files of the command's host where the command was given; none is overwritten."""
    from sawtooth.io.atomic_io import writing

    if "collected" in run.tables:
        files = run.tables["collected"]
        for one in files[files["host"] == host].to_dict("records"):
            with writing(Path(one["file"])), open(one["file"], "xb") as file:
                file.write(one["content"])


def _summary(run: Run, programs: list[Finished]) -> list[str]:
    """What a person wants to know besides the output: times, connections, losses on the path."""
    lines = [one.describe() for one in programs]
    table = run.tables["connections"]
    if len(table):
        # The last row of each connection, because its counters only grow.
        last = table.drop_duplicates(["host", "connection"], keep="last")
        sending = last[last["sent_bytes"] > 0].sort_values("sent_bytes", ascending=False)
        lines.append(
            "TCP, by sender:" if len(sending) <= _SHOWN else f"TCP, the {_SHOWN} of {len(sending)} that sent most:"
        )
        rows = [["host", "to", "cc", "bytes", "segments", "retransmits", "RTT min", "smoothed"]]
        rows += [
            [
                one["host"],
                f"{one['peer_host'] or one['peer']}:{one['peer_port']}",
                one["cc"] or "-",
                f"{one['sent_bytes']:,}",
                f"{one['segments_out']:,}",
                f"{one['retransmits']:,}",
                f"{one['min_rtt_s'] * 1e3:.1f} ms",
                f"{one['srtt_s'] * 1e3:.1f} ms",
            ]
            for one in sending.head(_SHOWN).to_dict("records")
        ]
        lines += aligned(rows, words=(0, 1, 2), width=width())
    drops = int(run.tables["queues"]["drops"].sum()) if len(run.tables["queues"]) else 0
    lost = int(run.tables["links"]["lost"].sum()) if len(run.tables["links"]) else 0
    lines.append(f"path: {drops:,} packets dropped by queues, {lost:,} lost on links")
    cpu = f" ({run.meta['cpu_s']:.1f} s of processor time)" if "cpu_s" in run.meta else ""
    lines.append(f"{run.end_s:.3f} s passed in there, {run.meta['wall_s']:.1f} s here{cpu}")
    return lines


def _described(run: Run, programs: list[Finished]) -> dict[str, Any]:
    """As JSON; the last program is the command."""
    return {
        "programs": [
            {
                "program": one.name,
                "host": one.host,
                "command": one.command,
                "start_s": one.start_s,
                "end_s": one.end_s,
                "status": one.status,
                "stdout": one.stdout.decode(errors="replace"),
                "stderr": one.stderr.decode(errors="replace"),
            }
            for one in programs
        ],
        "measures": run.meta["measured"],
        "end_s": run.end_s,
        "wall_s": run.meta["wall_s"],
        "cpu_s": run.meta.get("cpu_s"),
    }


def _row(engine: Engine, stop: Callable[[], bool], scenario: Scenario) -> dict[str, Any]:
    """For one run; None for what it does not have."""
    run = engine.run(scenario, stop=stop)
    last = finished(run)[-1]
    status, seconds = last.exit_status, last.seconds
    return {
        "cc": scenario.host.cc,
        "seed": scenario.seed,
        "status": status,
        "seconds": seconds,
        **run.meta["measured"],
    }


def _table(
    context: click.Context,
    scenario: Scenario,
    engine: Engine,
    controls: tuple[str, ...],
    seeds: list[int],
    jobs: int | None,
    as_json: bool,
) -> None:
    from statistics import median

    from sawtooth.io.parallel import fan_out

    scenarios = [
        scenario.set({"seed": seed, **({"host.cc": cc} if cc else {})}) for cc in controls or (None,) for seed in seeds
    ]
    rows: dict[int, dict[str, Any]] = {}
    stop = threading.Event()
    with Bar("exec", len(scenarios), quiet=is_quiet()) as bar:
        fan_out(
            partial(_row, engine, stop.is_set),
            scenarios,
            done=rows.__setitem__,
            poll=lambda: bar.show(len(rows)),
            stop=stop.set,
            jobs=1 if engine.name == "netns" else jobs,
            threads=True,
        )
    found = [rows[number] for number in range(len(scenarios))]
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        names = [name for name in found[0] if name not in _ROW[:3]]
        lines = [["cc", "seed", "status", *names]]
        lines += [
            [one["cc"] or "default", str(one["seed"]), str(one["status"]), *(_cell(one[n]) for n in names)]
            for one in found
        ]
        if len(seeds) > 1:
            lines.append([])
            for cc in dict.fromkeys(one["cc"] for one in found):
                mine = [one for one in found if one["cc"] == cc]
                middle = [[one[name] for one in mine if one[name] is not None] for name in names]
                cells = [_cell(median(values)) if values else "-" for values in middle]
                lines.append([cc or "default", "median", "", *cells])
        say("\n".join(aligned(lines, words=(0,), width=width())))
    failed = [one["status"] for one in found if one["status"]]
    if failed:
        context.exit(failed[0])


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
