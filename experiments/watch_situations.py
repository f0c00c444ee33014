"""Situations for watch_truth.py: forty used to correct the rules of `watch`, and others drawn from a seed."""

from __future__ import annotations

import math
import random

from watch_path import Situation

ANY = ("path", "congestion window")
"""The control decides; how busy the bottleneck was shows the answer afterward."""


def known() -> list[Situation]:
    """The forty situations."""
    found = []
    for cc in ("cubic", "reno", "bbr"):
        for rtt in (0.02, 0.06):
            lossy = ("path",) if cc == "bbr" else ("congestion window",)
            for loss in (0.01, 0.03):
                # BBR needs a bottleneck, or it treats this script's process as one.
                rate = 10e6 if cc == "bbr" else 0.0
                found.append(Situation(f"loss-{cc}-{rtt}-{loss}", cc, lossy, rtt, rate, 200, loss))
            found.append(Situation(f"path-{cc}-{rtt}", cc, ("path",), rtt, 8e6, int(2 * 8e6 * rtt / 12000) + 4))
            found.append(Situation(f"app-{cc}-{rtt}", cc, ("application",), rtt, app_bps=2e6))
            found.append(Situation(f"rwnd-{cc}-{rtt}", cc, ("receive window",), rtt, receive_buffer=16384))
        found.append(Situation(f"applossy-{cc}", cc, ("application",), 0.02, loss=0.01, app_bps=1e6))
    for cc in ("cubic", "reno"):
        found.append(Situation(f"sndbuf-{cc}", cc, ("send buffer",), 0.04, send_buffer=16384))
        found.append(Situation(f"pacing-{cc}", cc, ("pacing",), 0.02, pacing_bps=4e6))
    found.append(Situation("pathlossy-cubic", "cubic", ANY, 0.02, 8e6, 60, 0.001))
    found.append(Situation("pathlossy-reno", "reno", ANY, 0.02, 8e6, 60, 0.001))
    found.append(Situation("pacing-bbr", "bbr", ("pacing",), 0.02, pacing_bps=4e6))
    return found


def drawn(seed: int, count: int) -> list[Situation]:
    """Of each five, three are limited by the network, one by its application, one by its hosts' buffers or pacing."""
    rng = random.Random(seed)
    found = []
    for at in range(count):
        cc, rtt, rate = rng.choice(("cubic", "reno", "bbr")), _between(rng, 0.01, 0.1), _between(rng, 3e6, 20e6)
        packets = max(8, round(rng.uniform(0.5, 2.0) * rate * rtt / 12112))
        path = {"rtt_s": rtt, "rate_bps": rate, "queue_packets": packets, "seed": seed * 1000 + at}
        name, kind = f"{seed}-{at:02}-{cc}", at % 5
        if kind < 3:
            loss = (0.0, _between(rng, 0.0005, 0.01), _between(rng, 0.005, 0.03))[kind]
            what = f"{rate / 1e6:.1f}M-{rtt * 1e3:.0f}ms-{loss:.2%}"
            right = ("path",) if cc == "bbr" or not loss else ANY
            found.append(Situation(f"{name}-{what}", cc, right, **path, loss=loss))
        elif kind == 3:
            loss = rng.choice((0.0, 0.005))
            # The control could carry far more than the application writes.
            asked = min(0.4 * rate, 0.3 * 1.2 * 11600 / rtt / math.sqrt(loss) if loss else rate)
            found.append(Situation(f"{name}-app", cc, ("application",), **path, loss=loss, app_bps=asked))
        else:
            what = rng.choice(("receive window", "send buffer", "pacing"))
            few = max(6, round(0.4 * rate * rtt / 8 / 1448)) * 1448
            told = {
                "receive window": {"receive_buffer": few},
                "send buffer": {"send_buffer": few},
                "pacing": {"pacing_bps": 0.5 * rate},
            }[what]
            found.append(Situation(f"{name}-{what.replace(' ', '-')}", cc, (what,), **path, **told))
    return found


def _between(rng: random.Random, low: float, high: float) -> float:
    """Uniform in the logarithm."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))
