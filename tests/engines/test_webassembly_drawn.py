"""Scenarios drawn at random: the core gives the same tables natively and as WebAssembly in node, byte for byte."""

import json
import random
from pathlib import Path
from typing import Any

from sawtooth import Scenario
from sawtooth.engines.sim import controls
from tests.engines.test_webassembly import run_native
from tests.lab.test_lab_language import ask

MANY = 40
QUEUES: list[Any] = [
    *("1 bdp", "0.3 bdp", "4 bdp", "20 packets", "200 packets", "30 ms", "64 KiB"),
    {"kind": "codel", "ecn": True},
    {"kind": "fq_codel"},
    {"kind": "red", "limit": "200 kB"},
    {"kind": "pie", "ecn": True},
    {"kind": "fq_pie", "flows": 16},
    {"kind": "sfq", "perturb": "1 s"},
    {"kind": "cake"},
    {"kind": "dualpi2"},
]
LOSSES: list[Any] = ["0%", "0.01%", "0.3%", "2%", {"every": 300}, {"gilbert_elliott": {"p": "0.2%", "r": "20%"}}]


def drawn(count: int, seed: int) -> list[dict[str, Any]]:
    """Short scenarios of one path: rate, RTT, loss both ways, queue, jitter, and one to four flows of any control."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        flows = [
            {
                "cc": draw.choice(controls()),
                "count": draw.choice((1, 1, 2, 5)),
                "start": f"{draw.randrange(400)} ms",
                **draw.choice(({}, {}, {"bytes": f"{draw.randrange(1, 900)} kB"})),
            }
            for _ in range(draw.randrange(1, 5))
        ]
        path = {
            "rate": f"{10 ** draw.uniform(0, 1.7):.3f} Mbit/s",
            "rtt": f"{10 ** draw.uniform(0, 2):.2f} ms",
            "loss": draw.choice(LOSSES),
            "ack_loss": draw.choice(("0%", "0%", "1%")),
            "queue": draw.choice(QUEUES),
            "jitter": draw.choice(("0 s", "0 s", "2 ms")),
        }
        host = {"ecn": draw.choice((0, 0, 1)), "hz": draw.choice((100, 250, 1000)), "sack": draw.random() < 0.9}
        given = {
            "duration": "1.5 s",
            "interval": "50 ms",
            "seed": number + 1,
            "path": path,
            "flows": flows,
            "host": host,
        }
        found.append(json.loads(Scenario.from_dict(given).compile().to_json()))
    return found


def test_scenarios_drawn_at_random_give_the_same_tables_in_node(lab: Path) -> None:
    scenarios = drawn(MANY, 29)
    assert len({json.dumps(one["flows"]) for one in scenarios}) > MANY // 2
    expected = [run_native(one) for one in scenarios]
    assert sum(one["delivered"] > 100 for one in expected) > MANY * 3 // 4
    for scenario, here, there in zip(scenarios, expected, ask(lab, "run", scenarios), strict=True):
        assert there == here, json.dumps(scenario)
