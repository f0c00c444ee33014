"""All commands, and a clear message and exit status for every error.

Exit status: 0 success, 1 failure, 2 wrong input, 3 compared runs differ too much or an expectation fails, 4 the runs
are inconclusive, 5 only part of a damaged capture was analysed, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from sawtooth.cli.capture_command import capture
from sawtooth.cli.cc_commands import cc
from sawtooth.cli.check_command import check
from sawtooth.cli.clean_command import clean
from sawtooth.cli.commands import sawtooth
from sawtooth.cli.compare_command import compare
from sawtooth.cli.completion import completion
from sawtooth.cli.congestion_command import congestion
from sawtooth.cli.exec_command import exec_
from sawtooth.cli.explain_command import explain
from sawtooth.cli.find_command import find
from sawtooth.cli.kernel_bisect import bisect
from sawtooth.cli.kernel_commands import doctor, kernel
from sawtooth.cli.lab_command import lab
from sawtooth.cli.packetdrill_command import packetdrill
from sawtooth.cli.probe_command import probe
from sawtooth.cli.process import prepared, prepared_messages
from sawtooth.cli.query_command import query
from sawtooth.cli.replicate_command import replicate
from sawtooth.cli.results_commands import results
from sawtooth.cli.scoreboard_command import scoreboard
from sawtooth.cli.terminal import say, say_on_stderr
from sawtooth.cli.watch_command import watch
from sawtooth.cli.whatif_command import whatif
from sawtooth.errors import BAD_INPUT, FAILURE, SawtoothError, unforeseen

for _command in (
    capture,
    cc,
    check,
    clean,
    compare,
    completion,
    congestion,
    doctor,
    explain,
    find,
    kernel,
    lab,
    packetdrill,
    probe,
    query,
    replicate,
    results,
    scoreboard,
    watch,
    whatif,
    exec_,
):
    sawtooth.add_command(_command)
kernel.add_command(bisect)

SECTIONS = {
    "Questions": ("predict", "run", "find", "explain", "whatif", "compare", "check"),
    "Experiments": ("exec", "studies", "scoreboard", "replicate", "packetdrill", "show", "cc", "lab"),
    "Captures and live connections": ("capture", "watch", "probe", "congestion"),
    "Results": ("results", "report", "query"),
    "Setup": ("doctor", "kernel", "clean", "completion", "schema"),
}
"""The commands by purpose, in the order of ``sawtooth --help``."""
sawtooth.sections = SECTIONS


def status_of(arguments: Sequence[str] | None) -> int:
    """Run the command line. ``arguments``: those after the program's name. Returns the exit status."""
    try:
        with prepared():
            return _called(None if arguments is None else list(arguments))
    except SawtoothError as error:
        return _say(error)
    except (KeyboardInterrupt, click.Abort):
        return _say(SawtoothError("interrupted", "interrupted", fix="give the same command again"))
    except BrokenPipeError:
        # The reader of our output has closed it.
        return FAILURE
    except Exception as error:
        if "SAWTOOTH_TRACEBACK" in os.environ:
            traceback.print_exception(error)
        return _say(unforeseen(error))


def _called(arguments: list[str] | None) -> int:
    try:
        given = sawtooth.main(args=arguments, prog_name="sawtooth", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return BAD_INPUT
    except click.UsageError as error:
        # Use click's message; the fix names the command.
        command = error.ctx.command_path if error.ctx is not None else "sawtooth"
        raise SawtoothError("bad-usage", error.format_message(), fix=f"see {command} --help") from error
    except click.exceptions.Exit as stop:
        return stop.exit_code
    sys.stdout.flush()
    # Click returns the status of a command that exited with one.
    return given if isinstance(given, int) else 0


def _say(error: SawtoothError) -> int:
    with prepared_messages():
        say_on_stderr(str(error))
    return error.exit_status
