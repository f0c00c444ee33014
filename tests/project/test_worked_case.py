"""The worked case of docs/tutorial-watch.md: its commands run in a guest, and print what the page shows. Commands that
only read the capture run on this host, because Python starts ten times as fast there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sawtooth.kernel import Guest, Kernel

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-watch.md"
# Locks between processes need /dev/shm. tcpdump hands its file to another user, which works in the guest's own memory.
BEFORE = "mkdir -p /dev/shm; mkdir /tmp/case; cd /tmp/case"
AFTER = "cp slow.pcap /run/sawtooth/"
READERS = ("sawtooth capture ", "sawtooth whatif ")


def shown() -> list[tuple[str, list[str]]]:
    """Each command of the page, with its output."""
    found: list[tuple[str, list[str]]] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif line.startswith("    ") and found:
            found[-1][1].append(line[4:])
    return found


# Chance decides whether a window allows both ends of an answer or only one.
ANSWER = re.compile(r"at least # [kMG]?bit/s: .*|# [kMG]?bit/s \(# [kMG]?bit/s … # [kMG]?bit/s\)")


def skeleton(line: str) -> str:
    """A line without its numbers and their widths."""
    return ANSWER.sub("answer", " ".join(re.sub(r"\d[\d.,:T+-]*", "#", line).split()))


@pytest.fixture(scope="module")
def printed(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The output of each command, in a guest."""
    share = tmp_path_factory.mktemp("case")
    script = [BEFORE]
    for at, (command, _) in enumerate(shown()):
        if command.startswith(READERS):
            continue
        # Braces keep the background jobs in this shell, which waits for them.
        script.append(f"{{ {command.removesuffix('&')} ;}} > /run/sawtooth/{at} 2>&1 {'&' * command.endswith('&')}")
        script.append(f"[ $? = 0 ] || echo '{at}' >> /run/sawtooth/failed")
    script.append(AFTER)
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin", "COLUMNS": "110"}
    (share / "script").write_text("\n".join(script), encoding="utf-8")
    done = Guest(kernel).run(["bash", "/run/sawtooth/script"], share=share, timeout_s=900, env=environment)
    failed = (share / "failed").read_text().split() if (share / "failed").exists() else []
    # timeout ends tcpdump, which is reported.
    assert [shown()[int(at)][0] for at in failed if "timeout" not in shown()[int(at)][0]] == [], done.console
    for at, (command, _) in enumerate(shown()):
        if command.startswith(READERS):
            said = subprocess.run(["sh", "-c", command], cwd=share, env=os.environ | environment, capture_output=True)
            assert said.returncode == 0, said.stderr
            (share / str(at)).write_bytes(said.stdout)
    return [(share / str(at)).read_text(encoding="utf-8").splitlines() for at in range(len(shown()))]


def test_commands_print_what_the_page_shows(printed: list[list[str]]) -> None:
    for (command, lines), told in zip(shown(), printed, strict=True):
        there = [skeleton(line) for line in told]
        assert [line for line in lines if line.strip() != "..." and skeleton(line) not in there] == [], command


def test_the_loss_is_found_explained_and_answered(printed: list[list[str]]) -> None:
    of = {command: "\n".join(told) for (command, _), told in zip(shown(), printed, strict=True)}

    def number(command: str, pattern: str) -> float:
        (text,) = (told for one, told in of.items() if one.startswith(command))
        found = re.search(pattern, text, re.MULTILINE)
        assert found is not None, text
        return float(found[1])

    assert 0.3 < number("sawtooth watch", r"cubic .*?([\d.]+)%  congestion window") < 2.5
    # Either form of an answer gives a lower end; the same control gets more without the loss.
    low = r"^  %s: (?:at least |[\d.]+ Mbit/s \()([\d.]+) Mbit/s"
    assert number("sawtooth watch", low % "without the loss") > number("sawtooth watch", low % "with cubic")
    # 1% of 4300 segments, lost independently: four standard deviations are 0.6%.
    assert number("sawtooth capture", r"lost .*? ([\d.]+)%") == pytest.approx(1, abs=0.6)
    bbr, cubic = (number("sawtooth whatif", rf"^  {cc} +([\d.]+) Mbit/s") for cc in ("bbr", "cubic"))
    assert bbr > 4 * cubic
    tried = number("ip netns exec server iperf3 --client 203.0.113.2 --congestion bbr", r"([\d.]+) Mbits/sec")
    assert tried == pytest.approx(bbr, rel=0.1)
