"""Hostile modules: they hang, write where they should not, and print what a terminal would obey."""

import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from sawtooth.engines.cc_module.process_watch import ProcessWatch
from sawtooth.engines.cc_module.protocol import Answers, Garbled, packed
from tests.engines.test_cc_module import SIM, module, own_cache, refusal, same, scenario, source
from waiting import until

__all__ = ["own_cache"]


@pytest.mark.parametrize(
    ("avoid", "says"),
    [
        ("raise(19);", "was stopped by a signal, and did not go on for 1 s, in its cong_avoid"),
        ("sleep(600);", "waited for 1 s: it sleeps, or reads what does not come, in its cong_avoid"),
        ("for (;;) usleep(1000);", "waited for 1 s"),
    ],
)
def test_a_module_that_stops_or_sleeps_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, avoid: str, says: str
) -> None:
    monkeypatch.setattr("sawtooth.engines.cc_module.process_watch.IDLE_S", 1)
    before = "extern int raise(int), usleep(unsigned); extern unsigned sleep(unsigned);"
    error = refusal(module(source(tmp_path, avoid, before)))
    assert (error.code, error.file) == ("module-failed", str(tmp_path / "tcp_mine.c"))
    assert says in error.message


@pytest.mark.usefixtures("patience")
def test_a_module_that_loops_and_forbids_the_kernel_to_end_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sawtooth.engines.cc_module.isolated_process.PATIENCE_S", 1)
    monkeypatch.setattr("sawtooth.engines.cc_module.process_watch.MARGIN_S", 0.5)
    deaf = "signal(24, (void *)1); for (volatile int i = 0;;) i++;"
    error = refusal(module(source(tmp_path, deaf, "extern void *signal(int, void *);")))
    assert "did not come back for 1 s, in its cong_avoid" in error.message


def test_only_a_process_that_waits_is_idle_and_only_while_the_watch_is_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sawtooth.engines.cc_module.process_watch.IDLE_S", 3)
    clock = iter(range(0, 100_000, 1000))
    monkeypatch.setattr("sawtooth.engines.cc_module.process_watch.time.monotonic", lambda: float(next(clock)))
    busy, still = (
        subprocess.Popen([sys.executable, "-c", f"print(flush=True)\n{what}"], stdout=subprocess.PIPE)
        for what in ("while True: pass", "import time; time.sleep(600)")
    )
    try:
        for process in (busy, still):
            assert process.stdout is not None
            process.stdout.readline()
        while Path(f"/proc/{still.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            pass
        watch = ProcessWatch(still.pid, 1000.0)
        # A thousand seconds between two checks, as after a suspend, count as one.
        assert [watch.problem(), watch.problem()] == [None, None]
        assert "waited for 3 s" in str(watch.problem())
        watch.begin()
        assert watch.problem() is None
        watch = ProcessWatch(busy.pid, 1000.0)
        assert [watch.problem() for _ in range(5)] == [None] * 5
    finally:
        for process in (busy, still):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    "forks", ["if (!fork()) pause();", "if (!fork()) { setsid(); if (fork()) _exit(0); for (;;) pause(); }"]
)
@pytest.mark.parametrize("then", ["", "_exit(3);"])
def test_what_a_module_began_ends_with_its_run(tmp_path: Path, forks: str, then: str) -> None:
    before = "extern int fork(void), setsid(void), pause(void); extern void _exit(int); static int done;"
    cc = module(source(tmp_path, f"if (!done++) {{ {forks} {then} }}", before))
    known = {one.pid for one in psutil.process_iter()}
    if then:
        assert refusal(cc).code == "module-failed"
    else:
        SIM.run(scenario(cc))
    new = [one for one in psutil.process_iter() if one.pid not in known]
    until(lambda: not [one for one in new if _is_alive(one) and _is_apart(one.pid)], 5)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


@pytest.mark.usefixtures("patience")
def test_a_run_that_is_suspended_whole_continues(tmp_path: Path) -> None:
    """As with Ctrl-Z, which stops the run but not the separate process; and with both stopped."""
    program = """if True:
        import sys
        from pathlib import Path

        import sawtooth.engines.cc_module.process_watch
        from tests.engines.test_cc_module import SIM, module, scenario

        sawtooth.engines.cc_module.process_watch.IDLE_S = 2
        run = SIM.run(scenario(module(Path(sys.argv[1])), duration="200 s"))
        print(run.meta["delivered_packets"])
    """
    path = source(tmp_path)
    command = [sys.executable, "-c", program, str(path)]
    tests = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=tests) as run:
        try:
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
            apart: list[int] = []
            while not apart and run.poll() is None:
                # A compiler may have ended in the meantime.
                with contextlib.suppress(OSError):
                    found = [int(child) for child in children.read_text().split()]
                    apart = [child for child in found if _is_apart(child)]
            assert apart
            for stopped in ([run.pid], [run.pid, *apart]):
                for process in stopped:
                    os.kill(process, signal.SIGSTOP)
                time.sleep(3)
                for process in stopped:
                    os.kill(process, signal.SIGCONT)
            told, _ = run.communicate(timeout=120)
        finally:
            run.kill()
    assert run.returncode == 0
    assert int(told) > 10_000


