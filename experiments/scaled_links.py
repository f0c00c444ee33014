"""How well few flows on a slow link stand for many on a fast one: a kth of the flows, the rate and the queue.

python experiments/scaled_links.py [--seeds 3] [--fewest 100] [--processing 50] [--only TEXT]
python experiments/scaled_links.py --cells [--fewest 100]

Delays stay (Pan, Prabhakar, Psounis, Wischik, "SHRiNK: A method for scaleable performance prediction and efficient
network simulation", 2003). Each row is a link with all packets, then how far the scaled one is off: drops (of packets
that arrived at the queue), retransmissions, mean queue, RTT, and the first flow's share where there are two. Hosts take
up to ``--processing`` microseconds for a packet, at random, so that seeds differ; on the scaled link k times as much.
``--fewest`` connections of a scenario are left.

``--cells``: the core cells of the replication imc21-mathis-at-scale, for three hours with ``fast = "3%"``: processor
time. Runs of ``SECONDS`` without it give the constant C of Mathis' law, goodput = C * MSS / (RTT * sqrt(p)), where p is
the share of halvings or of drops. The original counts an hour's drops from the beginning. So C by drops is that of
``HOUR`` too: what was dropped in the first third, and the rest as in the others. It depends on how connections start.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from sawtooth import Scenario
from sawtooth.engines.sim import Sim
from sawtooth.run import Run

FRAME, MSS = 1514, 1448
SECONDS = 400
"""Of a run that counts halvings; the first third is the beginning."""
HOUR = 3600
HOSTS, APART_MS = 10, 500
"""Senders, and the time between two of their starts: the original starts them over ssh, one after the other."""
SPREADS_MS = {"at once": None, "at once on each host": 0, "20 ms apart on a host": 20}
"""The time between two connections' starts on a host."""
CORE = [(flows, rtt_ms) for rtt_ms in (20, 100, 200) for flows in (1000, 3000, 5000)]
"""10 Gbit/s and 375 MiB."""
PATHS: dict[str, tuple[float, float, float | str, float, list[tuple[str, int]], int]] = {
    # Mbit/s, RTT in ms, queue in BDP or its kind, loss in percent, controls with their numbers, seconds.
    "300 Reno, 100 ms": (1000, 100, 1.0, 0, [("reno", 300)], 120),
    "300 Reno, 200 ms, 0.1 BDP": (1000, 200, 0.1, 0, [("reno", 300)], 120),
    "500 Reno, 20 ms, 10.5 BDP": (1000, 20, 10.5, 0, [("reno", 500)], 150),
    "200 Reno, 100 Mbit/s, 200 ms": (100, 200, 1.0, 0, [("reno", 200)], 240),
    "100 Reno, 100 Mbit/s, 20 ms": (100, 20, 1.0, 0, [("reno", 100)], 120),
    "300 CUBIC, 20 ms": (1000, 20, 1.0, 0, [("cubic", 300)], 60),
    "1,000 CUBIC, 100 ms, 0.5 BDP": (1000, 100, 0.5, 0, [("cubic", 1000)], 60),
    "300 BBR, 100 ms": (1000, 100, 1.0, 0, [("bbr", 300)], 60),
    "150 Reno, 150 CUBIC, 20 ms": (1000, 20, 1.0, 0, [("reno", 150), ("cubic", 150)], 120),
    "300 CUBIC, 300 BBR, 100 ms": (1000, 100, 1.0, 0, [("cubic", 300), ("bbr", 300)], 120),
    "1,000 Reno, 20 ms, 0.5 BDP": (1000, 20, 0.5, 0, [("reno", 1000)], 60),
    "300 Reno, 20 ms, CoDel": (1000, 20, "codel", 0, [("reno", 300)], 60),
    "300 CUBIC, 20 ms, fq_codel": (1000, 20, "fq_codel", 0, [("cubic", 300)], 60),
    "300 CUBIC, 20 ms, 1% loss": (1000, 20, 1.0, 1, [("cubic", 300)], 60),
}
LIMITS = {"codel": 1_000, "fq_codel": 10_240}


def scaled(name: str, by: float, seed: int, processing_us: float) -> Scenario:
    rate, rtt_ms, queue, loss, flows, seconds = PATHS[name]
    given: Any
    if queue in LIMITS:
        given = {"kind": queue, "limit": f"{round(LIMITS[str(queue)] / by)} packets"}
    else:
        given = f"{max(1, round(float(queue) * rate * rtt_ms * 125 / FRAME / by))} packets"
    return Scenario.from_dict(
        {
            "duration": f"{seconds} s",
            "warmup": f"{seconds // 4} s",
            "seed": seed,
            "host": {"processing": f"{processing_us * by:.3f} us"},
            "path": {"rate": f"{rate / by:.6f} Mbit/s", "rtt": f"{rtt_ms} ms", "queue": given, "loss": f"{loss}%"},
            "flows": [{"name": cc, "cc": cc, "count": round(count / by)} for cc, count in flows],
        }
    )


