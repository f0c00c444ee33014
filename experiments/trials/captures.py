"""Damaged captures."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path


def damage(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Damages a capture at random: bits, bytes, parts."""
    from sawtooth import SawtoothError, read_capture
    from sawtooth.engines.sim import Sim
    from sawtooth.scenario import Scenario

    path = {"rate": "5 Mbit/s", "rtt": "40 ms", "loss": "1%", "queue": "50 packets"}
    Sim(capture=home).run(Scenario(topology="path", duration="5 s", path=path))
    whole = (home / "capture-sender.pcap").read_bytes()
    held = Counter[str]()
    for number in range(times):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            at = rng.randrange(len(data)) if data else 0
            match rng.randrange(4):
                case 0 if data:
                    data[at] ^= 1 << rng.randrange(8)
                case 1:
                    del data[at : at + rng.choice((1, 16, 500))]
                case 2:
                    data[at:at] = rng.randbytes(rng.choice((1, 16, 500)))
                case _ if number % 3 == 0:
                    del data[at:]
        (home / "damaged.pcap").write_bytes(data)
        try:
            told = read_capture(home / "damaged.pcap", 0)
            held[
                "read with a problem named" if told.problems else "read whole, the damage is in what packets hold"
            ] += 1
        except SawtoothError as error:
            held[f"refused: {error.code}"] += 1
    return held
