"""Control sequences in each text from others that we print, shown on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import select
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.trials.command import connection_row, ends

ESCAPES = {
    "OSC 52, the clipboard": "\x1b]52;c;ZWNobyBvd25lZA==\x07",
    "OSC 0, the title": "\x1b]0;owned\x07",
    "OSC 8, a link": "\x1b]8;;http://owned/\x1b\\x\x1b]8;;\x1b\\",
    "CSI, clear": "\x1b[2J\x1b[H",
    "CSI, colour": "\x1b[31;5m",
    "CSI, a question": "\x1b[6n\x1b[c",
    "DCS": "\x1bP+q544e\x1b\\",
    "APC": "\x1b_Gi=1,a=q;AAAA\x1b\\",
    "another set of characters": "\x1b(0\x0e",
    "C1, CSI": "\x9b31m",
    "C1, OSC": "\x9d0;owned\x9c",
    "right to left": "\u202eowned\u2066",
    "BEL": "\x07\x07",
    "BS": "abc\x08\x08\x08xyz",
    "CR": "\rerror[internal]: forged",
    "LF": "\nerror[internal]: forged",
    "NUL": "\0\0",
    "DEL": "\x7f\x7f",
    "line separator": "\u2028error[internal]: forged",
    "tags": "\U000e0041\U000e0042",
    "bytes of no text": "\udc9b31m\udc9d0;x\udc9c",
}
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0041-\U000e0042]"
)
_OWN = re.compile(r"\r\n|\r\x1b\[K|\x1b\[\?25[lh]|\x1b\[0m")
_FORGED = re.compile(r"^error\[internal\]: forged", re.MULTILINE)
_PATH = 'topology = "path"\nduration = "1 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "10 ms"\n'
_STUDY = 'name = "x"\n[scenario]\ntopology = "path"\nduration = "1 s"\n[scenario.path]\nrate = "10 Mbit/s"\n'


def _in_toml(text: str) -> str:
    return json.dumps(text.encode(errors="replace").decode()).replace("\\u007f", "\x7f")


def _shown(make: Callable[[str], str]) -> Callable[[Path, str], list[str]]:
    """A scenario or study with the text as a TOML string."""

    def command(home: Path, text: str) -> list[str]:
        return ["show", _file(home / "given.toml", make(_in_toml(text)))]

    return command


def _file(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogateescape"))
    return str(path)


def _reading(words: list[str], make: Callable[[str], str]) -> Callable[[Path, str], list[str]]:
    def command(home: Path, text: str) -> list[str]:
        return [*words, _file(home / "given.txt", make(text))]

    return command


def _rtts(header: str = "sent_s,rtt_ms", at: str = "") -> str:
    return f"{header}\n" + "".join(f"{n / 10},{at if at and n == 5 else 20 + n % 3}\n" for n in range(1500))


def _iperf3(**more: Any) -> str:
    told = {"start": {"version": "iperf 3.12", "timestamp": {"timesecs": 1}}, "intervals": [], "end": {}}
    return json.dumps(told | more)


def _ss(cc: str, peer: str = "10.0.0.2:5201") -> str:
    return f"ESTAB 0 0 10.0.0.1:4000 {peer}\n\t {cc} wscale:7,7 rto:204 rtt:20.1/1 mss:1448 cwnd:10 bytes_acked:90000\n"


def _pcapng(home: Path, place: str, text: str) -> str:
    """A section, an interface and a packet, with the text as one of their options."""

    def option(code: int, value: bytes) -> bytes:
        return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)

    def block(kind: int, body: bytes, options: bytes) -> bytes:
        body += options + (option(0, b"") if options else b"")
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    said = text.encode(errors="surrogateescape")[:4000]
    given = {
        place: option({"comment": 1, "hardware": 2, "system": 3, "application": 4, "name": 2, "about": 3}[place], said)
    }
    ip = bytes.fromhex("45000028000100004006000001010101020202020fa01451000000010000000050020200000000000000")[:40]
    packet = struct.pack("<IIIII", 0, 0, 1000, 54, 54) + b"\0" * 12 + b"\x08\0" + ip + b"\0\0"
    first = given.get(place, b"") if place in ("comment", "hardware", "system", "application") else b""
    inner = given.get(place, b"") if place in ("name", "about") else b""
    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1), first)
    content += block(1, struct.pack("<HHI", 1, 0, 0), inner)
    content += block(6, packet, first if place == "comment" else b"")
    return _file(home / "given.pcapng", content)


def _recorded(home: Path, column: str, text: str) -> list[str]:
    """A recording of one connection, with the text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sawtooth.watch.record import schema

    row = connection_row(1)
    row[column] = (
        [text.encode(errors="replace").decode()] if column == "unseen" else text.encode(errors="replace").decode()
    )
    path = home / "given.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema()), path)
    return ["watch", "--replay", str(path), "--count", "1"]


