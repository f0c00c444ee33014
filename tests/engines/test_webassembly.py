"""The core as WebAssembly against the native one: the same tables, byte for byte, in node and in a browser."""

import contextlib
import functools
import gzip
import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from sawtooth import Scenario, _core
from sawtooth.engines.sim import Sim
from tests.lab.test_lab_language import ask

BASE: dict[str, Any] = {"duration": "6 s", "interval": "100 ms", "seed": 7}
HOME = {"topology": "home", "home": {"down": "20 Mbit/s", "up": "2 Mbit/s", "loss": "0.2%"}}
LOGNORMAL = {"kind": "lognormal", "mean": "40 kB", "sigma": 1.5}
PARETO = {"kind": "pareto", "least": "1 kB", "most": "1 MB", "shape": 1.2}


def path(**given: Any) -> dict[str, Any]:
    return {"path": {"rate": "20 Mbit/s", "rtt": "30 ms", "loss": "0.1%", **given}}


SCENARIOS: dict[str, dict[str, Any]] = {
    "cubic": path(),
    "reno, many, replaced": path(loss="0%")
    | {"flows": [{"cc": "reno", "count": 20, "replace": {"lifetime": ["0.2 s", "1 s"]}}]},
    "bbr beside cubic": path() | {"flows": [{"cc": "bbr"}, {"cc": "cubic", "start": "1 s"}]},
    "bbr3, and as the draft has it": path() | {"flows": [{"cc": "bbr3"}, {"cc": {"name": "bbr3", "variant": "draft"}}]},
    "dctcp, marks": path(queue={"kind": "codel", "ecn": True, "ce_threshold": "1 ms"}) | {"flows": [{"cc": "dctcp"}]},
    "prague, dualpi2": path(queue={"kind": "dualpi2"})
    | {"host": {"ecn": 1}, "flows": [{"cc": "prague"}, {"cc": "cubic"}]},
    "fq_codel, reverse flow": path(reverse_rate="2 Mbit/s", queue={"kind": "fq_codel"})
    | {"flows": [{"cc": "cubic"}, {"cc": "cubic", "from": "receiver", "to": "sender"}]},
    "red": path(queue={"kind": "red", "limit": "200 kB", "adaptive": True}),
    "pie": path(queue={"kind": "pie"}),
    "fq_pie, fq": path(queue={"kind": "fq_pie", "flows": 8}) | {"flows": [{"count": 5}]},
    "sfq": path(queue={"kind": "sfq", "perturb": "1 s"}) | {"flows": [{"count": 5}]},
    "cake": path(queue={"kind": "cake", "bandwidth": "15 Mbit/s"}) | {"flows": [{"count": 4}]},
    "token bucket": path(queue={"kind": "tbf", "rate": "8 Mbit/s", "burst": "30 kB", "latency": "40 ms"}),
    "chain, bursts of loss": {
        "topology": "chain",
        "chain": {"rate": "50 Mbit/s", "loss": {"gilbert_elliott": {"p": "0.1%", "r": "30%"}}},
    },
    "parking lot": {"topology": "parking-lot", "parking-lot": {"rate": "20 Mbit/s", "ack_loss": "1%"}},
    "dumbbell": {
        "topology": "dumbbell",
        "dumbbell": {"pairs": 3, "rtt": ["10 ms", "40 ms"], "rate": "30 Mbit/s"},
        "flows": [{"count": 6}],
        "probes": [{"interval": "20 ms"}],
    },
    "Wi-Fi, pages": HOME
    | {"flows": [{"source": {"kind": "pages", "objects": 12, "sizes": LOGNORMAL, "think": "0.4 s"}}]},
    "transfers": path()
    | {
        "flows": [
            {"source": {"kind": "arrivals", "load": "30%", "sizes": LOGNORMAL}},
            {"source": {"kind": "arrivals", "every": "50 ms", "sizes": PARETO}},
        ]
    },
    "jitter, reordering, copies": path(jitter="3 ms", reorder="1%", duplicate="0.5%", corrupt="0.1%"),
    "a trace": path(trace="lte-like.down"),
    "changes, a policer": path(
        changes=[{"at": "2 s", "rate": "5 Mbit/s"}, {"at": "4 s", "delay": "50 ms"}],
        policer={"rate": "10 Mbit/s", "burst": "60 kB"},
    ),
    "on and off, a slow reader": path()
    | {
        "flows": [
            {"source": {"kind": "on-off", "rate": "8 Mbit/s", "on": "300 ms", "off": "200 ms"}},
            {"reader": {"rate": "2 Mbit/s"}},
        ]
    },
    "video beside a call": path()
    | {"flows": [{"source": {"kind": "video"}}, {"source": {"kind": "udp", "rate": "1 Mbit/s", "size": "200 bytes"}}]},
    "without SACK and timestamps, merged": path()
    | {"host": {"sack": False, "timestamps": False, "gro": True, "delayed_ack": False, "hz": 1000}},
}


KINDS = {np.dtype("f8"): "Float64Array", np.dtype("i8"): "BigInt64Array", np.dtype("u8"): "BigUint64Array"}
KINDS |= {np.dtype("u4"): "Uint32Array", np.dtype("u1"): "Uint8Array", np.dtype("?"): "Uint8Array"}


def _compiled() -> list[dict[str, Any]]:
    return [json.loads(Scenario.from_dict(BASE | given).compile().to_json()) for given in SCENARIOS.values()]


def _digests(tables: dict[str, dict[str, Any]]) -> dict[str, list[Any]]:
    return {
        f"{table}.{name}": [KINDS[column.dtype], len(column), hashlib.sha256(column.tobytes()).hexdigest()]
        for table, columns in tables.items()
        for name, column in columns.items()
    }


