"""Commands of congestion controls: ``cc list``, ``cc show``."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli import complete
from sawtooth.cli.common_options import Group
from sawtooth.cli.terminal import say, say_folded, width
from sawtooth.errors import InputError, suggestion
from sawtooth.io.text_table import aligned
from sawtooth.sanitize import plain, where

if TYPE_CHECKING:
    from sawtooth.congestion_control import Availability

_ABSENT = "–"
_FACTS = ("title", "law", "source", "parameters")


@click.group(cls=Group, short_help="List and show congestion controls.")
def cc() -> None:
    """List and show congestion controls: which engine has them, and what each does."""


@cc.command("list", short_help="List congestion controls and the engines that have them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List all known congestion controls and the engines that have them here.

    The column kernel names the kernels that have the control, as in sawtooth kernel list; netns is this host's kernel.

    \b
      sawtooth cc list
    """
    from sawtooth.congestion_control import having
    from sawtooth.scenario import CONTROLS

    found = having()
    if as_json:
        say(json.dumps([asdict(one) | _described(one.name) for one in found], indent=2, ensure_ascii=False))
        return
    rows = [("NAME", "SIM", "MODEL", "NETNS", "KERNEL", "PARAMETERS ON A KERNEL")]
    for one in found:
        parameters = CONTROLS[one.name].parameters if one.name in CONTROLS else ""
        rows.append(
            (
                plain(one.name),
                "own" if one.sim else _ABSENT,
                "formula" if one.model else _ABSENT,
                "yes" if one.host else _ABSENT,
                _kernels(one) or _ABSENT,
                parameters,
            )
        )
    across = width()
    left = 60 if across is None else across - sum(max(len(row[at]) for row in rows) + 2 for at in range(5))
    rows = [(*row[:5], textwrap.shorten(row[5], max(24, min(60, left)), placeholder=" …")) for row in rows]
    say("\n".join(aligned(rows, range(6))))


@cc.command(short_help="Show one: rules, source, response to loss.")
@click.argument("name", shell_complete=complete.controls)
@click.option("--engine", default="sim", show_default=True, help="Engine that measures the curve: sim or kernel.")
@click.option("--kernel", help="Kernel to boot with --engine kernel, by name (default: the one without additions).")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Seeds at each loss rate.")
@click.option("--out", type=str, metavar="DIR", help="Also write the curve into this directory: CSV, PNG and SVG.")
@click.option("--no-curve", is_flag=True, help="Do not measure the response curve.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    name: str, engine: str, kernel: str | None, seeds: int, out: str | None, no_curve: bool, as_json: bool
) -> None:
    """Show a congestion control: its rules, its source, its engines, and its goodput against loss.

    The response curve, from 0.001 to 20% loss, is measured when you ask: seconds on sim, minutes on kernel.

    \b
      sawtooth cc show bbr
    """
    from sawtooth.congestion_control import having, response

    found = {one.name: one for one in having()}
    if name not in found:
        message = f'no congestion control is named "{plain(name, 60)}"'
        raise InputError("unknown-name", message, fix=suggestion(name, found))
    one = found[name]
    if not as_json:
        say_folded(_words(one))
    simulated = engine == "sim" and not one.sim
    curve = None if no_curve or simulated else response(name, engine=engine, kernel=kernel, seeds=seeds)
    if as_json:
        table = {} if curve is None else {"response": curve.table.astype(object).where(curve.table.notna(), None)}
        records = {key: value.to_dict("records") for key, value in table.items()}
        say(json.dumps(asdict(one) | _described(name) | records, indent=2, ensure_ascii=False))
    elif curve is not None:
        say_folded(f"\n{curve.words()}")
    elif not no_curve:
        say("\nThe engine sim has none of its own: --engine kernel measures the curve, in minutes.")
    if curve is not None and out is not None:
        for path in curve.save(Path(out)):
            if not as_json:
                say(f"wrote {where(path)}")


def _words(one: Availability) -> str:
    from sawtooth.congestion_control import distance
    from sawtooth.scenario import CONTROLS

    facts = CONTROLS.get(one.name)
    lines = [f"{one.name}: {facts.title}" if facts else f"{plain(one.name)}: built into a kernel here"]
    if facts:
        lines += ["", *textwrap.wrap(facts.law, 100), "", f"source      {facts.source}"]
        lines.append(f"parameters  {facts.parameters or 'none'}")
        variants = [name for name in facts.simulated if name is not None]
        lines += [f"variants    {', '.join(variants)} (engine sim)"] * bool(variants)
    engines = [word for word, has in (("sim", one.sim), ("model", one.model), ("netns", one.host)) if has]
    if one.kernels:
        engines.append(f"kernel ({_kernels(one)})")
    lines.append(f"engines     {', '.join(engines) or 'none here'}")
    if (far := distance(one.name)) is not None:
        shares = ", ".join(f"{word} {size:.1%}" for word, size in (("median", far.median), ("90%", far.p90)))
        lines.append(
            f"from kernel {shares}, worst {far.worst:.1%} ({far.worst_point}); {far.points} points of {far.grid}"
        )
    return "\n".join(lines)


def _kernels(one: Availability) -> str:
    return ", ".join(f"{kernel} as {own}" if own != one.name else kernel for kernel, own in one.kernels.items())


def _described(name: str) -> dict[str, Any]:
    from sawtooth.congestion_control import distance
    from sawtooth.scenario import CONTROLS

    far = distance(name)
    facts = {key: getattr(CONTROLS[name], key) for key in _FACTS} if name in CONTROLS else {}
    return facts | {"distance": None if far is None else asdict(far)}
