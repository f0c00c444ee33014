"""Bisecting: a small git repository whose kernels are stand-ins; guests are replaced by the simulator, except
in ``test_an_expectation_is_judged_in_a_guest``."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from sawtooth import engines
from sawtooth import kernel as kernel_package
from sawtooth.behaviors.bisect import BAD, GOOD, ByExpectation
from sawtooth.cli.kernel_bisect import bisect
from sawtooth.engines import kernel as engine
from sawtooth.errors import SawtoothError
from sawtooth.kernel import Kernel
from sawtooth.kernel.history import History
from sawtooth.kernel.kernel import find
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.study import Study

BEHAVIOR = "limited:goodput"
CATALOGUE = """
[scenario]
duration = "200 ms"
interval = "50 ms"
host = { processing = "20 us" }

[situations.limited]
measures = ["goodput", "cwnd_max"]

[situations.other]
measures = ["goodput"]
"""


class Repository:
    """Each commit's file ``window`` has the initial window of its kernel, ``broken`` that it does not build, ``noise``
    that its values vary with the seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.windows: dict[str, str] = {}
        """By the commit's hash."""
        subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)

    def commits(self, *given: str | tuple[str, str], after: Sequence[str] = ("main^0",)) -> list[str]:
        """A line of commits on ``main``, each given by its window or by its window and the file that it changes.
        ``after``: the parents of the first one, if there are commits already. One process makes all of them."""
        lines = []
        for number, one in enumerate(given, 1):
            window, file = (one, "window") if isinstance(one, str) else one
            message, content = f"window {window}", f"{window} {len(self.windows)}.{number}"
            parents = [f":{number - 1}"] if number > 1 else after if self.windows else ()
            lines += ["commit refs/heads/main", f"mark :{number}", "committer A. Uthor <a@example.org> 0 +0000"]
            lines += [f"data {len(message)}", message]
            lines += [f"{how} {parent}" for how, parent in zip(("from", "merge"), parents, strict=False)]
            lines += [f"M 100644 inline {file}", f"data {len(content)}", content, f"get-mark :{number}"]
        text = "\n".join([*lines, ""])
        command = ["git", "fast-import", "--quiet", "--force"]
        hashes = subprocess.run(command, cwd=self.path, input=text, check=True, capture_output=True, text=True).stdout
        windows = [one if isinstance(one, str) else one[0] for one in given]
        self.windows |= {name: window.strip() for name, window in zip(hashes.split(), windows, strict=True)}
        return hashes.split()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "linux")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, repository: Repository) -> list[str]:
    """The windows of the kernels that were built, in order. Their situations are the simulator's."""
    done: list[str] = []
    windows: dict[str, str] = {}

    def build(*, hz: int, source_path: str, commit: str, name: str, **options: Any) -> Kernel:
        window = repository.windows[commit]
        done.append(window)
        if window == "broken":
            raise SawtoothError("build-failed", "make ended with status 2", fix="correct it")
        windows[name] = window
        return Kernel(Path("absent/linux"), "6.12", hz, ("cubic",), window, "", "", "", "", 0.0, name=name)

    def series(scenarios: Sequence[Scenario], **options: Any) -> list[Run | SawtoothError]:
        name = scenarios[0].host.kernel
        assert name is not None
        window = windows[name]
        if window == "crash":
            return [SawtoothError("guest-failed", "the kernel panicked")] * len(scenarios)
        if window == "hang":
            raise SawtoothError("guest-timeout", "the guest did not finish")
        size = scenarios[0].seed * 7 if window == "noise" else int(window)
        wide = {"host.initial_window": size, "host.kernel": "default"}
        return [engines.get("sim").run(one.set(wide)) for one in scenarios]

    monkeypatch.setattr(kernel_package, "build", build)
    monkeypatch.setattr(engine, "series", series)
    return done


def run(repository: Repository, good: str, bad: str, *more: str) -> Result:
    catalogue = repository.path.parent / "behaviors.toml"
    catalogue.write_text(CATALOGUE)
    ends = ["--tree", str(repository.path), "--good", good, "--bad", bad]
    asked = [] if "--behavior" in more else ["--behavior", BEHAVIOR]
    out = ["--file", str(catalogue), "--out", str(repository.path.parent / "out")]
    return CliRunner().invoke(bisect, [*ends, *out, *asked, *more])


