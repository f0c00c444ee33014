"""Saves a run with programs: their output, and tables as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth.storage import new_directory, write_description, writing

if TYPE_CHECKING:
    from sawtooth.programs.execution import Execution
    from sawtooth.scenario import Scenario

FORMAT = 1


def save(done: Execution, scenario: Scenario, directory: Path) -> None:
    """Writes ``exec.json``, ``program-N.out`` and ``.err``, ``connections.parquet`` and the tables of every run.

    Raises SawtoothError ``disk-full``, or ``unwritable-output`` (also if the directory exists).
    """
    with new_directory(directory) as aside:
        with writing(aside):
            for number, one in enumerate(done.programs):
                (aside / f"program-{number}.out").write_bytes(one.stdout)
                (aside / f"program-{number}.err").write_bytes(one.stderr)
            for name, table in {**done.tables, "connections": done.connections}.items():
                table.to_parquet(aside / f"{name}.parquet", engine="pyarrow", compression="zstd", index=False)
        described = {
            "format": FORMAT,
            "scenario": scenario.to_dict(),
            "programs": [
                {
                    "host": one.program.host,
                    "command": one.program.words(),
                    "start_s": one.start_s,
                    "end_s": one.end_s,
                    "status": one.status,
                }
                for one in done.programs
            ],
            "end_s": done.end_s,
        }
        write_description(aside / "exec.json", described)
