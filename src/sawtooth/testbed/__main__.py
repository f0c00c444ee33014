"""Runs inside the guest, and as the netns engine's child process: sets up the testbed, runs the traffic, removes it.

    python -m sawtooth.testbed DIRECTORY [DIRECTORY …]

Each DIRECTORY has ``task.json`` and receives all measurements of its run, one run after the other. Exit status 0, or 1
with the error of a run in its ``error.json``.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.scenario.compiled import Compiled
from sawtooth.testbed.names import NAMESPACES
from sawtooth.testbed.plan import Plan, build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.traffic import check_source, orders

TASK, ORDERS, ERROR, SYSTEM, SOURCE = "task.json", "orders", "error.json", "system.json", "source"
_PR_SET_PDEATHSIG = 1
_NO_PRESSURE = "16777216 16777216 16777216"
"""Pages for TCP below which there is no memory pressure: more than any guest has."""


def main(directory: Path, *, alone: bool = True) -> int:
    """One run. ``alone``: the only one of this guest."""
    task = json.loads((directory / TASK).read_text(encoding="utf-8"))
    if not task["place"]["virtual"]:
        _end_with(task["owner"])
    compiled = Compiled.from_dict(task["compiled"])
    plan = build(compiled, Place(**task["place"]), task["prefix"])
    names = [namespace.name for namespace in plan.namespaces]
    from sawtooth.testbed.apply import apply, remove

    try:
        if task["place"]["virtual"]:
            _own_machine()
        devices = apply(plan, forks=alone)
        text = orders(
            compiled,
            plan,
            task["traffic"],
            directory,
            NAMESPACES,
            devices,
            capture=task["capture"],
            virtual=task["place"]["virtual"],
        )
        (directory / SYSTEM).write_text(json.dumps(system()), encoding="utf-8")
        source = [directory / SOURCE, directory / ORDERS]
        if task.get("programs"):
            _attend(task, plan, devices, directory, source, text)
        else:
            (directory / ORDERS).write_text(text, encoding="utf-8")
            done = subprocess.run(source, cwd=directory, stderr=subprocess.PIPE, text=True)
            check_source(done.returncode, done.stderr)
    except Exception as error:
        reported = error if isinstance(error, SawtoothError) else _unforeseen(error)
        about = {name: getattr(reported, name) for name in ("code", "message", "field", "fix")}
        (directory / ERROR).write_text(json.dumps(about), encoding="utf-8")
        return 1
    finally:
        # A guest disappears as a whole.
        if not (task["place"]["virtual"] and alone):
            remove(names)
    return 0


def series(directories: Sequence[Path]) -> int:
    """The runs of one guest. Each begins at a whole second, so that the kernel's timers are where they would be
    whatever ran before."""
    if len(directories) == 1:
        return main(directories[0])
    status = 0
    for directory in directories:
        time.sleep(1 - time.time() % 1)
        status |= main(directory, alone=False)
    return status


def _attend(
    task: dict[str, Any],
    plan: Plan,
    devices: Mapping[tuple[int, str], int],
    directory: Path,
    source: list[Path],
    text: str,
) -> None:
    """Runs the scenario's traffic together with its hosts' programs. Raises OSError, and as ``attend`` does."""
    from sawtooth.testbed.apply import addressed, entered
    from sawtooth.testbed.containers import Container, mount_groups
    from sawtooth.testbed.plan import address
    from sawtooth.testbed.programs import attend

    if task["place"]["virtual"]:
        mount_groups()
    names, called = [host["name"] for host in task["compiled"]["hosts"]], task["called"]
    lines = [
        f"{address(at)} {' '.join(dict.fromkeys([called.get(name, name), name]))}" for at, name in enumerate(names)
    ]
    hosts = "\n".join(["127.0.0.1 localhost", *lines, ""])
    containers: dict[str, Container] = {}
    try:
        for host in dict.fromkeys(program["host"] for program in task["programs"]):
            number = names.index(host)
            namespace = plan.namespace_of(number)
            if (control := task["controls"].get(host)) is not None:
                with entered(namespace):
                    Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(control)
            addressed(plan, number, [index for (at, _), index in devices.items() if at == number])
            places = [Path(place) for place in task["places"]]
            containers[host] = Container(called.get(host, host), NAMESPACES / namespace, hosts, places)
            text += f"watch {number}\n"

        def begin(start_ns: int) -> None:
            (directory / ORDERS).write_text(f"start {start_ns}\n{text}", encoding="utf-8")

        attend(task, containers, directory, source, begin)
    finally:
        for container in containers.values():
            container.close()


def _unforeseen(error: Exception) -> SawtoothError:
    message = f"the testbed could not run it: {type(error).__name__}: {error}"
    fix = "find what is missing: sawtooth doctor; if nothing is, report this message"
    return SawtoothError("testbed-failed", message, fix=fix)


def system() -> dict[str, Any]:
    """Facts about the place that a reader of the results needs: kernel, congestion controls, tools."""
    tcp = Path("/proc/sys/net/ipv4")
    found: dict[str, Any] = {"kernel": " ".join(os.uname()[i] for i in (0, 2, 3, 4))}
    for name in ("tcp_available_congestion_control", "tcp_congestion_control"):
        found[name] = (tcp / name).read_text().strip()
    found["sysctls"] = {
        path.name: path.read_text().strip()
        for path in sorted(tcp.glob("tcp_*"))
        if path.name not in ("tcp_fastopen_key", *found) and os.access(path, os.R_OK)
    }
    found["tools"] = {name: shutil.which(name) for name in ("iperf3", "tcpdump")}
    return found


def _end_with(owner: int) -> None:
    """Ensures that this process is killed with the engine's process, and the traffic source with this one."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != owner:
        sys.exit(1)


def _own_machine() -> None:
    """Raises limits of the whole machine, which a guest has to itself, so that packets wait only where the scenario
    says."""
    # All hosts of the scenario share this machine's memory. Under memory pressure TCP would offer windows of four
    # segments, which is not a property of the path.
    Path("/proc/sys/net/ipv4/tcp_mem").write_text(_NO_PRESSURE)
    # The last two: each end of a connection is a thread with its own stack.
    for name in ("net/core/netdev_max_backlog", "net/core/netdev_budget", "kernel/threads-max", "vm/max_map_count"):
        Path("/proc/sys", name).write_text("1000000")
    processes = Path("/proc/sys/kernel/pid_max")
    try:
        processes.write_text("1000000")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # The largest that Linux 5.10 allows in a guest.
        processes.write_text("32768")


if __name__ == "__main__":
    sys.exit(series([Path(one) for one in sys.argv[1:]]))
