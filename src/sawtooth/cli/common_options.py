"""Options of all commands: --quiet and --verbose, with the same meaning everywhere."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from typing import Any

import click

from sawtooth.cli import terminal
from sawtooth.errors import SawtoothError

LEAST_MEMORY = 1 << 30
"""Bytes of address space (``ulimit -v``) that a process needs to load the numerical libraries and do some work."""


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
