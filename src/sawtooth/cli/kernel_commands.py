"""Commands of the user-mode kernel and of the host: ``kernel build``, ``info``, ``list``, ``remove``; ``doctor``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sawtooth.cli.common_options import Command, Group
from sawtooth.cli.terminal import is_quiet, is_watched, redraw, say, say_folded, say_on_stderr, width
from sawtooth.errors import InputError, suggestion
from sawtooth.io.closing import Closing
from sawtooth.io.text_table import aligned
from sawtooth.sanitize import plain, where

if TYPE_CHECKING:
    from sawtooth.kernel import Kernel

LINE_EVERY_S = 15.0
"""Seconds between lines of progress in a log file; on a terminal, one line is updated."""


@click.group(cls=Group, short_help="Build, list and remove user-mode kernels.")
def kernel() -> None:
    """Build, list and remove the user-mode kernels of the engine kernel."""


@kernel.command()
@click.option("--hz", default=250, show_default=True, help="Timer ticks per second: 100, 250, 300 or 1000.")
@click.option(
    "--source", type=str, metavar="TARBALL-OR-DIRECTORY", help="Kernel source (default: Debian's linux-source-6.12)."
)
@click.option("--commit", metavar="COMMIT", help="Build this commit of the git repository --source; needs --name.")
@click.option(
    "--with", "modules", type=str, multiple=True, metavar="FILE.c", help="Build this congestion control in; repeatable."
)
@click.option(
    "--patch", "patches", type=str, multiple=True, metavar="FILE", help="Apply this patch with patch -p1; repeatable."
)
@click.option("--name", type=str, help="Name of this kernel in scenarios, for host.kernel.")
@click.option(
    "--as",
    "names",
    type=str,
    multiple=True,
    metavar="NAME=LINUX",
    help="Name in scenarios of a control that Linux calls LINUX; repeatable.",
)
@click.option("--jobs", type=click.IntRange(1), help="Parallel compilers (default: one per core).")
def build(
    hz: int,
    source: str | None,
    commit: str | None,
    modules: tuple[str, ...],
    patches: tuple[str, ...],
    name: str | None,
    names: tuple[str, ...],
    jobs: int | None,
) -> None:
    """Build the user-mode kernel, once; it takes a few minutes.

    It goes to ~/.cache/sawtooth (or below XDG_CACHE_HOME). The same command continues an interrupted build. As root it
    installs missing Debian packages; otherwise it names them.

    --with, --patch and --as make another kernel, which scenarios select with host.kernel. The kernel without additions
    stays the default. The source tree of the last build with additions is kept, so only what changed is compiled again.

    \b
      sawtooth kernel build
      sawtooth kernel build --with tcp_mine.c --name mine
    """
    from sawtooth.kernel import build as build_kernel

    given = dict(_pair(text) for text in names)
    with Lines() as lines:
        built = build_kernel(
            hz=hz,
            source_path=source,
            commit=commit,
            jobs=jobs,
            progress=lines.show,
            name=name,
            patches=patches,
            modules=modules,
            names=given,
        )
    called = f' "{built.name}"' if built.name else ""
    say(f"kernel{called} {built.version}, HZ {built.hz}: {where(built.path)}")
    for module in built.modules:
        if module["controls"]:
            say(f"{plain(module['file'])}: {', '.join(module['controls'])}")


def _pair(text: str) -> tuple[str, str]:
    ours, between, theirs = text.partition("=")
    if not between:
        fix = "write it like --as bbr3=bbr: the name in scenarios = the name in this kernel"
        raise InputError(
            "bad-usage", f'"{plain(text, 60)}" is not two names with = between them', field="--as", fix=fix
        )
    return ours, theirs


@kernel.command(short_help="Show the built kernels, or those called NAME.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(name: str | None, as_json: bool) -> None:
    """Show the built kernels, or those called NAME: version, HZ, controls, path, digests.

    \b
      sawtooth kernel info
    """
    from sawtooth.kernel.kernel import find, installed

    kernels = installed() if name is None else _named(name)
    if as_json:
        say(json.dumps([kernel.describe() for kernel in kernels], indent=2))
        return
    for kernel in kernels or [find()]:
        if kernel.name:
            say(f"name        {kernel.name}")
        say(f"version     {kernel.version}\nHZ          {kernel.hz}")
        say(f"algorithms  {' '.join(kernel.algorithms)}")
        for ours, theirs in kernel.names.items():
            say(f"alias       {ours} is this kernel's {theirs}")
        say(f"path        {where(kernel.path)}\ndigest      {kernel.digest}\nsource      {where(kernel.source)}")
        if kernel.source_sha256:
            say(f"SHA-256     {kernel.source_sha256}")
        if kernel.source_checked:
            say(f"checked     {kernel.source_checked}")
        for word, files in (("patched", kernel.patches), ("with", kernel.modules)):
            for file in files:
                say(f"{word:<12}{plain(file['file'])}, SHA-256 {file['sha256']}")
        say(f"built       {kernel.built}, in {kernel.build_s:.0f} s\n")


@kernel.command("list", short_help="List the kernels in the cache.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the kernels in the cache, including those of other sawtooth versions, and the kept source tree.

    \b
      sawtooth kernel list
    """
    from sawtooth.kernel.kernel import DEFAULT, cache_directory, everything, recipe
    from sawtooth.kernel.source_trees import kept

    kernels = everything()
    if as_json:
        say(json.dumps([kernel.describe() | {"size_bytes": _size(kernel.path.parent)} for kernel in kernels], indent=2))
        return
    if not kernels:
        say("no kernel is built: sawtooth kernel build")
    rows = [("NAME", "VERSION", "HZ", "SIZE", "BUILT (UTC)", "CONTROLS", "BUILT IN")]
    for kernel in kernels:
        name = kernel.name or (DEFAULT if kernel.is_plain else kernel.digest)
        if kernel.recipe != recipe():
            name += " (old)"
        added = [plain(file["file"]) for file in (*kernel.patches, *kernel.modules)]
        size = f"{_size(kernel.path.parent) / 1e6:.0f} MB"
        built = kernel.built[:16].replace("T", " ")
        rows.append((name, kernel.version, str(kernel.hz), size, built, _controls(kernel), " ".join(added)))
    if kernels:
        say("\n".join(aligned(rows, range(len(rows[0])), width())))
    for tree in kept(cache_directory() / "build"):
        say(f"kept for the next build: {where(tree)}, {_size(tree) / 1e9:.1f} GB (sawtooth kernel remove --trees)")


