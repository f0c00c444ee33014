"""Guest: scripts played by packetdrill itself on a real kernel, in virtual time.

The scripts of one call run in one guest, one after the other. Each has a separate network namespace, since scripts
leave settings changed, with a /sys that they can write.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from sawtooth.errors import SawtoothError
from sawtooth.packetdrill.script import FAILED, NOT_APPLICABLE, PASSED, Script, ScriptResult
from sawtooth.sanitize import plain

# Addresses and names that scripts rely on, as google's run_all.py and Linux's ksft_runner.sh give them. The remote
# address has no prefix: scripts change the route of that one address.
_IPV4 = (
    "--ip_version=ipv4 --local_ip=192.168.0.1 --gateway_ip=192.168.0.1 --netmask_ip=255.255.0.0 --remote_ip=192.0.2.1"
    " -D TFO_COOKIE=3021b9d889017eeb -D TFO_COOKIE_ZERO=b7c12350a90dc8f5 -D CODE=host_unreachable"
    " -D CMSG_LEVEL_IP=SOL_IP -D CMSG_TYPE_RECVERR=IP_RECVERR"
)
_IPV6 = (
    "--ip_version=ipv6 --mtu=1520 --local_ip=fd3d:0a0b:17d6::1 --gateway_ip=fd3d:0a0b:17d6:8888::1"
    " --remote_ip=fd3d:fa7b:d17d::1 -D TFO_COOKIE=c1d1e9742a47a9bc -D TFO_COOKIE_ZERO=82af1a8f9a205c34"
    " -D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR"
)
_END = "== sawtooth: script"
# Arguments: packetdrill, then the scripts. A status of 124 says that a script did not end in time.
_LOOP = """
program=$1 number=0
shift
for script; do
    tolerance='{tolerance}'
    grep -q '^--tolerance_usecs' "$script" && tolerance=
    options='{ipv4}'
    grep -q '^--ip_version=ipv6' "$script" && options='{ipv6}'
    cd "$(dirname "$script")" && unshare -nm sh -c 'mount -t sysfs sysfs /sys; exec "$@"' sh \\
        timeout {limit} "$program" $options $tolerance "$script" 2>&1
    printf '\\n%s %d: %d\\n' '{end}' "$number" $?
    number=$((number + 1))
