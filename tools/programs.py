"""Runs well-known servers and clients, unmodified, on a path in virtual time, twice each, and prints a table.

    python tools/programs.py [NAME ...]

It needs the user-mode kernel. What is not installed here is said and left out. Exit status 1 where one failed or
two runs of the same seed differ.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass

from sawtooth.testing import network

PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "loss": "1%", "cc": "bbr"}
FILE = "head -c 2000000 /dev/zero > file;"
NGINX = """daemon off; error_log stderr; pid /tmp/pid; events {}
http { access_log off; client_body_temp_path /tmp/a; proxy_temp_path /tmp/b; fastcgi_temp_path /tmp/c;
uwsgi_temp_path /tmp/d; scgi_temp_path /tmp/e; server { listen 80; root /tmp; } }"""
NODE = "require('http').createServer((q, s) => s.end(Buffer.alloc(2000000))).listen(8000)"
GIT = "git -c user.name=a -c user.email=a@b"
POSTGRES = "/usr/lib/postgresql/15/bin"
AS_POSTGRES = "setpriv --reuid postgres --regid postgres --clear-groups"


@dataclass(frozen=True)
class Case:
    """``needs``: programs that must be installed."""

    needs: tuple[str, ...]
    server: str
    client: str
    ready: str = "listening"


CASES = {
    "curl, nginx": Case(
        ("nginx", "curl"),
        f"cd /tmp; {FILE} printf '%s' '{NGINX}' > conf; exec nginx -c /tmp/conf",
        "curl -sfo /dev/null http://server/file",
    ),
    "wget, Python's http.server": Case(
        ("wget",), f"cd /tmp; {FILE} exec python3 -m http.server 8000", "wget -qO /dev/null http://server:8000/file"
    ),
    "curl, Node.js": Case(("node", "curl"), f'exec node -e "{NODE}"', "curl -sfo /dev/null http://server:8000/"),
    "redis-benchmark, Redis": Case(
        ("redis-server", "redis-benchmark"),
        "cd /tmp; exec redis-server --save '' --protected-mode no --bind 0.0.0.0",
        "redis-benchmark -h server -n 200 -c 10 -t set -q",
    ),
    "git clone, git daemon": Case(
        ("git",),
        f"cd /tmp; mkdir r; cd r; git init -q .; {FILE} git add .; {GIT} commit -qm x; "
        "exec git -c safe.directory='*' daemon --base-path=/tmp --export-all --reuseaddr",
        "git clone -q git://server/r /tmp/x && ls /tmp/x",
    ),
    "iperf3": Case(("iperf3",), "exec iperf3 -s", "iperf3 -c server -R -n 2M | tail -4"),
    "rsync": Case(
        ("rsync",),
        f"cd /tmp; {FILE} printf '[m]\\npath=/tmp\\nuse chroot=no\\nuid=0\\ngid=0\\n' > conf; "
        "exec rsync --daemon --no-detach --config=/tmp/conf",
        "cd /tmp; rsync rsync://server/m/file . && stat -c %s file",
    ),
    "dig, dnsmasq (UDP)": Case(
        ("dig", "dnsmasq"),
        "exec dnsmasq -k -R -h --address=/example/192.0.2.1 --user=root --pid-file=/tmp/pid",
        "dig +short @server a.example | grep 192.0.2.1",
    ),
    "pgbench, PostgreSQL": Case(
        ("pgbench", f"{POSTGRES}/postgres"),
        f"mkdir /tmp/pg; chown postgres /tmp/pg; cd /tmp; {AS_POSTGRES} sh -c '{POSTGRES}/initdb -D /tmp/pg -A trust "
        f"> /dev/null; echo host all all 0.0.0.0/0 trust >> /tmp/pg/pg_hba.conf; "
        f"exec {POSTGRES}/postgres -D /tmp/pg -h 0.0.0.0 -k /tmp'",
        "pgbench -h server -U postgres -i -q postgres && pgbench -h server -U postgres -c 4 -t 20 postgres",
        "port 5432",
    ),
}


def main(names: list[str]) -> int:
    """One line for each case: status, virtual seconds, whether the second run was the same, processor time."""
    failed = False
    for name in names or CASES:
        case = CASES[name]
        absent = [one for one in case.needs if shutil.which(one) is None]
        if absent:
            print(f"{name}: not tried, {', '.join(absent)} is not installed", flush=True)
            continue
        with network(**PATH) as net:
            net.host("server").start(case.server, ready=case.ready)
            one, two = (net.host("client").run(case.client, check=False) for _ in range(2))
        same = (one.stdout, one.seconds) == (two.stdout, two.seconds)
        cpu = f"{one.run.meta['cpu_s']:.1f} s of processor time"
        print(
            f"{name}: status {one.status}, {one.seconds:.6f} s, {'same' if same else 'DIFFERS'} twice, {cpu}",
            flush=True,
        )
        failed |= not same or one.status != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
