"""Result: what became of a program of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sawtooth.programs.measure import value_of
from sawtooth.sanitize import plain

if TYPE_CHECKING:
    from sawtooth.run import Run

TIME_UP = 124


@dataclass(frozen=True)
class Finished:
    """A program that ran. Times in seconds since the run's begin; servers start before it.

    ``status`` is its exit status, below 0 the signal that ended it (subprocess's ``returncode``); None, as ``end_s``,
    for one that ran until the run ended.
    """

    name: str
    host: str
    command: str
    start_s: float | None
    end_s: float | None
    status: int | None
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Finished:
        """From a row of the table ``programs``."""
        start_s, end_s, status = (_known(row[name]) for name in ("start_s", "end_s", "status"))
        return cls(
            str(row["program"]),
            str(row["host"]),
            str(row["command"]),
            start_s,
            end_s,
            None if status is None else int(status),
            bytes(row["stdout"]),
            bytes(row["stderr"]),
        )

    @property
    def seconds(self) -> float | None:
        """From its start to its end; None where one of them did not happen."""
        return None if self.start_s is None or self.end_s is None else self.end_s - self.start_s

    @property
    def exit_status(self) -> int:
        """As a shell has it: 128 and the signal's number, or 124, as timeout(1) has it, where the run ended first."""
        if self.status is None:
            return TIME_UP
        return self.status if self.status >= 0 else 128 - self.status

    def describe(self) -> str:
        """A line: where, the command, and how it ended."""
        if self.start_s is None:
            how = "was not started: the run was over"
        elif self.seconds is None or self.status is None:
            how = "ran until the run ended"
        elif self.status >= 0:
            how = f"exited with status {self.status} after {self.seconds:.6f} s"
        else:
            how = f"was ended by signal {-self.status} after {self.seconds:.6f} s"
        return f"{self.host}: {plain(self.command, 60)}: {how}"

    def value(self, place: str, *, field: str = "measure") -> float:
        """The number at a place of its output. Raises InputError ``bad-measure``, as ``value_of``."""
        return value_of(place, self, field=field)


def finished(run: Run) -> list[Finished]:
    """The programs of a run, in the scenario's order; empty for one without."""
    if "programs" not in run.tables:
        return []
    return [
        Finished.of({str(key): value for key, value in row.items()})
        for row in run.tables["programs"].to_dict("records")
    ]


def _known(value: Any) -> float | None:
    """None for what pandas has for nothing."""
    import pandas as pd

    return None if value is None or pd.isna(value) else float(value)