done
"""
_SECONDS_EACH = 120
_MOST_SECONDS = 3600
# What packetdrill says of a system call that this kernel does not have: what the call returned, not what was expected.
_ABSENT = re.compile(
    r"\bgot -1 with errno \d+ \((Protocol not available|Operation not supported|Function not implemented)\)"
)
_INIT = "error executing init command"
_WARNING = "sysctl: cannot stat"
_ASSERTION = "error in Python code"
_WRONG = "AssertionError"
_REFUSED = re.compile(r"^RTNETLINK answers: (?!File exists).*", re.M)
# A packet with the flag for an acknowledgement and without its number, which then is one before the first byte.
_BEFORE_THE_FIRST = re.compile(r"<\s+(?:\[[^\]]*\]\s+)?[A-Z]*\.\s+(?!.*\back\b)")
_INBOUND = re.compile(r"^\s*[+\d.~*]+\s+<")
_TIME_UP = 124
_DIFFERENCE = re.compile(r"^\S*\.pkt:(\d+): (.*)$", re.M)


def find_program(given: str | None = None) -> Path:
    """packetdrill: ``given``, or the one on PATH. Raises SawtoothError ``tool-missing``."""
    found = shutil.which(given or "packetdrill")
    if found is None:
        message = f"{plain(given)} is not a program" if given else "packetdrill is not installed"
        fix = "build it from google/packetdrill (in gtests/net/packetdrill: ./configure && make), then give --program"
        raise SawtoothError("tool-missing", message, fix=fix)
    return Path(found).absolute()


def played_on_kernel(
    scripts: Sequence[Script],
    *,
    program: Path,
    kernel: str | None = None,
    hz: int | None = None,
    tolerance_us: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[ScriptResult]:
    """Play scripts on the user-mode kernel named ``kernel`` (None: the default one) with packetdrill's ``program``.

    ``tolerance_us``: how far a time may be off, in microseconds, where a script does not say it; None: what packetdrill
    allows (4 ms, or an eighth of the time since the last event).
    ``stop`` tells whether to give up. Raises SawtoothError as a run on the engine ``kernel`` does.
    """
    from sawtooth import engines
    from sawtooth.programs import finished
    from sawtooth.scenario import Scenario

    # packetdrill takes no 0. Without a percentage, nothing adds to it.
    tolerance = "" if tolerance_us is None else f"--tolerance_usecs={max(tolerance_us, 1)} --tolerance_percent=0"
    loop = _LOOP.format(limit=_SECONDS_EACH, ipv4=_IPV4, ipv6=_IPV6, tolerance=tolerance, end=_END)
    paths = [str(script.path.absolute()) for script in scripts]
    host = {name: value for name, value in (("kernel", kernel), ("hz", hz)) if value is not None}
    scenario = Scenario.from_dict(
        {
            "topology": "path",
            "duration": f"{_MOST_SECONDS} s",
            "interval": f"{_MOST_SECONDS} s",
            "path": {"rate": "1 Gbit/s", "rtt": "0 s"},
            "host": host,
            "programs": [
                {
                    "host": "client",
                    "command": ["sh", "-c", loop, "sh", str(program), *paths],
                    "files": sorted({str(program), *(str(script.root.absolute()) for script in scripts)}),
                }
            ],
        }
    )
    run = engines.get("kernel").run(scenario, stop=stop)
    output = finished(run)[-1].stdout.decode(errors="replace")
    parts = _parts(output, len(scripts))
    return [_played(script, said, status) for script, (said, status) in zip(scripts, parts, strict=True)]


def _parts(output: str, count: int) -> list[tuple[str, int | None]]:
    """Output and exit status of each script; None for those that the guest did not come to."""
    parts: list[tuple[str, int | None]] = []
    for number in range(count):
        before, end, after = output.partition(f"\n{_END} {number}: ")
        status, _, output = after.partition("\n")
        parts.append((before, int(status)) if end and status.isdigit() else ("", None))
    return parts


def _played(script: Script, output: str, status: int | None) -> ScriptResult:
    if status == 0:
        return ScriptResult(script.name, "kernel", PASSED)
    if status is None:
        return ScriptResult(script.name, "kernel", FAILED, reason="it was not begun: one before it ended the guest")
    if status == _TIME_UP:
        return ScriptResult(
            script.name, "kernel", FAILED, reason=f"it did not end within {_SECONDS_EACH} s of virtual time"
        )
    if _INIT in output:
        first = next((line for line in output.splitlines() if _WARNING not in line), "").partition(_INIT)
        return ScriptResult(
            script.name, "kernel", NOT_APPLICABLE, reason=plain(f"its first command fails: {first[0] or first[2]}", 200)
        )
    difference = _DIFFERENCE.search(output)
    line, reason = (int(difference[1]), difference[2]) if difference else (None, "")
    if not difference or reason == _ASSERTION:
        lines = [one for one in output.splitlines() if one.strip()] or [f"it ended with status {status}"]
        reason = next((one for one in reversed(lines) if one.startswith(_WRONG)), lines[-1])
    excuse = reason if _ABSENT.search(reason) else _excuse(script, output, line)
    return ScriptResult(script.name, "kernel", NOT_APPLICABLE if excuse else FAILED, line, plain(excuse or reason, 200))


def _excuse(script: Script, said: str, line: int | None) -> str | None:
    """Why a script that failed at a line could not pass; None: it could."""
    refused = _REFUSED.search(said)
    if refused:
        return f"one of its commands fails: {refused[0]}"
    before = [one for one in script.read().splitlines()[: line or 0] if _INBOUND.match(one)]
    if before and _BEFORE_THE_FIRST.search(before[-1]):
        return "its packet acknowledges what was never sent, which Linux refuses from 6.7 on (RFC 5961, section 5.2)"
    return None
