"""Runs of words that our sources share with the C files of another tree, such as the Linux kernel's.

    python experiments/shared_words.py DIRECTORY [--least 7]

A word is letters, digits and underscores, in lower case; what stands between words does not count. A line a run: our
file, theirs, the words. What docs/provenance.md says of the kernel's text can be checked with it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ("crates", "src", "tests", "tools", "experiments", "bench", "fuzz")
ENDINGS = (".rs", ".py", ".c", ".h", ".cc")


def words(path: Path) -> list[str]:
    return re.findall(r"[a-z0-9_]+", path.read_text(errors="replace").lower())


def runs(text: list[str], known: dict[tuple[str, ...], str], least: int) -> Iterator[tuple[str, str]]:
    """Each run of at least ``least`` known words, the longest first: the file that has it, and the words."""
    at = 0
    while at + least <= len(text):
        whose = known.get(tuple(text[at : at + least]))
        if whose is None:
            at += 1
            continue
        end = at + least
        while end < len(text) and tuple(text[end - least + 1 : end + 1]) in known:
            end += 1
        yield whose, " ".join(text[at:end])
        at = end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--least", type=int, default=7, metavar="N", help="words of a run")
    asked = parser.parse_args()
    known: dict[tuple[str, ...], str] = {}
    for path in sorted(asked.directory.rglob("*.[ch]")):
        text = words(path)
        for at in range(len(text) - asked.least + 1):
            known.setdefault(tuple(text[at : at + asked.least]), str(path.relative_to(asked.directory)))
    for folder in OURS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ENDINGS and "target" not in path.parts:
                for whose, shared in runs(words(path), known, asked.least):
                    print(f"{path.relative_to(ROOT)} | {whose} | {shared}")


if __name__ == "__main__":
    main()