def _module(home: Path, text: str, where: str) -> list[str]:
    said = "".join(f"\\{byte:03o}" for byte in text.encode(errors="replace"))
    source = f"#include <linux/module.h>\n#include <net/tcp.h>\n{'#error ' + text if where == 'error' else ''}\n"
    source += (
        "static struct tcp_congestion_ops mine = { .ssthresh = tcp_reno_ssthresh, .cong_avoid = tcp_reno_cong_avoid,\n"
    )
    name = said if where == "name" else "mine"
    source += f'.undo_cwnd = tcp_reno_undo_cwnd, .name = "{name}" }};\n'
    prints = f'pr_info("{said}\\n");' if where == "print" else ""
    source += f"static int __init begin(void) {{ {prints} return tcp_register_congestion_control(&mine); }}\n"
    source += "module_init(begin);\n"
    _file(home / "tcp_given.c", source)
    flow = f'[[flows]]\ncc = {{ source = "{home}/tcp_given.c" }}\n'
    if where == "parameter":
        flow = f'[[flows]]\ncc = {{ source = "{home}/tcp_given.c", parameters = {{ {_in_toml(text)} = 1 }} }}\n'
    return ["run", _file(home / "given.toml", _PATH + flow), "--jobs", "1", "--out", str(home / "out")]


def _described(home: Path, text: str, words: list[str], name: str, content: dict[str, Any]) -> list[str]:
    """A saved result with the text in its description."""
    directory = home / "described" / "x" / "20260101-000000"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(
        json.dumps(content).replace("TEXT", json.dumps(text.encode(errors="replace").decode())[1:-1])
    )
    return [word.replace("DIRECTORY", str(directory)).replace("ABOVE", str(home / "described")) for word in words]


def _named(words: list[str]) -> Callable[[Path, str], list[str]]:
    """A file whose name is the text."""

    def command(home: Path, text: str) -> list[str]:
        name = text.replace("\0", "").replace("/", "-")
        with contextlib.suppress(OSError):
            (home / name).write_text("nothing that anybody reads")
        return [word.replace("FILE", str(home / name)) for word in words]

    return command


def _traced(home: Path, text: str) -> list[str]:
    _file(home / "given.csv", f"t_s,{text}\n0,1\n")
    return ["show", _file(home / "given.toml", _PATH + f'trace = "{home}/given.csv"\n')]


