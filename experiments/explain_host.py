"""Paths of this host's own kernel for the trial of ``explain``: its TCP, over a path that is emulated in user space.

    python experiments/explain_host.py measure DIRECTORY --paths 60 --first 1800000     # as root
    python experiments/explain_trial.py judge DIRECTORY --label NAME

For hosts whose kernel lacks netem. Two network namespaces have a tun device each. A process with real-time priority
takes the packets of one, queues, polices, loses and delays them, and gives them to the other. Drawn are the paths of
``explain_corpus.py`` that have tail drop, CoDel or a policer, at most ``FASTEST_BPS``, and no BBR version 3. The queue
is worked out from when packets came, so a late look at a device changes it little. ``path.json`` has how late packets
were given on: median, 99th percentile and most, in s.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from explain_corpus import drawn, each
from explain_trial import CONTROLS, FINISHING_S, IPERF3, OTHER_SEED, PORT, short_case

from sawtooth.scenario import Rate, Size, Span

FASTEST_BPS = 20e6
EMULATED = "emulated.json"
OWN = 5201
ENDS = {"sender": "10.0.0.1", "receiver": "10.0.0.5"}
SNAPLEN = 128
ETHERNET = 14
TARGET_S, INTERVAL_S = 0.005, 0.1
"""CoDel's defaults (RFC 8289)."""
SETTINGS = ("net.ipv4.tcp_no_metrics_save=1", "net.ipv4.tcp_wmem=4096 16384 67108864")
STARTS_S = 0.5
REAL_TIME = ("chrt", "-r", "1")
Packet = tuple[float, bytes]


class Bottleneck:
    """A transmitter with its queue, a policer and a loss model, as in the topology ``path``. Times in s."""

    def __init__(self, fields: dict[str, Any], seed: int) -> None:
        path, self.rng = fields["path"], random.Random(seed)
        self.rate = Rate.parse(path["rate"]).bps
        queue = path["queue"]
        self.managed = isinstance(queue, dict)
        self.limit = int((queue["limit"] if self.managed else queue).split()[0])
        self.waiting: deque[Packet] = deque()
        self.free = 0.0
        police = path.get("policer")
        self.police = Rate.parse(police["rate"]).bps if police else 0
        self.burst = self.tokens = float(Size.parse(police["burst"]).bytes) if police else 0.0
        self.filled = 0.0
        self.loss = path.get("loss", "0%")
        self.is_bad = False
        self.above = self.drop_next = 0.0
        self.count = self.last_count = 0
        self.dropping = False
        self.counts = {"drops": 0.0, "early": 0.0, "policed": 0.0, "lost": 0.0, "waited_s": 0.0}

    def arrives(self, now: float, packet: bytes) -> Iterator[Packet]:
        """What leaves until now, with its time."""
        yield from self.leaves(now)
        if len(self.waiting) >= self.limit:
            self.counts["drops"] += 1
            return
        self.waiting.append((now, packet))
        yield from self.leaves(now)

    def leaves(self, now: float) -> Iterator[Packet]:
        while self.waiting and max(self.free, self.waiting[0][0]) <= now:
            begins = max(self.free, self.waiting[0][0])
            chosen = self._codel(begins) if self.managed else self.waiting.popleft()
            if chosen is None:
                continue
            self.counts["waited_s"] = max(self.counts["waited_s"], begins - chosen[0])
            self.free = begins + (len(chosen[1]) + ETHERNET) * 8 / self.rate
            if self._passes(self.free, len(chosen[1]) + ETHERNET) and not self._loses():
                yield self.free, chosen[1]

    def _pop(self, now: float) -> tuple[Packet | None, bool]:
        if not self.waiting:
            self.above = 0.0
            return None, False
        first = self.waiting.popleft()
        if now - first[0] < TARGET_S or len(self.waiting) <= 1:
            self.above = 0.0
            return first, False
        if not self.above:
            self.above = now + INTERVAL_S
        return first, now > self.above

    def _codel(self, now: float) -> Packet | None:
        first, late = self._pop(now)
        if self.dropping:
            self.dropping = late
            while first is not None and self.dropping and now >= self.drop_next:
                self.count += 1
                self._early()
                first, late = self._pop(now)
                self.dropping = late
                if late:
                    self.drop_next += INTERVAL_S / math.sqrt(self.count)
        elif first is not None and late:
            self._early()
            first, _ = self._pop(now)
            self.dropping = first is not None
            gained = self.count - self.last_count
            self.count = gained if gained > 1 and now - self.drop_next < 16 * INTERVAL_S else 1
            self.last_count = self.count
            self.drop_next = now + INTERVAL_S / math.sqrt(self.count)
        return first

    def _early(self) -> None:
        self.counts["drops"] += 1
        self.counts["early"] += 1

    def _passes(self, now: float, size: int) -> bool:
        if not self.police:
            return True
        self.tokens = min(self.burst, self.tokens + (now - self.filled) * self.police / 8)
        self.filled = now
        if size > self.tokens:
            self.counts["policed"] += 1
            return False
        self.tokens -= size
        return True

    def _loses(self) -> bool:
        if isinstance(self.loss, dict):
            # Gilbert's model, by its mean loss and the mean length of a burst.
            mean, length = float(self.loss["mean"].rstrip("%")) / 100, float(self.loss["burst"].split()[0])
            leaves = 1 / length if self.is_bad else mean / (1 - mean) / length
            lost = self.is_bad
            self.is_bad ^= self.rng.random() < leaves
        else:
            lost = self.rng.random() < float(self.loss.rstrip("%")) / 100
        self.counts["lost"] += lost
        return lost


