"""The model behind ``sawtooth capture --identify``: its corpus, its training, its evaluation.

    python tools/train_identify.py corpus   DIRECTORY [--paths N] [--jobs N]   traces of every control, engine kernel
    python tools/train_identify.py train    DIRECTORY                        writes src/sawtooth/data/identify.json
    python tools/train_identify.py evaluate DIRECTORY [--labelled DIR]       accuracy and confusion on paths held out

A corpus is one file a path; a file that is there is not made again, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.work import fan_out, results

FRAME = 66
"""Bytes of headers that Linux counts of a frame with timestamps."""
VIEWS = ("near", "far")
"""Capture points: right behind the sender, before the bottleneck; right before the receiver."""
DIMENSIONS = 10
LONG, SLOW, MIXED = 64, 128, 176
SERVERS = range(5201, 5201 + 17)
"""Ports of the receivers, one a flow."""
MODEL = Path(__file__).resolve().parents[1] / "src" / "sawtooth" / "data" / "identify.json"


def draw(paths: int, seed: int = 5) -> list[dict[str, Any]]:
    """Paths of a low-discrepancy sequence: the first ``n`` are the same whatever ``paths`` is."""
    from scipy.stats import qmc

    drawn = qmc.Sobol(DIMENSIONS, seed=seed).random(1 << max(1, (paths - 1).bit_length()))[:paths]
    return [path(number, point) for number, point in enumerate(drawn)]


def path(number: int, at: np.ndarray) -> dict[str, Any]:
    """A point of the unit cube as a path. Its cost is bounded: at most 800 packets/s, 14 to 36 s.

    From ``LONG`` on the paths are long, most of them without random loss and with packets that leave in bursts; from
    ``SLOW`` on they are slow lines, from ``MIXED`` on small windows (most), fast lines and such as are before.
    """
    if number >= MIXED and at[9] < 0.62:
        return small_path(number, at)
    if number >= MIXED and at[9] > 0.92:
        return fast_path(number, at)
    if SLOW <= number < MIXED:
        return slow_path(number, at)
    far = LONG <= number < SLOW
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
    """Bandwidth-delay products of 4 to 40 segments, mostly with a queue of several of them, seen for half a minute."""
    bdp = 4 * 10 ** at[0]
    mss = pick(at[2], {48: 0.6, 536: 0.1, 1448: 0.3})
    if mss == 48:
        packets_s = 1.6e5 * (6e5 / 1.6e5) ** at[1] / 8 / (mss + FRAME)
        rtt_s = float(np.clip(bdp / packets_s, 0.01, 0.25))
    else:
        rtt_s = 0.02 * 10 ** at[1]
        packets_s = min(bdp / rtt_s, 800)
    rate_bps = packets_s * 8 * (mss + FRAME)
    # Some lines serve 1500 bytes at a time.
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
    """From ``SLOW`` on: a slow line that serves in bursts, mostly with small segments, seen for half a minute."""
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


def scenario(about: dict[str, Any], controls: tuple[str, ...]) -> dict[str, Any]:
    """Every congestion control on a copy of the path of its own, between two hosts that see all packets."""
    one_way = about["rtt_ms"] / 2
    before = round(one_way * about["delay_before"], 3)
    hosts: dict[str, Any] = {"near": {}, "far": {}}
    tables: dict[str, list[Any]] = {"links": [], "flows": [], "routes": []}
    for cc in controls:
        sender, router, receiver = f"{cc}-s", f"{cc}-q", f"{cc}-r"
        hosts.update({sender: {}, router: {}, receiver: {}})
        forward = {
            "rate": f"{about['rate_bps']} bit/s",
            "queue": f"{about['queue_packets']} packets",
            "aggregation": f"{about['aggregation_ms']} ms",
            "delay": f"{one_way - before:.3f} ms",
        }
        tables["links"] += [
            {"from": sender, "to": "near"},
            {"from": "near", "to": router, "name": f"{cc}-1", "delay": f"{before:.3f} ms"},
            {
                "from": router,
                "to": "far",
                "name": f"{cc}-2",
                "forward": forward | {"loss": about["loss"]},
                "backward": {"delay": f"{one_way - before:.3f} ms", "loss": about["ack_loss"]},
            },
            {"from": "far", "to": receiver},
        ]
        tables["flows"].append({"name": cc, "from": sender, "to": receiver, "cc": cc})
        tables["routes"] += [
            {"from": sender, "to": receiver, "via": ["near", router, "far"]},
            {"from": receiver, "to": sender, "via": ["far", router, "near"]},
        ]
    return {
        "name": f"identify-{about['number']}",
        "topology": "custom",
        "traffic": "native",
        "duration": f"{about['duration_s']} s",
        "seed": about["number"] + 1,
        "host": {"mss": about["mss"]},
        "hosts": hosts,
        **tables,
    }


def make(task: tuple[dict[str, Any], Path]) -> str:
    """Runs one path's copies in one guest and keeps the columns of both captures."""
    from sawtooth.engines.kernel import Kernel
    from sawtooth.scenario import CONGESTION_CONTROLS, Scenario

    about, target = task
    with tempfile.TemporaryDirectory(prefix="identify-") as made:
        asked = Scenario.from_dict(scenario(about, CONGESTION_CONTROLS))
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
    """The TCP headers of a capture of our own (nanoseconds, Linux cooked v2, IPv4), a packet once: at its first device.

    ``flow`` is by the receiver's port; ``direction`` 0 is data's.
    """
    content = file.read_bytes()
    rows, at, size = [], 24, len(content)
    first: dict[tuple[int, int], int] = {}
    unpack = struct.Struct
    record, ip, tcp, stamp = unpack("<IIII"), unpack(">BBHHHBBH4s4s"), unpack(">HHIIBBHHH"), unpack(">II")
    while at + 16 <= size:
        seconds, nanos, kept, _ = record.unpack_from(content, at)
        packet = at + 16
        at = packet + kept
        # SLL2: protocol 2, reserved 2, interface 4, hardware 2, packet type 1, address length 1, address 8.
        interface = int.from_bytes(content[packet + 4 : packet + 8], "big")
        header = ip.unpack_from(content, packet + 20)
        if header[6] != 6:
            continue
        segment = packet + 20 + 4 * (header[0] & 15)
        source, target, seq, ack, offset, flags, window, _, _ = tcp.unpack_from(content, segment)
        back = source in SERVERS
        flow = (source if back else target) - SERVERS[0]
        if first.setdefault((flow, back), interface) != interface:
            continue
        tsval = tsecr = 0
        option, end = segment + 20, segment + 4 * (offset >> 4)
        while option < min(end, at):
            kind = content[option]
            if kind == 8:
                tsval, tsecr = stamp.unpack_from(content, option + 2)
                break
            if kind == 0:
                break
            option += 1 if kind == 1 else max(2, content[option + 1])
        length = header[2] - 4 * (header[0] & 15) - 4 * (offset >> 4)
        rows.append((flow, back, seconds * 10**9 + nanos, seq, length, ack, window, flags, tsval, tsecr))
    names = ("flow", "direction", "t_ns", "seq", "length", "ack", "window", "flags", "tsval", "tsecr")
    kinds = ("u1", "u1", "i8", "u4", "u2", "u4", "u2", "u1", "u4", "u4")
    return {
        name: np.array(values, kind) for name, kind, values in zip(names, kinds, zip(*rows, strict=True), strict=True)
    }


