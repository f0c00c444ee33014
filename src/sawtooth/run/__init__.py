"""Runs: the result of one scenario on one engine, its files on disk, and the metadata that every engine records."""

from sawtooth.run.run import FORMAT, TABLES, Run, described, is_saved, save_together, table_digests, versions

__all__ = ["FORMAT", "TABLES", "Run", "described", "is_saved", "save_together", "table_digests", "versions"]
