"""Writes the estimate as a scenario file that any engine runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sawtooth.io.atomic_io import write_bytes
from sawtooth.scenario import Scenario
from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.observation import CONTROLS, Observed
from sawtooth.whatif.runs import middle, scenario
from sawtooth.whatif.shared import learned, may_use


def save_scenario(path: Path | str, observed: Observed, estimate: Estimate, *, seed: int = 1) -> Scenario:
    """Writes the estimate's middle values as TOML, with each interval in a comment, and returns the scenario.

    The flow has the observed congestion control, or CUBIC if it is unknown; ``--set flows.cc=bbr`` changes it. Raises
    SawtoothError ``unwritable-output`` or ``disk-full``.
    """
    cc = observed.cc if observed.cc in CONTROLS else "cubic"
    written = scenario(observed, estimate, middle(estimate, seed), cc)
    lines = [f"# Estimated from {observed.source}: {_plain(observed.what)}"]
    if learned().knows(observed):
        lines.append(f"# {may_use(observed)}; the answers were learned, not run on this path.")
    lines += [
        f"# {name}: {value.value:.4g}, 90% {value.low:.4g} … {value.high:.4g}; {value.how}"
        for name, value in estimate.quantities.items()
    ]
    tables = written.to_dict()
    flows, nested = tables.pop("flows"), {name: part for name, part in tables.items() if isinstance(part, dict)}
    lines += [""] + [f"{name} = {_value(part)}" for name, part in tables.items() if not isinstance(part, dict)]
    for name, part in nested.items():
        lines += ["", f"[{name}]", *(f"{field} = {_value(value)}" for field, value in part.items())]
    for flow in flows:
        lines += ["", "[[flows]]", *(f"{field} = {_value(value)}" for field, value in flow.items())]
    write_bytes(Path(path), ("\n".join(lines) + "\n").encode())
    return written


def _plain(text: str) -> str:
    """Text that is safe in a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _value(value: Any) -> str:
    """TOML of text, integers, booleans and tables on one line. JSON's text is valid TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(part)}" for name, part in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
