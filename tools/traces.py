"""Writes the traces that are shipped, src/sawtooth/data/traces: drawn, from no recording. A test compares.

``lte-like.down``, ``lte-like.up``: packet-delivery times of a cellular line in a moving car: a rate that wanders over
decades, fades of a second or so, now and then an outage of a few hundred ms. ``starlink-like.csv``: another rate, delay
and a short burst of loss every 15 s, small changes each second. ``wifi-like.csv``: a modulation that moves up and down.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "src" / "sawtooth" / "data" / "traces"
OPPORTUNITY_BITS = 1500 * 8


def lte(seed: int, mean_bps: float, length_ms: int = 60_000) -> Iterator[str]:
    """Times in ms. A rate is drawn every 20 ms; its logarithm returns to the mean within some seconds."""
    drawn = random.Random(seed)
    wander, fade, out, credit = 0.0, 0.0, 0, 0.0
    for time in range(length_ms + 1):
        if time % 20 == 0:
            wander = 0.995 * wander + 0.07 * drawn.gauss(0, 1)
            fade = 0.97 * fade + (1.2 if drawn.random() < 0.004 else 0)
            out = max(0, out - 20) or (drawn.randint(100, 500) if drawn.random() < 0.001 else 0)
        rate_bps = 0 if out else mean_bps * math.exp(wander - 0.25 - fade)
        credit += rate_bps / 1000 / OPPORTUNITY_BITS * drawn.choice((0, 1, 1, 2))
        while credit >= 1 or time == length_ms:
            yield str(time)
            credit -= 1
            if time == length_ms:
                return


def starlink(seed: int, length_s: int = 300) -> Iterator[str]:
    """Rows of CSV: time, rate, delay, loss."""
    drawn = random.Random(seed)
    yield "t_s,rate_bps,delay_s,loss"
    for second in range(length_s):
        if second % 15 == 0:
            rate, delay = drawn.uniform(60e6, 220e6), drawn.uniform(0.018, 0.035)
            yield f"{second},{rate / 4:.0f},{delay + 0.02:.4f},0.08"
        at = second + 0.12 if second % 15 == 0 else second
        now_bps, now_s = rate * drawn.uniform(0.85, 1.1), delay + drawn.uniform(0, 0.003)
        yield f"{at},{now_bps:.0f},{now_s:.4f},{drawn.choice((0, 0, 0.0005))}"


def wifi(seed: int, length_s: int = 60) -> Iterator[str]:
    """Rows of CSV. The rates are those of 802.11n's eight modulations with one stream; two thirds remain for data."""
    drawn = random.Random(seed)
    rates = (6.5, 13, 19.5, 26, 39, 52, 58.5, 65)
    index = 6
    yield "t_s,rate_bps,loss"
    for tenth in range(10 * length_s):
        index = min(len(rates) - 1, max(0, index + drawn.choice((-1, 0, 0, 0, 0, 1))))
        busy = drawn.uniform(0.45, 0.7)
        yield f"{tenth / 10},{rates[index] * 1e6 * busy:.0f},{0.002 if index < 2 else 0}"


TRACES = {
    "lte-like.down": lambda: lte(1, 7e6),
    "lte-like.up": lambda: lte(2, 2e6),
    "starlink-like.csv": lambda: starlink(3),
    "wifi-like.csv": lambda: wifi(4),
}


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name, made in TRACES.items():
        (HERE / name).write_text("\n".join(made()) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
