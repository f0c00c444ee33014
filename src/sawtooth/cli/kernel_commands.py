"""The commands of the user-mode kernel and of the host: ``kernel build``, ``kernel info``, ``doctor``."""

from __future__ import annotations

import json
import time

import click

from sawtooth.cli.terminal import is_watched, redraw, say, tell
from sawtooth.plain import where

LINE_EVERY_S = 15.0
"""Between two lines of progress in a log file; a terminal has one line that changes."""


@click.group()
def kernel() -> None:
    """Build and show the user-mode kernel of the engine "kernel"."""


@kernel.command()
@click.option("--hz", default=250, show_default=True, help="Timer ticks a second: 100, 250, 300 or 1000.")
@click.option("--source", type=str, metavar="TARBALL-OR-DIRECTORY", help="Default: Debian's linux-source-6.12.")
@click.option("--jobs", type=click.IntRange(1), help="Compilers at once; one a core by default.")
@click.option("--quiet", is_flag=True, help="No progress.")
def build(hz: int, source: str | None, jobs: int | None, quiet: bool) -> None:
    """Build the user-mode kernel, a few minutes, once.

    It goes to ~/.cache/sawtooth (or below XDG_CACHE_HOME). An interrupted build goes on where it stopped when the same
    command is given again. As root, missing Debian packages are installed; otherwise they are named.
    """
    from sawtooth.kernel import build as build_kernel

    with _Lines(quiet) as lines:
        built = build_kernel(hz=hz, source_path=source, jobs=jobs, progress=lines.show)
    say(f"kernel {built.version}, HZ {built.hz}: {where(built.path)}")


@kernel.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(as_json: bool) -> None:
    """Show the kernels that are built: version, HZ, congestion controls, path."""
    from sawtooth.kernel.kernel import find, installed

    kernels = installed()
    if as_json:
        say(json.dumps([kernel.describe() for kernel in kernels], indent=2))
        return
    for kernel in kernels or [find()]:
        say(f"version     {kernel.version}\nHZ          {kernel.hz}")
        say(f"algorithms  {' '.join(kernel.algorithms)}\npath        {where(kernel.path)}")
        say(f"digest      {kernel.digest}\nsource      {where(kernel.source)}")
        if kernel.source_sha256:
            say(f"SHA-256     {kernel.source_sha256}")
        if kernel.source_checked:
            say(f"checked     {kernel.source_checked}")
        say(f"built       {kernel.built}, in {kernel.build_s:.0f} s\n")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say which engines work here and why not, and what of this host matters to TCP.

    Nothing is changed: what has to be tried is tried in a network namespace that ends with the command.
    """
    from sawtooth.doctor import examine, words

    found = examine()
    say(json.dumps(found, indent=2) if as_json else words(found))


class _Lines:
    """Progress on standard error: what is being done, how much of it, for how long."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = is_watched()
        self._begun = time.monotonic()
        self._last = ("", -LINE_EVERY_S)

    def show(self, what: str, fraction: float | None) -> None:
        now = time.monotonic()
        stage, shown_at = self._last
        if self._quiet or (what == stage and now - shown_at < (0.2 if self._terminal else LINE_EVERY_S)):
            return
        self._last = (what, now)
        minutes, seconds = divmod(int(now - self._begun), 60)
        done = "" if fraction is None else f" {fraction:4.0%}"
        line = f"{minutes}:{seconds:02} {what}{done}"
        if self._terminal:
            redraw(line)
        else:
            tell(line)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal and not self._quiet:
            tell()