def emulate(tuns: tuple[int, int], fields: dict[str, Any], seed: int, until: float, result: Path) -> None:
    """In a process of its own, until that time of the monotonic clock."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    bottleneck = Bottleneck(fields, seed)
    half = Span.parse(fields["path"]["rtt"]).seconds / 2
    sender, receiver = tuns
    # To the receiver, and to the sender.
    moving: tuple[deque[Packet], deque[Packet]] = (deque(), deque())
    late: list[float] = []
    captures = {name: [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 101)] for name in ENDS}
    ahead = time.time_ns() - time.monotonic_ns()

    def seen(end: str, at: float, packet: bytes) -> None:
        when, kept = int(at * 1e9) + ahead, packet[:SNAPLEN]
        head = struct.pack("<IIII", when // 10**9, when % 10**9, len(kept), len(packet))
        captures[end].append(head + kept)

    while (now := time.monotonic()) < until:
        moving[0].extend((at + half, packet) for at, packet in bottleneck.leaves(now))
        for queue, tun, end in ((moving[0], receiver, "receiver"), (moving[1], sender, "sender")):
            while queue and queue[0][0] <= now:
                due, packet = queue.popleft()
                late.append(time.monotonic() - due)
                seen(end, due + late[-1], packet)
                os.write(tun, packet)
        nexts = [queue[0][0] for queue in moving if queue]
        nexts += [bottleneck.free] if bottleneck.waiting else []
        ready, _, _ = select.select(tuns, (), (), max(0.0, min([*nexts, now + 0.05]) - time.monotonic()))
        for tun in ready:
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                continue
            if packet[0] >> 4 != 4:
                continue
            at = time.monotonic()
            seen("sender" if tun == sender else "receiver", at, packet)
            if tun == sender:
                moving[0].extend((left + half, one) for left, one in bottleneck.arrives(at, packet))
            else:
                moving[1].append((at + half, packet))
    for end, records in captures.items():
        (result.parent / f"capture-{end}.pcap").write_bytes(b"".join(records))
    result.write_text(json.dumps({"counts": bottleneck.counts, "late_s": late}))


def send(asked: dict[str, Any]) -> None:
    """In the sender's namespace: one thread for each connection, until it is killed."""
    for at, flow in enumerate(asked["flows"]):
        for _ in range(flow.get("count", 1)):
            threading.Thread(target=_send, args=(OWN + at, flow, asked["begin"]), daemon=True).start()
    time.sleep(max(0.0, asked["until"] - time.monotonic()) + 1)


