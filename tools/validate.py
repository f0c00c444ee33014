"""Writes docs/validation.md: the simulator beside the real kernel and beside the published study.

    python tools/validate.py --reference KERNEL.csv --study SIM KERNEL MODEL --long SIM KERNEL \
        --hz SIM KERNEL --grid FIDELITY --bbr3 FIDELITY --rfc9438 TABLE.md

KERNEL.csv has one row a run of the real kernel, measured with other scripts; FIDELITY is what `make fidelity`,
and `sawtooth compare --grid fidelity/bbr3.toml --out FIDELITY`, wrote,
TABLE.md what tools/rfc9438.py printed; the others are result directories.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev

import pandas as pd

from sawtooth import Run, Scenario, run
from sawtooth.io.parallel import results

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
SEEDS = (1, 2, 3, 4, 5, 6)
PROBES = 600


@dataclass(frozen=True)
class Row:
    """One run: throughput in Mbit/s, and counts over the run."""

    mean: float
    std: float
    retransmits: float
    timeouts: float
    tail_probes: float
    share: str = ""
    probes: str = ""


def scenario(row: dict[str, str], seed: int) -> Scenario:
    """The scenario measured in a row of the reference."""
    flows = []
    for part in row["flows"].split("+"):
        cc, count = part.split("x")
        flow = {"name": cc, "cc": cc, "count": int(count)}
        if row["lifetime_s"]:
            low, high = row["lifetime_s"].split("-")
            flow["replace"] = {"lifetime": [f"{low} s", f"{high} s"]}
        flows.append(flow)
    rate = row["rate"].replace("gbit", " Gbit/s").replace("mbit", " Mbit/s")
    buffer = f"{row['buffer_max_bytes']} bytes"
    tables = {
        "name": row["name"].replace("%", " percent"),
        "topology": "path",
        "duration": f"{row['seconds']} s",
        "seed": seed,
        "path": {
            "rate": rate,
            "rtt": f"{row['rtt_ms']} ms",
            "loss": f"{row['loss_percent']}%",
            "queue": f"{row['queue_packets']} packets",
        },
        "host": {"receive_buffer": buffer, "send_buffer": buffer},
        "flows": flows,
    }
    if row["probes"]:
        tables["probes"] = [{"name": "probe", "interval": "100 ms", "count": PROBES}]
    return Scenario.from_dict(tables)


def simulated(result: Run) -> Row:
    intervals = result.tables["intervals"]
    total = intervals.groupby("t_s")["goodput_bps"].sum() / 1e6
    names = result.meta["names"]["flow"]
    means = intervals.groupby("flow")["goodput_bps"].mean() / 1e6
    share = " ".join(f"{names[flow]} {mean:.1f}" for flow, mean in means.items()) if len(means) > 1 else ""
    rtt = result.tables["probes"]["rtt_s"].dropna() * 1e3
    rising = 100 * float((rtt.diff().dropna() > 0).mean()) if len(rtt) else 0
    probes = f"{rtt.mean():.1f} / {rtt.std():.1f} / {rising:.0f}" if len(rtt) else ""
    counts = intervals[["retransmits", "timeouts", "tail_probes"]].sum()
    return Row(total.mean(), total.std(), *counts, share, probes)


def measured(row: dict[str, str], seconds: float) -> Row:
    scale = seconds / float(row["seconds"])
    counts = (scale * float(row[c]) for c in ("retransmitted", "timeouts", "tail_probes"))
    fields = ("probe_rtt_mean_ms", "probe_rtt_std_ms", "percent_increasing")
    probes = "{:.1f} / {:.1f} / {:.0f}".format(*(float(row[f]) for f in fields)) if row["probes"] else ""
    return Row(float(row["mean_mbps"]), float(row["std_mbps"]), *counts, row["share"].replace("=", " "), probes)


def average(rows: Sequence[Row]) -> Row:
    numbers = (fmean(getattr(r, f) for r in rows) for f in ("mean", "std", "retransmits", "timeouts", "tail_probes"))
    return Row(*numbers, rows[0].share, rows[0].probes)


def against_kernel(path: Path) -> tuple[str, list[float]]:
    """The table, and ln(sim / kernel) of each mean."""
    groups: dict[str, list[dict[str, str]]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            groups.setdefault(row["name"], []).append(row)
    lines = [
        "| scenario | kernel, Mbit/s | sim, Mbit/s | difference | std "
        "| retransmitted | timeouts | tail probes | more |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    differences = []
    for name, rows in groups.items():
        last = rows[-1]
        k = average([measured(row, float(last["seconds"])) for row in rows])
        runs = results(lambda seed, row=last: run(scenario(row, seed), quiet=True), SEEDS, threads=True)
        simulations = [simulated(result) for result in runs]
        s = average(simulations)
        # Standard error of both means together. A difference below twice this value is not significant.
        error = math.sqrt(
            stdev([r.mean for r in simulations]) ** 2 / len(simulations)
            + (stdev([float(r["mean_mbps"]) for r in rows]) ** 2 / len(rows) if len(rows) > 1 else 0)
        )
        differences.append(math.log(s.mean / k.mean))
        more = "; ".join(f"{a} → {b}" for a, b in ((k.share, s.share), (k.probes, s.probes)) if a)
        lines.append(
            f"| {name} ({len(rows)} runs of {last['seconds']} s) | {k.mean:.2f} | {s.mean:.2f} | "
            f"{100 * (s.mean / k.mean - 1):+.1f}% ± {200 * error / k.mean:.1f} | {k.std:.1f} → {s.std:.1f} | "
            f"{k.retransmits:.0f} → {s.retransmits:.0f} | {k.timeouts:.0f} → {s.timeouts:.0f} | "
            f"{k.tail_probes:.0f} → {s.tail_probes:.0f} | {more} |"
        )
    return "\n".join(lines), differences


def pooled(study: Path) -> pd.DataFrame:
    """The rows of a study's table over all seeds, with its engine."""
    table = pd.read_csv(study / "table.csv", dtype={"seed": str})
    return table[table["seed"] == "all"]


