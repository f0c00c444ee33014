"""A disk that fills up."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

from experiments.trials.command import STUDY, finished, kept, sawtooth, tables


def full_disk(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """A study on a file system that fills at random, then has room again."""
    study = home / "study.toml"
    study.write_text(STUDY)
    finished(["run", study, "--quiet", "--out", home / "whole"])
    needs = sum(path.stat().st_blocks * 512 for path in (home / "whole").rglob("*") if path.is_file())
    held = Counter[str]()
    for number in range(times):
        disk = home / f"disk-{number}"
        disk.mkdir()
        size = int(needs * rng.uniform(0.05, 1.05))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
        try:
            program = sawtooth("run", study, "--quiet", "--out", disk / "out")
            _, told = program.communicate()
            held["tried"] += 1
            held["said so"] += program.returncode == 1 and "error[disk-full]" in told
            held["fitted"] += program.returncode == 0
            before = kept(disk / "out")
            subprocess.run(["mount", "-o", f"remount,size={4 * needs}", disk], check=True)
            finished(["run", study, "--quiet", "--out", disk / "out"])
            after = kept(disk / "out")
            held["points computed twice"] += sum(after.get(name) != when for name, when in before.items())
            if program.returncode:
                held["same tables as with room"] += tables(disk / "out") == tables(home / "whole")
        finally:
            subprocess.run(["umount", disk], check=True)
    return held
