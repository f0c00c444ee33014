"""Response: the throughput of one flow against the loss on one path, beside closed-form models."""

from __future__ import annotations

import math
import statistics
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth.engines import get, model
from sawtooth.figures.palette import MUTED, colour, shown
from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.io.csv import csv_text
from sawtooth.io.parallel import fan_out
from sawtooth.scenario import Scenario
from sawtooth.stats import throughput

if TYPE_CHECKING:
    from pandas import DataFrame

LOSSES = ("0.001%", "0.003%", "0.01%", "0.03%", "0.1%", "0.3%", "0.5%", "1%", "2%", "3%", "5%", "10%", "20%")
RATE, RTT, QUEUE = "100 Mbit/s", "20 ms", "1 bdp"
DURATION = "60 s"
_WIDE = 40
"""Characters of the widest bar."""


@dataclass(frozen=True)
class Response:
    """``table`` has one row per loss: ``loss`` (percent, as text), ``mean_mbps`` over seeds, ``least_mbps``,
    ``most_mbps``, and ``formula_mbps`` (NaN where no closed form applies)."""

    name: str
    engine: str
    seeds: int
    table: DataFrame

    def words(self) -> str:
        """The table, with a bar in each row that shows the share of the rate."""
        rate = Scenario(path={"rate": RATE}).path_table.rate.bps / 1e6
        path = f"{RATE}, {RTT}, queue {QUEUE}, {DURATION}"
        lines = [f"one flow, {path}, {self.seeds} seeds, engine {self.engine}; Mbit/s", ""]
        lines.append(f"{'loss':>7} {'mean':>7} {'formula':>8}")
        for row in self.table.to_dict("records"):
            formula = "–" if math.isnan(row["formula_mbps"]) else f"{row['formula_mbps']:.1f}"
            bar = "█" * round(_WIDE * row["mean_mbps"] / rate) or "▏"
            lines.append(f"{row['loss']:>7} {row['mean_mbps']:7.2f} {formula:>8}  {bar}")
        return "\n".join(lines)

    def save(self, directory: Path) -> list[Path]:
        """Write ``response-NAME`` as CSV, PNG and SVG. Raises SawtoothError as ``storage.writing`` does."""
        from sawtooth.figures.lines import Axes, Line, line_figure
        from sawtooth.figures.static import draw

        table = self.table
        losses = [float(loss.rstrip("%")) for loss in table["loss"]]
        columns = [list(table[column]) for column in ("mean_mbps", "least_mbps", "most_mbps")]
        tint = colour(self.name, 0)
        lines = [Line(0, f"{shown(self.name)} on {self.engine}", tint, losses, columns[0], columns[1], columns[2])]
        if table["formula_mbps"].notna().any():
            formula = list(table["formula_mbps"])
            lines.append(Line(0, "closed form", MUTED, losses, formula, look=1, marked=False))
        title = f"{shown(self.name)}: goodput by loss"
        caption = f"One flow, {RATE}, {RTT}, queue {QUEUE}, {DURATION}; mean and range of {self.seeds} seeds."
        panel = Axes("", "loss, %", "goodput, Mbit/s", log_x=True, log_y=True)
        figure = line_figure(f"response-{self.name}", title, caption, table, [panel], lines, across=1)
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        write_bytes(directory / f"{figure.name}.csv", csv_text(table).encode())
        return [directory / f"{figure.name}.csv", *draw(figure, directory)]


def response(
    name: str, *, engine: str = "sim", kernel: str | None = None, seeds: int = 3, jobs: int | None = None
) -> Response:
    """Measure the response with an engine. ``kernel``: the name of the kernel that the engine ``kernel`` boots.

    Raises SawtoothError as the engine's ``check`` and ``run`` do.
    """
    import pandas as pd

    host = {} if kernel is None else {"kernel": kernel}
    scenarios = [
        Scenario(
            traffic="native",
            duration=DURATION,
            seed=seed,
            path={"rate": RATE, "rtt": RTT, "queue": QUEUE, "loss": loss},
            host=host,
            flows=[{"cc": name}],
        )
        for loss in LOSSES
        for seed in range(1, seeds + 1)
    ]
    answers = get(engine)
    answers.check(scenarios[0])
    means: dict[int, float] = {}
    stopped = threading.Event()

    def mean(scenario: Scenario) -> float:
        return float(throughput(answers.run(scenario, stop=stopped.is_set)).mean())

    fan_out(mean, scenarios, done=means.__setitem__, stop=stopped.set, jobs=jobs, threads=True)
    rows = []
    for at, loss in enumerate(LOSSES):
        found = [means[at * seeds + seed] for seed in range(seeds)]
        rows.append((loss, statistics.fmean(found), min(found), max(found), _formula(name, loss)))
    table = pd.DataFrame(rows, columns=["loss", "mean_mbps", "least_mbps", "most_mbps", "formula_mbps"])
    return Response(name, engine, seeds, table)


def _formula(name: str, loss: str) -> float:
    """The lowest of the closed forms, which is the binding one, in Mbit/s."""
    if name not in model.CONTROLS:
        return float("nan")
    return float(model.predict(rate=RATE, rtt=RTT, loss=loss, cc=name, queue=QUEUE)["goodput_bps"].min() / 1e6)
