"""Tables of a run with programs, from what the testbed left: ``programs``, ``connections``, ``udp``, ``collected``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.io.untrusted import json_value, part
from sawtooth.programs import Finished, command_text
from sawtooth.testbed.containers import FILES_BYTES

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.scenario import Scenario

_STATES = (
    "established syn_sent syn_recv fin_wait1 fin_wait2 time_wait close close_wait last_ack listen closing new_syn_recv"
)

_UDP = {
    "received": "InDatagrams",
    "sent": "OutDatagrams",
    "no_port": "NoPorts",
    "errors": "InErrors",
    "receive_buffer_full": "RcvbufErrors",
    "send_buffer_full": "SndbufErrors",
}
"""Columns of the table ``udp``, and what the kernel calls them."""


def read(share: Path, scenario: Scenario) -> tuple[dict[str, DataFrame], dict[str, Any]]:
    """The tables, and ``meta``: ``end_s``, when the last program ended, and ``measured``, the numbers that programs are
    asked for, None where a program that failed did not print one.

    Raises InputError ``bad-measure`` where a program that ended well did not print one.
    """
    import pandas as pd

    from sawtooth.testbed.programs import PROGRAMS

    compiled = scenario.compile()
    results = json_value(part(share / PROGRAMS, 0, 1 << 26).decode())
    names = {host.name: compiled.called.get(host.name, host.name) for host in compiled.hosts}
    rows, measured = [], {}
    for number, (program, one) in enumerate(zip(scenario.programs, results["programs"], strict=True)):
        printed = {name: _bytes(share / f"program-{number}.{ending}") for name, ending in _OUTPUTS.items()}
        found = {
            "program": compiled.programs[number],
            "host": names[compiled.program_hosts[number]],
            "command": command_text(program.command),
            **{name: one[name] for name in ("start_s", "end_s", "status")},
            **printed,
        }
        rows.append(found)
        for name, place in program.measure.items():
            field = f"programs.{number}.measure.{name}"
            measured[name] = _measured(Finished.of(found), place, field, is_server=program.ready is not None)
    programs = pd.DataFrame(rows).astype({"start_s": "float64", "end_s": "float64", "status": "Int64"})
    groups = {one["group"]: compiled.programs[number] for number, one in enumerate(results["programs"]) if one["group"]}
    # By index, so that what is no table of numbers is a TypeError.
    udp = [
        {"host": names[host], **{ours: int(results["udp"][host][kernels]) for ours, kernels in _UDP.items()}}
        for host in results["udp"]
    ]
    tables = {
        "programs": programs,
        "connections": _connections(share, list(names.values()), groups),
        "udp": pd.DataFrame(udp, columns=["host", *_UDP]),
    }
    collecting = dict.fromkeys(
        host for host, program in zip(compiled.program_hosts, scenario.programs, strict=True) if program.collect
    )
    collected = [
        {
            "host": names[host],
            "file": _text(path.name),
            "content": part(path, 0, FILES_BYTES),
        }
        for host in collecting
        for path in _entries(share / "collected" / host)
    ]
    if collected:
        tables["collected"] = pd.DataFrame(collected)
    return tables, {"end_s": results["end_s"], "measured": measured}


_OUTPUTS = {"stdout": "out", "stderr": "err"}


def _measured(program: Finished, place: str, field: str, *, is_server: bool) -> float | None:
    """None where the program failed, whatever it printed: only its status is a result then."""
    failed = program.status != 0 and not (is_server and program.status is None)
    return None if failed and place != "status" else program.value(place, field=field)


def _bytes(path: Path) -> bytes:
    return part(path, 0, FILES_BYTES)


def _text(name: str) -> str:
    """A file's name in UTF-8."""
    return os.fsencode(name).decode(errors="replace")


def _entries(directory: Path) -> list[Path]:
    """The files that are there: their names are a program's, and may have line ends in them."""
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _connections(share: Path, names: Sequence[str], groups: Mapping[int, str]) -> DataFrame:
    """Rows of one interval's end, host and connection; times in seconds, rates in bit/s. A connection that ended has a
    last row with the state ``close``, of which the kernel tells less: control and program are of the rows before.
    """
    import pandas as pd

    from sawtooth.testbed.plan import address

    kinds = {"cc": "str", "local": "str", "peer": "str", "cookie": "uint64"}
    raw = pd.read_csv(share / "connections.csv", dtype=kinds)
    by_address = {address(number): name for number, name in enumerate(names)}
    table = pd.DataFrame({"t_s": raw["t_ns"] / 1e9, "host": [names[one] for one in raw["namespace"]]})
    table["connection"] = pd.factorize(raw["cookie"])[0]
    program = raw["group"].map(lambda group: groups.get(int(group)))
    table["program"] = program.groupby(raw["cookie"]).transform("first").fillna("")
    states = _STATES.split()
    table["state"] = [states[one - 1] if 0 < one <= len(states) else "unknown" for one in raw["state"]]
    table["cc"] = raw["cc"].groupby(raw["cookie"]).transform("first").fillna("")
    for name in ("local", "local_port", "peer", "peer_port"):
        table[name] = raw[name]
    table["peer_host"] = [by_address.get(one, "") for one in raw["peer"]]
    for name in ("cwnd_segments", "ssthresh_segments"):
        table[name] = raw[name]
    for name in ("srtt", "min_rtt", "rwnd_limited", "sndbuf_limited"):
        table[f"{name}_s"] = raw[f"{name}_us"].where(raw[f"{name}_us"] != 0xFFFFFFFF) / 1e6
    for name in ("delivery", "pacing"):
        table[f"{name}_bps"] = raw[f"{name}_bytes"].astype(float).where(lambda value: value < 2**62) * 8
    for name in ("in_flight_segments", "lost_segments", "sent_bytes", "received_bytes", "segments_out", "retransmits"):
        table[name] = raw[name]
    return table
