"""Files that would cost more than they are long, and numbers that nothing has: within bounds of time and memory.

Each is read by a process of its own, a fork, that may compute for 20 s and take 2 GiB more than it has.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from experiments.trials.command import ends

CPU_S, MEMORY = 20, 2 << 30
_PATH = 'topology = "path"\nduration = "1 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "10 ms"\n'
_DEEP = ".".join("a" * 2000)
_ROWS = "".join(f"{number},{number * 1000 + 1}\n" for number in range(200_000))

TOML: dict[str, str] = {
    "keys nested 2,000 deep": f"{_DEEP} = 1\n",
    "a table nested 2,000 deep": f"[{_DEEP}]\n",
    "lists nested 100,000 deep": "x = " + "[" * 100_000 + "]" * 100_000,
    "tables nested 100,000 deep": "x = " + "{a=" * 100_000 + "1" + "}" * 100_000,
    "lists 64 deep, 10,000 of them": "x = [" + ",".join(["[" * 62 + "]" * 62] * 10_000) + "]",
    "4,000 dotted keys of 12 parts": "".join(f"k{n}.{'.'.join('abcdefghijk')} = 1\n" for n in range(4000)),
    "300,000 keys": "".join(f"k{n} = 1\n" for n in range(300_000)),
    "10 MB of keys": "".join(f"key{n} = 1\n" for n in range(700_000)),
    "150,000 tables": "".join(f"[t{n}]\n" for n in range(150_000)),
    "300,000 tables in a list": "[[flows]]\n" * 300_000,
    "20,000 hosts": "".join(f"[hosts.h{n}]\n" for n in range(20_000)),
    "20,000 links": 'topology = "custom"\n[hosts.a]\n[hosts.b]\n' + '[[links]]\nfrom = "a"\nto = "b"\n' * 20_000,
    "20,000 routes": 'topology = "custom"\n[hosts.a]\n[hosts.b]\n[[links]]\nfrom = "a"\nto = "b"\n'
    + '[[routes]]\nfrom = "a"\nto = "b"\nvia = []\n' * 20_000,
    "20,000 probes": _PATH + "[[probes]]\n" * 20_000,
    "a million numbers": "x = [" + "1," * 1_000_000 + "]",
    "a number of a million digits": "x = " + "9" * 1_000_000,
    "a hexadecimal number of a million digits": "x = 0x" + "f" * 1_000_000,
    "a float of a million digits": "x = 1." + "9" * 1_000_000,
    "1e999999999": "seed = 1e999999999\n",
    "a date that nothing has": "x = 9999-99-99T99:99:99Z\n",
    **{
        f"{field} = {value[:30]}…": _PATH.replace('"1 s"', value)
        if field == "duration"
        else _PATH + f"{field} = {value}\n"
        for field, value in (
            *(
                ("duration", value)
                for value in ('"1e308 s"', '"999999999999 s"', '"0.000000000001 s"', '"-1 s"', "inf")
            ),
            *(("queue", value) for value in ('"1e300 bdp"', '"99999999999999 packets"', '"-1 packets"', '"0 packets"')),
            *(("loss", value) for value in ('"nan%"', '"-0%"', '"1e-300%"', '"101%"', "nan")),
            *(("jitter", value) for value in ('"1e300 s"', '"-1 ms"', '"nan ms"')),
        )
    },
    "the rate 1e300 bit/s": _PATH.replace("10 Mbit/s", "1e300 bit/s"),
    "the rate 0.000001 bit/s": _PATH.replace("10 Mbit/s", "0.000001 bit/s"),
    "the RTT 1e300 s": _PATH.replace("10 ms", "1e300 s"),
    "an interval of 1 ns": 'interval = "1 ns"\n' + _PATH,
    "a billion connections": _PATH + "[[flows]]\ncount = 1000000000\n",
    "2**63 connections": _PATH + "[[flows]]\ncount = 9223372036854775808\n",
    "-1 connections": _PATH + "[[flows]]\ncount = -1\n",
    "a billion pairs": 'topology = "dumbbell"\n[dumbbell]\npairs = 1000000000\n',
    "a name of 4 MB": f'name = "{"x" * 4_000_000}"\n',
    "a rate of 4 MB": _PATH.replace("10 Mbit/s", "1" * 4_000_000 + " Mbit/s"),
    "a rate of 4 MB of blanks": _PATH.replace("10 Mbit/s", "1" + " " * 4_000_000 + "Mbit/s"),
    "a control of 4 MB": _PATH + f'[[flows]]\ncc = "{"c" * 4_000_000}"\n',
    "text in three quotes, 4 MB": 'x = """' + '\\"""' * 900_000,
    "escapes, 4 MB": 'x = "' + "\\u0041" * 600_000 + '"',
    "comments, 4 MB": "#\n" * 1_900_000,
    "bytes of no text": "\udcff\udcfe" * 1000,
    "zeros": "\0" * 100_000,
    "a byte order mark": "\ufeff" + _PATH,
}
_STUDY = 'name = "x"\n[scenario]\ntopology = "path"\nduration = "1 s"\n[scenario.path]\nrate = "10 Mbit/s"\n'
STUDIES: dict[str, str] = {
    "10,000 × 10,000 points": _STUDY + f"[vary]\nflows.count = [{','.join(map(str, range(1, 10_001)))}]\n"
    f"path.rtt = [{','.join(f'{chr(34)}{n} ms{chr(34)}' for n in range(1, 10_001))}]\n",
    "100 axes of two": _STUDY + "[vary]\n" + "".join(f"flows.{n}.count = [1, 2]\n" for n in range(100)),
    "100,000 seeds": _STUDY + f"[repeat]\nseeds = [{','.join(map(str, range(1, 100_001)))}]\n",
    "a seed of 2**64": _STUDY + "[repeat]\nseeds = [18446744073709551616]\n",
    "seeds that are no list": _STUDY + "[repeat]\nseeds = 1e18\n",
    "1,001 expectations": _STUDY + "[expect]\n" + "".join(f'e{n} = "mean_mbps > {n}"\n' for n in range(1001)),
    "100,000 expectations": _STUDY + "[expect]\n" + "".join(f'e{n} = "mean_mbps > {n}"\n' for n in range(100_000)),
    **{
        f"the expectation {text[:24]}… of {len(text)}": _STUDY + f"[expect]\ne = '''{text}'''\n"
        for text in (
            "(" * 400 + "1" + ")" * 40 + " > mean_mbps",
            "-" * 400 + "mean_mbps > 1",
            "mean_mbps*" * 48 + "mean_mbps > 1",
            "+".join(["mean_mbps"] * 49) + " > 1",
            "1% of " * 80 + "mean_mbps > 1",
            "mean_mbps/" * 40 + "0 > 1",
            "1e99*1e99*1e99*1e99*mean_mbps > 1",
            "mean_mbps" + "(cc='a')" * 50 + " > 1",
            "a" * 499 + ">",
            "a-" * 249 + ">",
            "a." * 249 + ">",
            "mean_mbps > " + "9" * 480,
            "mean_mbps > " + " " * 400_000 + "1",
            "a" * 4_000_000,
        )
    },
    "a published file of itself": _STUDY + '[published]\nfile = "/dev/zero"\n',
}
TRACES: dict[str, str] = {
    "200,000 steps": "t_s,rate_bps\n" + _ROWS,
    "5,000,001 lines": "1\n" * 5_000_001,
    "one line of 20 MB": "1" * 20_000_000,
    "20 MB of commas": "," * 20_000_000,
    "100,000 columns": ",".join(f"c{n}" for n in range(100_000)) + "\n",
    "a quote that does not end": 't_s,rate_bps\n"' + "0\n" * 3_000_000,
    "65 MB": "1\n" * 33_000_000,
    **{
        f"{column} {value}": f"t_s,{column}\n0,1\n1,{value}\n"
        for column in ("rate_bps", "delay_s", "loss")
        for value in ("nan", "inf", "-inf", "-1", "1e308", "1e-308", "1e999", "=1+1", "0x10", "1_0", "١", "", "\0")
    },
    **{
        f"time {value}": f"t_s,rate_bps\n0,1e6\n{value},1e6\n"
        for value in ("nan", "inf", "-1", "0", "1e308", "1e-308", "1e20")
    },
    **{
        f"{name}, in a trace": text
        for name, text in {
            "nothing": "",
            "zeros": "\0" * 1000,
            "bytes of no text": "\udcff" * 1000,
            "a byte order mark": "\ufeff1\n2\n",
            "carriage returns": "1\r2\r3\r",
            "times that fall": "5\n4\n",
            "-0": "-0\n-0\n",
            "2**64": "18446744073709551616\n",
            "a decimal": "1.5\n",
            "other digits": "١\n٢\n",
        }.items()
    },
}
CDFS: dict[str, str] = {
    **{
        f"size {value}": f"{value} 0.5\n2e9 1\n" for value in ("nan", "inf", "-1", "0", "1e308", "1e16", "1.5", "x", "")
    },
    **{f"share {value}": f"100 {value}\n200 1\n" for value in ("nan", "inf", "-1", "1e308", "1e999", "101", "-0", "x")},
    "shares that fall": "100 0.5\n200 0.4\n300 1\n",
    "sizes that fall": "300 0.5\n200 0.6\n300 1\n",
    "nothing": "",
    "zeros": "\0" * 1000,
    "bytes of no text": "\udcff" * 1000,
    "100,001 points": "".join(f"{n + 1} {n / 100_001:.9f}\n" for n in range(100_001)) + "200000 1\n",
    "17 MB": "1 0\n" * 4_500_000,
    "one line of 10 MB": "1" * 10_000_000,
    "10 MB of blanks": " " * 10_000_000,
}
SERIES: dict[str, str] = {
    **{
        f"RTT {value}": "sent_s,rtt_ms\n" + "".join(f"{n / 10},{value if n % 7 == 0 else 20}\n" for n in range(3000))
        for value in ("nan", "inf", "-inf", "-1", "1e308", "1e-308", "1e999", "=1+1", "", "\0", "x" * 10_000)
    },
    **{
        f"time {value}": "sent_s,rtt_ms\n" + "".join(f"{value if n == 7 else n / 10},20\n" for n in range(3000))
        for value in ("nan", "inf", "-1", "1e308", "", "0", "-1e300", "1e18")
    },
    "times that fall": "sent_s,rtt_ms\n" + "".join(f"{300 - n / 10},20\n" for n in range(3000)),
    "all at once": "sent_s,rtt_ms\n" + "0,20\n" * 3000,
    "one row": "sent_s,rtt_ms\n0,20\n",
    "a million lines of nothing": "sent_s,rtt_ms\n" + "\n" * 1_000_000,
    "two million rows": "sent_s,rtt_ms\n" + "0.1,20\n" * 2_000_000,
    "a header of 10 MB": "t" * 10_000_000,
    "quotes": '"' * 1_000_000,
    "JSON nested 1,000,000 deep": "[" * 1_000_000,
    "JSON of 1e999": '[{"fw":1e999,"result":[{"rtt":1e999}],"timestamp":1e999,"type":"ping"}]',
    "ping of 1e308 ms": "64 bytes from 1.1.1.1: icmp_seq=99999999999999999999 ttl=1 time=1e308 ms\n" * 5000,
    "nothing": "",
    "zeros": "\0" * 100_000,
}


def bombs(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Each of the tables above, or ``times`` of each kind at random."""
    import sawtooth.cli.program
    import sawtooth.link_estimate
    import sawtooth.scenario
    import sawtooth.study  # noqa: F401 - so that no fork has to import them

    path = home / "scenario.toml"
    trace = _PATH + 'trace = "FILE"\n'
    flow = _PATH + '[[flows]]\nsource = { kind = "arrivals", load = "30%", sizes = "1 kB" }\n'
    cdf = flow.replace('"1 kB"', '{ kind = "cdf", file = "FILE" }')
    transfers = flow.replace('load = "30%"', 'times = "FILE"')
    kinds: dict[str, tuple[dict[str, str], Callable[[Path], list[str]]]] = {
        "scenario": (TOML, lambda file: ["show", str(file)]),
        "scenario, run": (
            TOML,
            lambda file: ["run", str(file), "--engine", "model", "--out", f"{file}.out", "--quiet"],
        ),
        "study": (STUDIES, lambda file: ["show", str(file)]),
        "grid": (TOML | STUDIES, lambda file: ["compare", "--grid", str(file), "--quiet"]),
        "trace": (TRACES, lambda file: ["show", _written(path, trace.replace("FILE", str(file)))]),
        "sizes": (CDFS, lambda file: ["show", _written(path, cdf.replace("FILE", str(file)))]),
        "transfers": (
            TRACES,
            lambda file: ["show", _written(path, transfers.replace("FILE", str(file)))],
        ),
        "series": (SERIES, lambda file: ["congestion", "estimate", str(file), "--quiet"]),
        "measurement": (SERIES, lambda file: ["whatif", str(file), "--quiet"]),
        "override": (TOML, lambda file: ["show", "one-percent-loss", "--set", f"path.queue={_short(file)}"]),
    }
    held = Counter[str]()
    for kind, (texts, command) in kinds.items():
        chosen = list(texts) if times >= len(texts) else rng.sample(list(texts), times)
        for number, name in enumerate(chosen):
            file = home / f"{kind.split()[0].strip(',')}-{number}.txt"
            file.write_bytes(texts[name].encode(errors="surrogateescape"))
            _judge(held, kind, name, command(file))
            file.unlink()
    return held


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def _short(file: Path) -> str:
    return file.read_bytes()[:100_000].decode(errors="replace").replace("\0", "")


