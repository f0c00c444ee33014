"""What a sample of `sawtooth watch` takes: processor time, with so many real sockets on a loopback of their own.

sudo .venv/bin/python bench/watch.py [SOCKETS]      # 20000; needs half as many open files
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from pyroute2 import DiagSocket

from sawtooth.testbed.apply import entered
from sawtooth.watch import Connections, Watcher
from sawtooth.watch.watcher import described

SAMPLES = 30
PORTS = range(9000, 9004)
"""One for each 5,000 connections, because the kernel would run out of port numbers for the other end."""
LONGEST_S = 300


def hold(namespace: str, pairs: int) -> None:
    """In a child process: the connecting ends, a seventh of which have sent something."""
    with entered(namespace):
        held = [socket.socket() for _ in range(pairs)]
    for at, one in enumerate(held):
        one.connect(("127.0.0.1", PORTS[at % len(PORTS)]))
        if at % 7 == 0:
            one.send(bytes(500))
    time.sleep(LONGEST_S)


def measure(namespace: str) -> None:
    """Prints a line for each measurement."""
    with Connections(namespace) as source:
        watcher = Watcher(source)
        # Excludes what is imported and read only once.
        watcher.sample().first()
        timed("a sample as columns", source.sample)
        timed("a sample, what changed, what limits", watcher.sample)
        timed("the same, and 50 of them as values", lambda: watcher.sample().first("goodput", 50))
        seen = watcher.sample()
        timed("JSON of all", lambda: json.dumps(described(seen, seen.first())), 3)
    with entered(namespace), DiagSocket() as asked:
        asked.bind()
        kinds = {"family": socket.AF_INET, "extensions": 0x4F}
        timed("pyroute2's sample at them", lambda: list(asked.get_sock_stats(**kinds)), 3)
    with open("/proc/self/statm", encoding="ascii") as file:
        print(f"memory: {int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE') / 1e6:.0f} MB")


def timed(name: str, what: Callable[[], object], times: int = SAMPLES) -> None:
    begun = time.process_time()
    for _ in range(times):
        what()
    print(f"{name}: {(time.process_time() - begun) / times * 1e3:.1f} ms")


def main() -> None:
    """Sets up, measures, takes down."""
    pairs = int(sys.argv[1] if len(sys.argv) > 1 else "20000") // 2
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    namespace = f"sawtooth-bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    child = 0
    try:
        subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
        with entered(namespace):
            servers = [socket.create_server(("127.0.0.1", port), backlog=4096) for port in PORTS]
        child = os.fork()
        if child == 0:
            try:
                hold(namespace, pairs)
            finally:
                os._exit(0)
        held = [servers[at % len(PORTS)].accept()[0] for at in range(pairs)]
        print(f"{2 * len(held)} sockets")
        measure(namespace)
    finally:
        if child:
            os.kill(child, 9)
            os.waitpid(child, 0)
        subprocess.run(["ip", "netns", "del", namespace], check=False)


if __name__ == "__main__":
    main()
