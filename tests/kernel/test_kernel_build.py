"""Building a kernel: in stages that can be interrupted, in parallel with others, checked first, published whole. The
source is a stand-in, whose kernel acts as a guest. The session's fixture builds the real one, and test_kernel_guest.py
boots it.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.kernel import build, find, prerequisites, source
from sawtooth.kernel.build import RATES
from sawtooth.kernel.kernel import installed
from stand_in_kernel import BOOTS, PROGRAM, stand_in
from waiting import until

pytestmark = pytest.mark.usefixtures("patience", "cache")


def code_of(**options: object) -> str:
    with pytest.raises(SawtoothError) as caught:
        build(**options)
    assert caught.value.fix, "an error names its fix"
    return caught.value.code


def compiled(cache: Path) -> list[str]:
    """The steps compiled by unfinished builds."""
    return [line for path in cache.glob("build/*/compiled") for line in path.read_text().split()]


def test_the_timer_ticks_are_those_of_scenarios() -> None:
    from sawtooth.scenario import Scenario

    assert set(RATES) == set(Scenario.json_schema()["$defs"]["Host"]["properties"]["hz"]["enum"])


@pytest.mark.parametrize("hz", RATES)
def test_what_is_built_is_found_and_described(tmp_path: Path, cache: Path, hz: int) -> None:
    kernel = build(hz=hz, source_path=stand_in(tmp_path / "linux"))
    assert (kernel.version, kernel.hz, kernel.algorithms) == ("6.12.7", hz, ("cubic", "reno"))
    assert find(hz) == kernel
    assert kernel.path.parent.parent == cache
    assert os.access(kernel.path, os.X_OK)
    assert list((cache / "build").iterdir()) == []


def test_what_is_not_built_is_missing_and_the_error_names_the_command(tmp_path: Path) -> None:
    build(hz=250, source_path=stand_in(tmp_path / "linux"))
    with expected_error(code="kernel-missing") as caught:
        find(1000)
    assert "HZ 250" in caught.value.message
    assert "sawtooth kernel build --hz 1000" in caught.value.fix


def test_a_kernel_is_built_once_and_again_when_its_source_changes(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    first = build(source_path=tree)
    assert build(source_path=tree) == first
    (tree / "linux.c").write_text(PROGRAM.replace("WORDS", BOOTS + "; true"))
    second = build(source_path=tree)
    assert second.source_digest != first.source_digest
    assert len(installed()) == 2


def test_a_kernel_of_another_recipe_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(source_path=stand_in(tmp_path / "linux"))
    monkeypatch.setattr("sawtooth.kernel.kernel.configuration", lambda: "CONFIG_NET=y\n")
    with pytest.raises(SawtoothError, match="no user-mode kernel"):
        find()


def test_a_tarball_gives_what_its_directory_gives(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux-6.12.7")
    tarball = tmp_path / "linux.tar.xz"
    with tarfile.open(tarball, "w:xz") as archive:
        archive.add(tree, arcname="linux-6.12.7")
    assert build(source_path=tarball).version == "6.12.7"


def test_the_users_directory_is_not_touched(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    build(hz=1000, source_path=tree)
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_the_copy_is_edited_in_its_three_ways(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    copy = tmp_path / "copy"
    source.unpack(source.locate(tree), copy, 300)
    assert "default 300" in (copy / "arch/um/Kconfig").read_text()
    assert "getrandom" not in (copy / "arch/um/os-Linux/util.c").read_text()
    assert "random_get_entropy" not in (copy / "drivers/char/random.c").read_text()
    assert "| PTRACE_O_EXITKILL)" in (copy / "arch/um/os-Linux/skas/process.c").read_text()


def test_edits_for_speed_are_made_where_a_kernel_has_their_place_and_left_out_where_not(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    (tree / "arch/um/Makefile").write_text("KBUILD_CFLAGS += -mcmodel=large\n")
    (tree / "arch/um/os-Linux/signal.c").write_text("\telse\n\t\tmemset(&regs, 0, sizeof(regs));\n")
    copy = tmp_path / "copy"
    source.unpack(source.locate(tree), copy, 250)
    assert (copy / "arch/um/Makefile").read_text() == "KBUILD_CFLAGS += -mcmodel=small\n"
    assert "memset" not in (copy / "arch/um/os-Linux/signal.c").read_text()
    assert not (copy / "arch/um/include/shared/skas/stub-data.h").exists()


def test_progress_reports_the_stages_in_order_and_fractions_that_grow(tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []
    build(source_path=stand_in(tmp_path / "linux"), progress=lambda what, fraction: told.append((what, fraction)))
    assert list(dict.fromkeys(what for what, _ in told)) == [
        "checking tools and source",
        "unpacking linux",
        "configuring",
        "compiling",
        "trying the kernel",
        "removing the build's files",
    ]
    fractions = [fraction for what, fraction in told if what == "compiling"]
    assert len(fractions) == 4
    assert fractions == sorted(fractions)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_build_continues_where_it_stopped(tmp_path: Path, cache: Path, how: signal.Signals) -> None:
    tree = stand_in(tmp_path / "linux", steps=12, seconds=0.15)
    # The fifth step is not done before the interrupt.
    makefile, on = (tree / "Makefile").read_text(), tmp_path / "on"
    waits = f"\t@test $@ != step5.o || until test -e {on}; do sleep 0.05; done\n"
    (tree / "Makefile").write_text(makefile.replace("\t@sleep 0.15\n", waits + "\t@sleep 0.15\n"))
    code = f"from sawtooth.kernel import build; build(source_path={str(tree)!r}, jobs=1)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) as process:
        until(lambda: len(compiled(cache)) >= 5)
        process.send_signal(how)
        process.wait(60)
    before = compiled(cache)
    assert len(before) == 5
    assert installed() == []
    (spent,) = (float(path.read_text()) for path in cache.glob("build/*/seconds"))
    seen: list[list[str]] = []
    on.touch()
    kernel = build(source_path=tree, jobs=1, progress=lambda what, _: seen.append(compiled(cache)))
    whole = max(seen, key=len)
    # Only the interrupted step is compiled again.
    assert len(set(whole)) == 12
    assert len(whole) <= 13
    # The interrupted build's time counts, as far as it was recorded; times are printed in tenths of a second.
    assert spent > 0
    assert kernel.build_s > spent + (len(whole) - len(before)) * 0.15 - 0.05


def test_two_builds_at_once_do_not_collide_and_the_second_takes_what_the_first_made(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux", steps=6, seconds=0.1)
    code = f"""
