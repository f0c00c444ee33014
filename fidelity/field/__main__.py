"""``python -m fidelity.field TRIAL …``, from the root of the checkout, with the environment of ``make setup``."""

from __future__ import annotations

import click

from fidelity.field.captures import captures
from fidelity.field.labelled import labelled
from fidelity.field.probes import probes


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def field() -> None:
    """Run sawtooth on a folder of data that others made, and print how it agrees with what is known of it."""


for trial in (captures, labelled, probes):
    field.add_command(trial)

if __name__ == "__main__":
    field(prog_name="python -m fidelity.field")
