"""Shows an estimate of a link: the answer in one line, and the measured features in a table."""

from __future__ import annotations

from sawtooth.link_estimate.estimate import Estimate
from sawtooth.notebook.page import table


def text(estimate: Estimate) -> str:
    """Two lines."""
    heading, said, _, _ = parts(estimate)
    return "\n".join([heading, *(f"  {line}" for line in said)])


def parts(estimate: Estimate) -> tuple[str, list[str], list[str], list[str]]:
    """Heading, lines, pictures and tables for ``page``."""
    import pandas as pd

    state = estimate.state or f"inconclusive ({estimate.reason})"
    heading = f"Estimate of {estimate.source}: {state}"
    said = []
    if estimate.gets:
        said.append(f"a TCP flow gets {estimate.gets} ({estimate.within})")
    said += [estimate.text] * bool(estimate.text)
    said.append(f"{estimate.probes} probes, {estimate.start_s:.1f} to {estimate.end_s:.1f} s")
    measured = estimate.measured or {}
    shown = [table(pd.DataFrame({"measured": list(measured), "value": list(measured.values())}))] if measured else []
    return heading, said, [], shown
