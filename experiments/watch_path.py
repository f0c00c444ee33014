"""A path between two namespaces, for watch_truth.py: it delays, paces and drops packets, and knows what it did.

Two veth pairs end at packet sockets of one process, which carries frames between them. Nothing of the kernel's netem is
needed. In a guest, whose time is virtual, carrying takes none.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from sawtooth.testbed.apply import entered

NEAR, FAR = "10.77.0.1", "10.77.0.2"
PORT = 7777
_HARDWARE = {NEAR: "02:00:00:00:00:01", FAR: "02:00:00:00:00:02"}
_SIOCETHTOOL, _IPV4 = 0x8946, b"\x08\x00"
_OFFLOADS = {"transmit checksum": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
_FRAMES = 64
"""The most frames taken from one device at once."""


@dataclass(frozen=True)
class Situation:
    """A path, a sender and its application. ``limit`` is what limits it, by construction; ``expected`` may be two if
    the control itself decides.
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
    seed: int = 1


@dataclass
class RoundTrips:
    """RTT samples of segments sent once, from departure at the sender until an acknowledgement (or SACK) arrived
    there.
    """

    waiting: dict[int, float] = field(default_factory=dict)
    """The departure of each segment, by the number after its last byte; NaN for retransmissions."""
    ends: list[int] = field(default_factory=list)
    samples: list[tuple[float, float, float]] = field(default_factory=list)
    """Times, and RTTs of the oldest and the newest segment that an acknowledgement is the first to cover. Linux
    smooths the former, including delayed acknowledgements, and keeps the minimum of the latter.
    """
    base: int | None = None
    """The number that all others are relative to."""

    def left(self, number: int, now: float) -> None:
        """Records a segment of data, or a SYN, by the number after it."""
        self.base = number - 65536 if self.base is None else self.base
        end = self._from_base(number)
        if end in self.waiting:
            self.waiting[end] = float("nan")
            return
        self.waiting[end] = now
        insort(self.ends, end)

    def acknowledged(self, upto: int, blocks: list[tuple[int, int]], now: float) -> None:
        """Takes a sample if this acknowledges something for the first time that was sent once."""
        if self.base is None:
            return
        found = self.ends[: bisect_left(self.ends, self._from_base(upto) + 1)]
        for block in blocks:
            low, high = map(self._from_base, block)
            found += self.ends[bisect_left(self.ends, low + 1) : bisect_left(self.ends, high + 1)]
        left = [self.waiting.pop(end, float("nan")) for end in found]
        gone = set(found)
        if gone:
            self.ends = [end for end in self.ends if end not in gone]
        times = [one for one in left if one == one]
        if times:
            self.samples.append((now, now - min(times), now - max(times)))

    def smoothed(self, until: float) -> float:
        """As in RFC 6298, with an eighth of each new sample."""
        found = float("nan")
        for at, trip, _ in self.samples:
            if at <= until:
                found = trip if found != found else found + (trip - found) / 8
        return found

    def mean_smoothed(self, begin: float, end: float) -> float:
        """The mean of the smoothed RTT over the time."""
        total, now, at = 0.0, self.smoothed(begin), begin
        for then, trip, _ in self.samples:
            if begin < then <= end:
                total, now, at = total + now * (then - at), now + (trip - now) / 8, then
        return (total + now * (end - at)) / (end - begin)

    def _from_base(self, number: int) -> int:
        return (number - (self.base or 0)) & 0xFFFFFFFF


