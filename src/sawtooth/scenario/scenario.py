"""The scenario: what is asked of an engine. Frozen, validated, every quantity with a unit."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections import deque
from collections.abc import Mapping
from os import PathLike
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, PrivateAttr, StringConstraints, ValidationError, model_validator
from pydantic.json_schema import GenerateJsonSchema

from sawtooth.compiled import Compiled
from sawtooth.errors import InputError, SawtoothError
from sawtooth.plain import is_plain
from sawtooth.scenario import overrides
from sawtooth.scenario.arrivals import Arrivals
from sawtooth.scenario.asks import Asking
from sawtooth.scenario.compiler import compile_scenario, flow_names, probe_names
from sawtooth.scenario.control import Module, Variant, check_control, check_variant
from sawtooth.scenario.datagrams import Udp
from sawtooth.scenario.names import Name, one_line
from sawtooth.scenario.part import Part
from sawtooth.scenario.parts import (
    MAX_SAMPLES,
    Card,
    Chain,
    Dumbbell,
    Flow,
    Home,
    Host,
    Link,
    ParkingLot,
    Path,
    Probe,
    Route,
)
from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.ranges import between
from sawtooth.scenario.sources import anchored, content_digest, with_contents
from sawtooth.scenario.toml import read_toml
from sawtooth.scenario.topology import link_name
from sawtooth.scenario.traces import trace_digest
from sawtooth.scenario.units import Quantity, Span

Topology = Literal["path", "chain", "chain-asymmetric", "dumbbell", "parking-lot", "home", "custom"]
Traffic = Literal["iperf3", "native"]
_TABLE_OF = {
    "path": "path",
    "chain": "chain",
    "chain-asymmetric": "chain",
    "dumbbell": "dumbbell",
    "parking-lot": "parking-lot",
    "home": "home",
}
"""By topology: the name of its table."""
_MODELS: dict[str, type[Part]] = {
    "path": Path,
    "chain": Chain,
    "dumbbell": Dumbbell,
    "parking-lot": ParkingLot,
    "home": Home,
}
_DRAWN = ("cards", "links", "routes")
_LONGEST_NAME = 100
_KEPT = 16
_latest: deque[weakref.ref[Scenario]] = deque()
"""Scenarios that keep their compiled form. A run asks for it often; a study holds thousands of scenarios, and the form
of a thousand pairs of hosts takes a megabyte."""


class _TextDefaults(GenerateJsonSchema):
    """Shows a default as a file would spell it: quantities as text, nothing for what is absent."""

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Quantity):
            return str(dft)
        if isinstance(dft, Part):
            return dft.model_dump(mode="json", by_alias=True, exclude_none=True)
        if isinstance(dft, tuple):
            return [self.encode_default(one) for one in dft]
        return super().encode_default(dft)


class Scenario(Part):
    """One experiment: a network, its flows and how long to watch them.

    Made by ``load``, ``from_dict`` or keywords (text with units, or the values of ``sawtooth.scenario``); each raises
    SawtoothError with file, field and fix. Two scenarios are equal when they ask the same, however it was written.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,100}$"), AfterValidator(one_line)] = Field(
        "scenario", description="name of the results; absent: the file's name without .toml"
    )
    topology: Topology = Field("path", description=f"{', '.join(get_args(Topology)[:-1])} or custom")
    duration: Annotated[Span, between("1 ms", "30 d", Span)] = Field(
        Span.parse("60 s"), description="length of the run"
    )
    warmup: Span = Field(
        Span(0),
        description="first part of the run that the statistics discard; the tables keep it. 0 s: slow start counts",
    )
    interval: Annotated[Span, between("1 ms", "30 d", Span)] = Field(
        Span.parse("1 s"), description="sampling interval of the tables"
    )
    seed: int = Field(1, ge=0, le=2**63 - 1, description="seed for every random generator")
    traffic: Traffic = Field(
        "iperf3",
        description="traffic source on the engines kernel and netns: iperf3, or sawtooth's lighter source (native); "
        "other engines ignore it",
    )
    ip: Literal[4, 6] | None = Field(None, description="IP version; 6 makes every frame 20 bytes longer; absent: 4")
    queue_delays: bool = Field(
        False,
        description="also record percentiles of the queue delay of tail-drop queues, on the engine sim; "
        "no other result "
        "changes, and runs take about 2% longer. Other engines ignore it",
    )
    path: Path | None = Field(None, description='network of topology "path"')
    chain: Chain | None = Field(None, description='network of topologies "chain" and "chain-asymmetric"')
    dumbbell: Dumbbell | None = Field(None, description='network of topology "dumbbell"')
    parking_lot: ParkingLot | None = Field(None, alias="parking-lot", description='network of topology "parking-lot"')
    home: Home | None = Field(None, description='network of topology "home"')
    host: Host = Field(Host(), description="settings of every host")
    hosts: dict[Name, Host] = Field({}, description="settings of single hosts; in a custom topology, all hosts")
    cards: dict[Name, Card] = Field({}, description='network cards of topology "custom", by host')
    links: tuple[Link, ...] = Field((), strict=False, description='links of topology "custom"')
    routes: tuple[Route, ...] = Field((), strict=False, description='routes of topology "custom"; absent: fewest hops')
    flows: tuple[Flow, ...] = Field(
        (Flow(),), strict=False, description="flows; absent: one cubic flow from end to end"
    )
    probes: tuple[Probe, ...] = Field((), strict=False, description="probes; absent: none")

    _source: str | None = PrivateAttr(None)
    _compiled: Compiled | None = PrivateAttr(None)

    def __init__(self, /, **tables: Any) -> None:
        try:
            super().__init__(**tables)
        except ValidationError as error:
            raise first_problem(error, type(self), None) from None

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a TOML file. Raises SawtoothError with the file, the field and a fix."""
        return cls.from_file(read_toml(path), path)

    @classmethod
    def from_file(cls, tables: Mapping[str, Any], path: str | PathLike[str]) -> Self:
        """From the tables of the file ``path``: relative paths in it start from its directory, and one without a name
        has the file's. Raises SawtoothError."""
        file = FilePath(path)
        named = file.suffix == ".toml" and len(file.stem) <= _LONGEST_NAME and is_plain(file.stem)
        given = {"name": file.stem, **tables} if named else dict(tables)
        return cls.from_dict(anchored(given, file.parent), source=str(path))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, source: str | None = None) -> Self:
        """From the tables of a file; ``source`` is the name of that file in messages. Raises SawtoothError."""
        if not isinstance(tables, Mapping) or not all(isinstance(key, str) for key in tables):
            fix = "write a table of fields"
            raise InputError("wrong-type", "a scenario is a table", file=source, fix=fix)
        try:
            scenario = cls(**tables)
        except SawtoothError as error:
            raise error.at(file=source) from None
        scenario._source = source
        return scenario

    @property
    def source(self) -> str | None:
        """The file that this was read from."""
        return self._source

    @property
    def path_table(self) -> Path:
        return self.path if self.path is not None else Path()

    @property
    def chain_table(self) -> Chain:
        return self.chain if self.chain is not None else Chain()

    @property
    def dumbbell_table(self) -> Dumbbell:
        return self.dumbbell if self.dumbbell is not None else Dumbbell()

    @property
    def home_table(self) -> Home:
        return self.home if self.home is not None else Home()

    @property
    def parking_lot_table(self) -> ParkingLot:
        return self.parking_lot if self.parking_lot is not None else ParkingLot()

    def set(self, changes: Mapping[str, Any]) -> Self:
        """A scenario with fields changed by dotted path: ``{"path.rtt": "140 ms", "flows.cc": "bbr"}``.

        Paths are those of ``sawtooth.scenario.overrides``. Raises SawtoothError as loading the changed file would.
        """
        if not changes:
            return self
        given = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if any(key.split(".")[0] == "flows" for key in changes):
            given.setdefault("flows", [{"cc": flow.control} for flow in self.flows])
        names = {
            "flows": flow_names(self),
            "links": [link_name(link) for link in self.links],
            "probes": probe_names(self),
        }
        try:
            changed = overrides.apply(given, changes, names)
        except SawtoothError as error:
            raise error.at(file=self._source) from None
        return type(self).from_dict(changed, source=self._source)

    def compile(self) -> Compiled:
        """As engines take it: integers in ns, bit/s, bytes and parts per billion; see docs/design.md. Made once."""
        made = self._compiled
        if made is None:
            made = self._compiled = compile_scenario(self)
            _latest.append(weakref.ref(self))
            if len(_latest) > _KEPT and (oldest := _latest.popleft()()) is not None:
                oldest._compiled = None
        return made

    def to_dict(self) -> dict[str, Any]:
        """Every field that has a value, defaults included, quantities as canonical text: fit for JSON and TOML."""
        tables: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        tables["hosts"] = {
            name: host.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, host in self.hosts.items()
        }
        for link in tables["links"]:
            for way in ("forward", "backward"):
                if not link[way]:
                    del link[way]
        table = _TABLE_OF.get(self.topology)
        if table is not None:
            own = getattr(self, f"{table.replace('-', '_')}_table")
            tables[table] = own.model_dump(mode="json", exclude_none=True)
        return {name: value for name, value in tables.items() if value not in ({}, []) or name == "flows"}

    def digest(self) -> str:
        """SHA-256 of the canonical JSON of ``to_dict``: 64 hexadecimal digits, equal for equal scenarios.

        A module counts by what its sources say when this is asked, not by where they lie.
        """
        tables = self.to_dict()
        for flow, table in zip(self.flows, tables["flows"], strict=True):
            if isinstance(flow.cc, Module):
                table["cc"]["source"] = content_digest(flow.cc.source)
            if flow.source is not None:
                with_contents(table["source"])
        for table in [tables.get("path", {}), *tables.get("links", ())]:
            for one in (table, table.get("forward", {}), table.get("backward", {})):
                for holder, name in ((one, "trace"), (one.get("jitter"), "table")):
                    if isinstance(holder, dict) and name in holder:
                        holder[name] = trace_digest(holder[name])
        text = json.dumps(tables, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema (2020-12) of a scenario file."""
        schema = cls.model_json_schema(by_alias=True, schema_generator=_TextDefaults)
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        return state | {"__pydantic_private__": {**(state["__pydantic_private__"] or {}), "_compiled": None}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest())

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        self._check_tables()
        self._check_times()
        kernel = next((host.kernel for host in (self.host, *self.hosts.values()) if host.kernel is not None), None)
        for index, flow in enumerate(self.flows):
            try:
                if isinstance(flow.cc, str):
                    check_control(flow.cc, kernel)
                elif isinstance(flow.cc, Variant):
                    check_variant(flow.cc)
            except SawtoothError as error:
                field = "cc.variant" if isinstance(flow.cc, Variant) else "cc"
                raise error.at(field=f"flows.{index}.{field}") from None
            self._check_flow(flow, f"flows.{index}")
        self.compile()
        return self

    def _check_tables(self) -> None:
        own = _TABLE_OF.get(self.topology)
        for table in dict.fromkeys(_TABLE_OF.values()):
            if table != own and getattr(self, table.replace("-", "_")) is not None:
                fix = f'remove it, or set topology = "{table}"'
                given = getattr(self, table.replace("-", "_")).model_fields_set
                fields = _MODELS[own].model_fields if own is not None else {}
                if same := [name for name in fields if name in given]:
                    fix = f'set {own}.{same[0]} instead, or topology = "{table}"'
                message = f'topology "{self.topology}" does not read this table'
                raise InputError("conflict", message, field=table, fix=fix)
        for table in _DRAWN:
            if own is not None and getattr(self, table):
                fix = f'set topology = "custom", or use the fields of [{own}]'
                message = f'topology "{self.topology}" has a fixed network, and does not read this table'
                raise InputError("conflict", message, field=table, fix=fix)
        if not self.flows and not self.probes:
            message = "there is neither a flow nor a probe"
            raise InputError("missing-field", message, field="flows", fix="remove flows to get one cubic flow")

    def _check_times(self) -> None:
        if self.warmup >= self.duration:
            message = f'"{self.warmup}" leaves nothing of the duration, "{self.duration}"'
            fix = f'choose a warmup shorter than "{self.duration}", like "0 s"'
            raise InputError("out-of-range", message, field="warmup", fix=fix)
        whole = -(-self.warmup.ns // self.interval.ns) + 1
        if self.warmup.ns and whole * self.interval.ns > self.duration.ns:
            message = f'"{self.warmup}" leaves no whole interval of "{self.interval}"'
            raise InputError(
                "out-of-range",
                message,
                field="warmup",
                fix='choose a shorter warmup, like "0 s", or a shorter interval',
            )
        if self.interval > self.duration:
            message = f'"{self.interval}" is longer than the duration, "{self.duration}"'
            fix = f'choose at most "{self.duration}"'
            raise InputError("out-of-range", message, field="interval", fix=fix)
        if self.duration.ns // self.interval.ns > MAX_SAMPLES:
            message = f"more than {MAX_SAMPLES} samples"
            raise InputError(
                "out-of-range", message, field="interval", fix="choose a longer interval, or a shorter duration"
            )
        starts = [(f"flows.{index}.start", flow.start) for index, flow in enumerate(self.flows)]
        starts += [(f"probes.{index}.start", probe.start) for index, probe in enumerate(self.probes)]
        for field, start in starts:
            if start >= self.duration:
                message = f'"{start}" is not before the end, "{self.duration}"'
                fix = f'choose a start before "{self.duration}", like "0 s"'
                raise InputError("out-of-range", message, field=field, fix=fix)

    @staticmethod
    def _check_flow(flow: Flow, at: str) -> None:
        if flow.bytes is not None and flow.duration is not None:
            message = "a flow ends after its bytes or after its duration, not both"
            raise InputError("conflict", message, field=f"{at}.bytes", fix="remove bytes or duration")
        if flow.bytes is not None and flow.source is not None:
            message = "a flow with a source ends after its duration, not after its bytes"
            raise InputError("conflict", message, field=f"{at}.source", fix="remove source or bytes")
        if flow.replace is not None and isinstance(flow.source, (Arrivals, Udp)):
            message = "transfers end when they are done, and datagrams have no connection to replace"
            raise InputError("conflict", message, field=f"{at}.replace", fix="remove replace or source")
        _check_reader(flow, at)
        if flow.replace is not None and isinstance(flow.source, Asking):
            message = "this source opens and closes its own connections"
            raise InputError("conflict", message, field=f"{at}.replace", fix="remove replace or source")
        if flow.replace is None:
            return
        if flow.bytes is not None:
            message = "a replaced flow ends with its lifetime, not after its bytes"
            raise InputError("conflict", message, field=f"{at}.replace", fix="remove replace or bytes")
        low, high = flow.replace.lifetime
        if low > high:
            message = f'the shortest, "{low}", is longer than the longest, "{high}"'
            raise InputError("out-of-range", message, field=f"{at}.replace.lifetime", fix="swap them")


def _check_reader(flow: Flow, at: str) -> None:
    if flow.reader is None:
        return
    arrives = isinstance(flow.source, (Arrivals, Udp, Asking))
    for name, given in {
        "bytes": flow.bytes is not None,
        "replace": flow.replace is not None,
        "source": arrives,
    }.items():
        if given:
            message = f"a reader may leave data unread when {name} ends a connection"
            fix = f"remove reader or {name}; a flow with a reader ends with its duration"
            raise InputError("conflict", message, field=f"{at}.reader", fix=fix)