def _is_apart(process: int) -> bool:
    return b"\0-m\0sawtooth.engines.cc_module\0" in Path(f"/proc/{process}/cmdline").read_bytes()


@pytest.mark.parametrize("first", [1, 3])
def test_what_a_module_writes_reaches_no_answer_and_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], first: int
) -> None:
    """Its constructor writes to file descriptors that it did not open: standard output and error, or all others."""
    before = (
        "extern long write(int, const void *, unsigned long);"
        "__attribute__((constructor)) static void early(void)"
        f'{{ for (int i = {first}; i < {first + 2 if first == 1 else 64}; i++) write(i, "word \\033[31m", 10); }}'
    )
    path = source(tmp_path, before=before)
    if first == 1:
        assert same(SIM.run(scenario("reno")), SIM.run(scenario(module(path))))
        said = capfd.readouterr()
        assert (said.out, said.err) == ("", "word \\u001b[31mword \\u001b[31m\n")
    else:
        error = refusal(module(path))
        assert error.code == "module-failed"
        assert "wrote to a file that it did not open" in error.message


@pytest.mark.usefixtures("patience")
def test_what_a_module_prints_is_passed_on_whole_and_endless_output_is_cut(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source(tmp_path, 'static int n; if (n < 5000) pr_info("word %d\\n", n++);')
    SIM.run(scenario(module(path)))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) > 500
    assert all(line.endswith(f" word {number}") for number, line in enumerate(lines))
    monkeypatch.setattr("sawtooth.engines.cc_module.printed_text.MOST", 100)
    SIM.run(scenario(module(path)))
    assert capfd.readouterr().err.splitlines()[-1] == "(the module says more than 0 MiB: no more of it)"


def test_bytes_that_are_no_answer_are_garbled_and_run_nothing() -> None:
    whole = packed("answer", [True, 1, 2, 3], {"packets": {"time_s": np.arange(3.0), "count": np.arange(3)}})
    for given in (whole, whole[:-1], b"\xff" * 40, whole[:16] + b"x" * (len(whole) - 16), pickle.dumps(whole) * 9):
        ours, theirs = os.pipe()
        os.write(theirs, given)
        answers = Answers(ours)
        try:
            if given == whole:
                kind, value, tables = answers.next() or ("", None, {})
                assert (kind, value, tables["packets"]["time_s"].tolist()) == ("answer", [True, 1, 2, 3], [0, 1, 2])
            elif given == whole[:-1]:
                assert answers.next() is None
                os.close(theirs)
                theirs = os.open(os.devnull, os.O_RDONLY)
                with pytest.raises(EOFError):
                    answers.next()
            else:
                with pytest.raises(Garbled):
                    answers.next()
        finally:
            os.close(ours)
            os.close(theirs)


BOMB = "\n".join(["#define A0 int x", *(f"#define A{n} {f'A{n - 1}; ' * 10}" for n in range(1, 6)), *["A5"] * 400])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('#include "/dev/zero"', "out of memory"),
        ('#include "/dev/tty"', "/dev/tty"),
        ('#include "tcp_mine.c"', "nested"),
        ('#include "pipe"', "the compiler did not end within 3 s"),
        (BOMB, "File size limit exceeded"),
        ("char large[1 << 30] = {1};", "File size limit exceeded"),
        ("\n".join(f"#warning {'x' * 200}" for _ in range(10_000)) + "\n#error", "printed more than 1024 KiB"),
    ],
    ids=["zeros", "terminal", "itself", "pipe", "macros", "array", "complaints"],
)
@pytest.mark.usefixtures("patience")
def test_a_source_that_never_ends_for_the_compiler_is_refused_in_bounded_time_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    monkeypatch.setattr("sawtooth.engines.cc_module.compiler._TIMEOUT_S", 3.0 if "pipe" in text else 60.0)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "tcp_mine.c").write_text(text)
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    error = refusal(module(tmp_path / "tcp_mine.c"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (error.code, error.file) == ("compile-failed", str(tmp_path / "tcp_mine.c"))
    assert says in error.message
    assert time.monotonic() - begun < 100
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    # kB
    assert after.ru_maxrss < 1.3 * 2**20
    compilers = [
        one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or [])
    ]
    assert compilers == []
