"""A saved run of any engine whose scenario has probes."""

from __future__ import annotations

from pathlib import Path

from sawtooth.errors import InputError
from sawtooth.link_estimate.series import RttSeries
from sawtooth.run import Run, saved_points
from sawtooth.run.pack import POINTS, find


def read(directory: Path) -> list[RttSeries]:
    """One series per probe of the scenario, for a run or for each point of a study's results. Raises SawtoothError
    ``not-a-result``, and ``not-a-series`` without probes."""
    if (directory / POINTS).is_dir():
        found = [one for point in saved_points(directory) for one in read(point)]
        if not found:
            fix = "run the study to its end"
            raise InputError("not-a-series", "it has no finished point", file=directory, fix=fix)
        return found
    made = Run.load(directory, tables=["probes"])
    compiled = made.scenario.compile().probes
    table = made.tables.get("probes")
    if table is None or not compiled:
        fix = "give the scenario a [[probes]] and run it again"
        raise InputError("not-a-series", "the run has no probes", file=directory, fix=fix)
    try:
        groups = {index: table[table["probe"] == index] for index in range(len(compiled))}
        return [
            RttSeries(
                groups[index]["t_s"].to_numpy(),
                groups[index]["rtt_s"].to_numpy(),
                one.interval_ns / 1e9,
                str(directory),
                label=str(one.name),
                clock="start",
            )
            for index, one in enumerate(compiled)
        ]
    except KeyError as error:
        fix = "run the same command again: it writes a new one"
        pack = find(directory)
        path = (directory if pack is None else pack.directory) / "probes.parquet"
        raise InputError("not-a-series", f"it has no column {error}", file=path, fix=fix) from None