@pytest.mark.parametrize("at", range(1, 12))
def test_the_first_bad_commit_is_found_wherever_it_is(repository: Repository, built: list[str], at: int) -> None:
    hashes = repository.commits(*(("30" if number >= at else "10", f"file{number}") for number in range(12)))
    done = run(repository, hashes[0], "main", "--json")
    assert done.exit_code == 0, done.output
    about = json.loads(done.stdout)
    assert about["first_bad"]["hash"] == hashes[at]
    assert about["first_bad"]["author"] == "A. Uthor"
    assert [one["hash"] for one in (about["compared"]["good"], about["compared"]["bad"])] == hashes[at - 1 : at + 1]
    (change,) = about["changes"]
    assert (change["situation"], change["quantity"], change["verdict"]) == ("limited", "goodput", "changed")
    assert change["after"] > change["before"]
    assert len(built) <= 2 + 4, "the ends, and the logarithm of 11"


def test_what_is_printed_and_a_second_call_builds_only_the_ends(repository: Repository, built: list[str]) -> None:
    hashes = repository.commits("10", "10 ", "10  ", "30", "30 ", "30  ")
    first = run(repository, hashes[0], hashes[-1])
    assert first.exit_code == 0, first.output
    assert f"first bad commit: {hashes[3]}\nwindow 30\nA. Uthor, " in first.output
    assert "5 commits, about 3 steps" in first.output
    assert BEHAVIOR in first.output.partition("first bad commit")[2]
    built.clear()
    again = run(repository, hashes[0], hashes[-1])
    assert again.stdout == first.stdout
    assert built == ["10", "30"]
    built.clear()
    run(repository, hashes[0], hashes[-1], "--hz", "1000")
    assert len(built) > 2, "kernels with other ticks are others"


def test_commits_that_do_not_build_or_run_or_decide_are_skipped(repository: Repository, built: list[str]) -> None:
    windows = ("10", "10 ", "broken", "crash", "hang", "noise", "30", "30 ", "30  ")
    hashes = repository.commits(*windows)
    done = run(repository, hashes[0], hashes[-1], "--json")
    assert done.exit_code == 4, done.output
    about = json.loads(done.stdout)
    assert about["first_bad"] is None
    suspects = [one["hash"] for one in about["suspects"]]
    assert suspects[0] == hashes[6], "the first bad one that was tried"
    assert {*suspects} == {*hashes[2:7]}
    told = {one["hash"]: one["detail"] for one in about["steps"] if one["verdict"] == "skipped"}
    assert told[hashes[2]] == "does not build: make ended with status 2"
    assert told[hashes[3]] == "a run failed: the kernel panicked"
    assert told[hashes[4]] == "does not run: the guest did not finish"
    assert told[hashes[5]].startswith("inconclusive")


def test_a_merge_is_searched_on_both_sides(repository: Repository, built: list[str]) -> None:
    first, beside = repository.commits(("10", "base"), ("10", "beside"))
    _, culprit = repository.commits(("10 ", "side1"), ("30", "side2"), after=[first])
    _, last = repository.commits(("30", "merge"), ("30 ", "last"), after=[beside, culprit])
    about = json.loads(run(repository, first, last, "--json").stdout)
    assert about["first_bad"]["hash"] == culprit


def test_only_commits_on_a_path_are_tried(repository: Repository, built: list[str]) -> None:
    hashes = repository.commits(*(("30" if at >= 5 else "10", f"file{at % 2}") for at in range(9)))
    done = run(repository, hashes[0], hashes[-1], "--path", "file1", "--json")
    about = json.loads(done.stdout)
    assert about["first_bad"]["hash"] == hashes[5]
    none = run(repository, hashes[0], hashes[-1], "--path", "absent")
    assert isinstance(none.exception, SawtoothError)
    assert none.exception.field == "--path"


