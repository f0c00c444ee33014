"""Fixtures of all tests, and what follows from them: the marks that select tests, and each test's time limit."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import sawtooth
from opened_lab import Opened, serving
from sawtooth.kernel import Kernel, build
from sawtooth.lab import Site
from sawtooth.lab.site import KINDS

if TYPE_CHECKING:
    from sawtooth.run import Run

# A shell starts background jobs with SIGINT ignored. Programs that the tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests run in parallel, so threads of linear algebra would only wait for each other. Set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Answers are wrapped to the width that a terminal exports.
os.environ.pop("COLUMNS", None)

# How busy a machine is has nothing to do with an input.
settings.register_profile("any machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("any machine")

AsNobody = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Taken:
    """For tests that use a fixture: the ``mark`` they get, and the number of seconds after which they fail."""

    mark: str
    what: str
    limit_s: int


TAKEN = {
    "kernel": Taken("guest", "boots the user-mode kernel, which is built first where it is not there", 1800),
    "wheel": Taken("wheel", "builds the wheel and installs it", 900),
    "lab": Taken("lab", "builds the core as WebAssembly", 1200),
    "chromium": Taken("browser", "opens pages in a browser", 300),
    "npm": Taken("npm", "builds what pages draw with, by npm", 300),
    "namespaces": Taken("netns", "makes network namespaces, in real time", 300),
    "patience": Taken("slow", "takes more than half a second of processor time", 900),
}
"""By fixture, whether a test uses it directly or through another one. The limit for all other tests is in
pyproject.toml.
"""
MAY_BE_ABSENT = "../shared"
"""In CI, a skipped test is a failure, except for files that are missing because no checkout includes them."""
_IS_ABSENT = not (Path(__file__).resolve().parents[1] / MAY_BE_ABSENT).is_dir()


def pytest_configure(config: pytest.Config) -> None:
    for taken in TAKEN.values():
        config.addinivalue_line("markers", f"{taken.mark}: {taken.what}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before ``-m`` selects tests."""
    for item in items:
        found = [taken for name, taken in TAKEN.items() if name in getattr(item, "fixturenames", ())]
        for taken in found:
            item.add_marker(taken.mark)
        if found and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(taken.limit_s for taken in found)))
    # One worker runs all tests of a file. Long files start first, so that none runs alone at the end.
    allowed: dict[Path, float] = {}
    for item in items:
        limit = item.get_closest_marker("timeout")
        allowed[item.path] = max(allowed.get(item.path, 0), limit.args[0] if limit else 0)
    items.sort(key=lambda item: -allowed[item.path])


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end, so the collector need not look at them again and again."""
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not (_IS_ABSENT and MAY_BE_ABSENT in why):
            report.outcome, report.longrepr = "failed", f"in CI nothing may be left out: {why}"
    return report


@pytest.fixture(scope="module")
def ran(kernel: Kernel, request: pytest.FixtureRequest) -> dict[str, Run]:
    """The runs of a module's ``GUEST``, by the test's name."""
    from tests.one_guest import run_each

    return run_each(request.module.GUEST.scenarios)


@pytest.fixture(scope="module")
def compared(kernel: Kernel, request: pytest.FixtureRequest) -> dict[str, Run]:
    """The runs of a module's scenarios ``COMPARED``, by their names."""
    from tests.one_guest import run_each

    return run_each(request.module.COMPARED)


@pytest.fixture
def measured(ran: dict[str, Run], request: pytest.FixtureRequest) -> Run:
    """A test's run on the kernel."""
    return ran[request.node.name]


@pytest.fixture(scope="session")
def kernel(pytestconfig: pytest.Config) -> Kernel:
    """The kernel with HZ 250. It is built once, which takes minutes and shows its progress despite pytest's capture."""
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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the kernels: an empty one for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sawtooth" / "kernel"


@pytest.fixture(scope="session")
def as_nobody(kernel: Kernel) -> Iterator[AsNobody]:
    """Runs Python code as an ordinary user, in a separate directory that has the package and the kernel, ``linux``. If
    the tests run as an ordinary user, uses that one.
    """
    home = Path(tempfile.mkdtemp(prefix="sawtooth-nobody-", dir="/tmp"))
    home.chmod(0o777)
    shutil.copytree(Path(sawtooth.__file__).parent, home / "sawtooth", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(kernel.path, home / "linux")
    root = os.geteuid() == 0
    prefix = ["runuser", "-u", "nobody", "--"] if root else []
    python = sys.executable
    if root and subprocess.run([*prefix, python, "-c", ""], capture_output=True).returncode:
        # Only root can reach this Python.
        python = "/usr/bin/python3"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(home), "HOME": "/nonexistent"}

    def run(code: str, *, as_root: bool = False, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        command = [*([] if as_root else prefix), *before, python, "-c", code]
        return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120)

    yield run
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser's executable."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("pages are opened in chromium: apt install chromium")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """The browser, driven by playwright, whose event loop runs in this thread until its module's tests are done."""
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def npm() -> str:
    """The npm that installs and runs what builds ``web/``."""
    found = shutil.which("npm")
    if found is None:
        pytest.skip("web/ is built by npm: install Node.js 20 or later")
    return found


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules of the page of `sawtooth lab`, built for node, and the core as WebAssembly (from the cache)."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
    import webassembly

    import lab

    directory = tmp_path_factory.mktemp("lab")
    try:
        lab.for_node(directory)
    except webassembly.MissingError as missing:
        pytest.skip(f"the page of sawtooth lab cannot be built here: {missing}")
    return directory


@pytest.fixture(scope="session")
def site(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The page of `sawtooth lab`, built."""
    import lab as tool

    directory = tmp_path_factory.mktemp("site")
    tool.build(directory)
    return Site({name: (directory / name).read_bytes() for name in KINDS})


@pytest.fixture(scope="session")
def address(site: Site) -> Iterator[str]:
    """The address where the page is served, as by `sawtooth lab`."""
    with serving(site) as server:
        yield server.address


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Opened]:
    """The laboratory in a browser, with an empty console."""
    opened = Opened(browser, address)
    yield opened
    opened.context.close()
    assert opened.said == []


@pytest.fixture(scope="session")
def namespaces() -> None:
    """For tests that need root and real time."""
    if os.geteuid() != 0:
        pytest.skip("namespaces are for root")


@pytest.fixture(scope="session")
def patience() -> None:
    """For tests and fixtures that take more than half a second of processor time: `make quick` omits them."""


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A directory in which fake engines leave a mark for each run."""
    path = tmp_path / "marks"
    path.mkdir()
    return path
