"""The keeper of one guest: a separate process that runs the guest and cleans up when the guest or the parent ends.

It is called with one argument, JSON: command, directory, share, places, room_bytes, cpu, timeout_s, env. It ends the
guest when its standard input closes, which happens even when the parent is killed. It uses only the standard library,
because it runs without site packages.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sawtooth.kernel import guest_view as view
else:
    # Load the module ``guest_view`` by its file name: the package is not importable here.
    _spec = spec_from_file_location("view", Path(__file__).with_name("guest_view.py"))
    view = module_from_spec(_spec)
    _spec.loader.exec_module(view)

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Run the guest. Returns its exit status, its processor time in seconds, and whether it reached its timeout."""
    libc = ctypes.CDLL(None)
    # Processes that the guest leaves behind become children of this process, so that it can find them.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order["cpu"] is not None:
        os.sched_setaffinity(0, {order["cpu"]})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    user = view.spare_user()
    seen = view.possible(user)
    with view.lent(Path(order["share"]), user):
        if seen:
            view.separate(user)
        alive, ours = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            _be_first(libc, order, user, seen, alive)
        timed_out = not _wait(child, order["timeout_s"])
        status = _end_all(child)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"status": _exit_status(status), "timeout": timed_out, "cpu_s": used.ru_utime + used.ru_stime}


def _be_first(libc: Any, order: dict[str, Any], user: int | None, seen: bool, alive: int) -> None:
    """The first process in the guest's PID namespace: runs the kernel, and on its end kills all that it started."""
    status = 127
    try:
        os.umask(0o022)
        directory = Path(order["directory"])
        console = os.open(directory / "console", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(console, 1)
        os.dup2(console, 2)
        # Start the program through an open file: its path may only be accessible to the caller.
        program = os.open(order["command"][0], os.O_RDONLY)
        share, places = Path(order["share"]), [Path(place) for place in order["places"]]
        environment = dict(order["env"])
        if seen:
            view.mount_view(directory, share, places, user, order["room_bytes"])
            environment["TMPDIR"] = str(directory / view.ROOM)
        else:
            view.stay(directory, share, places, user)
        os.chdir(directory)
        view.drop(user)
        _end_with_parent(libc)
        if select.select([alive], [], [], 0)[0]:
            # The keeper had already ended.
            return
        kernel = os.fork()
        if kernel == 0:
            _end_with_parent(libc)
            os.execve(program, order["command"], environment)
        status = _exit_status(os.waitpid(kernel, 0)[1])
        if seen:
            # This is process 1 of its PID namespace; -1 means all others in it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while seen:
                os.waitpid(-1, 0)
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(status)


def _end_with_parent(libc: Any) -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _exit_status(waited: int) -> int:
    code = os.waitstatus_to_exitcode(waited)
    return code if code >= 0 else 128 - code


def _wait(child: int, timeout_s: float) -> bool:
    """Wait until the guest ends, the parent ends or the timeout is reached. Returns false for the timeout."""
    guest = os.pidfd_open(child)
    poll = select.poll()
    poll.register(guest, select.POLLIN)
    poll.register(0, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _end_all(child: int) -> int:
    """Kill and reap all descendants. Returns the wait status of the guest."""
    status = 0
    while True:
        with contextlib.suppress(ChildProcessError):
            found, how = os.waitpid(-1, os.WNOHANG)
            while found:
                status = how if found == child else status
                found, how = os.waitpid(-1, os.WNOHANG)
        below = _children()
        if not below:
            return status
        for process in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            found, how = os.waitpid(-1, 0)
            status = how if found == child else status


def _children() -> list[int]:
    """Child processes of this process, from /proc/*/stat: ``pid (name) state parent …``."""
    me, found = str(os.getpid()), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if fields[1].decode() == me:
                    found.append(int(name))
    return found


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    answer = main(given)
    parent_gone = bool(select.select([0], [], [], 0)[0])
    if parent_gone:
        shutil.rmtree(given["directory"], ignore_errors=True)
    else:
        print(json.dumps(answer), flush=True)
