"""Outcome: converts what a finished testbed left in its directory into a ``Run``, for both engines that use it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth import _core
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import writing
from sawtooth.io.untrusted import json_value, part
from sawtooth.programs import traffic as traffic_of
from sawtooth.run import Run
from sawtooth.run.metadata import limits, names
from sawtooth.scenario.compiled import Compiled
from sawtooth.testbed import program_tables, remarks, tables
from sawtooth.testbed.__main__ import ERROR, SOURCE, SYSTEM, TASK
from sawtooth.testbed.compiler import source, waits
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.traffic import WAITS, transfers_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sawtooth.scenario import Scenario

STDERR = "stderr"
"""Standard error of the testbed's process."""

_LARGEST = 1 << 31
"""Most bytes of a table, which is read at once."""
_AGAIN = "run it again; if it ends this way each time, report it with this message"


def prepare(
    directory: Path,
    compiled: Compiled,
    place: Place,
    prefix: str,
    *,
    traffic: str,
    capture: Sequence[str],
    called: Mapping[str, str] | None = None,
    programs: Mapping[str, Any] | None = None,
) -> None:
    """Writes the task, with the traffic source next to it. ``capture``: hosts whose packet headers are kept;
    ``called``: the kernel's names for the scenario's congestion controls; ``programs``: the input of
    ``testbed.programs``.
    """
    for index, flow in enumerate(compiled.flows):
        if flow.arrivals is not None:
            transfers(compiled, index).tofile(directory / transfers_file(index))
        if flow.datagrams is not None and flow.datagrams.poisson:
            for number in range(flow.count):
                transfers(compiled, index, number).tofile(directory / f"{transfers_file(index)}-{number}")
    told = compiled.to_dict()
    for flow in told["flows"]:
        flow["cc"] = (called or {}).get(flow["cc"], flow["cc"])
        if "arrivals" in flow:
            # The testbed reads them from a file.
            flow["arrivals"] |= {"times": {"at_ns": []}, "sizes": {"each": []}}
    task = {
        "compiled": told,
        "traffic": traffic,
        "place": vars(place),
        "prefix": prefix,
        "capture": list(capture),
        "owner": os.getpid(),
        **(programs or {}),
    }
    (directory / TASK).write_text(json.dumps(task), encoding="utf-8")
    shutil.copy(source(), directory / SOURCE)
    if place.virtual and traffic == "iperf3":
        shutil.copy(waits(), directory / WAITS)


def transfers(compiled: Compiled, index: int, stream: int = 0) -> NDArray[np.uint64]:
    """The transfers of a flow with arrivals, or a random stream of datagrams, in order and the same for every engine:
    rows of ns since t = 0, and bytes."""
    import numpy as np

    return np.column_stack(_core.transfers(compiled.to_json(), index, stream))


def check(directory: Path, status: int) -> None:
    """Raises the error that the testbed left, or SawtoothError ``testbed-failed`` if it did not finish."""
    if (directory / ERROR).exists():
        with whole():
            told = json_value(part(directory / ERROR, 0, 1 << 20).decode())
            raise SawtoothError(told["code"], told["message"], field=told["field"], fix=told["fix"])
    if any(table.stat().st_size > _LARGEST for table in directory.glob("*.csv")):
        message = f"the testbed left a table of more than {_LARGEST >> 30} GiB"
        raise SawtoothError("testbed-failed", message, fix="run it shorter, or with a longer interval")
    if status:
        said = (directory / STDERR).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        message = f"the testbed ended early, with status {status}: {said[-1] if said else 'no reason given'}"
        raise SawtoothError("testbed-failed", message, fix=_AGAIN)


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """Converts errors while reading results, which a program in a guest may have damaged, into ``testbed-failed``."""
    try:
        yield
    except SawtoothError:
        raise
    except (ArithmeticError, AssertionError, LookupError, OSError, TypeError, ValueError) as error:
        message = f"the testbed left an incomplete result: {error}"
        raise SawtoothError("testbed-failed", message, fix=_AGAIN) from error


