"""The model behind ``sawtooth capture --identify``: its corpus, its training, its evaluation.

    python experiments/train_identify.py corpus  DIRECTORY [--paths N] [--jobs N]  traces of every control
        [--kernel NAME --controls bbr3]                                        … of others, by a kernel that has them
        [--cluster WHERE]                                                      … on the workers of a cluster
    python experiments/train_identify.py train  DIRECTORY [--labelled DIR]  writes src/sawtooth/data/identify.json

A corpus is one file per path; existing files are kept, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import lzma
import struct
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.dask import Cluster
from sawtooth.io.parallel import fan_out
from sawtooth.scenario import LINUX_CONTROLS

FRAME = 66
"""Bytes of headers in a frame with timestamps, as Linux counts them."""
VIEWS = ("near", "far")
"""Capture points: directly after the sender (before the bottleneck), and directly before the receiver."""
DIMENSIONS = 10
FAMILIES = {"field": 0.8, "small": 0.07, "fast": 0.03, "slow": 0.04, "long": 0.03, "any": 0.03}
"""Shares of the kinds of paths. In the field are tools that slow a line down until a sender's window can be seen."""
PAUSE_S = 8
"""Pause between two flows in seconds, in which all packets in transit and in the queue arrive."""
SERVERS = range(5201, 5201 + 17)
"""Ports of the receivers, one per flow."""
LEFT_OUT = Path(__file__).resolve().parents[1] / "fidelity" / "field" / "left-out.json.xz"
MODEL = Path(__file__).resolve().parents[1] / "src" / "sawtooth" / "data" / "identify.json"


def draw(paths: int, seed: int = 5) -> list[dict[str, Any]]:
    """Paths from a low-discrepancy sequence: the first ``n`` are the same for every ``paths``."""
    from scipy.stats import qmc

    drawn = qmc.Sobol(DIMENSIONS, seed=seed).random(1 << max(1, (paths - 1).bit_length()))[:paths]
    return [path(number, point) for number, point in enumerate(drawn)]


def path(number: int, at: np.ndarray) -> dict[str, Any]:
    """Convert a point of the unit cube to a path. Its last coordinate selects the family."""
    family = pick(at[9], FAMILIES)
    if family == "field":
        return field_path(number, at)
    if family == "small":
        return small_path(number, at)
    if family == "fast":
        return fast_path(number, at)
    return slow_path(number, at) if family == "slow" else any_path(number, at, far=family == "long")


def field_path(number: int, at: np.ndarray) -> dict[str, Any]:
    """40 to 500 kbit/s, a set delay and a way beyond it, a queue of 0.7 to 6 times what the set delay holds; mostly
    small segments; mostly served at opportunities of 1500 bytes, in both directions.
    """
    rate_bps = 4e4 * 12.5 ** at[0]
    set_s = 0.02 * 12.5 ** at[1]
    beyond_s = 0.09 * at[2]
    mss = pick(at[3], {48: 0.7, 100: 0.06, 220: 0.06, 536: 0.08, 1448: 0.1})
    frame = mss + FRAME
    bdp = rate_bps * set_s / 8 / frame
    serves = pick(at[4], {"opportunities": 0.6, "smooth": 0.15, "bursts": 0.15, "opportunities, one way": 0.1})
    opportunity = 1500 if serves.startswith("opp") else 0
    return {
        "number": number,
        "family": "field",
        "rate_bps": round(float(rate_bps)),
        "rtt_ms": round(float(set_s + beyond_s) * 1e3, 3),
        "queue_packets": max(5, round(float(bdp * 0.7 * 8.6 ** at[5]))),
        "mss": mss,
        "loss": pick(at[6], {"0%": 0.88, "0.1%": 0.07, "1%": 0.05}),
        "ack_loss": pick(at[6] * 7 % 1, {"0%": 0.95, "1%": 0.05}),
        "aggregation_ms": round(5 * 16 ** float(at[4] * 20 % 1), 1) if serves == "bursts" else 0,
        "opportunity": opportunity,
        "opportunity_back": 0 if serves.endswith("one way") else opportunity,
        "delay_before": round(0.2 * float(at[7]), 2),
        "duration_s": round(float(24 + 20 * at[8])),
    }


