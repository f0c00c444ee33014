"""Draws the points of NAME.toml, wide or unseen: python fidelity/wide.py SEED COUNT NAME > fidelity/NAME.toml

Each point is drawn from all that a scenario may say and both engines take; what one of them refuses is drawn again.
"""

from __future__ import annotations

import math
import random
import sys
from typing import Any

from sawtooth.engines import get
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario

HEAD = """\
# Points drawn at random over all that a scenario may say: sawtooth compare --grid fidelity/{name}.toml
#
# Written by `python fidelity/wide.py {seed} {count} {name}`, before any of them was run.

record = "{name}.csv"

[scenario]
interval = "500 ms"
traffic = "native"

[scenario.host]
hz = 250
receive_buffer = "64 MiB"
send_buffer = "64 MiB"

[budget]
kernel = {{ runs = 4, least = 2, cpu = "6 s" }}
sim = {{ runs = 12 }}
"""
SEGMENTS = 8_000
"""About this many packets are sent in a run: they take the kernel two seconds."""
AQM = ("codel", "fq_codel", "red", "pie", "fq_pie")


class Draw:
    """Draws values of fields from one generator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def log(self, low: float, high: float) -> float:
        """Between both, uniformly on a logarithmic scale, three digits."""
        value = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return float(f"{value:.3g}")

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def rate(self, low: float = 2, high: float = 200) -> tuple[float, str]:
        value = self.log(low, high)
        return value, f"{value:g} Mbit/s"

    def loss(self) -> Any:
        if self.often(0.6):
            return "0%"
        share = f"{self.log(0.01, 3):g}%"
        if self.often(0.2):
            return {"gilbert_elliott": {"p": share, "r": f"{self.log(20, 80):g}%", "bad": "100%", "good": "0%"}}
        return share

    def queue(self) -> Any:
        if self.often(0.35):
            kind = self.one(*AQM)
            return {"kind": kind} | ({"limit": f"{round(self.log(50, 400))} ms"} if kind == "red" else {})
        if self.often(0.15):
            return f"{self.random.randint(20, 400)} KiB"
        return f"{self.log(0.2, 4):g} bdp" if self.often(0.6) else f"{round(self.log(1, 300))} packets"

    def varying(self, rate: float) -> dict[str, Any]:
        """Jitter and similar effects, or changes."""
        kind = self.one("jitter", "reorder", "duplicate", "corrupt", "changes", "trace")
        if kind == "jitter":
            about = {"deviation": f"{self.log(0.1, 5):g} ms"}
            about |= {"distribution": self.one("uniform", "normal", "pareto", "paretonormal")}
            return {"jitter": about | ({"ordered": False} if self.often(0.3) else {})}
        if kind == "changes":
            other = [f"{self.log(rate / 4, rate * 2):g} Mbit/s" for _ in range(2)]
            return {"changes": [{"at": "1 s", "rate": other[0]}, {"at": "2 s", "rate": other[1]}]}
        if kind == "trace":
            return {"trace": self.one("lte-like.down", "lte-like.up", "starlink-like.csv", "wifi-like.csv")}
        return {kind: f"{self.log(0.05, 2):g}%"}

    def flows(self, ends: dict[str, str]) -> list[dict[str, Any]]:
        flows = []
        for number in range(2 if self.often(0.2) else 1):
            flow: dict[str, Any] = {"name": "ab"[number], "cc": self.one("reno", "cubic", "bbr"), **ends}
            flow["count"] = self.one(1, 1, 1, 2, 4, 10, 20)
            if self.often(0.12):
                flow["replace"] = {"lifetime": ["300 ms", "2 s"]}
            elif self.often(0.12):
                flow["source"] = {"kind": "rate", "rate": f"{self.log(0.5, 10):g} Mbit/s"}
            flows.append(flow)
        return flows

    def host(self) -> dict[str, Any]:
        host: dict[str, Any] = {"hz": 250, "receive_buffer": "64 MiB", "send_buffer": "64 MiB"}
        if self.often(0.1):
            host["receive_buffer"] = f"{round(self.log(200, 4000))} KiB"
        rarely = (
            ("sack", 0.08, False),
            ("timestamps", 0.08, False),
            ("delayed_ack", 0.08, False),
            ("mss", 0.1, self.one(536, 1000, 1200)),
            ("initial_window", 0.08, self.one(2, 4, 32)),
        )
        return host | {field: value for field, share, value in rarely if self.often(share)}

    def point(self) -> dict[str, Any]:
        """A scenario's tables."""
        others = ("dumbbell", "dumbbell", "home", "home", "parking-lot", "chain", "chain-asymmetric")
        topology = self.one(*["path"] * 13, *others)
        rate, text = self.rate()
        ends: dict[str, str] = {}
        about: dict[str, Any] = {"rate": text, "rtt": f"{self.log(0.5, 150):g} ms", "queue": self.queue()}
        if topology == "path":
            about["loss"] = self.loss()
            if self.often(0.1):
                about["ack_loss"] = f"{self.log(0.1, 10):g}%"
            if self.often(0.15):
                about["reverse_rate"] = f"{self.log(rate / 20, rate):g} Mbit/s"
            if self.often(0.3):
                about |= self.varying(rate)
        elif topology == "dumbbell":
            about["pairs"] = 3
            about["rtt"] = [f"{self.log(1, 100):g} ms" for _ in range(3)] if self.often(0.6) else about["rtt"]
            ends = {"from": "s*", "to": "r*"}
        elif topology == "home":
            rate, down = self.rate(5, 100)
            about = {"down": down, "up": f"{self.log(1, 20):g} Mbit/s", "rtt": about["rtt"]}
            about["queue"] = f"{round(self.log(20, 500))} ms"
        elif topology == "parking-lot":
            about["hops"] = self.one(2, 3)
        flows = self.flows(ends)
        table = "chain" if topology.startswith("chain") else topology
        if topology == "parking-lot":
            flows[0] |= {"from": "a", "to": "b"}
            flows = [flows[0], {"name": "cross", "cc": self.one("reno", "cubic"), "from": "c1", "to": "d1"}]
        seconds = min(60, max(3, round(SEGMENTS * 1460 * 8 / (rate * 1e6))))
        tables = {"topology": topology, "duration": f"{seconds} s", table: about, "host": self.host(), "flows": flows}
        return tables | ({"ip": 6} if self.often(0.08) else {})


def written(value: Any) -> str:
    """As TOML, in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def main() -> None:
    seed, count, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    draw = Draw(seed)
    print(HEAD.format(seed=seed, count=count, name=name))
    found = 0
    while found < count:
        tables = draw.point()
        try:
            scenario = Scenario.from_dict({"interval": "500 ms", "traffic": "native", **tables})
            for engine in ("sim", "kernel"):
                get(engine).check(scenario)
        except SawtoothError as error:
            print(f"drawn again: {error.code} {error.field}: {error.message}", file=sys.stderr)
            continue
        found += 1
        print(f'[[blocks]]\nname = "p{found:03}"\n[blocks.scenario]')
        print("\n".join(f"{key} = {written(value)}" for key, value in tables.items()) + "\n")


main()
