"""Fuzzing of every reader of text; ``python -m fuzz.text --help``."""