def _send(port: int, flow: dict[str, Any], begin: float) -> None:
    source = flow.get("source")
    with socket.socket() as opened:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["cc"].encode())
        time.sleep(max(0.0, begin - time.monotonic()))
        opened.connect((ENDS["receiver"], port))
        if source is None:
            while True:
                opened.sendall(bytes(1 << 17))
        on, off = (Span.parse(source[name]).seconds if name in source else None for name in ("on", "off"))
        bytes_per_s, step = Rate.parse(source["rate"]).bps / 8, 0.01
        due, sent, at = time.monotonic(), 0.0, 0.0
        while True:
            if on is None or off is None or at % (on + off) < on:
                opened.sendall(bytes(int(sent + bytes_per_s * step) - int(sent)))
                sent += bytes_per_s * step
            at += step
            time.sleep(max(0.0, due + at - time.monotonic()))


def receive(asked: dict[str, Any]) -> None:
    """In the receiver's namespace: prints how many bytes each port got between the times of the monotonic clock."""
    got = [0] * len(asked["flows"])

    def take(at: int, opened: socket.socket) -> None:
        while data := opened.recv(1 << 17):
            if time.monotonic() < asked["until"]:
                got[at] += len(data)

    def accept(at: int, listening: socket.socket) -> None:
        while True:
            threading.Thread(target=take, args=(at, listening.accept()[0]), daemon=True).start()

    for at in range(len(got)):
        listening = socket.create_server((ENDS["receiver"], OWN + at))
        threading.Thread(target=accept, args=(at, listening), daemon=True).start()
    print("ready", flush=True)
    time.sleep(max(0.0, asked["until"] - time.monotonic()) + 0.1)
    print(json.dumps(got), flush=True)
    os._exit(0)


@contextmanager
def devices(name: str) -> Iterator[tuple[dict[str, str], tuple[int, int]]]:
    """Two namespaces, and their tun devices as descriptors."""
    spaces = {end: f"explain-{name}-{end}" for end in ENDS}
    tuns = []
    try:
        for (end, space), peer in zip(spaces.items(), reversed(ENDS.values()), strict=True):
            device = f"ex{name}{end[0]}"[-15:]
            tuns.append(os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK))
            fcntl.ioctl(tuns[-1], 0x400454CA, struct.pack("16sH22x", device.encode(), 0x1001))
            _run("ip", "netns", "add", space)
            _run("ip", "link", "set", device, "netns", space, "txqueuelen", "10000")
            _run("ip", "-n", space, "addr", "add", ENDS[end], "peer", peer, "dev", device)
            for one in (device, "lo"):
                _run("ip", "-n", space, "link", "set", one, "up")
            _run("ip", "netns", "exec", space, "sysctl", "-qw", *SETTINGS)
        yield spaces, (tuns[0], tuns[1])
    finally:
        for tun in tuns:
            os.close(tun)
        for space in spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, timeout=10, check=False)


def _run(*command: str) -> bytes:
    return subprocess.run(command, check=True, capture_output=True, timeout=10).stdout


