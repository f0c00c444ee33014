"""The command ``completion``: prints the script for shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sawtooth.cli.common_options import Command
from sawtooth.cli.terminal import say

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command, short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which SHELL completes commands, options, studies, fields and controls.

    \b
      sawtooth completion bash >> ~/.bashrc
      sawtooth completion zsh >> ~/.zshrc
      sawtooth completion fish > ~/.config/fish/completions/sawtooth.fish
    """
    from sawtooth.cli.commands import sawtooth

    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(sawtooth, {}, "sawtooth", "_SAWTOOTH_COMPLETE").source())
