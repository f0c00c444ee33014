"""The same targets, guided by what they cover: ``python -m fuzz.text.guided TARGET [libFuzzer options]``; with atheris.

What it finds interesting goes into target/fuzz/TARGET. An input that fails stops it: mend, and put it into fuzz/corpus.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sawtooth"]):
    from fuzz.text import __main__ as plainly
    from fuzz.text.targets import CORPUS, TARGETS, seeds

    signal.signal(signal.SIGVTALRM, plainly.expired)
    for _name, _target in TARGETS.items():
        # Modules that a target imports when it is first called are instrumented, too.
        for _data in seeds(_name):
            plainly.trouble(_target, _data)


def main() -> None:
    """Runs one target until it fails or its time is over (``-max_total_time=60``)."""
    name, *options = sys.argv[1:]

    def once(data: bytes) -> None:
        said = plainly.trouble(TARGETS[name], data)
        if said is not None:
            raise AssertionError(said)

    found = Path("target/fuzz") / name
    found.mkdir(parents=True, exist_ok=True)
    atheris.Setup([sys.argv[0], str(found), str(CORPUS / name), "-max_len=20000", *options], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
