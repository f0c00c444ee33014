"""Part: what all tables of a scenario file share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Frozen, strict, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=False, allow_inf_nan=False)
