"""Installed, not checked out: the built wheel in a separate environment does what the README promises."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest

from sawtooth.study.shipped import shipped
from tests.kernel.test_kernel_build import stand_in

ROOT = Path(__file__).resolve().parents[2]
MATURIN = Path(sys.executable).with_name("maturin")

Installed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    # The same profile as `make setup`, so that its compiled files are reused.
    build = [MATURIN, "build", "--release", "--locked", "--compatibility", "linux", "--out", place]
    done = subprocess.run([*build, "--interpreter", sys.executable], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory outside the checkout, and beside it an environment with the wheel."""
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "env"], check=True)
    python = place / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(pip, check=True)
    # Other packages come from the tests' environment, so that no network is needed. Their directory is a plain entry
    # of the path: the .pth file that links the checkout into it is not read there.
    (site,) = (place / "env").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (place / "work").mkdir()
    return place


@pytest.fixture
def installed(place: Path) -> Installed:
    """Runs a program of the environment, without the tests' settings."""

    def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [place / "env" / "bin" / program, *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(place / "home")}
        # matplotlib's font list, which takes many seconds to make.
        environment["MPLCONFIGDIR"] = matplotlib.get_cachedir()
        return subprocess.run(command, cwd=place / "work", env=environment, capture_output=True, text=True, timeout=120)

    return run


def test_what_is_imported_is_the_wheel_and_nothing_of_the_checkout(installed: Installed, place: Path) -> None:
    code = (
        "import sys, sawtooth, sawtooth._core as core; "
        "print(sawtooth.__file__); print(core.__file__); print(*sys.path, sep='\\n')"
    )
    package, core, *path = installed("python", "-c", code).stdout.splitlines()
    assert (place / "env") in Path(package).parents
    assert (place / "env") in Path(core).parents
    assert str(ROOT / "src") not in path


def test_a_shipped_study_runs_by_name_and_its_captures_are_read(installed: Installed, place: Path) -> None:
    listed = installed("sawtooth", "studies").stdout
    assert all(name in listed for name in shipped())
    settings = ("flows.cc=cubic", "topology=chain", "chain.loss=1%", 'duration="2 s"')
    short = [part for setting in settings for part in ("--set", setting)]
    ran = installed("sawtooth", "run", "one-percent-loss", *short, "--seeds", "1", "--capture")
    assert ran.returncode == 0, ran.stderr
    result = place / "work" / "results" / "one-percent-loss" / "latest"
    assert (result / "report.html").is_file()
    capture = next(iter(sorted(result.glob("captures/*/*.pcap"))))
    read = installed("sawtooth", "capture", capture)
    assert read.returncode == 0, read.stderr
    assert "retransmi" in read.stdout


def test_a_congestion_control_from_its_source_finds_the_headers(installed: Installed, place: Path) -> None:
    found = re.search(r"```c\n(.*?)```", (ROOT / "docs" / "tutorial-congestion-control.md").read_text(), re.DOTALL)
    assert found
    (place / "work" / "tcp_mine.c").write_text(found[1])
    (place / "work" / "mine.toml").write_text('duration = "2 s"\n[[flows]]\ncc = { source = "tcp_mine.c" }\n')
    ran = installed("sawtooth", "run", "mine.toml")
    assert ran.returncode == 0, ran.stderr


def test_doctor_finds_the_core_and_names_the_command_that_builds_the_kernel(installed: Installed) -> None:
    told = installed("sawtooth", "doctor")
    assert told.returncode == 0, told.stderr
    assert "sim      works" in told.stdout
    assert "sawtooth kernel build" in told.stdout


def test_a_kernel_is_configured_edited_built_and_tried(installed: Installed, tmp_path: Path) -> None:
    built = installed("sawtooth", "kernel", "build", "--source", stand_in(tmp_path))
    assert built.returncode == 0, built.stderr
    assert "6.12.7" in installed("sawtooth", "kernel", "info").stdout


@pytest.mark.usefixtures("patience")
def test_the_source_distribution_has_all_that_the_wheel_is_built_from(tmp_path: Path) -> None:
    made = subprocess.run([MATURIN, "sdist", "--out", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    # The source distribution has every crate of the build, and the lock file matches.
    tree = ["cargo", "tree", "--locked", "--offline", "--package", "sawtooth-python", "--edges", "normal"]
    crates = subprocess.run(tree, cwd=unpacked, capture_output=True, text=True)
    assert crates.returncode == 0, crates.stderr
    ours = {Path(place).relative_to(unpacked) for place in re.findall(r"sawtooth-.* \((/.*?)\)", crates.stdout)}
    crates_of_it = (
        "bindings/python",
        "capture",
        "cc-module",
        "limits",
        "net",
        "packetdrill",
        "replay",
        "scenario",
        "tcp",
        "units",
    )
    assert {str(place) for place in ours} == {f"crates/{name}" for name in crates_of_it}
    package = {path.relative_to(ROOT) for path in tracked("src")}
    assert {path for path in package if not (unpacked / path).is_file()} == set()


def tracked(directory: str) -> list[Path]:
    """Files of the package in the checkout, without build products and caches."""
    left_out = (".so", ".pyc")
    return [path for path in (ROOT / directory).rglob("*") if path.is_file() and path.suffix not in left_out]


@pytest.mark.parametrize(("release", "accepted"), [("1.85.0", False), ("1.87.9", False), ("1.88.0", True)])
def test_the_prerequisites_ask_for_the_rust_that_cargo_asks_for(tmp_path: Path, release: str, accepted: bool) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\necho cargo {release} '(0123456 2025-01-01)'\n")
    cargo.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": sys.executable}
    told = subprocess.run([ROOT / "tools" / "prerequisites"], env=environment, capture_output=True, text=True)
    assert (told.returncode == 0) == accepted
    assert accepted or "install Rust 1.88 or later" in told.stderr