def _judge(held: Counter[str], kind: str, name: str, command: list[str]) -> None:
    status, told, used = bounded(command)
    held[f"{kind}: tried"] += 1
    held["WITH ANOTHER END"] += status not in (0, 1, 2, 3, 4, 5)
    good = status in (0, 3, 4, 5) or ("error[" in told and "error[internal]" not in told and "Traceback" not in told)
    held["read" if status == 0 else "refused, with a code" if good else "ENDED OTHERWISE"] += 1
    held["SAID IN MORE THAN 5,000 CHARACTERS"] += status != 0 and len(told) > 5000
    seconds = used.ru_utime + used.ru_stime
    held[f"{'in under 2 s' if seconds < 2 else 'in 2 to 10 s' if seconds < 10 else 'IN MORE THAN 10 s'}"] += 1
    if not good or seconds >= 5 or (status != 0 and len(told) > 5000):
        print(f"{kind}, {name}: status {status}, {seconds:.1f} s, {used.ru_maxrss >> 10} MB: {told[:300]}", flush=True)


def _bound(said: int) -> None:
    """Redirects this process's messages to ``said``, and limits its memory and time."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(said, 2)
    own = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, own + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))


def bounded(command: list[str]) -> tuple[int, str, resource.struct_rusage]:
    """Runs one of our commands in a fork. Returns its status (below 0: the signal that ended it), its messages, and
    its usage.
    """
    with tempfile.TemporaryFile() as said:
        process = os.fork()
        if process == 0:
            ends(command, lambda: _bound(said.fileno()))
        late = threading.Timer(120, os.kill, (process, signal.SIGKILL))
        late.start()
        _, waited, used = os.wait4(process, 0)
        late.cancel()
        said.seek(0)
        return os.waitstatus_to_exitcode(waited), said.read(100_000).decode(errors="replace"), used
