"""The table [find] of a study: a field whose value is searched."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sawtooth.study.files import Table


class Find(Table):
    """The question that ``sawtooth find`` answers at each point of the study."""

    vary: str | list[str] = Field(
        min_length=1,
        max_length=300,
        description="the unknown and its range: path.loss=0.0001%..5%; two or three: a list",
    )
    want: str = Field(max_length=500, description="the condition: goodput >= 90% of path.rate")
    scale: str | None = Field(None, description="log or linear; absent: log for loss, rates and queues")
    within: str | None = Field(None, description="half-width of the interval, relative to the answer; absent: 10%")
    minimize: str | None = Field(
        None, max_length=500, description="of several unknowns: a field, or a cost made of fields: path.queue"
    )
    runs: int | None = Field(
        None, ge=1, le=1_000_000, description="of a search, at most; absent: 400, of two unknowns 1200"
    )

    def given(self) -> dict[str, Any]:
        """The fields that the file sets, as arguments of a search."""
        found = self.model_dump(exclude_none=True)
        return {"most" if name == "runs" else name: value for name, value in found.items()}
