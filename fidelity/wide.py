"""Draws points at random: python fidelity/wide.py SEED COUNT NAME > fidelity/NAME.toml

Each point is drawn from all that a scenario may say and both engines take; what one of them refuses is drawn again.
The names wide and unseen draw what those two files have. Every other name draws more: flows in both directions,
trees, up to 40 connections of mixed controls and starts, arrivals, on-off applications, GRO, and super-packets.
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
# Written by `python fidelity/wide.py {seed} {count} {name}`.

record = "{name}.csv"

[scenario]
interval = "500 ms"
traffic = "native"

[scenario.host]
hz = 250
receive_buffer = "64 MiB"
send_buffer = "64 MiB"

[budget]
kernel = {{ {kernel} }}
sim = {{ runs = {sim} }}
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


class More(Draw):
    """Draws from more of what a scenario may say, in runs of 6 to 15 s."""

    def any_queue(self) -> Any:
        """2 packets to 4 BDP of tail drop, or any other kind."""
        kind = self.one("few", "few", "bdp", "bdp", "bdp", "bytes", *AQM, "sfq", "fq", "cake")
        if kind == "few":
            return f"{round(self.log(2, 100))} packets"
        if kind == "bdp":
            return f"{self.log(0.2, 4):g} bdp"
        if kind == "bytes":
            return f"{self.random.randint(10, 400)} KiB"
        return {"kind": kind} | ({"limit": f"{round(self.log(50, 400))} ms"} if kind == "red" else {})

    def any_loss(self) -> Any:
        kind = self.one("none", "none", "none", "share", "share", "bursts", "every")
        share = f"{self.log(0.01, 3):g}%"
        return {
            "none": "0%",
            "share": share,
            "bursts": {"gilbert_elliott": {"p": share, "r": f"{self.log(20, 80):g}%", "bad": "100%", "good": "0%"}},
            "every": {"every": round(self.log(50, 5_000))},
        }[kind]

    def any_flows(self, ways: list[tuple[str, str]], rate: float) -> list[dict[str, Any]]:
        """Between the given ends, and back."""
        flows = []
        for number in range(self.one(1, 1, 2, 2, 3, 4)):
            ends = self.one(*ways)
            ends = ends[::-1] if number and self.often(0.25) else ends
            flow: dict[str, Any] = {"name": "abcd"[number], "cc": self.one("reno", "cubic", "bbr")}
            flow |= {"from": ends[0], "to": ends[1]}
            kind = self.one("long", "long", "long", "replace", "rate", "on-off", "arrivals")
            if kind == "arrivals":
                sizes = f"{self.log(10, 300):g} kB"
                flow["source"] = {"kind": "arrivals", "load": f"{self.log(10, 60):g}%", "sizes": sizes}
            else:
                flow["count"] = self.one(1, 1, 1, 1, 2, 4, 10)
            if kind == "replace":
                flow["replace"] = {"lifetime": ["300 ms", "2 s"]}
            elif kind == "rate":
                flow["source"] = {"kind": "rate", "rate": f"{self.log(rate / 20, rate):.3g} Mbit/s"}
            elif kind == "on-off":
                about = {"kind": "on-off", "on": f"{self.log(0.1, 2):g} s", "off": f"{self.log(0.1, 2):g} s"}
                flow["source"] = about | {"rate": f"{self.log(rate / 4, rate):.3g} Mbit/s"}
            if number and self.often(0.5):
                flow["start"] = f"{self.random.randint(0, 2_000)} ms"
            flows.append(flow)
        return flows

    def point(self) -> dict[str, Any]:
        topology = self.one(*["path"] * 8, "dumbbell", "dumbbell", "parking-lot", "chain", "chain-asymmetric", "tree")
        rate, text = self.rate(1, 60)
        about: dict[str, Any] = {"rate": text, "rtt": f"{self.log(1, 120):g} ms", "queue": self.any_queue()}
        tables: dict[str, Any] = {"topology": topology, "duration": f"{self.random.randint(6, 15)} s"}
        host = self.host()
        if topology == "path":
            ways = [("sender", "receiver")]
            about["loss"] = self.any_loss()
            if self.often(0.1):
                about["ack_loss"] = f"{self.log(0.1, 10):g}%"
            if self.often(0.3):
                about["reverse_rate"] = f"{self.log(rate / 20, rate):.3g} Mbit/s"
            if self.often(0.35):
                about |= self.varying(rate)
        elif topology == "dumbbell":
            about |= {"pairs": 3, "rtt": [f"{self.log(1, 100):g} ms" for _ in range(3)]}
            ways = [("s1", "r1"), ("s2", "r2"), ("s3", "r3")]
        elif topology == "parking-lot":
            about["hops"] = self.one(2, 3)
            ways = [("a", "b"), ("c1", "d1"), ("c2", "d2")]
        elif topology == "tree":
            leaves = range(self.one(2, 3, 4))
            tables |= {"topology": "custom", "hosts": {"root": {}, "end": {}} | {f"leaf{n}": {} for n in leaves}}
            trunk = {"from": "root", "to": "end", "rate": text, "delay": "1 ms", "queue": self.any_queue()}
            twigs = [
                {"from": f"leaf{n}", "to": "root", "rate": f"{self.log(rate / 2, rate * 4):.3g} Mbit/s"}
                | {"delay": f"{self.log(0.5, 60):g} ms", "queue": f"{round(self.log(5, 300))} packets"}
                for n in leaves
            ]
            tables["links"] = [trunk, *twigs]
            ways = [(f"leaf{n}", "end") for n in leaves]
        else:
            ways = [("h1", "h5")]
        if topology in ("path", "dumbbell", "parking-lot", "tree") and self.often(0.15):
            host["gro"] = self.one(True, f"{round(self.log(20, 2000))} us")
        if topology in ("path", "tree") and self.often(0.08):
            host["offload"] = True
        if topology != "tree":
            tables["chain" if topology.startswith("chain") else topology] = about
        flows = self.any_flows(ways, rate)
        if topology == "path" and any(flow["from"] == "receiver" for flow in flows):
            # Without a rate a reverse flow would have no bottleneck.
            about.setdefault("reverse_rate", text)
        return tables | {"host": host, "flows": flows} | ({"ip": 6} if self.often(0.05) else {})


def written(value: Any) -> str:
    """As TOML, in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def main() -> None:
    seed, count, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    first = name in ("wide", "unseen")
    draw = Draw(seed) if first else More(seed)
    kernel, sim = ('runs = 4, least = 2, cpu = "6 s"', 12) if first else ("runs = 3", 3)
    print(HEAD.format(seed=seed, count=count, name=name, kernel=kernel, sim=sim))
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
