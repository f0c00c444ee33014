"""Counts of ``sawtooth capture`` beside those of tshark's TCP analysis, on the same files.

    .venv/bin/python experiments/against_tshark.py FILE…            # the table, in Markdown
    .venv/bin/python experiments/against_tshark.py --speed FILE     # CPU seconds of both

tshark (Debian: ``apt-get install tshark``) is needed by this script alone. It names a retransmission "out of order"
where it comes within an initial round trip of the segments after it, and a duplicate acknowledgement "window update"
where its window differs, SACK blocks or not. So the sums are compared that mean the same. What differs then: tshark
calls the answer to a copy that was not needed a duplicate acknowledgement also where nothing is outstanding (RFC 5681
section 2 does not).
"""

from __future__ import annotations

import argparse
import collections
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

FLAGS = (
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "window_update",
    "lost_segment",
    "ack_lost_segment",
    "zero_window",
    "zero_window_probe",
    "keep_alive",
)

ROWS = (
    ("retransmissions and out of order", ("retransmission", "out_of_order"), ("sent_again", "out_of_order")),
    ("spurious, when seen", ("spurious_retransmission",), ("spurious_at_once",)),
    ("duplicate ACKs and window updates", ("duplicate_ack", "window_update"), ("duplicate_acks", "window_updates")),
    ("zero windows", ("zero_window",), ("zero_windows",)),
    ("keep-alives and zero-window probes", ("keep_alive", "zero_window_probe"), ("keep_alives", "zero_window_probes")),
)
"""One comparison: its name, tshark's flags, our facts. The values are sums."""


def tshark(path: Path) -> collections.Counter[str]:
    """Packets with each flag of tshark's analysis."""
    fields = [word for flag in FLAGS for word in ("-e", f"tcp.analysis.{flag}")]
    command = ["tshark", "-r", str(path), "-Y", "tcp.analysis.flags", "-T", "fields", *fields]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts: collections.Counter[str] = collections.Counter()
    for line in told.splitlines():
        counts.update(flag for flag, value in zip(FLAGS, line.split("\t"), strict=True) if value)
    return counts


def ours(path: Path) -> collections.Counter[str]:
    """The facts of all directions, summed."""
    from sawtooth import read_capture

    counts: collections.Counter[str] = collections.Counter()
    for connection in read_capture(path).facts["connections"]:
        for end in ("client", "server"):
            counts["sent_again"] += (connection["handshake"][end] or {}).get("retransmits", 0)
        for direction in connection["directions"]:
            counts.update({name: value for name, value in direction.items() if isinstance(value, int)})
    counts["sent_again"] += counts["retransmits"]
    counts["spurious_at_once"] = counts["spurious"] - counts["reported_spurious"]
    return counts


def table(paths: list[Path]) -> str:
    """A Markdown table: one row per file and kind of event, with tshark's parts of each sum."""
    lines = ["| file | kind | tshark | sawtooth | tshark's names |", "|---|---|---|---|---|"]
    for path in paths:
        theirs, own = tshark(path), ours(path)
        for name, flags, facts in ROWS:
            parts = ", ".join(f"{theirs[flag]} {flag}" for flag in flags if theirs[flag])
            sums = sum(theirs[flag] for flag in flags), sum(own[fact] for fact in facts)
            lines.append(f"| {path.name} | {name} | {sums[0]} | {sums[1]} | {parts} |")
    return "\n".join(lines)


def cpu_s(command: list[str]) -> float:
    """CPU seconds, user and system, of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(path: Path) -> str:
    """CPU time of both programs, the minimum of three runs each, on a file that is cached in memory."""
    analyse = "import sys; from sawtooth import _core; _core.read_capture(sys.argv[1])"
    commands: dict[str, list[str]] = {
        "sawtooth": [sys.executable, "-c", analyse, str(path)],
        "tshark": ["tshark", "-r", str(path), "-q", "-z", "io,stat,0,tcp.analysis.flags"],
    }
    found: dict[str, Any] = {name: min(cpu_s(command) for _ in range(3)) for name, command in commands.items()}
    megabytes = path.stat().st_size / 1e6
    lines = [f"{name}: {seconds:.2f} s, {megabytes / seconds:.0f} MB/s" for name, seconds in found.items()]
    return "\n".join([*lines, f"ratio: {found['tshark'] / found['sawtooth']:.1f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--speed", action="store_true", help="compare CPU time, not counts")
    given = parser.parse_args()
    if shutil.which("tshark") is None:
        sys.exit("tshark is not installed: apt-get install tshark")
    print("\n\n".join(speed(path) for path in given.files) if given.speed else table(given.files))


if __name__ == "__main__":
    main()
