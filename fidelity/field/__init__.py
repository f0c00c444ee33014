"""Trials in the field: sawtooth on data that others made, beside what others say of it.

    python -m fidelity.field captures DIRECTORY
    python -m fidelity.field labelled DIRECTORY
    python -m fidelity.field probes DIRECTORY

Each trial is a module with a click command, listed in ``__main__``. README.md says how to run them on a collection.
"""
