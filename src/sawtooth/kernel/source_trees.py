"""Source trees: the copies of a kernel's source that are built. Most are removed after the build. The last one with
additions is kept compiled, so that the next build compiles only what changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

KEPT = "kept"
"""A file that marks a tree as kept."""
_WHOLE = "whole"
_OF_ONE_BUILD = ("steps", "seconds")

Tell = Callable[[str, float | None], None]


def is_whole(work: Path) -> bool:
    """Whether the tree was compiled completely before."""
    return (work / _WHOLE).exists()


def finished(work: Path) -> None:
    """Mark the tree as complete: its kernel was built and has booted."""
    (work / _WHOLE).touch()
    for name in _OF_ONE_BUILD:
        (work / name).unlink(missing_ok=True)


def tidy(work: Path, tell: Tell, *, keep: bool) -> None:
    """Remove the trees of the build except one: this tree if ``keep``, otherwise the one already kept."""
    if keep and is_whole(work):
        (work / KEPT).touch()
        for other in work.parent.iterdir():
            if other != work and (other / KEPT).exists():
                remove(other, tell)
    elif work.exists() and not (work / KEPT).exists():
        remove(work, tell)


def kept(builds: Path) -> list[Path]:
    """The kept trees in a directory of builds."""
    return sorted(path.parent for path in builds.glob(f"*/{KEPT}"))


def remove(work: Path, tell: Tell) -> None:
    """Remove a tree: 1.5 GB in 80,000 files, which takes minutes on a busy disk."""
    # Remove the mark first: if this is interrupted, the rest does not count as a tree.
    (work / _WHOLE).unlink(missing_ok=True)
    if (work / "tree").is_dir():
        shutil.rmtree(work / "tree-of-before", ignore_errors=True)
        (work / "tree").rename(work / "tree-of-before")
    parts = sorted([*work.glob("tree/*/*"), *work.glob("tree*"), work])
    for number, part in enumerate(reversed(parts)):
        tell("removing the build's files", number / len(parts))
        shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)
