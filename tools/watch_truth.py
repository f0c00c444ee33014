"""How near `sawtooth watch` is to the truth: transfers between namespaces, a path of known delay, rate and loss.

    sudo .venv/bin/python tools/watch_truth.py --out results/watch-truth.csv

The path is a process of this script that carries packets between two TUN devices: it knows what it dropped, and holds
each packet for as long as it is told to. Nothing of the kernel's netem is needed. Every situation runs some seconds in
real time; `watch` looks every second. Needs root, and /dev/net/tun.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fcntl
import heapq
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from sawtooth.testbed.apply import entered
from sawtooth.watch import Connections, Watcher

NEAR, FAR = "10.77.0.1", "10.77.0.2"
PORT = 7777
TUNSETIFF = 0x400454CA
FRAME = 14
"""Bytes of Ethernet's header, which the rate counts and a TUN device has not."""


@dataclass(frozen=True)
class Situation:
    """A path, a sender and its application. ``limit`` is what holds it back, by construction; ``expected`` may be two
    where the control itself decides.
    """

    name: str
    cc: str
    limit: tuple[str, ...]
    rtt_s: float = 0.02
    rate_bps: float = 0.0
    queue_packets: int = 1000
    loss: float = 0.0
    app_bps: float = 0.0
    receive_buffer: int = 0
    send_buffer: int = 0
    pacing_bps: float = 0.0


def situations() -> list[Situation]:
    """Forty of them."""
    found = []
    for cc in ("cubic", "reno", "bbr"):
        for rtt in (0.02, 0.06):
            lossy = ("path",) if cc == "bbr" else ("congestion window",)
            for loss in (0.01, 0.03):
                # BBR needs a bottleneck, or it takes this script's process for one.
                rate = 10e6 if cc == "bbr" else 0.0
                found.append(Situation(f"loss-{cc}-{rtt}-{loss}", cc, lossy, rtt, rate, 200, loss))
            found.append(Situation(f"path-{cc}-{rtt}", cc, ("path",), rtt, 8e6, int(2 * 8e6 * rtt / 12000) + 4))
            found.append(Situation(f"app-{cc}-{rtt}", cc, ("application",), rtt, app_bps=2e6))
            found.append(Situation(f"rwnd-{cc}-{rtt}", cc, ("receive window",), rtt, receive_buffer=16384))
        found.append(Situation(f"applossy-{cc}", cc, ("application",), 0.02, loss=0.01, app_bps=1e6))
    for cc in ("cubic", "reno"):
        found.append(Situation(f"sndbuf-{cc}", cc, ("send buffer",), 0.04, send_buffer=16384))
        found.append(Situation(f"pacing-{cc}", cc, ("pacing",), 0.02, pacing_bps=4e6))
    found.append(Situation("pathlossy-cubic", "cubic", ("path", "congestion window"), 0.02, 8e6, 60, 0.001))
    found.append(Situation("pathlossy-reno", "reno", ("path", "congestion window"), 0.02, 8e6, 60, 0.001))
    found.append(Situation("pacing-bbr", "bbr", ("pacing",), 0.02, pacing_bps=4e6))
    return found


@dataclass
class Carrier:
    """Carries packets until it is told to end, and counts data segments that went in and were dropped at random."""

    near: int
    far: int
    situation: Situation
    sent: int = 0
    dropped: int = 0
    overflowed: int = 0
    least_s: dict[int, float] = field(default_factory=dict)
    """The shortest that a packet was under way, by the device that it came from."""
    stopped: bool = False

    def run(self) -> None:
        """In a thread of its own."""
        one, rng = self.situation, random.Random(self.situation.name)
        due: list[tuple[float, int, int, bytes, float]] = []
        count, free_s = 0, 0.0
        half = one.rtt_s / 2
        while not self.stopped:
            wait = max(0.0, min(0.05, due[0][0] - time.monotonic())) if due else 0.05
            ready, _, _ = select.select([self.near, self.far], [], [], wait)
            now = time.monotonic()
            for source in ready:
                with contextlib.suppress(BlockingIOError):
                    for _ in range(64):
                        packet = os.read(source, 2048)
                        if packet[0] >> 4 != 4 or packet[9] != 6:
                            continue
                        at = now + half
                        if source == self.near:
                            header = (packet[0] & 15) * 4
                            data = len(packet) - header - (packet[header + 12] >> 4) * 4
                            if data > 0:
                                self.sent += 1
                                if rng.random() < one.loss:
                                    self.dropped += 1
                                    continue
                            if one.rate_bps:
                                length_s = (len(packet) + FRAME) * 8 / one.rate_bps
                                free_s = max(free_s, now)
                                if (free_s - now) / length_s > one.queue_packets:
                                    self.overflowed += 1
                                    continue
                                free_s += length_s
                                at = free_s + half
                        count += 1
                        heapq.heappush(due, (at, count, self.far if source == self.near else self.near, packet, now))
            now = time.monotonic()
            while due and due[0][0] <= now:
                _, _, target, packet, came = heapq.heappop(due)
                source = self.near if target == self.far else self.far
                self.least_s[source] = min(self.least_s.get(source, 9.0), time.monotonic() - came)
                with contextlib.suppress(BlockingIOError):
                    os.write(target, packet)


