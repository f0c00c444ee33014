"""Fields of a scenario by dotted path, as ``--set`` takes them: for completion in a shell."""

from __future__ import annotations

from sawtooth.scenario.problems import model_in
from sawtooth.scenario.scenario import Scenario


def fields() -> list[str]:
    """Each field of each table; those of a list without a place: ``flows.cc`` means all flows."""
    found: list[str] = []
    for name, field in Scenario.model_fields.items():
        table = field.alias or name
        below = model_in(field.annotation)
        inner = {} if below is None else below.model_fields
        found += [f"{table}.{one.alias or own}" for own, one in inner.items()] or [table]
    return sorted(found)