@dataclass
class Carrier:
    """Carries packets until it is told to end, and counts data segments that entered and that were dropped."""

    near: socket.socket
    far: socket.socket
    situation: Situation
    sent: int = 0
    dropped: int = 0
    overflowed: int = 0
    busy_s: float = 0.0
    """The time that the bottleneck has spent sending."""
    trips: RoundTrips = field(default_factory=RoundTrips)
    stopped: bool = False

    def run(self) -> None:
        """Runs in a separate thread."""
        one, rng = self.situation, random.Random(f"{self.situation.name} {self.situation.seed}")
        due: list[tuple[float, int, socket.socket, bytes]] = []
        count, free_s = 0, 0.0
        half = one.rtt_s / 2
        while not self.stopped:
            wait = max(0.0, min(0.05, due[0][0] - time.monotonic())) if due else 0.05
            ready, _, _ = select.select([self.near, self.far], [], [], wait)
            now = time.monotonic()
            for source in ready:
                for frame in frames(source):
                    at = now + half
                    if source is self.near:
                        end, data = _segment(frame)
                        if end is not None:
                            self.trips.left(end, now)
                        if data:
                            self.sent += 1
                            if rng.random() < one.loss:
                                self.dropped += 1
                                continue
                        if one.rate_bps:
                            length_s = len(frame) * 8 / one.rate_bps
                            free_s = max(free_s, now)
                            if (free_s - now) / length_s > one.queue_packets:
                                self.overflowed += 1
                                continue
                            free_s += length_s
                            self.busy_s += length_s
                            at = free_s + half
                    count += 1
                    heapq.heappush(due, (at, count, self.far if source is self.near else self.near, frame))
            now = time.monotonic()
            while due and due[0][0] <= now:
                _, _, target, frame = heapq.heappop(due)
                if target is self.near:
                    self._told(frame)
                with contextlib.suppress(BlockingIOError):
                    target.send(frame)

    def _told(self, frame: bytes) -> None:
        if frame[12:14] == _IPV4 and frame[23] == 6:
            begin = 14 + (frame[14] & 15) * 4
            upto = int.from_bytes(frame[begin + 8 : begin + 12], "big")
            self.trips.acknowledged(
                upto, _blocks(frame[begin + 20 : begin + (frame[begin + 12] >> 4) * 4]), time.monotonic()
            )


def frames(source: socket.socket) -> Iterator[bytes]:
    """Received frames, except those that this host itself sent there."""
    for _ in range(_FRAMES):
        try:
            frame, about = source.recvfrom(4096)
        except BlockingIOError:
            return
        if about[2] != socket.PACKET_OUTGOING:  # type: ignore[attr-defined]
            yield frame


def _segment(frame: bytes) -> tuple[int | None, bool]:
    """The number after the last byte of its data, or after a SYN, if it has either; and whether it has data."""
    if frame[12:14] != _IPV4 or frame[23] != 6:
        return None, False
    begin = 14 + (frame[14] & 15) * 4
    data = 14 + int.from_bytes(frame[16:18], "big") - begin - (frame[begin + 12] >> 4) * 4
    length = data + (frame[begin + 13] >> 1 & 1)
    end = (int.from_bytes(frame[begin + 4 : begin + 8], "big") + length) & 0xFFFFFFFF
    return (end if length > 0 else None), data > 0


def _blocks(options: bytes) -> list[tuple[int, int]]:
    """Of SACK."""
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if options[at] == 5:
            return [struct.unpack_from(">II", options, at + 2 + 8 * n) for n in range((options[at + 1] - 2) // 8)]
        at += max(2, options[at + 1])
    return []


@contextlib.contextmanager
def carried(one: Situation) -> Iterator[tuple[list[str], Carrier]]:
    """Two namespaces with the path and its carrier between them; all are removed afterward."""
    names = [f"swt-{os.getpid()}-{end}" for end in ("a", "b", "path")]
    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True)
    ends: list[socket.socket] = []
    try:
        for name, own, peer in zip(names[:2], (NEAR, FAR), (FAR, NEAR), strict=True):
            here, there = f"v{len(ends)}", f"p{len(ends)}"
            script = f"ip link add {here} netns {name} type veth peer name {there} netns {names[2]}"
            subprocess.run(["sh", "-c", script], check=True)
            script = f"ip addr add {own} peer {peer} dev {here}; "
            script += f"ip link set {here} address {_HARDWARE[own]} txqueuelen 10000 up; "
            # Static neighbor entries: an address request could be lost on the path, and then nothing is sent for a
            # second.
            script += f"ip neighbour add {peer} lladdr {_HARDWARE[peer]} dev {here} nud permanent"
            subprocess.run(["ip", "netns", "exec", name, "sh", "-c", script], check=True)
            subprocess.run(["ip", "-n", names[2], "link", "set", there, "up"], check=True)
            with entered(name):
                _plain(here)
            with entered(names[2]):
                _plain(there)
                opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(3))
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
                opened.bind((there, 3))
                ends.append(opened)
        path = Carrier(ends[0], ends[1], one)
        carrying = threading.Thread(target=path.run)
        carrying.start()
        try:
            yield names, path
        finally:
            path.stopped = True
            carrying.join()
    finally:
        for opened in ends:
            opened.close()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def _plain(device: str) -> None:
    """Frames as on a wire, with their checksums."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _OFFLOADS.values():
            wanted = array.array("B", struct.pack("=II", command, 0))
            with contextlib.suppress(OSError):
                fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", device.encode(), wanted.buffer_info()[0]))


def transfer(one: Situation, names: list[str]) -> None:
    """Sender and receiver, in a child process, until it is killed."""
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
