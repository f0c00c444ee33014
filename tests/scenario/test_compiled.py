"""The compiled scenario: the contract with the core, defined once, in one place."""

import dataclasses
import json
import pickle
from typing import Any

import pytest

from sawtooth.compare.fidelity.grid import Grid
from sawtooth.scenario import Scenario, header_sizes
from sawtooth.scenario import scenario as module
from sawtooth.scenario.compiled import Compiled

BURSTS = {"gilbert_elliott": {"p": "1%", "r": "30%"}}
CUSTOM = {
    "topology": "custom",
    "hosts": {"a": {}, "b": {}},
    "links": [
        {"from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms", "loss": BURSTS, "backward": {"loss": "1%"}},
    ],
    "flows": [{"from": "a", "to": "b", "replace": {"lifetime": ["1 s", "5 s"]}}],
    "probes": [{"from": "b", "to": "a"}],
}


def test_the_json_is_what_the_contract_says_key_by_key_in_its_order() -> None:
    assert Scenario(**CUSTOM, duration="9 s").compile().to_json() == json.dumps(
        {
            "duration_ns": 9 * 10**9,
            "interval_ns": 10**9,
            "seed": 1,
            "hosts": [
                {
                    "name": name,
                    "hz": 250,
                    "mss": 1448,
                    "initial_window": 10,
                    "receive_buffer": 64 * 2**20,
                    "send_buffer": 64 * 2**20,
                    "delayed_ack": True,
                    "sack": True,
                    "timestamps": True,
                    "offload": False,
                }
                for name in ("a", "b")
            ],
            "transmitters": [
                {"name": name, "rate_bps": 10**7, "queue_packets": 1000, "queue_bytes": None} for name in ("a>b", "b>a")
            ],
            "links": [
                {
                    "name": "a>b",
                    "from": 0,
                    "to": 1,
                    "transmitter": 0,
                    "delay_ns": 5 * 10**6,
                    "loss_ppb": 32_258_065,
                    "loss_pattern": {
                        "gilbert_elliott": {"p_ppb": 10**7, "r_ppb": 3 * 10**8, "bad_ppb": 10**9, "good_ppb": 0}
                    },
                    "overhead_bytes": 0,
                },
                {
                    "name": "b>a",
                    "from": 1,
                    "to": 0,
                    "transmitter": 1,
                    "delay_ns": 5 * 10**6,
                    "loss_ppb": 10**7,
                    "loss_pattern": None,
                    "overhead_bytes": 0,
                },
            ],
            "flows": [
                {
                    "name": "cubic",
                    "cc": "cubic",
                    "count": 1,
                    "start_ns": 0,
                    "duration_ns": None,
                    "bytes": None,
                    "lifetime_ns": [10**9, 5 * 10**9],
                    "forward": [0],
                    "backward": [1],
                }
            ],
            "probes": [
                {
                    "name": "probe",
                    "start_ns": 0,
                    "interval_ns": 10**9,
                    "count": 9,
                    "forward": [1],
                    "backward": [0],
                }
            ],
        }
    )


def test_what_the_core_does_not_know_is_reported_only_where_it_is_set() -> None:
    link = {"from": "a", "to": "b", "rate": "10 Mbit/s", "aggregation": "4 ms"}
    first, other = Scenario(**CUSTOM | {"links": [link]}).compile().to_dict()["links"]
    assert first["aggregation_ns"] == other["aggregation_ns"] == 4 * 10**6
    assert "opportunity_bytes" not in first


ON_OFF = {"source": {"kind": "on-off", "rate": "5 Mbit/s", "on": "1 s", "off": "500 ms"}}


def test_a_source_is_bytes_of_a_write_their_rate_and_the_times_on_and_off() -> None:
    steady = Scenario(flows=[{"source": {"kind": "rate", "rate": "5 Mbit/s"}}, ON_OFF, {}]).compile().to_dict()
    told = [flow.get("writes") for flow in steady["flows"]]
    every = {"bytes": 16_000, "rate_bps": 5 * 10**6}
    assert told == [every, every | {"on_off_ns": [10**9, 5 * 10**8]}, None]


