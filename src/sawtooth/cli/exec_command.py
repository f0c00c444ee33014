"""The command ``exec``: runs a user's program on a path, on the real kernel, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli import complete
from sawtooth.cli.command import Command
from sawtooth.cli.once import Once
from sawtooth.cli.terminal import is_answered_on_a_terminal, is_quiet, pass_on, say, tell, width
from sawtooth.columns import aligned
from sawtooth.errors import InputError
from sawtooth.plain import plain, where

if TYPE_CHECKING:
    from sawtooth.programs import Execution, Finished, Program
    from sawtooth.scenario import Scenario

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
@click.option("--rate", cls=Once, help='Rate of the bottleneck, like "20 Mbit/s", instead of FILE.')
@click.option("--rtt", cls=Once, help='Base round-trip time, like "40 ms".')
@click.option("--loss", cls=Once, help="Random loss from server to client, like 1%.")
@click.option("--queue", cls=Once, help='Buffer of the bottleneck, like "1 bdp" or "1000 packets".')
@click.option("--reverse-rate", cls=Once, help="Rate from client to server (default: unlimited).")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="K=V",
    shell_complete=complete.assignments,
    help="Set a field of the scenario; repeatable.",
)
@click.option("--server", multiple=True, metavar="COMMAND", help="First start this on the server; repeatable.")
@click.option(
    "--ready",
    cls=Once,
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
@click.option("--duration", cls=Once, help="Virtual time after which the command is ended (default: 60 s).")
@click.option("--collect", multiple=True, metavar="PATTERN", help="Bring these files of the command back; repeatable.")
@click.option("--see", multiple=True, metavar="DIR", help="Also show this directory to the programs; repeatable.")
@click.option("--memory", default="2048M", show_default=True, help="Memory of all programs and their files together.")
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
    settings: tuple[str, ...],
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
    memory: str,
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
          curl -so /dev/null -w "%{time_total} s\\n" http://server:8000/FILE
      sawtooth exec office.toml --cc cubic --cc bbr --seeds 5 --server "iperf3 -s" -- iperf3 -c server -R
    """
    words: list[str] = context.meta["command"]
    if not words:
        fix = "put it after two dashes: sawtooth exec --rate ... -- curl http://server:8000/"
        raise InputError("bad-usage", "there is no command", field="COMMAND", fix=fix)
    places = _measures(measure)
    given = {name: value for name, value in path.items() if value is not None}
    scenario = _scenario(file, given, settings, duration, seed)
    programs = _programs(server, ready, server_on, words, on, collect)
    wanted: dict[str, Any] = {
        "engine": engine,
        "memory": memory,
        "see": [Path(one) for one in see],
    }
    if seeds is not None or len(cc) > 1:
        several = "--seeds" if seeds is not None else "--cc"
        for name, one_run in (("--seed", seed and seeds), ("--out", out), ("--collect", collect)):
            if one_run:
                fix = f"leave out {name}, or {several}"
                raise InputError("bad-usage", f"it is for one run, and {several} asks for several", field=name, fix=fix)
        numbers = [scenario.seed] if seeds is None else [*range(1, seeds + 1)]
        _table(context, scenario, programs, wanted, cc, numbers, places, jobs, as_json)
        return
    from sawtooth.bar import Bar
    from sawtooth.programs import execute

    with Bar("exec", 1, quiet=is_quiet() or is_answered_on_a_terminal()) as bar:
        done = execute(
            scenario,
            programs,
            cc=cc[0] if cc else None,
            progress=bar.show,
            output=None if as_json else _Printer(len(programs) - 1),
            **wanted,
        )
    if out is not None:
        from sawtooth.programs.saving import save

        save(done, scenario, Path(out))
    _bring(done)
    last = done.programs[-1]
    if as_json:
        say(json.dumps(_described(done, places), indent=2, ensure_ascii=False))
    else:
        for name, place in places.items():
            tell(f"{name}: {last.value(place):g}")
        if not is_quiet():
            tell("\n".join(_summary(done)))
        if out is not None:
            tell(f"results: {where(out)}")
    context.exit(last.exit_status)


def _scenario(
    file: str | None, path: dict[str, str], settings: tuple[str, ...], duration: str | None, seed: int | None
) -> Scenario:
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.overrides import parse_assignment
    from sawtooth.study import Study
    from sawtooth.verbs import load

    if file is None and not path:
        fix = 'give a FILE, or --rate "20 Mbit/s" --rtt "40 ms"'
        raise InputError("bad-usage", "there is no path", field="--rate", fix=fix)
    if file is not None and path:
        given = f"--{next(iter(path)).replace('_', '-')}"
        raise InputError("bad-usage", "FILE has a path already", field=given, fix=f"leave out {given}, or FILE")
    changes = dict(parse_assignment(setting) for setting in settings)
    changes |= {} if duration is None else {"duration": duration}
    changes |= {} if seed is None else {"seed": seed}
    if file is None:
        described = {"topology": "path", "interval": "100 ms", "path": {"rtt": "0 ms", **path}}
        return Scenario.from_dict(described).set(changes)
    loaded = load(file)
    return (loaded.points()[0].scenario if isinstance(loaded, Study) else loaded).set(changes)