def keep_captures(directory: Path, into: Path) -> None:
    """Copies tcpdump's files. Raises SawtoothError ``unwritable-output`` or ``disk-full``."""
    with writing(into):
        into.mkdir(parents=True, exist_ok=True)
        for file in directory.glob("*.pcap"):
            shutil.copy(file, into)


def run(
    directory: Path, scenario: Scenario, engine: str, meta: dict[str, Any], *, called: Mapping[str, str] | None = None
) -> Run:
    """Reads the tables and adds the place's facts to ``meta``. ``called`` as in ``prepare``.

    Raises SawtoothError ``testbed-failed``; ``bad-measure`` of programs.
    """
    compiled = scenario.compile()
    with whole():
        system = json_value(part(directory / SYSTEM, 0, 1 << 26).decode())
        version = re.search(r"(\d+)\.(\d+)", system["kernel"])
        assert version is not None
        of_programs, ended = program_tables.read(directory, scenario) if scenario.programs else ({}, {})
        end_ns = min(round(ended["end_s"] * 1e9), compiled.duration_ns) if ended else compiled.duration_ns
        until = Compiled(**vars(compiled) | {"duration_ns": max(1, end_ns)})
        found = tables.read(directory, until, (int(version[1]), int(version[2]))) | of_programs
    theirs, both_ends = _ends(directory, scenario, compiled)
    asked = {flow.name: flow.cc for flow in compiled.flows}
    controls = {flow: asked[flow] if cc == (called or {}).get(asked[flow]) else cc for flow, cc in theirs.items()}
    limited = limits(compiled, found)
    described = {
        "names": names(compiled),
        "limits": limited,
        "traffic": traffic_of(scenario),
        "congestion_control_used": controls,
        **({"iperf3": both_ends} if both_ends else {}),
        "hosts": tables.by_host(directory, compiled),
        "system": system,
        **ended,
        **meta,
        "warnings": [*remarks.warnings(scenario, found, controls, limited), *meta.get("warnings", [])],
    }
    return Run(scenario=scenario, engine=engine, tables=found, meta=described)


def progress(directory: Path) -> float:
    """The finished share of the run, as last reported by the source."""
    try:
        return float(part(directory / "progress.csv", 0, 1 << 24).split()[-1])
    except (ValueError, IndexError):
        return 0.0


def _ends(directory: Path, scenario: Scenario, compiled: Compiled) -> tuple[dict[str, str], dict[str, Any]]:
    """The congestion controls used, by flow, and what each of iperf3's two ends reports at its end."""
    flows = [flow.name for flow in compiled.flows]
    if not flows or scenario.traffic == "native":
        lines = (directory / "controls.csv").read_text().splitlines()[1:]
        used = {flows[int(flow)]: cc for flow, cc in (line.split(",") for line in lines)}
        return {name: cc for name, cc in used.items() if cc}, {}
    controls, ends = {}, {}
    for index, name in enumerate(flows):
        client = _json(directory / f"iperf3-client-{index}.json")
        server = _json(directory / f"iperf3-server-{index}.json")
        for end, said in (("client", client), ("server", server)):
            if "error" in said:
                message = f'flow "{name}": iperf3\'s {end} said: {said["error"]}'
                raise SawtoothError("testbed-failed", message, fix='run it again, or set traffic = "native"')
        controls[name] = client["end"].get("sender_tcp_congestion", "")
        ends[name] = {"version": client["start"]["version"], "client": _summary(client), "server": _summary(server)}
    return controls, ends


def _json(path: Path) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = {"error": "no report"}
    return said


def _summary(said: dict[str, Any]) -> dict[str, Any]:
    """Totals, and goodput in each of iperf3's own intervals."""
    end = said["end"]
    return {
        "sent": end.get("sum_sent", {}),
        "received": end.get("sum_received", {}),
        "sender_congestion": end.get("sender_tcp_congestion"),
        "receiver_congestion": end.get("receiver_tcp_congestion"),
        "interval_bps": [one["sum"]["bits_per_second"] for one in said.get("intervals", [])],
    }