def run(fields: dict[str, Any], seed: int, seconds: float, home: Path, *, by_iperf3: str = "") -> dict[str, Any]:
    """One run of the path: what was counted, the goodput of each flow, and what ss or iperf3 printed."""
    home.mkdir(parents=True, exist_ok=True)
    with devices(str(seed)) as (spaces, tuns):
        began: list[subprocess.Popen[bytes]] = []

        def start(end: str, *command: str) -> subprocess.Popen[bytes]:
            wanted = ("ip", "netns", "exec", spaces[end], *REAL_TIME, *command)
            began.append(subprocess.Popen(wanted, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            return began[-1]

        begin = time.monotonic() + STARTS_S + 1
        until = begin + seconds
        flows = fields["flows"][1:] if by_iperf3 else fields["flows"]
        asked = json.dumps({"flows": flows, "begin": begin, "until": until})
        path = get_context("fork").Process(target=emulate, args=(tuns, fields, seed, until, home / EMULATED))
        path.start()
        try:
            own = (sys.executable, __file__)
            receiver = start("receiver", *own, "receive", asked)
            assert receiver.stdout is not None
            receiver.stdout.readline()
            start("sender", *own, "send", asked)
            told: dict[str, Any] = {}
            if by_iperf3:
                start("receiver", "iperf3", "-p", str(PORT), "-s", "-1")
                time.sleep(max(0.0, begin - time.monotonic()))
                command = f"iperf3 -p {PORT} -c {ENDS['receiver']} -t {seconds - FINISHING_S:g} -C {by_iperf3} -J"
                told["printed"] = start("sender", *command.split()).communicate(timeout=seconds + 5)[0]
            else:
                told["printed"] = _looks(spaces["sender"], begin, until)
            path.join(seconds + 10)
            told["bytes"] = json.loads(receiver.stdout.readline())
        finally:
            for one in began:
                one.kill()
                one.wait(10)
            path.kill()
            path.join(10)
    emulated: dict[str, Any] = json.loads((home / EMULATED).read_text())
    (home / EMULATED).unlink()
    return told | emulated


def _looks(space: str, begin: float, until: float) -> bytes:
    """What ss prints once a second."""
    found, at = [], begin + 2
    while at < until - 0.2:
        time.sleep(max(0.0, at - time.monotonic()))
        found.append(_run("ip", "netns", "exec", space, "ss", "-tin", "state", "established"))
        at += 1
    return b"\n".join(found)


def possible(case: dict[str, Any]) -> bool:
    truth, queue = case["truth"], case["scenario"]["path"]["queue"]
    # One flow in fq_codel is one in CoDel.
    alone = truth["cross"] == "none" or truth["kind"] != "codel" or queue["kind"] == "codel"
    return truth["kind"] in ("tail drop", "codel", "policer") and alone and truth["rate_bps"] <= FASTEST_BPS


def measure(task: tuple[int, str]) -> str:
    number, directory = task
    target = Path(directory) / f"{number:06}"
    if target.exists():
        return ""
    case, seconds = short_case(number)
    fields, truth = case["scenario"], case["truth"]
    part, aside = target.with_suffix(".part"), target.with_suffix(".aside")
    for one in (part, aside):
        shutil.rmtree(one, ignore_errors=True)
    try:
        seen = run(fields, number, seconds, part)
        (part / "ss.txt").write_bytes(seen["printed"])
        told = run(fields, number, seconds + FINISHING_S, aside, by_iperf3=truth["cc"])
        (part / IPERF3).write_bytes(told["printed"])
        bps = [one * 8 / seconds for one in seen["bytes"]]
        truth |= seen["counts"] | {"own_bps": bps[0], "others_bps": sum(bps[1:])}
        case["goodput_bps"] = {}
        late = seen["late_s"] + told["late_s"]
        for cc in CONTROLS:
            flows = [fields["flows"][0] | {"cc": cc}, *fields["flows"][1:]]
            again = run(fields | {"flows": flows}, number + OTHER_SEED, seconds, aside)
            case["goodput_bps"][cc] = again["bytes"][0] * 8 / seconds
            late += again["late_s"]
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        shutil.rmtree(part, ignore_errors=True)
        return f"{number}: {error}"
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    case["late_s"] = [*np.quantile(late, (0.5, 0.99)).tolist(), max(late)]
    (part / "path.json").write_text(json.dumps(case))
    part.rename(target)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("directory", type=Path)
    measuring.add_argument("--paths", type=int, default=60, help="how many paths are measured")
    measuring.add_argument("--first", type=int, required=True, help="number from which on paths are drawn")
    measuring.add_argument("--workers", type=int, default=2, help="paths that run at a time")
    for name in ("send", "receive"):
        commands.add_parser(name, help="used inside the namespaces").add_argument("asked", type=json.loads)
    options = parser.parse_args()
    if options.command != "measure":
        {"send": send, "receive": receive}[options.command](options.asked)
        return
    options.directory.mkdir(parents=True, exist_ok=True)
    numbers: list[int] = []
    number = options.first
    while len(numbers) < options.paths:
        numbers += [number] if possible(drawn(number)) else []
        number += 1
    each(measure, [(one, str(options.directory)) for one in numbers], options.workers)


if __name__ == "__main__":
    main()