def side_by_side(studies: Sequence[Path], keys: dict[str, str]) -> str:
    """One row per point; for each engine the mean, the standard deviation and the ratio to the published mean."""
    tables = [pooled(study).set_index(list(keys)) for study in studies]
    engines = [table["engine"].iloc[0] for table in tables]
    known = "published_mean_mbps" in tables[0] and tables[0]["published_mean_mbps"].notna().any()
    head = [*keys.values(), *(["published"] if known else []), *(f"{engine}" for engine in engines)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for key, row in tables[0].iterrows():
        place = key if isinstance(key, tuple) else (key,)
        cells = [f"{part:g}" if isinstance(part, float) else str(part) for part in place]
        published = row["published_mean_mbps"] if known else math.nan
        if known:
            spread = row.get("published_std_mbps", math.nan)
            shown = f"{published:.2f}" + ("" if pd.isna(spread) else f" ({spread:.1f})")
            cells.append("–" if pd.isna(published) else shown)
        for table in tables:
            if key not in table.index:
                cells.append("–")
                continue
            mean, std = table.loc[key, "mean_mbps"], table.loc[key, "std_mbps"]
            ratio = "" if pd.isna(published) else f", {mean / published:.2f}"
            cells.append(f"{mean:.2f}" + (f" ({std:.1f}){ratio}" if std else ratio))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of(page: str, heading: str) -> str:
    """The first Markdown table below a heading, or below the page's title for an empty one."""
    below = page.split(f"\n## {heading}\n", 1)[1] if heading else page
    return re.search(r"(^\|.*\n)+", below, re.MULTILINE)[0].rstrip()


def head(table: str, rows: int) -> str:
    """The first rows of a Markdown table, under its heading."""
    return "\n".join(table.split("\n")[: rows + 2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path, required=True, help="CSV of the real kernel's runs")
    for name, file in (("study", "one-percent-loss"), ("long", "long-fat-path"), ("hz", "hz")):
        what = f"result directories of the study {file}, one an engine, the simulator's first"
        parser.add_argument(f"--{name}", type=Path, nargs="+", required=True, help=what)
    parser.add_argument("--grid", type=Path, required=True, help="directory that make fidelity wrote")
    parser.add_argument("--bbr3", type=Path, required=True, help="directory of the comparison with fidelity/bbr3.toml")
    parser.add_argument("--rfc9438", type=Path, required=True, help="what tools/rfc9438.py printed")
    options = parser.parse_args()
    grid = (options.grid / "fidelity.md").read_text()
    bbr3 = (options.bbr3 / "fidelity.md").read_text()
    measured = len(json.loads((options.grid / "fidelity.json").read_text())["points"])
    shutil.copy(options.grid / "fidelity.png", PAGE.parent / "images" / "fidelity.png")
    kernel, differences = against_kernel(options.reference)
    sizes = sorted(abs(d) for d in differences)
    template = (PAGE.parent / "validation.in.md").read_text()
    page = (
        template.replace("@KERNEL@", kernel)
        .replace("@POINTS@", str(measured))
        .replace("@GRID@", table_of(grid, ""))
        .replace("@LARGEST@", table_of(grid, "Largest differences of throughput"))
        .replace("@BBR3@", table_of(bbr3, ""))
        .replace("@BBR3-LARGEST@", head(table_of(bbr3, "Largest differences of throughput"), 10))
        .replace("@RFC9438@", options.rfc9438.read_text().strip())
        .replace("@HZ@", side_by_side(options.hz, {"hz": "HZ", "rtt_ms": "RTT, ms"}))
        .replace("@PUBLISHED@", side_by_side(options.study, {"cc": "cc", "path": "path", "loss_percent": "loss, %"}))
        .replace("@LONG@", side_by_side(options.long, {"cc": "cc", "loss_percent": "loss, %"}))
        .replace("@MEDIAN@", f"{100 * median(sizes):.1f}%")
        .replace("@P90@", f"{100 * sizes[int(0.9 * (len(sizes) - 1))]:.1f}%")
        .replace("@WORST@", f"{100 * sizes[-1]:.1f}%")
    )
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