def any_path(number: int, at: np.ndarray, *, far: bool) -> dict[str, Any]:
    """A path with limited cost: at most 800 packets/s, 14 to 36 s. ``far``: longer, most without random loss and with
    packets sent in bursts."""
    bursts = 0.6 if far else 0.4
    shortest_s = 0.04 if far else 0.005
    rtt_s = shortest_s * (0.3 / shortest_s) ** at[0]
    bdp = 8 * (300 / 8) ** at[1]
    mss = pick(at[2], {48: 0.45, 536: 0.1, 1448: 0.45} if far else {48: 0.35, 536: 0.1, 1448: 0.55})
    rate_bps = float(np.clip(min(bdp / rtt_s, 800) * (mss + FRAME) * 8, 2e5, 2e8))
    packets_s = rate_bps / 8 / (mss + FRAME)
    queue = max(4, round(packets_s * rtt_s * 0.5 * 16 ** at[3]))
    return {
        "number": number,
        "rate_bps": round(rate_bps),
        "rtt_ms": round(rtt_s * 1e3, 3),
        "queue_packets": queue,
        "mss": mss,
        "loss": pick(at[4], {"0%": 0.75 if far else 0.5, "0.01%": 0.1, "0.1%": 0.05 if far else 0.2, "1%": 0.2}),
        "ack_loss": pick(at[5], {"0%": 0.8, "1%": 0.1, "5%": 0.1}),
        "aggregation_ms": round(4 * 16 ** (at[6] / bursts), 1) if at[6] < bursts else 0,
        "delay_before": round(float(at[7]), 2),
        "duration_s": round(float(np.clip(6000 / packets_s, 14 + 4 * at[8], 22 + 14 * at[8]))),
    }


def small_path(number: int, at: np.ndarray) -> dict[str, Any]:
    """Bandwidth-delay products of 4 to 40 segments, mostly with a queue several times as large, for half a minute."""
    bdp = 4 * 10 ** at[0]
    mss = pick(at[2], {48: 0.6, 536: 0.1, 1448: 0.3})
    if mss == 48:
        packets_s = 1.6e5 * (6e5 / 1.6e5) ** at[1] / 8 / (mss + FRAME)
        rtt_s = float(np.clip(bdp / packets_s, 0.01, 0.25))
    else:
        rtt_s = 0.02 * 10 ** at[1]
        packets_s = min(bdp / rtt_s, 800)
    rate_bps = packets_s * 8 * (mss + FRAME)
    # Some lines transmit 1500 bytes at a time.
    bursts = 0 if at[6] < 0.5 else 12e6 / rate_bps if at[6] < 0.7 else 4 * 15 ** ((at[6] - 0.7) / 0.3)
    return {
        "number": number,
        "rate_bps": round(rate_bps),
        "rtt_ms": round(rtt_s * 1e3, 3),
        "queue_packets": max(4, round(packets_s * rtt_s * 0.5 * 16 ** at[3])),
        "mss": mss,
        "loss": pick(at[4], {"0%": 0.85, "0.1%": 0.1, "1%": 0.05}),
        "ack_loss": pick(at[5], {"0%": 0.9, "1%": 0.1}),
        "aggregation_ms": round(min(float(bursts), 80), 1),
        "delay_before": round(float(at[7]), 2),
        "duration_s": round(float(25 + 15 * at[8])),
    }


def fast_path(number: int, at: np.ndarray) -> dict[str, Any]:
    """10 to 30 Mbit/s, full segments, 12 to 16 s."""
    rtt_s = 0.01 * 12 ** at[0]
    packets_s = 800 * 3.2 ** at[1]
    return {
        "number": number,
        "rate_bps": round(packets_s * 8 * (1448 + FRAME)),
        "rtt_ms": round(float(rtt_s) * 1e3, 3),
        "queue_packets": max(8, round(float(packets_s * rtt_s * 0.3 * 10 ** at[3]))),
        "mss": 1448,
        "loss": pick(at[4], {"0%": 0.6, "0.01%": 0.2, "0.1%": 0.2}),
        "ack_loss": "0%",
        "aggregation_ms": round(4 * 4 ** (at[6] / 0.3), 1) if at[6] < 0.3 else 0,
        "delay_before": round(float(at[7]), 2),
        "duration_s": round(float(12 + 4 * at[8])),
    }


def slow_path(number: int, at: np.ndarray) -> dict[str, Any]:
    """A slow line that transmits in bursts, mostly with small segments, for half a minute."""
    rtt_s = 0.06 * (0.3 / 0.06) ** at[0]
    mss = pick(at[2], {48: 0.8, 536: 0.1, 1448: 0.1})
    packets_s = min(1.5e5 * (8e5 / 1.5e5) ** at[1] / 8 / (mss + FRAME), 600)
    return {
        "number": number,
        "rate_bps": round(packets_s * 8 * (mss + FRAME)),
        "rtt_ms": round(float(rtt_s) * 1e3, 3),
        "queue_packets": max(4, round(float(packets_s * rtt_s * 0.1 * 60 ** at[3]))),
        "mss": mss,
        "loss": pick(at[4], {"0%": 0.85, "0.1%": 0.15}),
        "ack_loss": pick(at[5], {"0%": 0.9, "1%": 0.1}),
        "aggregation_ms": round(float(15 * 6 ** (at[6] / 0.85)), 1) if at[6] < 0.85 else 0,
        "delay_before": round(float(at[7]), 2),
        "duration_s": round(float(26 + 10 * at[8])),
    }