READER = {"reader": {"rate": "5 Mbit/s", "on": "1 s", "off": "500 ms"}}


def test_a_reader_is_bytes_of_a_read_their_rate_and_the_times_on_and_off() -> None:
    flows = Scenario(flows=[{"reader": {"rate": "5 Mbit/s", "read": "16 kB"}}, READER, {}]).compile().to_dict()
    told = [flow.get("reads") for flow in flows["flows"]]
    pausing = {"bytes": 64_000, "rate_bps": 5 * 10**6, "on_off_ns": [10**9, 5 * 10**8]}
    assert told == [{"bytes": 16_000, "rate_bps": 5 * 10**6}, pausing, None]


@pytest.mark.parametrize(
    "tables",
    [
        *({}, CUSTOM, {"path": {"loss": {"every": 1000}}}, {"topology": "dumbbell"}, {"flows": [ON_OFF | READER]}),
        {"flows": [{"reader": {"rate": "5 Mbit/s", "whole": False}}]},
    ],
)
def test_a_guest_reads_what_was_written(tables: dict[str, Any]) -> None:
    made = Scenario(**tables).compile()
    assert Compiled.from_dict(json.loads(made.to_json())) == made


def test_nothing_of_it_can_be_changed() -> None:
    made = Scenario().compile()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.links[0].loss_ppb = 1  # type: ignore[misc]
    hash(made)


def test_a_scenario_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    of = Compiled.of

    def counted(text: str, *rest: Any) -> Compiled:
        calls.append(text)
        return of(text, *rest)

    monkeypatch.setattr(Compiled, "of", counted)
    from sawtooth.engines.sim import ENGINE

    ENGINE.run(Scenario(duration="1 s"))
    assert len(calls) == 1


def test_a_changed_scenario_is_compiled_again() -> None:
    scenario = Scenario()
    assert scenario.set({"seed": 9}).compile().seed == 9
    assert scenario.compile().seed == 1


def test_thousands_of_scenarios_do_not_keep_their_compiled_form() -> None:
    every = [Scenario(seed=seed) for seed in range(100)]
    assert [one.compile().seed for one in every] == list(range(100))
    assert sum(one._compiled is not None for one in every) == module._KEPT


def test_a_scenario_that_goes_to_another_process_leaves_its_compiled_form_behind() -> None:
    scenario = Scenario(topology="dumbbell", dumbbell={"pairs": 500}, flows=[{"from": "s*", "to": "r*", "count": 500}])
    sent = pickle.dumps(scenario)
    assert len(sent) < 5000
    assert pickle.loads(sent) == scenario
    assert pickle.loads(sent).compile() == scenario.compile()


def test_a_frame_is_counted_as_linux_counts_it() -> None:
    assert header_sizes.frame_bytes(1448, timestamps=True) == header_sizes.FULL_FRAME == 1514
    assert header_sizes.frame_bytes(0, timestamps=False) == 54
    assert header_sizes.MSS == 1448


def test_the_ways_of_flows_and_probes_have_ends_and_transmitters() -> None:
    made = Scenario(**CUSTOM).compile()
    flow, probe = made.senders
    assert (made.source(flow), made.target(flow)) == (0, 1)
    assert (made.source(probe), made.target(probe)) == (1, 0)
    assert [one.name for one in made.transmitters_of(flow.forward)] == ["a>b"]


def test_every_scenario_of_the_grid_has_frozen_records_of_numbers() -> None:
    from pathlib import Path

    points = Grid.load(Path(__file__).resolve().parents[2] / "fidelity" / "grid.toml").points()
    assert all(Compiled.from_dict(one.scenario.compile().to_dict()) == one.scenario.compile() for one in points[::20])
