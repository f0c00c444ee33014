"""Runs: the result of one scenario on one engine, its files on disk, and the metadata that every engine records."""

from sawtooth.run.run import (
    FORMAT,
    Run,
    described,
    is_saved,
    save_together,
    saved_points,
    table_digests,
    unsaved,
    versions,
)
from sawtooth.run.saved_table import TABLES

__all__ = [
    "FORMAT",
    "TABLES",
    "Run",
    "described",
    "is_saved",
    "save_together",
    "saved_points",
    "table_digests",
    "unsaved",
    "versions",
]