def pick(at: float, shares: dict[Any, float]) -> Any:
    for value, share in shares.items():
        if at < share:
            return value
        at -= share
    return value


def scenario(about: dict[str, Any], controls: tuple[str, ...], kernel: str | None) -> dict[str, Any]:
    """All congestion controls on one path, one after the other, between two routers that see all packets. (A separate
    path for each would need 51 hosts, which costs a guest more time than the packets.)"""
    one_way = about["rtt_ms"] / 2
    before = round(one_way * about["delay_before"], 3)
    behind = {"delay": f"{one_way - before:.3f} ms"}
    forward = behind | {
        "rate": f"{about['rate_bps']} bit/s",
        "queue": f"{about['queue_packets']} packets",
        "aggregation": f"{about['aggregation_ms']} ms",
        "opportunity": f"{about.get('opportunity', 0)} bytes",
        "loss": about["loss"],
    }
    backward = behind | {"loss": about["ack_loss"]}
    if about.get("opportunity_back"):
        served = {"rate": forward["rate"], "queue": "1000 packets"}
        backward |= served | {"opportunity": f"{about['opportunity_back']} bytes"}
    each_s = about["duration_s"] + PAUSE_S
    sends = {"from": "sender", "to": "receiver", "duration": f"{about['duration_s']} s"}
    return {
        "name": f"identify-{about['number']}",
        "topology": "custom",
        "traffic": "native",
        "duration": f"{each_s * len(controls)} s",
        "interval": f"{each_s} s",
        "seed": about["number"] + 1,
        "host": {"mss": about["mss"]} | ({} if kernel is None else {"kernel": kernel}),
        "hosts": {name: {} for name in ("sender", "near", "queue", "far", "receiver")},
        "links": [
            {"from": "sender", "to": "near"},
            {"from": "near", "to": "queue", "delay": f"{before:.3f} ms"},
            {"from": "queue", "to": "far", "forward": forward, "backward": backward},
            {"from": "far", "to": "receiver"},
        ],
        "flows": [
            sends | {"name": cc, "cc": cc, "start": f"{number * each_s} s"} for number, cc in enumerate(controls)
        ],
    }


Task = tuple[dict[str, Any], Path, tuple[str, ...], str | None]
"""A path, its file, the congestion controls, the kernel's name."""


def make(task: Task) -> str:
    """Run the flows of one path in one guest, and save the columns of both captures."""
    from sawtooth.engines.kernel import Kernel
    from sawtooth.scenario import Scenario

    about, target, controls, kernel = task
    with tempfile.TemporaryDirectory(prefix="identify-") as made:
        asked = Scenario.from_dict(scenario(about, controls, kernel))
        run = Kernel(capture=Path(made), capture_at=VIEWS).run(asked)
        columns = {
            f"{view}_{name}": values
            for view in VIEWS
            for name, values in read(Path(made) / f"capture-{view}.pcap").items()
        }
    flows = run.tables["flows"]
    about = about | {
        "controls": [flow.cc for flow in asked.flows],
        "goodput_bps": [float(8 * value) / about["duration_s"] for value in flows["delivered_bytes"]],
        "cpu_s": run.meta["cpu_s"],
    }
    aside = target.with_suffix(".part")
    with aside.open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about)), **columns)
    aside.rename(target)
    return f"path {about['number']}: {about['cpu_s']:.1f} CPU s"