def run_native(scenario: dict[str, Any], *, watched: bool = False) -> dict[str, Any]:
    simulation = _core.Simulation(json.dumps(scenario), watched=watched)
    assert simulation.advance(scenario["duration_ns"], 2**62)
    return {
        "digests": _digests(simulation.take()),
        "events": simulation.events,
        "delivered": simulation.delivered_packets,
    }


@pytest.fixture(scope="module")
def native() -> dict[str, dict[str, Any]]:
    """The native core's tables for each scenario."""
    return dict(zip(SCENARIOS, map(run_native, _compiled()), strict=True))


def test_every_kind_of_scenario_gives_the_tables_of_the_native_core_in_node(
    lab: Path, native: dict[str, dict[str, Any]]
) -> None:
    told = dict(zip(SCENARIOS, ask(lab, "run", _compiled()), strict=True))
    assert len(told) >= 20
    assert all(one["delivered"] > 100 for one in native.values())
    for name, expected in native.items():
        assert told[name] == expected, name


def test_what_happens_is_reported_there_as_by_the_native_core(lab: Path) -> None:
    names = ["cubic", "bbr beside cubic", "dctcp, marks", "fq_codel, reverse flow", "prague, dualpi2"]
    names += ["without SACK and timestamps, merged"]
    compiled = dict(zip(SCENARIOS, _compiled(), strict=True))
    for name, told in zip(names, ask(lab, "watch", [compiled[name] for name in names]), strict=True):
        native = run_native(compiled[name], watched=True)
        assert native["digests"]["events.event"][1] > 5, name
        assert told == native, name


def test_every_kind_of_scenario_gives_the_tables_of_the_native_core_in_a_browser(
    lab: Path, native: dict[str, dict[str, Any]], browser: Any, tmp_path: Path
) -> None:
    for part in (lab / "core.mjs", lab / "simulator.wasm", (Path(__file__).parents[1] / "lab_tables.mjs")):
        shutil.copy(part, tmp_path)
    (tmp_path / "index.html").write_text("<!doctype html><title>Tables</title>")
    with served(tmp_path) as address:
        page = browser.new_page()
        page.goto(f"{address}/index.html")
        told = page.evaluate(
            """async (scenarios) => {
                const [{ Core }, { run }] = await Promise.all([import("/core.mjs"), import("/lab_tables.mjs")]);
                return run(Core, await (await fetch("/simulator.wasm")).arrayBuffer(), scenarios);
            }""",
            _compiled(),
        )
        page.close()
    assert dict(zip(SCENARIOS, told, strict=True)) == native


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """On loopback, at a free port."""
    handler = functools.partial(Quiet, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Quiet(SimpleHTTPRequestHandler):
    extensions_map: ClassVar[dict[str, str]] = {
        ".html": "text/html",
        ".css": "text/css",
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".json": "application/json",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: tests assert what they see."""


@pytest.mark.parametrize("packed", [False, True])
def test_a_capture_is_read_as_the_native_core_reads_it(lab: Path, tmp_path: Path, packed: bool) -> None:
    scenario = Scenario.from_dict(BASE | path(ack_loss="1%") | {"flows": [{"cc": "cubic"}, {"cc": "bbr", "count": 2}]})
    Sim(capture=tmp_path, capture_at=("sender",)).run(scenario)
    file = tmp_path / "capture-sender.pcap"
    if packed:
        file = tmp_path / "capture.pcap.gz"
        file.write_bytes(gzip.compress((tmp_path / "capture-sender.pcap").read_bytes(), 1))
    told = ask(lab, "read", {"capture": str(file), "detailed": 1})
    facts, tables = _core.read_capture(str(file), 1)
    assert told["facts"] == json.loads(facts) | {"file": "-"}
    assert len(told["facts"]["connections"]) == 3
    assert told["digests"] == _digests(tables)
    assert told["seen"] == file.stat().st_size
    assert told["steps"] > 5
    # The amount requested at once, whatever the file's length.
    assert told["largest"] <= 1 << 20


def test_segments_are_kept_while_it_is_read_of_as_many_connections_as_there_is_room_for(
    lab: Path, tmp_path: Path
) -> None:
    flows = [{"cc": "cubic"}, {"cc": "bbr", "start": "5 s"}, {"cc": "bbr"}]
    Sim(capture=tmp_path, capture_at=("sender",)).run(Scenario.from_dict(BASE | path() | {"flows": flows}))
    file = str(tmp_path / "capture-sender.pcap")
    apart = [_digests(_core.read_capture(file, index)[1]) for index in range(3)]
    whole = ask(lab, "kept", {"capture": file, "rows": 1_000_000})
    for (told, again), native in zip(whole, apart, strict=True):
        assert {"segments.t_s", "segments.kind", "sacks.start"} <= told.keys()
        assert told == {name: native[name] for name in told}
        # They are handed out only once.
        assert again is None
    rows = [one["segments.t_s"][1] + one["sacks.start"][1] for one in apart]
    short, *_, longest = sorted(range(3), key=rows.__getitem__)
    some = ask(lab, "kept", {"capture": file, "rows": rows[longest] * 2 - 100})
    assert some[longest][0] is None
    none = ask(lab, "kept", {"capture": file, "rows": rows[short] + 100})
    assert [one[0] for one in none] == [None] * 3


def test_what_the_core_refuses_it_says(lab: Path) -> None:
    scenario, capture, gone, known = ask(lab, "refusals", {"scenario": "{}", "capture": "no capture at all, nowhere"})
    assert scenario.startswith("CoreError: compiled scenario: missing field")
    assert capture.startswith("CoreError: not-a-capture: ")
    assert gone.startswith("CoreError: file-unreadable: ")
    assert known == _core.congestion_controls()