def seen(run: Run, by: float, warmup_s: float) -> dict[str, float]:
    """Of the time after the warm-up, in units of the link with all packets."""
    queue, intervals, info = (run.tables[name] for name in ("queues", "intervals", "tcp_info"))
    queue = queue[(queue["transmitter"] == 0) & (queue["t_s"] > warmup_s)]
    intervals = intervals[intervals["t_s"] > warmup_s]
    drops, sent = float(queue["drops"].sum()), float(queue["sent_packets"].sum())
    goodput = intervals.groupby("flow")["goodput_bps"].mean().to_numpy()
    return {
        "drops": drops / (drops + sent),
        "again": float(intervals["retransmits"].sum() / intervals["segments_out"].sum()),
        "queue": float(queue["mean_packets"].mean()) * by,
        "rtt": float(info[info["t_s"] > warmup_s]["srtt_s"].mean()),
        "share": float(goodput[0] / goodput.sum()),
    }


def compare(only: str, seeds: int, fewest: int, processing_us: float) -> None:
    for name, (*_, flows, seconds) in PATHS.items():
        if only not in name:
            continue
        by = sum(count for _, count in flows) / fewest
        rows: dict[float, list[dict[str, float]]] = {1.0: [], by: []}
        for factor, found in rows.items():
            for seed in range(1, seeds + 1):
                found.append(seen(Sim().run(scaled(name, factor, seed, processing_us)), factor, seconds // 4))
        parts = []
        for what in rows[1.0][0]:
            true, told = (np.array([one[what] for one in rows[factor]]) for factor in (1.0, by))
            spread = true.std(ddof=1) / true.mean() if seeds > 1 else 0.0
            parts.append(f"{what} {true.mean():.4g} ({spread:.1%}) {told.mean() / true.mean() - 1:+.1%}")
        print(f"{name}: {'; '.join(parts)}", flush=True)


def whole(path: dict[str, str], by: float, fewest: int, spread_ms: int | None) -> tuple[float, float, float]:
    """C by halvings, C by drops once all are under way, and C by the drops of an hour from the beginning."""
    each = fewest // HOSTS
    starts = [0 if spread_ms is None else one // each * APART_MS + one % each * spread_ms * by for one in range(fewest)]
    # Each is an entry of its own, because a run has the windows of the first 16 connections of an entry.
    reno = [{"name": f"reno{number}", "cc": "reno", "start": f"{start:.0f} ms"} for number, start in enumerate(starts)]
    run = Sim().run(Scenario.from_dict({"duration": f"{SECONDS} s", "interval": "1 s", "path": path, "flows": reno}))
    under_way = SECONDS // 3
    of = {name: run.tables[name] for name in ("intervals", "queues", "tcp_info")}
    later = {name: table[table["t_s"] > under_way] for name, table in of.items()}
    goodput = float(later["intervals"].groupby("t_s")["goodput_bps"].sum().mean()) / fewest
    rtt_s = float(later["tcp_info"]["srtt_s"].mean())
    # Counts of a second.
    segments, drops, halvings = (
        count / (SECONDS - under_way)
        for count in (
            float(later["intervals"]["segments_out"].sum()),
            float(later["queues"][later["queues"]["transmitter"] == 0]["drops"].sum()),
            # An interval is much shorter than the time between two halvings of a connection.
            sum((np.diff(one) != 0).sum() for _, one in later["tcp_info"].groupby("flow")["ssthresh_segments"]),
        )
    )
    queues, sent = of["queues"], of["intervals"]
    first = float(queues[(queues["transmitter"] == 0) & (queues["t_s"] <= under_way)]["drops"].sum())
    all_drops = first + drops * (HOUR - under_way)
    all_segments = float(sent[sent["t_s"] <= under_way]["segments_out"].sum()) + segments * (HOUR - under_way)
    by_halvings, by_drops, by_all_drops = (
        goodput / 8 / MSS * rtt_s * share**0.5
        for share in (halvings / segments, drops / segments, all_drops / all_segments)
    )
    return by_halvings, by_drops, by_all_drops


def cell(flows: int, rtt_ms: int, fewest: int) -> str:
    by = flows / fewest
    path = {"rate": f"{10_000 / by:.6f} Mbit/s", "rtt": f"{rtt_ms} ms", "queue": f"{round(375 * 2**20 / by)} bytes"}
    began = time.process_time()
    reno = [{"cc": "reno", "count": fewest}]
    Sim().run(Scenario.from_dict({"duration": "3 h", "fast": "3%", "path": path, "flows": reno}))
    took = time.process_time() - began
    runs = {name: whole(path, by, fewest, spread_ms) for name, spread_ms in SPREADS_MS.items()}
    by_halvings, by_drops, _ = runs["at once"]
    return (
        f"{flows} flows, {rtt_ms} ms: {took:.1f} s of processor time; "
        f"C by halvings {by_halvings:.2f}, by drops {by_drops:.2f}; by the drops of an hour, if they start "
        + ", ".join(f"{name} {of_hour:.2f}" for name, (_, _, of_hour) in runs.items())
    )


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--seeds", type=int, default=3, help="runs of each scenario")
    asked.add_argument("--fewest", type=int, default=100, help="connections on the slower link")
    asked.add_argument(
        "--processing",
        type=float,
        default=50,
        help="us, on the link with all packets; k times as much on the scaled one",
    )
    asked.add_argument(
        "--only", default="", help='scenarios with this text in their name; with --cells in FLOWS-RTT, like "1000-20"'
    )
    asked.add_argument("--cells", action="store_true", help="the nine core cells of imc21 instead")
    given = asked.parse_args()
    if given.cells:
        for flows, rtt_ms in CORE:
            if given.only in f"{flows}-{rtt_ms}":
                print(cell(flows, rtt_ms, min(given.fewest, flows)), flush=True)
    else:
        compare(given.only, given.seeds, given.fewest, given.processing)