def read(file: Path) -> dict[str, np.ndarray]:
    """The TCP headers of one of our own captures (nanoseconds, Linux cooked v2, IPv4). Each packet is used once, at its
    first device.

    ``flow`` is determined by the receiver's port; ``direction`` 0 is that of data. Timestamps of SYNs are omitted.
    """
    content = file.read_bytes()
    starts, at, length_of = [], 24, struct.Struct("<I")
    while at + 16 <= len(content):
        starts.append(at)
        at += 16 + length_of.unpack_from(content, at + 8)[0]
    octets = np.frombuffer(content + bytes(128), dtype=np.uint8).astype(np.int64)
    record = np.array(starts, dtype=np.int64)
    # SLL2: protocol 2, reserved 2, interface 4, hardware 2, packet type 1, address length 1, address 8.
    record = record[octets[record + 16 + 20 + 9] == 6]
    ip = record + 16 + 20
    headers = 4 * (octets[ip] & 15)
    tcp = ip + headers
    offset = 4 * (octets[tcp + 12] >> 4)

    def number(where: np.ndarray, size: int, *, little: bool = False) -> np.ndarray:
        order = range(size) if little else range(size - 1, -1, -1)
        return sum(octets[where + byte] << 8 * place for place, byte in enumerate(order))

    back = np.isin(number(tcp, 2), SERVERS)
    flow = np.where(back, number(tcp, 2), number(tcp + 2, 2)) - SERVERS[0]
    way, interface = 2 * flow + back, number(record + 16 + 4, 4)
    ways, first = np.unique(way, return_index=True)
    once = interface == interface[first][np.searchsorted(ways, way)]
    # Linux writes NOP, NOP, timestamps. On SYNs the order is different.
    stamped = (offset >= 32) & (octets[tcp + 22] == 8)
    columns = {
        "flow": (flow, "u1"),
        "direction": (back, "u1"),
        "t_ns": (number(record, 4, little=True) * 10**9 + number(record + 4, 4, little=True), "i8"),
        "seq": (number(tcp + 4, 4), "u4"),
        "length": (number(ip + 2, 2) - headers - offset, "u2"),
        "ack": (number(tcp + 8, 4), "u4"),
        "window": (number(tcp + 14, 2), "u2"),
        "flags": (octets[tcp + 13], "u1"),
        "tsval": (np.where(stamped, number(tcp + 24, 4), 0), "u4"),
        "tsecr": (np.where(stamped, number(tcp + 28, 4), 0), "u4"),
    }
    return {name: values[once].astype(kind) for name, (values, kind) in columns.items()}


def corpus(
    directory: Path, paths: int, jobs: int, controls: tuple[str, ...], kernel: str | None, cluster: str | None
) -> None:
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    suffix = "" if kernel is None else f"-{kernel}"
    tasks: list[Task] = [
        (about, directory / f"path-{about['number']:04d}{suffix}.npz", controls, kernel) for about in draw(paths)
    ]
    left = [task for task in tasks if not task[1].exists()]
    with Cluster(cluster) if cluster else nullcontext() as executor:
        fan_out(make, left, done=lambda _, said: print(said, flush=True), jobs=jobs, executor=executor)


def train(directory: Path, labelled: Path | None, jobs: int) -> None:
    import sklearn
    from identify_training import labelled_samples, samples
    from identify_training import train as trained

    made = {"by": "experiments/train_identify.py", "scikit-learn": sklearn.__version__, "numpy": np.__version__}
    others, links = (None, {}) if labelled is None else labelled_samples(labelled, jobs)
    kept, left_out = trained(samples(directory, jobs), made | {"links": sorted(links)}, jobs, others)
    # One line per tree, so that differences are readable.
    trees = ",\n  ".join(json.dumps(tree, separators=(",", ":")) for tree in kept.pop("trees"))
    head = json.dumps(kept, indent=1)[:-2]
    MODEL.write_text(f'{head},\n "trees": [\n  {trees}\n ]\n}}\n', encoding="utf-8")
    print(f"{MODEL}: {MODEL.stat().st_size / 1e3:.0f} kB, temperature {kept['temperature']}")
    print("on paths and links that the trees had not seen:")
    for view, cells in kept["validation"].items():
        print(f"{view}: {cells}")
    if labelled is not None:
        write_left_out(links, left_out)
        print(
            "each link by the classifier that had not seen it: python -m fidelity.field labelled --left-out DIRECTORY"
        )


def write_left_out(links: dict[str, int], left_out: dict[int, dict[str, Any]]) -> None:
    """Write the validation's classifiers, for the evaluation of labelled traces. Each forest belongs to two of them and
    is stored once."""
    from identify_training import FIRST_LINK

    kept = {link: left_out[number - FIRST_LINK] for link, number in links.items()}
    LEFT_OUT.write_bytes(lzma.compress(json.dumps(kept, separators=(",", ":")).encode(), preset=9))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("corpus", "train"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--paths", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--labelled", type=Path)
    parser.add_argument("--kernel", metavar="NAME", help="of sawtooth kernel list; by default Linux 6.12 as it is")
    parser.add_argument(
        "--controls", metavar="NAME,…", default=",".join(LINUX_CONTROLS), help="by default all of Linux's"
    )
    parser.add_argument(
        "--cluster",
        metavar="WHERE",
        help="as of `sawtooth run`; workers need PYTHONPATH=tools, the directory and kernels",
    )
    asked = parser.parse_args()
    if asked.what == "corpus":
        corpus(asked.directory, asked.paths, asked.jobs, tuple(asked.controls.split(",")), asked.kernel, asked.cluster)
    else:
        train(asked.directory, asked.labelled, asked.jobs)
    return 0


if __name__ == "__main__":
    # Import by name: worker processes import the functions that they call, never the started script.
    import train_identify

    sys.exit(train_identify.main())