def test_a_change_off_the_path_is_not_taken_for_one_on_it(repository: Repository, built: list[str]) -> None:
    windows = (("10", "a"), ("10 ", "b"), ("30", "a"), ("30 ", "b"), ("30  ", "a"))
    hashes = repository.commits(*windows)
    done = run(repository, hashes[0], hashes[-1], "--path", "b")
    assert isinstance(done.exception, SawtoothError)
    assert (done.exception.code, done.exception.field) == ("conflict", "--path")
    first, *last = repository.commits(("12", "a"), ("12 ", "a"), ("30", "b"), ("30 ", "a"))
    about = json.loads(run(repository, first, last[-1], "--path", "b", "--json").stdout)
    assert about["first_bad"]["hash"] == last[1]
    assert about["compared"]["good"]["hash"] == last[0], "the commit before it, which is not on the path"


@pytest.mark.parametrize(
    ("windows", "listed"),
    [
        ((("10 ", "b"), ("broken", "b"), ("30", "a"), ("30 ", "a")), (4, 2)),
        ((("10 ", "a"), ("broken", "a"), ("30", "b"), ("30 ", "a")), (3, 2)),
    ],
    ids=["on the path", "off it"],
)
def test_skipped_commits_hide_the_first_bad_one_of_a_path(
    repository: Repository, built: list[str], windows: Sequence[tuple[str, str]], listed: Sequence[int]
) -> None:
    hashes = repository.commits(("10", "a"), *windows)
    done = run(repository, hashes[0], hashes[-1], "--path", "b")
    assert done.exit_code == 4, done.output
    _, _, told = done.output.partition("which is one of 2, or one that does not change b:\n")
    assert [line.split()[0] for line in told.splitlines()[:2]] == [hashes[at] for at in listed]


