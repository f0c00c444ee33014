"""RFC 9438's average windows beside those of the engines, as Markdown: section 5.2, tables 1 and 2.

    python tools/rfc9438.py [--sim 7] [--kernel 4]

One packet in every 1/p is lost, from 1/p = 100 to the given power of ten. The average is over time, from the 10th loss
to the 20th, on a path whose rate and buffers are not the limit in that time.
"""

from __future__ import annotations

import argparse
import sys

from sawtooth import Run, Scenario, run

SKIPPED, MEASURED = 10, 10
"""Numbers of losses that are skipped and measured. They are this large because CUBIC converges slowly when it comes
from slow start."""
SAMPLES = 64
"""Average number of samples between two losses."""
MSS = 1448
EARLY_POWER, EARLY_RTT_MS = 4, 100

# Segments for p = 1e-2, 1e-3, …, with CUBIC's C = 0.4, by algorithm and RTT in milliseconds.
PRINTED = {
    ("reno", 100): (12, 38, 120, 379, 1200, 3795, 12000),
    ("reno", 10): (12, 38, 120, 379, 1200, 3795, 12000),
    ("cubic", 100): (12, 38, 187, 1054, 5926, 33325, 187400),
    ("cubic", 10): (12, 38, 120, 379, 1200, 5926, 33325),
}


def printed(cc: str, rtt_ms: int, power: int) -> int:
    """The RFC's average window in segments at p = 10^-power."""
    return PRINTED[cc, rtt_ms][power - 2]


def scenario(cc: str, rtt_ms: int, power: int, first_loss: int | None = None) -> Scenario:
    """The RFC's scenario. ``first_loss``: the number of the first lost data packet; None before it is known."""
    every, window = 10**power, printed(cc, rtt_ms, power)
    between_s = every / window * rtt_ms / 1e3
    # Twice the window needed at the end: otherwise slow start would double the window until the first loss.
    buffer = min(max(4 * window * MSS, 2**20), 2**30)
    before = 0 if first_loss is None else every - first_loss
    lead_s = 1 + before * 1e-4
    tables = {
        "name": f"rfc9438-{cc}-{rtt_ms}ms-{power}",
        "duration": f"{round(1.25 * between_s * (SKIPPED + MEASURED) + lead_s, 3)} s",
        "interval": f"{max(1, round(between_s / SAMPLES * 1e3))} ms",
        "traffic": "native",
        "path": {
            "rate": "10 Tbit/s",
            "rtt": f"{rtt_ms} ms",
            "queue": "1000000 packets",
            "loss": {"every": every},
        },
        "host": {"receive_buffer": f"{buffer} bytes", "send_buffer": "1 GiB"},
        "flows": [{"cc": cc, "start": f"{round(lead_s, 3)} s"}],
        "probes": [{"interval": "100 us", "count": before}] if before else [],
    }
    return Scenario(**tables)


def average_window(found: Run) -> float:
    """The average window in segments over the measured losses. Raises ValueError if there were too few losses, or if a
    buffer limited the window."""
    links, samples = found.tables["links"], found.tables["tcp_info"]
    times = links.loc[links["lost"] > 0, "t_s"].to_list()
    if len(times) < SKIPPED + MEASURED:
        raise ValueError(f"{found.scenario.name}: {len(times)} losses only")
    kept = samples[samples["t_s"].between(times[SKIPPED - 1], times[SKIPPED + MEASURED - 1], inclusive="right")]
    limited = kept[["rwnd_limited_s", "sndbuf_limited_s"]]
    if (limited.iloc[-1] - limited.iloc[0]).max() > 0:
        raise ValueError(f"{found.scenario.name}: a buffer was the limit")
    return float(kept["cwnd_segments"].mean())


def measure(engine: str, cc: str, rtt_ms: int, power: int, first_loss: int | None = None) -> float:
    """The average window in segments on an engine."""
    asked = scenario(cc, rtt_ms, power, first_loss)
    print(f"{engine}: {asked.name}", file=sys.stderr)
    return average_window(run(asked, engine=engine))


def table(last: dict[str, int]) -> str:
    """``last``: the power of ten of the last 1/p, by engine."""
    engines = [engine for engine, power in last.items() if power]
    heads = ["RTT", "p", "algorithm", "RFC 9438, segments", *(f"{one}, segments | ratio" for one in engines)]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * (4 + 2 * len(engines))]
    for cc, rtt_ms in PRINTED:
        for power in range(2, max(last.values()) + 1):
            expected = printed(cc, rtt_ms, power)
            cells = [f"{rtt_ms} ms", f"1e-{power}", cc, str(expected)]
            for engine in engines:
                if power > last[engine]:
                    cells += ["", ""]
                    continue
                window = measure(engine, cc, rtt_ms, power)
                cells += [_segments(window), f"{window / expected:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def early(engines: list[str]) -> str:
    """CUBIC at one p, by the number of the first lost packet: the window at the first loss has a lasting effect."""
    expected = printed("cubic", EARLY_RTT_MS, EARLY_POWER)
    lines = [
        f"| first packet lost | {' | '.join(f'{one}, segments | ratio' for one in engines)} |",
        "|" + "---|" * (1 + 2 * len(engines)),
    ]
    for first_loss in (120, 220, 500, 10**EARLY_POWER):
        windows = [measure(one, "cubic", EARLY_RTT_MS, EARLY_POWER, first_loss) for one in engines]
        cells = " | ".join(f"{_segments(window)} | {window / expected:.2f}" for window in windows)
        lines.append(f"| {first_loss} | {cells} |")
    return "\n".join(lines)


def _segments(window: float) -> str:
    return f"{window:.0f}" if window >= 100 else f"{window:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sim", type=int, default=7, choices=range(2, 9), help="last power of ten of 1/p")
    parser.add_argument("--kernel", type=int, default=0, choices=(0, *range(2, 6)), help="the same; 0: leave it out")
    asked = parser.parse_args()
    last = {"sim": asked.sim, "kernel": asked.kernel}
    print(table(last))
    print(f"\nCUBIC, RTT {EARLY_RTT_MS} ms, p = 1e-{EARLY_POWER}:\n")
    print(early([engine for engine, power in last.items() if power]))


if __name__ == "__main__":
    main()
