"""Preconditions: reports what a scenario lacks to have a measure that a goal uses."""

from __future__ import annotations

from sawtooth.errors import InputError
from sawtooth.scenario import Scenario
from sawtooth.study.application import KINDS
from sawtooth.study.measures import LATENCY, RPM


def lacking(name: str, scenario: Scenario) -> InputError | None:
    """The error for asking a scenario for ``name``, a column of a study's table; None if it may have it."""
    kind = next((kind for kind, told in KINDS.items() if name in told.columns), None)
    kinds = {flow.source.kind for flow in scenario.flows if flow.source is not None}
    if kind is not None and kind not in kinds:
        fix = f'give a flow source = {{ kind = "{kind}" }}, or ask for another measure'
        return InputError(
            "unknown-name", f"{name} needs a flow with a source of kind {kind}, and this scenario has none", fix=fix
        )
    if name in (*LATENCY, *RPM) and not scenario.probes:
        fix = 'add probes = [{ interval = "100 ms" }], or ask for another measure'
        return InputError("unknown-name", f"{name} needs a probe, and this scenario has none", fix=fix)
    return None
