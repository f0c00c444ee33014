"""The command ``clean``: removes what killed runs left behind."""

from __future__ import annotations

import json

import click

from sawtooth.cli.common_options import Command
from sawtooth.cli.terminal import say
from sawtooth.sanitize import where


@click.command(cls=Command, short_help="Remove what killed runs left behind.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def clean(as_json: bool) -> None:
    """Remove network namespaces and directories that killed runs left.

    Only those that sawtooth created, whose process is gone, and whatever still runs in them. Namespaces need root.
    Directories of other users are left alone. The next run does the same by itself.

    \b
      sawtooth clean
    """
    from sawtooth.errors import SawtoothError
    from sawtooth.testbed.cleaning import clean

    removed, ended, refused = clean()
    if as_json:
        values = {"removed": [str(name) for name in removed], "ended": sorted(ended), "refused": list(refused)}
        say(json.dumps(values, indent=2))
    for name in [] if as_json else removed:
        say(f"removed {where(name)}")
    if ended and not as_json:
        say(f"ended {len(ended)} processes")
    if refused:
        message = f"removing namespaces needs root: {', '.join(refused)}"
        raise SawtoothError("tool-missing", message, fix="run as root: sudo sawtooth clean")
    if not removed and not as_json:
        say("nothing to remove")
