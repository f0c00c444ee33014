"""Lab links: addresses of the laboratory's page that ask it for a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sawtooth.lab.requests import FIELDS
from sawtooth.scenario import Scenario

_WITHOUT_EFFECT = ("name", "topology", "traffic", "interval")
"""Fields without effect on the result, which links leave out."""


def lab_link(tables: Mapping[str, Any]) -> str | None:
    """The part of the address after the page's name. ``tables``: of a whole scenario, as
    ``Scenario.to_dict`` has them. None if a field that differs from its default is unknown to the page."""
    default = Scenario.from_dict({"flows": [{}]}).to_dict()
    if tables["topology"] != default["topology"] or not isinstance(tables["path"].get("loss", ""), str):
        return None
    fields: dict[str, Any] = {}
    for name, value in tables.items():
        if name in ("path", "host"):
            fields[name] = _changed(name, value, default[name])
        elif name == "flows":
            fields[name] = [_changed(name, flow, default[name][0]) for flow in value]
    fields |= _changed(
        "", {name: one for name, one in tables.items() if name not in (*fields, *_WITHOUT_EFFECT)}, default
    )
    if any(None in part.values() for part in (fields, fields["path"], fields["host"], *fields["flows"])):
        return None
    if not all(isinstance(flow.get("cc", ""), str) for flow in fields["flows"]):
        return None
    # Only characters that the page itself writes into links.
    return "#" + quote(json.dumps(fields, separators=(",", ":")), safe=":,/").replace("~", "%7E")


def _changed(table: str, given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that differ from the default; None for one that the page lacks."""
    return {
        name: value if name in FIELDS[table] else None for name, value in given.items() if value != default.get(name)
    }