def corpus(directory: Path, paths: int, jobs: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    tasks = [(about, directory / f"path-{about['number']:04d}.npz") for about in draw(paths)]
    left = [task for task in tasks if not task[1].exists()]
    fan_out(make, left, done=lambda _, said: print(said, flush=True), jobs=jobs)


def train(directory: Path, jobs: int) -> None:
    import sklearn
    from identify_training import samples
    from identify_training import train as trained

    made = {"by": "tools/train_identify.py", "scikit-learn": sklearn.__version__, "numpy": np.__version__}
    kept = trained(samples(directory, jobs), made, jobs)
    # A tree a line, so that a difference can be read.
    trees = ",\n  ".join(json.dumps(tree, separators=(",", ":")) for tree in kept.pop("trees"))
    head = json.dumps(kept, indent=1)[:-2]
    MODEL.write_text(f'{head},\n "trees": [\n  {trees}\n ]\n}}\n', encoding="utf-8")
    print(f"{MODEL}: {MODEL.stat().st_size / 1e3:.0f} kB, temperature {kept['temperature']}")
    print(f"by name, on paths that the trees had not seen: {kept['validation']}")
    for kind, groups in kept["groups"].items():
        print(f"{kind}: {'; '.join(' '.join(group) for group in groups if len(group) > 1)}")


def evaluate(directory: Path, labelled: Path | None, jobs: int) -> None:
    from identify_training import held_out, report

    from sawtooth.capture.identify.classifier import shipped

    answers: dict[str, list[tuple[str, Any]]] = {}
    files = [file for file in sorted(directory.glob("path-*.npz")) if held_out(int(file.stem.split("-")[1]))]
    for view, control, answer in (one for found in results(answers_of, files, jobs=jobs) for one in found):
        answers.setdefault(view, []).append((control, answer))
    for view, found in answers.items():
        print(report(f"kernel paths held out, {view}", found), end="\n\n")
    print(report("kernel paths held out, all views", [one for found in answers.values() for one in found]))
    if labelled is not None:
        from sawtooth.capture.csv import read_csv

        theirs = [(file.stem, shipped().identify(read_csv(file))) for file in sorted(labelled.rglob("*.csv"))]
        print("\n" + report(f"labelled traces of {labelled.name}", theirs))


def answers_of(file: Path) -> list[tuple[str, str, Any]]:
    """View, control and answer of every trace of a path."""
    from identify_training import segments, views

    from sawtooth.capture.identify.classifier import identify

    with np.load(file) as stored:
        about = json.loads(str(stored["about"]))
        columns = {name: stored[name] for name in stored.files if name != "about"}
    found = []
    for flow, control in enumerate(about["controls"]):
        seen = {view: segments(columns, view, flow) for view in VIEWS}
        found += [(view, control, identify(one)) for view, one in views(seen, about["number"]).items()]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("corpus", "train", "evaluate"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--paths", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--labelled", type=Path)
    asked = parser.parse_args()
    if asked.what == "corpus":
        corpus(asked.directory, asked.paths, asked.jobs)
    elif asked.what == "train":
        train(asked.directory, asked.jobs)
    else:
        evaluate(asked.directory, asked.labelled, asked.jobs)
    return 0


if __name__ == "__main__":
    # By its name: processes import what they call, and never the script that was started.
    import train_identify

    sys.exit(train_identify.main())
