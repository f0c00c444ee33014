"""Reads the scenarios that a page asks to run. Only the fields that the page has are allowed.

Many other fields of a scenario file name files; a page must not be able to set them.
"""

from __future__ import annotations

from typing import Any

from sawtooth.errors import InputError
from sawtooth.io.untrusted import json_value
from sawtooth.scenario import Scenario
from sawtooth.scenario.toml import parse_toml

JSON, TOML = "application/json", "application/toml"
FIELDS = {
    "": ("name", "topology", "duration", "interval", "seed", "path", "host", "flows"),
    "path": ("rate", "reverse_rate", "rtt", "queue", "loss", "ack_loss"),
    "host": ("ecn", "ecn_fallback", "receive_buffer", "processing", "hz"),
    "flows": ("name", "cc", "count", "start", "duration", "bytes"),
}
"""Allowed fields, as in web/lab/scenario.ts."""
_HERE = "run it with the command line"


def read(text: str, kind: str) -> list[Scenario]:
    """Read a TOML file, or the JSON of a link. Returns one scenario; for a link with ``alone``, one scenario per flow,
    which has the path for itself.

    Raises SawtoothError with the field: ``not-toml``, ``wrong-type``, ``unsupported``, and the errors of
    ``Scenario.from_dict``, ``Scenario.compile`` and the engine ``sim``.
    """
    from sawtooth.engines import get

    fields = parse_toml(text) if kind == TOML else _json(text)
    alone = kind == JSON and fields.pop("alone", False) is True
    _refuse_unsupported(fields)
    whole = Scenario.from_dict(fields)
    get("sim").check(whole)
    if not alone:
        return [whole]
    flows = fields.get("flows", [{}])
    named = zip(flows, whole.flow_names, strict=True)
    return [Scenario.from_dict(fields | {"flows": [flow | {"name": name}]}) for flow, name in named]


def _json(text: str) -> dict[str, Any]:
    try:
        value = json_value(text)
    except ValueError as error:
        raise InputError(
            "wrong-type", f"that is not a scenario: {error}", fix="send the JSON that a link to the page holds"
        ) from error
    if not isinstance(value, dict):
        raise InputError("wrong-type", "a scenario is a table", fix="send the JSON that a link to the page holds")
    return value


def _refuse_unsupported(fields: dict[str, Any]) -> None:
    _refuse_unknown_fields(fields, "", "")
    topology = fields.get("topology", "path")
    if topology != "path":
        raise InputError("unsupported", "the laboratory has only the topology path", field="topology", fix=_HERE)
    for name in ("path", "host"):
        if isinstance(fields.get(name), dict):
            _refuse_unknown_fields(fields[name], name, name)
    flows = fields.get("flows", [])
    for at, flow in enumerate(flows if isinstance(flows, list) else []):
        if not isinstance(flow, dict):
            continue
        _refuse_unknown_fields(flow, "flows", f"flows.{at}")
        cc = flow.get("cc", "")
        if not isinstance(cc, str) and not (isinstance(cc, dict) and cc.keys() <= {"name", "variant"}):
            message = "the laboratory has only controls by name, and their variants"
            raise InputError("unsupported", message, field=f"flows.{at}.cc", fix=_HERE)


def _refuse_unknown_fields(fields: dict[str, Any], table: str, where: str) -> None:
    for name in fields:
        if name not in FIELDS[table]:
            field = f"{where}.{name}" if where else name
            fix = f"{_HERE}; fields here: {', '.join(FIELDS[table])}"
            raise InputError("unsupported", "the laboratory does not have this field", field=field, fix=fix)