@kernel.command()
@click.argument("name", required=False)
@click.option("--trees", is_flag=True, help="Also remove the copies of the source that builds left.")
def remove(name: str | None, trees: bool) -> None:
    """Remove the kernels called NAME, with every HZ.

    For a kernel without a name, give its digest from sawtooth kernel list.

    \b
      sawtooth kernel remove mine
    """
    from sawtooth.kernel.build import remove_trees

    if name is None and not trees:
        raise InputError(
            "bad-usage",
            "this command needs a kernel or --trees",
            fix="name a kernel that sawtooth kernel list shows, or add --trees",
        )
    for kernel in _named(name) if name is not None else []:
        kernel.remove()
        say(f"removed {where(kernel.path.parent)}")
    if trees:
        with Lines() as lines:
            removed = remove_trees(lines.show)
        for tree in removed:
            say(f"removed {where(tree)}")


@kernel.command(short_help="Compare the TCP of kernels.")
@click.argument("kernels", nargs=-1, metavar="KERNEL KERNEL…")
@click.option("--file", type=str, metavar="FILE", help="Catalogue of behaviors (default: the one of sawtooth).")
@click.option(
    "--only", multiple=True, metavar="PART", help="Run only situations with this part, like loss or cubic; repeatable."
)
@click.option("--list", "listed", is_flag=True, help="List the situations and run nothing.")
@click.option("--hz", default=250, show_default=True, help="Timer ticks per second of the kernels.")
@click.option("--seeds", type=click.IntRange(2, 1000), help="Run with seeds 1 … N (default: the catalogue's).")
@click.option(
    "--within", default="1%", show_default=True, help="Largest difference of means, relative to the first kernel."
)
@click.option("--out", type=str, default="results/kernels", show_default=True, help="Directory for results.")
@click.option("--jobs", type=click.IntRange(1), help="Guests at once (default: one per core).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def compare(
    context: click.Context,
    kernels: tuple[str, ...],
    file: str | None,
    only: tuple[str, ...],
    listed: bool,
    hz: int,
    seeds: int | None,
    within: str,
    out: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare the TCP of kernels over a catalogue of behaviors.

    Each KERNEL is a --name given to sawtooth kernel build, or default. The first is the reference. Print what changed,
    and write a page and a table. The same command continues an interrupted one. The exit status is 0 if no behavior
    changed, 3 if one did, and 4 if none did but some are inconclusive.

    \b
      sawtooth kernel compare v6.1 default
      sawtooth kernel compare v6.1 default v7.3 --only loss --seeds 3
    """
    from sawtooth.behaviors import Catalogue, compared, measure, words, write_page
    from sawtooth.behaviors.changes import CHANGED, INCONCLUSIVE
    from sawtooth.cli.compare_command import CANNOT_TELL, DIFFERS
    from sawtooth.compare import tolerance
    from sawtooth.kernel.kernel import find

    catalogue = Catalogue.load(file).chosen(only)
    if listed:
        descriptions = [
            {"situation": one.name, "title": one.title, "measures": one.measures} for one in catalogue.situations
        ]
        rows = [["situation", "measures"], *([one.name, " ".join(one.measures)] for one in catalogue.situations)]
        say(json.dumps(descriptions, indent=2, ensure_ascii=False) if as_json else "\n".join(aligned(rows, (0, 1))))
        return
    limit = tolerance(within)
    if len(kernels) < 2:
        fix = "name the reference and at least one other kernel: sawtooth kernel list"
        raise InputError("bad-usage", "one kernel has nothing to be compared with", field="KERNEL", fix=fix)
    twice = next((name for name in kernels if kernels.count(name) > 1), None)
    if twice is not None:
        fix = "name each kernel once; sawtooth kernel list shows their names"
        raise InputError("bad-usage", f'"{plain(twice, 60)}" is named twice', field="KERNEL", fix=fix)
    chosen = [find(hz, name) for name in kernels]
    with Lines() as lines:
        found = measure(
            chosen,
            catalogue,
            Path(out) / "measured",
            seeds=None if seeds is None else range(1, seeds + 1),
            jobs=jobs,
            show=lambda done, all_: lines.show("measuring", done / all_ if all_ else None),
        )
    comparisons = [compared(found[0], one, catalogue, limit) for one in found[1:]]
    page = write_page(comparisons, catalogue, Path(out))
    if as_json:
        about = {"page": str(page), "comparisons": [one.describe() for one in comparisons]}
        say(json.dumps(about, indent=2, ensure_ascii=False))
    else:
        say_folded(words(comparisons, width()))
        say(f"\npage: {where(page)}")
    for verdict, status in ((CHANGED, DIFFERS), (INCONCLUSIVE, CANNOT_TELL)):
        if any(one.count(verdict) for one in comparisons):
            context.exit(status)


def _named(name: str) -> list[Kernel]:
    """The kernels of this name, with any HZ, from any version of sawtooth. Raises SawtoothError ``unknown-name``."""
    from sawtooth.kernel.kernel import DEFAULT, everything

    kernels = everything()
    found = [one for one in kernels if name in (one.digest, one.name or (DEFAULT if one.is_plain else one.digest))]
    if not found:
        known = {one.name or (DEFAULT if one.is_plain else one.digest) for one in kernels}
        raise InputError(
            "unknown-name", f'no kernel is called "{plain(name, 60)}"', fix=suggestion(name, sorted(known))
        )
    return found


def _controls(kernel: Kernel) -> str:
    """All congestion controls; if there are many, their number and those that are not part of Linux."""
    from sawtooth.scenario import LINUX_CONTROLS

    own = [name for name in kernel.controls if name not in LINUX_CONTROLS or name in kernel.names]
    return " ".join(kernel.controls) if len(kernel.controls) <= 4 else " ".join([str(len(kernel.controls)), *own])


def _size(directory: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in directory.rglob("*"))


@click.command(cls=Command, short_help="Check which engines work here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Check which engines work here, why others do not, and which host settings matter to TCP.

    Nothing on this host changes. Trials run in a network namespace that ends with the command.

    \b
      sawtooth doctor
    """
    from sawtooth.doctor import examine, words

    found = examine()
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        say_folded(words(found))


class Lines(Closing):
    """Progress on standard error: the current activity, the finished fraction, the time."""

    def __init__(self) -> None:
        self._quiet = is_quiet()
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
            say_on_stderr(line)

    def close(self) -> None:
        if self._terminal and not self._quiet:
            say_on_stderr()
