"""Options with the same meaning everywhere: --quiet and --verbose of all commands, and those that several share."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from sawtooth.cli import complete, terminal
from sawtooth.errors import InputError, SawtoothError

PARTLY = 5
"""Exit status: something that was read is damaged, and the answer covers the rest."""
LEAST_MEMORY = 1 << 30
"""Bytes of address space (``ulimit -v``) that a process needs to load the numerical libraries and do some work."""

engine_option = click.option(
    "--engine",
    shell_complete=complete.engines,
    default="sim",
    show_default=True,
    help="Engine: sim, model, kernel or netns.",
)


def settings_option(
    words: str = "Set a field of the scenario; repeatable.",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--set, as the parameter ``overrides``: values by dotted field."""
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="K=V",
        shell_complete=complete.assignments,
        callback=_overrides,
        help=words,
    )


def control_option(words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--cc: the name of a known congestion control, or None."""
    return click.option("--cc", shell_complete=complete.controls, callback=_control, help=words)


def _control(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    from sawtooth.whatif.observation import check_control

    if given is not None:
        check_control(given)
    return given


def _overrides(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, Any]:
    from sawtooth.scenario.overrides import parse_assignment

    return dict(parse_assignment(one) for one in given)


class SingleOption(click.Option):
    """An option that is refused with ``bad-usage`` if given twice. click would use the last value and silently ignore
    the others."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "multiple": True})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The one value, or None."""
        found = super().process_value(ctx, value)
        if found and len(found) > 1:
            fix = "give it once"
            raise InputError("bad-usage", f"is given {len(found)} times", field=self.opts[0], fix=fix)
        return found[0] if found else None


def _quiet(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    terminal.be_quiet(wanted)


def _verbose(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    terminal.be_verbose(wanted)


class Command(click.Command):
    """A command with the common options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += [
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_quiet,
                help="Print the answer only, no progress.",
            ),
            click.Option(
                ["-v", "--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_verbose,
                help="Also print each step and its time to standard error.",
            ),
        ]

    def invoke(self, context: click.Context) -> Any:
        """Like click's. Raises SawtoothError ``out-of-memory`` if there is too little memory: numerical libraries do
        not report this, they end the process or retry forever (OpenBLAS)."""
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit not in (resource.RLIM_INFINITY, -1) and limit < LEAST_MEMORY:
            message = f"the limit on memory is {limit >> 20} MiB, and sawtooth needs {LEAST_MEMORY >> 20}"
            raise SawtoothError("out-of-memory", message, fix="raise it: ulimit -v 4194304, or ulimit -v unlimited")
        return super().invoke(context)


class Group(click.Group):
    """A command with subcommands."""

    command_class = Command
    group_class = type


class Program(Group):
    """All commands, listed by purpose. A test fails if a command is in no section."""

    sections: Mapping[str, Sequence[str]] = {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, self.commands))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in names])