def test_a_kernel_that_was_removed_is_not_run_again(
    repository: Repository, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A situation that tells nothing failed on the last good commit."""
    from sawtooth.behaviors import bisect as searching

    hashes = repository.commits("10", "10 ", "010", "30", "30 ", "30  ")
    ran, gone, inner = [], set(), engine.series

    def series(scenarios: Sequence[Scenario], **options: Any) -> list[Run | SawtoothError]:
        name = str(scenarios[0].host.kernel)
        if name in gone:
            raise SawtoothError("kernel-missing", f"no {name}")
        ran.append(name)
        runs = inner(scenarios)
        runs[1] = inner([scenarios[1].set({"host.kernel": f"bisect-{hashes[0][:12]}"})])[0]
        if name.endswith(hashes[2][:12]):
            runs[1] = SawtoothError("guest-failed", "out of memory")
        return runs

    monkeypatch.setattr(engine, "series", series)
    monkeypatch.setattr(searching, "_remove", lambda kernel: gone.add(kernel.name))
    done = run(repository, hashes[0], hashes[-1], "--behavior", BEHAVIOR, "--behavior", "other:goodput")
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"first bad commit: {hashes[3]}" in done.output
    assert len(ran) == 3 * len({*ran}), "each seed once"


def test_ends_that_are_alike_or_in_the_wrong_order_are_errors(repository: Repository, built: list[str]) -> None:
    hashes = repository.commits("10", "10 ", "30")
    same = run(repository, hashes[0], hashes[1])
    assert isinstance(same.exception, SawtoothError)
    assert (same.exception.code, same.exception.field) == ("conflict", "--behavior")
    turned = run(repository, hashes[2], hashes[0])
    assert isinstance(turned.exception, SawtoothError)
    assert turned.exception.code == "conflict"
    fix = str(turned.exception.fix).removeprefix("exchange them: ").partition(";")[0].split()
    assert run(repository, fix[1], fix[3]).exit_code == 0
    (other,) = repository.commits("12", after=[hashes[1]])
    apart = run(repository, other, hashes[2])
    assert isinstance(apart.exception, SawtoothError)
    assert apart.exception.fix == f"name the one from which both descend: --good {hashes[1]}"


def test_ends_that_cannot_be_judged_are_named(repository: Repository, built: list[str]) -> None:
    windows = ("10", "broken", "crash", "hang", "30")
    hashes = repository.commits(*windows)
    for good, bad, field, message in (
        (hashes[1], hashes[-1], "--good", "make ended with status 2"),
        (hashes[0], hashes[1], "--bad", "make ended with status 2"),
        (hashes[2], hashes[-1], "--good", "a run failed on this commit: the kernel panicked"),
        (hashes[0], hashes[2], "--bad", "a run failed on this commit: the kernel panicked"),
        (hashes[0], hashes[3], "--bad", "the guest did not finish"),
        (hashes[0], hashes[0], "--bad", "both ends are the same commit"),
    ):
        error = run(repository, good, bad).exception
        assert isinstance(error, SawtoothError)
        assert (error.field, error.message) == (field, message)
        assert str(error.fix).startswith(("name another commit", "name a commit before"))


def test_a_path_that_no_commit_changes_is_an_error_before_anything_is_built(
    repository: Repository, built: list[str]
) -> None:
    hashes = repository.commits("10", "30")
    error = run(repository, *hashes, "--path", "net/ivp4").exception
    assert isinstance(error, SawtoothError)
    assert (error.field, built) == ("--path", [])


@pytest.mark.parametrize("content", ["[]", "{", '{"kernels": []}'])
def test_a_damaged_file_of_what_was_tried_is_an_error(repository: Repository, built: list[str], content: str) -> None:
    hashes = repository.commits("10", "10 ", "30", "30 ")
    file = repository.path.parent / "out" / "kernels.json"
    file.parent.mkdir()
    file.write_text(content)
    error = run(repository, hashes[0], hashes[-1]).exception
    assert isinstance(error, SawtoothError)
    assert (error.code, error.file, built) == ("not-a-result", str(file), [])
    assert str(error.fix).startswith("remove this file")
    file.unlink()
    assert run(repository, hashes[0], hashes[-1]).exit_code == 0


@pytest.mark.parametrize("interrupted", [False, True])
def test_kernels_are_kept_only_for_the_same_command(
    repository: Repository, built: list[str], monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    from sawtooth.behaviors import bisect as searching

    hashes = repository.commits("10", "11", "12", "30", "31")
    gone: list[str] = []
    inner = engine.series

    def series(scenarios: Sequence[Scenario], **options: Any) -> list[Run | SawtoothError]:
        if str(scenarios[0].host.kernel).endswith((hashes[0][:12], hashes[-1][:12])):
            return inner(scenarios, **options)
        raise SawtoothError("interrupted" if interrupted else "disk-full", "stopped")

    monkeypatch.setattr(engine, "series", series)
    monkeypatch.setattr(searching, "_remove", lambda kernel: gone.append(kernel.name))
    done = run(repository, hashes[0], hashes[-1])
    assert isinstance(done.exception, SawtoothError)
    assert len(built) == 3
    assert len(gone) == (0 if interrupted else 3)
    assert done.output.count("kept for the same command: bisect-") == (3 if interrupted else 0)


def test_guests_after_the_good_commit_s_have_a_limit(
    repository: Repository, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = repository.commits("10", "12", "30")
    limits: dict[str, float] = {}
    inner = engine.series

    def series(scenarios: Sequence[Scenario], *, limit_s: float, **options: Any) -> list[Run | SawtoothError]:
        limits[str(scenarios[0].host.kernel)] = limit_s
        return inner(scenarios, limit_s=limit_s, **options)

    monkeypatch.setattr(engine, "series", series)
    assert run(repository, hashes[0], hashes[-1]).exit_code == 0
    assert [limits[f"bisect-{one[:12]}"] for one in hashes] == [engine.TIMEOUT_S, 600, 600]


def test_one_thing_to_judge_by_is_needed_and_it_must_be_known(repository: Repository, built: list[str]) -> None:
    hashes = repository.commits("10", "30")
    for more, code in (
        (["--expect", "mean_mbps > 1"], "bad-usage"),
        (["--behavior", "limited:timeouts"], "unknown-name"),
        (["--behavior", "nothing"], "unknown-name"),
    ):
        done = run(repository, *hashes, *more)
        assert isinstance(done.exception, SawtoothError)
        assert done.exception.code == code, more
        assert done.exception.fix


def test_a_behavior_is_named_by_its_part_alone_or_with_its_measure() -> None:
    from sawtooth.behaviors import Catalogue

    some = Catalogue.load().of(["loss/cubic:timeouts", "handshake/one"])
    names = [f"{one.name}:{measure}" for one in some.situations for measure in one.measures]
    assert names == [
        *(f"loss/cubic/{case}:timeouts" for case in ("periodic", "random", "bursts")),
        *(f"handshake/one:{measure}" for measure in ("completion", "goodput", "cwnd_max")),
    ]


def test_an_expectation_of_a_scenario_judges(
    repository: Repository, built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hashes = repository.commits("30", "30 ", "10", "10 ")
    file = tmp_path / "short.toml"
    file.write_text('name = "short"\nduration = "200 ms"\ninterval = "50 ms"\nhost = { processing = "20 us" }\n')
    windows = {f"bisect-{one[:12]}": repository.windows[one] for one in hashes}

    class Simulated:
        """The kernel's initial window, by the simulator."""

        name = "kernel"

        def check(self, scenario: Scenario) -> None:
            pass

        def run(self, scenario: Scenario, **options: Any) -> Run:
            window = int(windows[str(scenario.host.kernel)])
            return engines.get("sim").run(scenario.set({"host.initial_window": window, "host.kernel": "default"}))

    from sawtooth import study

    real = study.run_study
    searched, limits = engine, list[float]()

    def run_study(asked: Any, *, engine: engines.Engine, **options: Any) -> Any:
        assert isinstance(engine, searched.Kernel)
        limits.append(engine.limit_s)
        with ThreadPoolExecutor(1) as threads:
            return real(asked, engine=cast(engines.Engine, Simulated()), executor=threads, **options)

    monkeypatch.setattr(study, "run_study", run_study)
    asked = ["--behavior", BEHAVIOR]
    ends = ["--tree", str(repository.path), "--good", hashes[0], "--bad", hashes[-1], "--jobs", "1"]
    words = [str(file), *ends, "--expect", "mean_mbps > 55 Mbit/s", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(bisect, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"first bad commit: {hashes[2]}" in done.output
    assert (limits[0], *{*limits[1:]}) == (searched.TIMEOUT_S, 600)
    both = CliRunner().invoke(bisect, [*words, *asked])
    assert isinstance(both.exception, SawtoothError)
    turned = CliRunner().invoke(bisect, [*words[:-3], "mean_mbps < 55 Mbit/s", *words[-2:]])
    assert isinstance(turned.exception, SawtoothError)
    assert turned.exception.field == "--good"


def test_an_expectation_is_judged_in_a_guest(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    named = cache / "sawtooth" / "kernel" / "named"
    shutil.copytree(kernel.path.parent, named)
    about = json.loads((named / "kernel.json").read_text())
    (named / "kernel.json").write_text(json.dumps(about | {"name": "bisect-1"}))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    scenario = {"duration": "200 ms", "interval": "50 ms", "traffic": "native"}
    study = Study.from_dict({"name": "short", "scenario": scenario})
    for wanted, verdict in (("mean_mbps > 1 Mbit/s", GOOD), ("mean_mbps < 1 Mbit/s", BAD)):
        judge = ByExpectation(study, [wanted], tmp_path / verdict, overrides={"host.hz": 250}, seeds=[1, 2], jobs=1)
        found, told = judge.verdict(find(250, "bisect-1"))
        assert found == verdict, told
        assert judge.has_verdict(find(250, "bisect-1"))


def test_the_repository_is_only_read(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = repository.commits("10", "20")
    (tmp_path / ".gitconfig").write_text(
        f'[core]\nsplitIndex = true\nattributesFile = "{tmp_path}/attributes"\n[filter "other"]\nsmudge = tr 12 34\n'
    )
    (tmp_path / "attributes").write_text("window filter=other\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    before = {path: path.read_bytes() for path in repository.path.rglob("*") if path.is_file()}
    history = History.open(repository.path)
    history.suspects([hashes[0]], hashes[1])
    tree = tmp_path / "tree"
    tree.mkdir()
    history.check_out(hashes[0], tree, tmp_path / "index")
    assert (tree / "window").read_text().split()[0] == "10"
    history.check_out(hashes[1], tree, tmp_path / "index")
    assert (tree / "window").read_text().split()[0] == "20"
    assert {path: path.read_bytes() for path in repository.path.rglob("*") if path.is_file()} == before
