"""The command ``clean``: what killed runs left."""

from __future__ import annotations

import click

from sawtooth.cli.terminal import say
from sawtooth.plain import where


@click.command()
def clean() -> None:
    """Remove network namespaces and directories that killed runs left.

    Only those that sawtooth named, whose process is gone, and what still runs in them. Namespaces need root;
    directories of other users are passed over. The next run does the same.
    """
    from sawtooth.errors import SawtoothError
    from sawtooth.testbed.cleaning import clean

    removed, ended, refused = clean()
    for name in removed:
        say(f"removed {where(name)}")
    if ended:
        say(f"ended {len(ended)} processes")
    if refused:
        message = f"removing namespaces needs root: {', '.join(refused)}"
        raise SawtoothError("tool-missing", message, fix="run it as root")
    if not removed:
        say("nothing to remove")