from sawtooth.kernel import build
stages = []
kernel = build(source_path={str(tree)!r}, jobs=1, progress=lambda what, _: stages.append(what))
print("compiling" in stages, kernel.digest)
"""
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = sorted(process.communicate(timeout=200)[0].split() for process in both)
    assert [one[0] for one in told] == ["False", "True"]
    assert told[0][1] == told[1][1]


def test_a_kernel_that_is_there_is_given_at_once_while_another_is_built(tmp_path: Path, cache: Path) -> None:
    there = build(source_path=stand_in(tmp_path / "there"), jobs=1)
    with (cache / "build.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told: list[str] = []
        assert build(source_path=tmp_path / "there", jobs=1, progress=lambda what, _: told.append(what)) == there
        assert told == ["checking tools and source"]


def test_what_is_no_kernel_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert code_of(source_path=tmp_path / "empty") == "bad-source"
    junk = tmp_path / "junk.tar.xz"
    junk.write_bytes(b"not a tarball")
    assert code_of(source_path=junk) == "bad-source"
    assert code_of(source_path=tmp_path / "absent") == "file-not-found"
    assert code_of(source_path=stand_in(tmp_path / "old", version=4)) == "bad-source"


def test_a_source_that_lacks_a_place_to_edit_is_refused_by_its_name(tmp_path: Path, cache: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    (tree / "arch/um/Kconfig").write_text("config OTHER\n")
    with expected_error(code="bad-source", match="arch/um/Kconfig"):
        build(source_path=tree)


def test_an_unknown_timer_tick_is_refused(tmp_path: Path) -> None:
    assert code_of(hz=123, source_path=stand_in(tmp_path / "linux")) == "out-of-range"


def test_missing_tools_are_named_by_package_before_anything_is_done(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, **_: None if name in ("flex", "bc", "apt-get") else f"/bin/{name}")
    with expected_error(code="tool-missing") as caught:
        build(source_path=stand_in(tmp_path / "linux"))
    assert "bc flex" in caught.value.message
    assert "apt-get install" in caught.value.fix
    assert not cache.exists()


def test_a_header_that_is_missing_is_named_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "HEADERS", {"no-such-header.h": "libno-such-dev"})
    assert prerequisites.missing() == ["libno-such-dev"]


def test_a_disk_that_is_too_full_is_reported_before_anything_is_done(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "SPACE_BYTES", 10**18)
    assert code_of(source_path=stand_in(tmp_path / "linux")) == "disk-full"
    assert list(cache.glob("build/*/tree*")) == []


@pytest.mark.parametrize(
    ("reason", "code"),
    [("[Errno 28] No space left on device", "disk-full"), ("[Errno 13] Permission denied", "bad-source")],
)
def test_a_source_that_cannot_be_copied_is_reported_by_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, code: str
) -> None:
    def refused(*_args: object, **_options: object) -> None:
        raise shutil.Error([("from", "to", reason)])

    monkeypatch.setattr("shutil.copytree", refused)
    assert code_of(source_path=stand_in(tmp_path / "linux")) == code


def test_a_compiler_that_fails_is_quoted_and_its_log_named(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    (tree / "linux.c").write_text("int main(void) { return nonsense; }\n")
    with expected_error(code="build-failed", match="nonsense") as caught:
        build(source_path=tree)
    assert "nonsense" in Path(caught.value.file).read_text()


def test_a_configuration_that_is_not_taken_is_an_error_that_names_it(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(makefile.replace("cp $(KCONFIG_ALLCONFIG)", "grep -v NETEM $(KCONFIG_ALLCONFIG) >"))
    with expected_error(code="build-failed", match="CONFIG_NET_SCH_NETEM"):
        build(source_path=tree)


def test_an_option_that_is_part_of_another_in_a_newer_kernel_is_not_missed(tmp_path: Path) -> None:
    tree = stand_in(tmp_path / "linux")
    makefile = (tree / "Makefile").read_text()
    merged = "sed 's/^CONFIG_PROC_SYSCTL=/CONFIG_SYSCTL=/' $(KCONFIG_ALLCONFIG) >"
    (tree / "Makefile").write_text(makefile.replace("cp $(KCONFIG_ALLCONFIG)", merged))
    assert build(source_path=tree).version == "6.12.7"


@pytest.mark.parametrize("version", [5, 6])
def test_a_kernel_before_5_15_gets_block_devices(tmp_path: Path, version: int) -> None:
    tree = stand_in(tmp_path / "linux", version=version)
    makefile = (tree / "Makefile").read_text()
    kept = f"cp $(KCONFIG_ALLCONFIG) {tmp_path}/wanted; cp $(KCONFIG_ALLCONFIG)"
    (tree / "Makefile").write_text(makefile.replace("cp $(KCONFIG_ALLCONFIG)", kept))
    assert build(source_path=tree).version == f"{version}.12.7"
    assert ("CONFIG_BLOCK=y" in (tmp_path / "wanted").read_text()) == (version == 5)


@pytest.mark.parametrize("does", ["exit 1", "echo 0 > share/.exit; : > share/stdout"])
def test_a_kernel_that_does_not_boot_is_not_published(tmp_path: Path, does: str) -> None:
    assert code_of(source_path=stand_in(tmp_path / "linux", does=does)) == "build-failed"
    assert installed() == []


def test_the_command_builds_and_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = stand_in(tmp_path / "linux")
    assert status_of(["kernel", "build", "--source", str(tree), "--jobs", "2"]) == 0
    told = capsys.readouterr()
    assert "kernel 6.12.7, HZ 250" in told.out
    assert "compiling" in told.err
    assert status_of(["kernel", "info", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(one["version"], one["hz"], one["algorithms"]) for one in shown] == [("6.12.7", 250, ["cubic", "reno"])]
    assert status_of(["kernel", "info"]) == 0
    words = capsys.readouterr().out
    assert "algorithms  cubic reno" in words


def test_info_without_a_kernel_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["kernel", "info"]) == 1
    assert "sawtooth kernel build" in capsys.readouterr().err