_POINT = {"id": "0-seed1", "key": {"cc": "TEXT"}, "seed": 1}
_RESULT = {
    "format": 1,
    "identity": "TEXT",
    "study": {"name": "TEXT", "title": "TEXT", "scenario": {}},
    "engine": "TEXT",
    "started": "TEXT",
    "finished": "TEXT",
    "overrides": {"TEXT": "TEXT"},
    "versions": {"TEXT": "TEXT"},
    "points": [_POINT],
}
PLACES: dict[str, Callable[[Path, str], list[str]]] = {
    "a flow's name": _shown(lambda text: _PATH + f"[[flows]]\nname = {text}\n"),
    "a flow's control": _shown(lambda text: _PATH + f"[[flows]]\ncc = {text}\n"),
    "a host's name": _shown(lambda text: f'topology = "custom"\n[hosts.{text}]\n'),
    "a scenario's name": _shown(lambda text: f"name = {text}\n" + _PATH),
    "a field's name": _shown(lambda text: _PATH + f"{text} = 1\n"),
    "a rate": _shown(lambda text: f'topology = "path"\n[path]\nrate = {text}\n'),
    "a study's name": _shown(lambda text: _STUDY.replace('"x"', text)),
    "a study's title": _shown(lambda text: f"title = {text}\n" + _STUDY),
    "a study's question": _shown(lambda text: f"question = {text}\n" + _STUDY),
    "an expectation": _shown(lambda text: _STUDY + f'[expect]\n{text} = "mean_mbps > 1"\n'),
    "an expectation's text": _shown(lambda text: _STUDY + f"[expect]\na = {text}\n"),
    "an axis": _shown(lambda text: _STUDY + f"[vary]\n{text} = [1]\n"),
    "an axis' value": _shown(lambda text: _STUDY + f"[vary]\nflows.cc = [{text}]\n"),
    "a column": _shown(lambda text: _STUDY + f'[columns.{text}]\nfield = "flows.cc"\n'),
    "a trace's name": _shown(lambda text: _PATH + f"trace = {text}\n"),
    "a file that is no TOML": _reading(["show"], lambda text: f"{text} = = {text}\n"),
    "a comment of TOML": _reading(["show"], lambda text: f"# {text}\n{_PATH}"),
    "an override": lambda _, text: ["show", "one-percent-loss", "--set", f"{text}={text}".replace("\0", "")],
    "a command": lambda _, text: [text.replace("\0", "")],
    "an option": lambda _, text: ["show", f"--{text}".replace("\0", "")],
    "a header of CSV": _reading(["congestion", "estimate"], lambda text: _rtts(f"sent_s,rtt_ms,{text}")),
    "a cell of CSV": _reading(["congestion", "estimate"], lambda text: _rtts(at=text)),
    "a line of ping": _reading(
        ["congestion", "estimate"], lambda text: f"PING {text} (1.1.1.1)\n64 bytes: {text} ms\n"
    ),
    "a trace's header": _traced,
    "iperf3's error": _reading(["whatif"], lambda text: _iperf3(error=text.encode(errors="replace").decode())),
    "iperf3's title": _reading(["whatif"], lambda text: _iperf3(title=text.encode(errors="replace").decode())),
    "iperf3's key": _reading(["whatif"], lambda text: json.dumps({text.encode(errors="replace").decode(): 1})),
    "ss: a control": _reading(["whatif"], _ss),
    "ss: an address": _reading(["whatif"], lambda text: _ss("cubic", text)),
    "a model": _reading(
        ["congestion", "estimate", "one.csv", "--model"],
        lambda text: json.dumps(
            {"format": text.encode(errors="replace").decode(), "name": text.encode(errors="replace").decode()}
        ),
    ),
    "a grid": _reading(
        ["compare", "--grid"], lambda text: f"[[point]]\nname = {_in_toml(text)}\n{_in_toml(text)} = 1\n"
    ),
    **{
        f"pcapng: {place}": lambda home, text, place=place: ["capture", _pcapng(home, place, text)]  # type: ignore[misc]
        for place in ("comment", "hardware", "system", "application", "name", "about")
    },
    **{
        f"a recording's {column}": lambda home, text, column=column: _recorded(home, column, text)  # type: ignore[misc]
        for column in ("time", "local", "peer", "state", "cc", "limit", "why", "recovery", "process", "unseen")
    },
    **{
        f"a module's {where}": lambda home, text, where=where: _module(home, text, where)  # type: ignore[misc]
        for where in ("error", "name", "print", "parameter")
    },
    "a result, listed": lambda home, text: _described(home, text, ["results", "--in", "ABOVE"], "study.json", _RESULT),
    "a result, reported": lambda home, text: _described(home, text, ["report", "DIRECTORY"], "study.json", _RESULT),
    "a result, checked": lambda home, text: _described(home, text, ["check", "DIRECTORY"], "study.json", _RESULT),
    "a run, compared": lambda home, text: _described(
        home,
        text,
        ["compare", "DIRECTORY", "DIRECTORY"],
        "run.json",
        {"format": 1, "engine": "TEXT", "scenario": {"TEXT": 1}},
    ),
    "a scenario's file name": _named(["show", "FILE"]),
    "a capture's file name": _named(["capture", "FILE"]),
    "a recording's file name": _named(["watch", "--replay", "FILE", "--count", "1"]),
    "a directory's name": _named(["run", "one-percent-loss", "--engine", "model", "--quiet", "--out", "FILE"]),
    "a query's column": lambda home, text: ["query", f'SELECT 1 AS "{text}"'.replace("\0", ""), "--in", str(home)],
    "a query's value": lambda home, text: ["query", f"SELECT '{text}' AS a".replace("\0", ""), "--in", str(home)],
    "a query's mistake": lambda home, text: ["query", f"SELEC {text}".replace("\0", ""), "--in", str(home)],
}


def escapes(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Each place with each escape, or ``times`` places at random."""
    import sawtooth.cli.program
    import sawtooth.link_estimate
    import sawtooth.study  # noqa: F401 - so that no fork has to import them

    os.environ |= {"XDG_CACHE_HOME": str(home / "cache"), "COLUMNS": "160"}
    held = Counter[str]()
    places = list(PLACES) if times >= len(PLACES) else rng.sample(list(PLACES), times)
    for place in places:
        held["places"] += 1
        for name, text in ESCAPES.items():
            own = home / f"{held['shown on a terminal']}"
            own.mkdir()
            status, shown = on_terminal(PLACES[place](own, f"a{text}b"), own)
            held["shown on a terminal"] += 1
            plain = _OWN.sub("", shown)
            wrong = STEERS.search(plain) or _FORGED.search(plain)
            held["A TERMINAL WOULD OBEY"] += bool(wrong)
            internal = "error[internal]: " in plain.replace("error[internal]: forged", "") or "Traceback" in plain
            held["ENDED IN A TRACEBACK OR IN internal"] += internal
            held["ended by a signal, or late"] += status < 0
            if wrong or internal or status < 0:
                print(f"{place}, {name}: status {status}: {shown[-400:]!r}", flush=True)
    return held


def on_terminal(command: list[str], home: Path) -> tuple[int, str]:
    """Runs one of our commands in a fork, on a terminal. Returns its status, and what the terminal received."""
    process, terminal = pty.fork()
    if process == 0:
        ends(command, lambda: os.chdir(home))
    got, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        got += piece
    else:
        os.kill(process, signal.SIGKILL)
    os.close(terminal)
    _, waited = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(waited), got.decode(errors="surrogateescape")