def _programs(
    server: tuple[str, ...], ready: str | None, server_on: str, words: list[str], on: str, collect: tuple[str, ...]
) -> list[Program]:
    from sawtooth.programs import Program

    if ready is not None and not server:
        raise InputError("bad-usage", "there is no server", field="--ready", fix="add --server COMMAND")
    servers = [Program(server_on, one, ready="listening") for one in server]
    if ready is not None:
        servers[-1] = Program(server_on, server[-1], ready=ready)
    return [*servers, Program(on, words, collect=collect)]


def _measures(given: tuple[str, ...]) -> dict[str, str]:
    places = {}
    for one in given:
        name, equals, place = one.partition("=")
        if not equals or not name.isidentifier():
            fix = "write it like --measure time=stdout:/time_total"
            raise InputError("bad-measure", f'"{one[:80]}" has no name', field="--measure", fix=fix)
        places[name] = place
    return places


class _Printer:
    """Prints the command's output as it arrives; the servers' output is not printed."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self, number: int, stdout: bytes, stderr: bytes) -> None:
        if number == self._number:
            pass_on(stdout, stderr)


def _bring(done: Execution) -> None:
    """Copy the requested files to the directory in which sawtooth was called. Existing files are never overwritten."""
    from sawtooth.storage import writing

    for files in done.collected.values():
        for name, content in files.items():
            with writing(Path(name)), open(name, "xb") as file:
                file.write(content)


def _became(program: Finished) -> str:
    if program.start_s is None:
        return "was not started: the run was over"
    if program.end_s is None or program.status is None:
        return "ran until the run ended"
    how = f"exited with status {program.status}" if program.status >= 0 else f"was ended by signal {-program.status}"
    return f"{how} after {program.seconds:.6f} s"


def _summary(done: Execution) -> list[str]:
    """A summary for people, in addition to the output: times, connections, and losses on the path."""
    lines = [f"{one.program.host}: {plain(one.program.shown(), 60)}: {_became(one)}" for one in done.programs]
    table = done.connections
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
    drops = int(done.tables["queues"]["drops"].sum()) if len(done.tables["queues"]) else 0
    lost = int(done.tables["links"]["lost"].sum()) if len(done.tables["links"]) else 0
    lines.append(f"path: {drops:,} packets dropped by queues, {lost:,} lost on links")
    cpu = "" if done.cpu_s is None else f" ({done.cpu_s:.1f} s of processor time)"
    lines.append(f"{done.end_s:.3f} s passed in there, {done.wall_s:.1f} s here{cpu}")
    return lines


def _described(done: Execution, places: dict[str, str]) -> dict[str, Any]:
    """The results as JSON values. The last program is the command; ``measures`` refers to it."""
    return {
        "programs": [
            {
                "host": one.program.host,
                "command": one.program.words(),
                "start_s": one.start_s,
                "end_s": one.end_s,
                "status": one.status,
                "stdout": one.stdout.decode(errors="replace"),
                "stderr": one.stderr.decode(errors="replace"),
            }
            for one in done.programs
        ],
        "measures": {name: done.programs[-1].value(place) for name, place in places.items()},
        "end_s": done.end_s,
        "wall_s": done.wall_s,
        "cpu_s": done.cpu_s,
    }


def _table(
    context: click.Context,
    scenario: Scenario,
    programs: list[Program],
    wanted: dict[str, Any],
    controls: tuple[str, ...],
    seeds: list[int],
    places: dict[str, str],
    jobs: int | None,
    as_json: bool,
) -> None:
    from statistics import median

    from sawtooth.bar import Bar
    from sawtooth.programs.runs import Task, row
    from sawtooth.work import fan_out

    tasks = [
        Task(scenario.set({"seed": seed}), programs, cc, places, wanted) for cc in controls or (None,) for seed in seeds
    ]
    rows: dict[int, dict[str, Any]] = {}
    with Bar("exec", len(tasks), quiet=is_quiet()) as bar:
        fan_out(
            row,
            tasks,
            done=rows.__setitem__,
            poll=lambda: bar.show(len(rows)),
            jobs=1 if wanted["engine"] == "netns" else jobs,
        )
    found = [rows[number] for number in range(len(tasks))]
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        names = ["seconds", *places]
        lines = [["cc", "seed", "status", *names]]
        lines += [
            [one["cc"] or "default", str(one["seed"]), str(one["status"]), *(_cell(one[n]) for n in names)]
            for one in found
        ]
        if len(seeds) > 1:
            lines.append([])
            for cc in controls or (None,):
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
