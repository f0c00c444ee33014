"""The keeper of one guest: a process of its own that runs it, and leaves nothing when the guest or the parent ends.

Called with one argument, JSON: command, directory, cpu, timeout_s, env. It ends the guest when its standard input
closes, which also a parent that is killed cannot prevent. Standard library only: it is run without site packages.
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
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Runs the guest; returns its wait status, its processor time in seconds, and whether its time was up."""
    libc = ctypes.CDLL(None)
    # Whatever the guest leaves behind becomes our child, so that it can be found.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order["cpu"] is not None:
        os.sched_setaffinity(0, {order["cpu"]})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        _become_guest(libc, order, keeper)
    timed_out = not _wait(child, order["timeout_s"])
    status = _end_all(child)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"status": status, "timeout": timed_out, "cpu_s": used.ru_utime + used.ru_stime}


def _become_guest(libc: Any, order: dict[str, Any], keeper: int) -> None:
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        os.chdir(order["directory"])
        console = os.open("console", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(console, 1)
        os.dup2(console, 2)
        os.execve(order["command"][0], order["command"], order["env"])
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(127)


def _wait(child: int, timeout_s: float) -> bool:
    """Until the guest ends, the parent is gone or the time is up; false for the last."""
    guest = os.pidfd_open(child)
    poll = select.poll()
    poll.register(guest, select.POLLIN)
    poll.register(0, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _end_all(child: int) -> int:
    """Kills and reaps every descendant; the guest's own wait status."""
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
    """Processes whose parent we are, from /proc/*/stat: ``pid (name) state parent …``."""
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
