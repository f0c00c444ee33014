"""Runs: the result of one scenario on one engine, its files on disk, and the metadata that every engine records."""

from sawtooth.run.run import FORMAT, TABLES, Run, is_saved, saved_checksum, versions

__all__ = ["FORMAT", "TABLES", "Run", "is_saved", "saved_checksum", "versions"]
