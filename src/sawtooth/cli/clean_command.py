"""The command ``clean``: what a killed run of the engine netns left."""

from __future__ import annotations

import click

from sawtooth.cli.terminal import say
from sawtooth.plain import where


@click.command()
def clean() -> None:
    """Remove network namespaces and directories that killed runs left.

    Only those that sawtooth named, whose process is gone, and what still runs in them. Namespaces need root.
    """
    from sawtooth.errors import SawtoothError
    from sawtooth.testbed import names

    try:
        removed, ended = names.clean()
    except PermissionError as error:
        raise SawtoothError("tool-missing", "removing namespaces needs root", fix="run it as root") from error
    for name in removed:
        say(f"removed {where(name)}")
    if ended:
        say(f"ended {len(ended)} processes")
    if not removed:
        say("nothing to remove")
