"""Measures which changed lines of Linux's TCP ``sawtooth kernel compare`` finds.

    python experiments/planted_kernels.py DIRECTORY [--source TARBALL] [--only NAME …] [--seeds 3]

Each of 20 patches changes one constant or line. They were chosen before the catalogue was tried on any of them. Each
patched kernel is built in the kept tree of the one before, and compared with the kernel without patches. A kernel with
one more comment comes first: it must show no change. DIRECTORY gets the patches and ``planted.csv``: how many
behaviors changed, how many are the same to the byte, and the largest changes. A second call continues, and keeps the
rows of other patches.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sawtooth.behaviors import Catalogue, compared, measure
from sawtooth.behaviors.changes import SAME
from sawtooth.kernel import build
from sawtooth.kernel.source import locate

INPUT, OUTPUT, IPV4 = "net/ipv4/tcp_input.c", "net/ipv4/tcp_output.c", "net/ipv4/tcp_ipv4.c"
HEADER = "include/net/tcp.h"


@dataclass(frozen=True)
class Planted:
    """One change: the only place of ``old`` in ``file`` becomes ``new``."""

    name: str
    file: str
    old: str
    new: str

    def patch(self, text: str) -> str:
        """The patch, in the form of ``diff -u``."""
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.name}: {self.old!r} is {text.count(self.old)} times in {self.file}")
        lines = [one.splitlines(keepends=True) for one in (text, text.replace(self.old, self.new))]
        return "".join(difflib.unified_diff(*lines, f"a/{self.file}", f"b/{self.file}"))


PLANTED = (
    Planted(
        "cwnd-validation",
        HEADER,
        "return tcp_snd_cwnd(tp) < 2 * tp->max_packets_out;",
        "return tcp_snd_cwnd(tp) < 8 * tp->max_packets_out;",
    ),
    Planted("syn-timeout", HEADER, "TCP_TIMEOUT_INIT ((unsigned)(1*HZ))", "TCP_TIMEOUT_INIT ((unsigned)(3*HZ))"),
    Planted("pacing-ss-ratio", IPV4, "sysctl_tcp_pacing_ss_ratio = 200", "sysctl_tcp_pacing_ss_ratio = 150"),
    Planted("rack-reo-wnd", "net/ipv4/tcp_recovery.c", "(tcp_min_rtt(tp) >> 2)", "(tcp_min_rtt(tp) >> 4)"),
    Planted("prr-bound", INPUT, "sndcnt = min(delta, sndcnt);", "sndcnt = min(delta, 1);"),
    Planted("tsq-limit", IPV4, "sysctl_tcp_limit_output_bytes = 16 * 65536", "sysctl_tcp_limit_output_bytes = 16384"),
    Planted("hystart-delay", "net/ipv4/tcp_cubic.c", "HYSTART_DELAY_MIN\t(4000U)", "HYSTART_DELAY_MIN\t(1000U)"),
    Planted("bbr-high-gain", "net/ipv4/tcp_bbr.c", "BBR_UNIT * 2885 / 1000 + 1", "BBR_UNIT * 2000 / 1000 + 1"),
    Planted(
        "abc-limit",
        "net/ipv4/tcp_cong.c",
        "u32 cwnd = min(tcp_snd_cwnd(tp) + acked, tp->snd_ssthresh);",
        "u32 cwnd = min(tcp_snd_cwnd(tp) + min(acked, 1U), tp->snd_ssthresh);",
    ),
    Planted(
        "dupthresh",
        IPV4,
        "sysctl_tcp_reordering = TCP_FASTRETRANS_THRESH",
        "sysctl_tcp_reordering = 2 * TCP_FASTRETRANS_THRESH",
    ),
    Planted("f-rto", IPV4, "sysctl_tcp_frto = 2", "sysctl_tcp_frto = 0"),
    Planted("idle-restart", IPV4, "sysctl_tcp_slow_start_after_idle = 1", "sysctl_tcp_slow_start_after_idle = 0"),
    Planted(
        "rto-backoff",
        "net/ipv4/tcp_timer.c",
        "icsk->icsk_rto = min(icsk->icsk_rto << 1, TCP_RTO_MAX);",
        "icsk->icsk_rto = min(icsk->icsk_rto * 3 / 2, TCP_RTO_MAX);",
    ),
    Planted("rwnd-growth", INPUT, "rcvwin = ((u64)copied << 1)", "rcvwin = ((u64)copied)"),
    Planted(
        "reno-ssthresh",
        "net/ipv4/tcp_cong.c",
        "return max(tcp_snd_cwnd(tp) >> 1U, 2U);",
        "return max(tcp_snd_cwnd(tp) * 3 / 4, 2U);",
    ),
    Planted("cubic-beta", "net/ipv4/tcp_cubic.c", "beta __read_mostly = 717", "beta __read_mostly = 819"),
    Planted("tlp-delay", OUTPUT, "timeout_us = tp->srtt_us >> 2", "timeout_us = tp->srtt_us >> 3"),
    Planted("init-cwnd", HEADER, "#define TCP_INIT_CWND\t\t10", "#define TCP_INIT_CWND\t\t12"),
    Planted("rto-min", HEADER, "#define TCP_RTO_MIN\t((unsigned)(HZ/5))", "#define TCP_RTO_MIN\t((unsigned)(HZ/4))"),
    Planted("delack-max", HEADER, "TCP_DELACK_MAX\t((unsigned)(HZ/5))", "TCP_DELACK_MAX\t((unsigned)(HZ/10))"),
)


def sources(tarball: Path) -> dict[str, str]:
    """The texts of the files that the patches change."""
    with tempfile.TemporaryDirectory() as where:
        top = re.sub(r"\.tar\.\w+$", "", tarball.name)
        files = sorted({one.file for one in PLANTED})
        members = [f"{top}/{file}" for file in files]
        subprocess.run(["tar", "-xf", tarball, "-C", where, "--occurrence=1", *members], check=True)
        return {file: (Path(where) / top / file).read_text() for file in files}


def main() -> None:
    parser = argparse.ArgumentParser(description="Which changed lines of TCP does sawtooth kernel compare find?")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--source", help="the kernel's source (default: Debian's package)")
    parser.add_argument("--only", nargs="*", help="names of patches (default: all)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    source = locate(given.source)
    texts = sources(source.path)
    given.directory.mkdir(parents=True, exist_ok=True)
    header = texts[HEADER].splitlines(keepends=True)
    comment = [header[0], "/* A comment. */\n", *header[1:]]
    control = "".join(difflib.unified_diff(header, comment, f"a/{HEADER}", f"b/{HEADER}"))
    patches = {"nothing": control} | {one.name: one.patch(texts[one.file]) for one in PLANTED}
    catalogue = Catalogue.load()
    plain = build(source_path=given.source, jobs=given.jobs)
    results = given.directory / "planted.csv"
    rows: dict[str, list[str | int]] = {}
    if results.is_file():
        with results.open(newline="") as file:
            rows = {row[0]: [*row] for row in list(csv.reader(file))[1:]}
    for name, text in patches.items():
        if given.only and name not in given.only:
            continue
        path = given.directory / f"{name}.patch"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
        kernel = build(name=name, patches=[path], source_path=given.source, jobs=given.jobs)
        seeds = range(1, given.seeds + 1)
        both = measure([plain, kernel], catalogue, given.directory / "measured", seeds=seeds, jobs=given.jobs)
        found = compared(*both, catalogue, 0.01)
        changed = [one.name for one in found.changed]
        rows[name] = [name, len(changed), found.count(SAME), " ".join(changed[:3])]
        print(*rows[name], sep="\t", flush=True)
        with results.open("w", newline="") as file:
            csv.writer(file).writerows([["patch", "changed", "same", "largest"], *rows.values()])


if __name__ == "__main__":
    main()
