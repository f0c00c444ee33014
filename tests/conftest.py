"""Fixtures of all tests: the user-mode kernel, built when it is not there, and an ordinary user to try things as."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import sawtooth
from sawtooth.kernel import Kernel, build

# A shell starts what runs in its background with SIGINT ignored, which programs that the tests interrupt would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

AsNobody = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def kernel(pytestconfig: pytest.Config) -> Kernel:
    """The kernel with HZ 250. Building it takes minutes, once, and shows its progress through pytest's capture."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    shown = ""

    def progress(what: str, fraction: float | None) -> None:
        nonlocal shown
        line = what if fraction is None else f"{what}: {fraction // 0.1 * 10:.0f}%"
        if line != shown:
            shown = line
            with capture.global_and_fixture_disabled():
                print(f"user-mode kernel: {line}", file=sys.stderr, flush=True)

    return build(progress=progress)


@pytest.fixture(scope="session")
def as_nobody(kernel: Kernel) -> Iterator[AsNobody]:
    """Runs Python code as an ordinary user, in a directory of its own that has the package and the kernel, ``linux``.

    When the tests are run by an ordinary user, that is the one.
    """
    home = Path(tempfile.mkdtemp(prefix="sawtooth-nobody-", dir="/tmp"))
    home.chmod(0o777)
    shutil.copytree(Path(sawtooth.__file__).parent, home / "sawtooth", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(kernel.path, home / "linux")
    root = os.geteuid() == 0
    prefix = ["runuser", "-u", "nobody", "--"] if root else []
    python = sys.executable
    if root and subprocess.run([*prefix, python, "-c", ""], capture_output=True).returncode:
        # This Python lies where only root may go.
        python = "/usr/bin/python3"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(home), "HOME": "/nonexistent"}

    def run(code: str, *, as_root: bool = False, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        command = [*([] if as_root else prefix), *before, python, "-c", code]
        return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120)

    yield run
    shutil.rmtree(home)


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A directory in which fake engines leave a mark for each run."""
    path = tmp_path / "marks"
    path.mkdir()
    return path
