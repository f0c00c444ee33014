"""Files whose tables pydantic models describe, such as studies."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sawtooth.scenario.problems import first_problem
from sawtooth.scenario.toml import read_toml


class Table(BaseModel):
    """A table of a TOML file: unchangeable, with these fields only, and without conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


File = TypeVar("File", bound=Table)


def read(kind: type[File], path: str | PathLike[str]) -> File:
    """A file with the tables of ``kind``. Raises SawtoothError as ``read_toml`` does, or with file, field and fix."""
    try:
        return kind(**read_toml(path))
    except ValidationError as error:
        raise first_problem(error, kind, fspath(path)) from None
