"""Stopping studies by Ctrl-C, a signal or a kill: finished points are kept, and no process remains."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from expected_error import expected_error
from fake_engine import DiesBesideAnother, Fake, Killed, Slow, quick, study
from sawtooth.errors import SawtoothError
from sawtooth.study import run_study
from waiting import until

pytestmark = pytest.mark.usefixtures("patience")


def test_a_killed_worker_is_one_clear_error_and_the_next_run_continues(tmp_path, marks):
    engine = Killed(str(marks), once=str(tmp_path / "once"))
    with expected_error(code="worker-died") as caught:
        run_study(study(), engine=engine, out=tmp_path / "out", jobs=1, quiet=True)
    assert "4 of 8 points" in caught.value.message
    result = run_study(study(), engine=engine, out=tmp_path / "out", jobs=1, quiet=True)
    assert len(list((tmp_path / "out" / "small").iterdir())) == 2  # one directory, and latest
    assert len(list(marks.iterdir())) == 4 + 1 + 4
    assert len(result.summary) == 12


def test_what_another_worker_saves_while_the_pool_breaks_is_counted(tmp_path):
    """At a loss of 2% one worker dies; the other, at 3%, saves its point after it was told to stop."""
    out = tmp_path / "out"
    given = study(
        repeat={"seeds": [1]}, vary={"flows.cc": ["cubic"], "topology": ["chain"], "chain.loss": ["2%", "3%"]}
    )
    with expected_error(code="worker-died") as caught:
        run_study(given, engine=DiesBesideAnother(once=str(tmp_path / "once")), out=out, jobs=2, quiet=True)
    assert len(list(out.glob("small/2*/points/[0-9]*"))) == 1
    assert "; 1 of 2 points are finished and kept" in caught.value.message


def script(tmp_path, engine, out, *, given=None, around="contextlib.nullcontext()"):
    """A separate program, like the command line, that runs the study in two workers; it has no guard."""
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(
            f"""
            import contextlib, json, sys
            import fake_engine
            from sawtooth.cli.process import prepared
            from sawtooth.errors import SawtoothError
            from sawtooth.study import Study, run_study

            study = Study.from_dict(json.loads({json.dumps(json.dumps((given or study()).to_dict()))}))
            try:
                with {around}:
                    run_study(study, engine=fake_engine.{engine}(), out={str(out)!r}, jobs=2, quiet=True)
            except SawtoothError as error:
                print(error, file=sys.stderr)
                sys.exit(error.exit_status)
            """
        )
    )
    roots = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, roots))}
    return subprocess.Popen(
        [sys.executable, str(path)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes_of(session):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_for_points(out, count):
    until(lambda: len(list(out.glob("small/*/points/[0-9]*"))) == count)


def stopped(program, out, *, by, after):
    """The program's output if all its processes get a signal after this many points; then none of them is left."""
    try:
        wait_for_points(out, after)
        os.killpg(program.pid, by)
        _, said = program.communicate(timeout=200)
    finally:
        program.kill()
    assert program.returncode == 130
    until(lambda: processes_of(program.pid) == [])
    return said


def test_a_service_that_is_stopped_ends_cleanly_with_all_its_processes(tmp_path):
    out = tmp_path / "out"
    # More points wait than a pool of two workers has taken.
    given = study(repeat={"seeds": list(range(1, 7))})
    said = stopped(
        script(tmp_path, "Stubborn", out, given=given, around="prepared()"), out, by=signal.SIGTERM, after=12
    )
    assert said.splitlines()[0].startswith("error[interrupted]: interrupted; 12 of 24 points")
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize("engine", ["Slow", "Stubborn"])
def test_ctrl_c_ends_cleanly_keeps_what_is_finished_and_a_second_run_resumes(tmp_path, marks, engine):
    out = tmp_path / "out"
    said = stopped(script(tmp_path, engine, out), out, by=signal.SIGINT, after=4)
    assert "error[interrupted]" in said
    assert "4 of 8 points" in said
    assert "run the same command again" in said
    assert "Traceback" not in said
    result = quick(out=out, engine=Fake(str(marks)))
    assert len(list(marks.iterdir())) == 4
    assert len([path for path in (out / "small").iterdir() if not path.is_symlink()]) == 1
    assert len(result.summary) == 12


def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    out = tmp_path / "out"
    program = script(tmp_path, "Stubborn", out)
    wait_for_points(out, 4)
    program.kill()
    program.communicate(timeout=200)
    until(lambda: processes_of(program.pid) == [])


def test_an_interrupt_while_threads_work_leaves_the_executor_usable(tmp_path, monkeypatch):
    from sawtooth.io import parallel

    waits = []

    def interrupted(*arguments):
        waits.append(arguments)
        if len(waits) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    real = parallel._landed
    monkeypatch.setattr(parallel, "_landed", interrupted)
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(SawtoothError) as caught:
            run_study(study(), engine=Slow(), out=tmp_path, executor=executor, quiet=True)
        assert executor.submit(int, "7").result(timeout=20) == 7
    assert caught.value.code == "interrupted"
    assert caught.value.exit_status == 130