def tun(namespace: str, name: str) -> int:
    """A TUN device in a namespace, and the file that its packets come by."""
    with entered(namespace):
        opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(opened, TUNSETIFF, struct.pack("16sH22x", name.encode(), 0x0001 | 0x1000))
    return opened


def measure(one: Situation, seconds: float) -> dict[str, object]:
    """Sets up, looks, takes down; a row of the table."""
    names = [f"swt-{os.getpid()}-{end}" for end in ("a", "b")]
    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True)
    files: list[int] = []
    path = None
    try:
        for name, device, own, peer in zip(names, ("t0", "t1"), (NEAR, FAR), (FAR, NEAR), strict=True):
            files.append(tun(name, device))
            script = f"ip addr add {own} peer {peer} dev {device}; ip link set {device} mtu 1500 up; ip link set lo up"
            script += f"; ip link set {device} txqueuelen 10000"
            subprocess.run(["ip", "netns", "exec", name, "sh", "-c", script], check=True)
        path = Carrier(files[0], files[1], one)
        carrying = threading.Thread(target=path.run)
        carrying.start()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                transfer(one, names)
            finally:
                os._exit(0)
        try:
            row = observe(one, names[0], path, seconds)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            path.stopped = True
            carrying.join()
    finally:
        for opened in files:
            os.close(opened)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)
    return row


def transfer(one: Situation, names: list[str]) -> None:
    """Sender and receiver, in the child, until it is killed."""
    with entered(names[1]):
        server = socket.socket()
        if one.receive_buffer:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, one.receive_buffer)
        server.bind((FAR, PORT))
        server.listen()
    with entered(names[0]):
        sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, one.cc.encode())
    if one.send_buffer:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, one.send_buffer)
    if one.pacing_bps:
        sender.setsockopt(socket.SOL_SOCKET, 47, struct.pack("=Q", int(one.pacing_bps / 8)))
    sender.connect((FAR, PORT))
    far, _ = server.accept()
    threading.Thread(target=lambda: [None for _ in iter(lambda: far.recv(1 << 18), b"")], daemon=True).start()
    block, begun, written = bytes(10_000 if one.app_bps else 65_536), time.monotonic(), 0
    while True:
        sender.sendall(block)
        written += len(block)
        if one.app_bps:
            time.sleep(max(0.0, begun + written * 8 / one.app_bps - time.monotonic()))


def observe(one: Situation, namespace: str, path: Carrier, seconds: float) -> dict[str, object]:
    """What watch says after ``seconds`` with a window of all but the first three, and what the path did meanwhile."""
    looks = int(seconds) - 3
    with Connections(namespace) as source:
        watcher = Watcher(source, filter=f"dport = :{PORT}", looks=looks)
        time.sleep(3)
        before = path.sent, path.dropped, path.overflowed
        begun = time.monotonic()
        watcher.look()
        for at in range(looks):
            time.sleep(max(0.0, begun + at + 1 - time.monotonic()))
            seen = watcher.look()
        after = path.sent, path.dropped, path.overflowed
        sent, dropped, overflowed = (now - then for now, then in zip(after, before, strict=True))
    (found,) = seen.first()
    least_s = sum(path.least_s.values())
    truth = (dropped + overflowed) / max(1, sent)
    return {
        "situation": one.name,
        "limit": found.limit,
        "limit_right": int(found.limit in one.limit),
        "rtt_min_s": round(found.rtt_min_s or 0, 6),
        "rtt_true_s": round(least_s, 6),
        "rtt_error": round((found.rtt_min_s or 0) / least_s - 1, 4),
        "loss": round(found.loss or 0, 6),
        "loss_low": round(found.loss_low or 0, 6),
        "loss_high": round(found.loss_high or 0, 6),
        "loss_true": round(truth, 6),
        "loss_right": int(
            abs((found.loss or 0) - truth) <= 0.2 * truth or (found.loss_low or 0) <= truth <= (found.loss_high or 0)
        ),
        "segments": found.segments,
        "goodput_bps": round(found.mean_bps or 0),
        "why": found.why,
        "connection": json.dumps(found.describe()),
    }


def main() -> None:
    """The table."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--seconds", type=float, default=11.0)
    asked.add_argument("--only", default="", help="situations with this in their name")
    given = asked.parse_args()
    rows = []
    for one in situations():
        if given.only not in one.name:
            continue
        row = measure(one, given.seconds)
        rows.append(row)
        print({name: row[name] for name in list(row)[:14]}, file=sys.stderr, flush=True)
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    count = len(rows)
    print(f"{count} situations")
    print(f"limit right: {sum(int(str(row['limit_right'])) for row in rows)}")
    print(f"rtt within 2%: {sum(abs(float(str(row['rtt_error']))) <= 0.02 for row in rows)}")
    print(f"loss right: {sum(int(str(row['loss_right'])) for row in rows)}")


if __name__ == "__main__":
    main()
