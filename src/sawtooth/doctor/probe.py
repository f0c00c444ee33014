"""Tests features of this host's kernel in a temporary network namespace, which ends with this process.

Run as a program with a JSON list: the paths of ip, tc and nft (null: missing), and the qdiscs to test. It prints JSON:
true for each feature, or the reason why it is missing. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

QDISCS = {
    "netem": "root netem loss 1%",
    "tbf": "root tbf rate 1gbit burst 64kb latency 10ms",
    "htb": "root htb default 1",
    "fq": "root fq",
    "fq_codel": "root fq_codel",
    "codel": "root codel",
    "pie": "root pie",
    "red": "root red limit 400000 min 30000 max 90000 avpkt 1000 bandwidth 100mbit",
    "cake": "root cake bandwidth 100mbit",
    "sfq": "root sfq",
    "prio": "root prio",
    "ingress": "ingress",
}
LINKS = {
    "veth": "add v0 type veth peer name v1",
    "vlan": "add link v0 name v0.2 type vlan id 2",
    "dummy": "add d0 type dummy",
    "ifb": "add i0 type ifb",
    "bridge": "add b0 type bridge",
}
NFT = """table ip t {
  chain c {
    type filter hook forward priority 0;
    numgen random mod 1000 < 10 counter drop
  }
}
"""

NO_NAMESPACE = "cannot be tried, no network namespace"

_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000


def enter() -> str:
    """Move this process into a new network namespace. Returns the reason if this fails, otherwise an empty string."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    if libc.unshare(flags) == 0:
        return ""
    return f"{NO_NAMESPACE}: {os.strerror(ctypes.get_errno())}"


def attempt(command: list[str], given: str = "") -> bool | str:
    """True if the command succeeds, otherwise its error message."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return True
    said = done.stderr.strip().splitlines()
    return next((line for line in said if "rror" in line), said[0] if said else f"status {done.returncode}")


def main(ip: str | None, tc: str | None, nft: str | None, qdiscs: list[str]) -> dict[str, dict[str, bool | str]]:
    """Test every kind of link, each qdisc, and nftables' random numbers."""
    reason = enter()
    found: dict[str, dict[str, bool | str]] = {"links": {}, "qdiscs": {}, "nftables": {}}
    for name, words in LINKS.items():
        found["links"][name] = reason or (attempt([ip, "link", *words.split()]) if ip else "ip is missing")
    for name in qdiscs:
        words = QDISCS[name]
        add = [tc or "", "qdisc", "add", "dev", "lo", *words.split()]
        found["qdiscs"][name] = reason or (attempt(add) if tc else "tc is missing")
        if found["qdiscs"][name] is True and tc:
            attempt([tc, "qdisc", "del", "dev", "lo", words.split()[0]])
    found["nftables"]["numgen"] = reason or (attempt([nft, "-f", "-"], NFT) if nft else "nft is missing")
    return found


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))))
