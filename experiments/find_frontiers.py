"""How much loss a queue allows, by ``sawtooth find`` with two unknowns, and sweeps on some of its rows beside it.

    .venv/bin/python experiments/find_frontiers.py       # the table of docs/explanation/find.md, in Markdown

Each sweep is one of ``find_lines``: nine losses a factor 1.1 apart, other seeds than the search's. The runs of a grid
of all rows in such steps, 8 seeds each, are counted and not made.
"""

from __future__ import annotations

import sys

import find_lines

from sawtooth.scenario import Scenario
from sawtooth.search import Frontier
from sawtooth.search.find import find

LINES = {"DSL": ("16 Mbit/s", "40 ms"), "office": ("10 Mbit/s", "30 ms")}
VARY = ["path.queue=0.1..4 bdp", "path.loss=0.0001%..20%"]
WANT = "goodput >= 80% of path.rate"
SWEPT = (2, 7)
"""Numbers of the rows that are compared with a sweep."""


def main() -> None:
    find_lines.MOST = 64
    heads = ["line", "control", "queue", "loss for 80%", "95% interval", "a sweep says", "its 95% interval", "apart"]
    heads += ["runs of all rows", "of a grid"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for line, (rate, rtt) in LINES.items():
        for control in ("cubic", "bbr"):
            content = {"duration": "30 s", "warmup": "10 s", "path": {"rate": rate, "rtt": rtt}}
            scenario = Scenario.from_dict(content | {"flows": [{"cc": control}]})
            found = find(scenario, vary=VARY, want=WANT)
            assert isinstance(found, Frontier)
            for number in SWEPT:
                row = found.frontier.iloc[number]
                queue = found.unknowns.given[0].text(row["path.queue"])
                cells = [line, control, queue, f"{row['value']:.3g}%", f"{row['low']:.3g}% … {row['high']:.3g}%"]
                if row["verdict"] == "found":
                    at = scenario.set({"path.queue": queue})
                    crossing, low, high, _ = find_lines.sweep(at, row["value"], share=0.8)
                    cells += [f"{crossing:.3g}%", f"{low:.3g}% … {high:.3g}%", f"{row['value'] / crossing - 1:+.1%}"]
                else:
                    cells[3:] = [str(row["verdict"]), "", "", "", ""]
                print(f"| {' | '.join([*cells, str(found.runs), str(found.grid_runs)])} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
