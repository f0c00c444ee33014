"""What all commands have: --quiet and --verbose, which mean the same everywhere."""

from __future__ import annotations

from typing import Any

import click

from sawtooth.cli import terminal


def _quiet(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    terminal.be_quiet(wanted)


def _verbose(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    terminal.be_verbose(wanted)


class Command(click.Command):
    """A command with the options that all have."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += [
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_quiet,
                help="Show no progress, only the answer.",
            ),
            click.Option(
                ["-v", "--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_verbose,
                help="Also say, on standard error, what is being done and how long it took.",
            ),
        ]


class Group(click.Group):
    """A command of commands."""

    command_class = Command
    group_class = type
