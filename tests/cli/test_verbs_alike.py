"""Common to all verbs: the same options, summaries that fit, JSON, completion, and fixes that name the field."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth.cli.program import sawtooth
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario

CAPTURE = Path(__file__).parents[2] / "fuzz" / "corpus" / "capture" / "pcap"
CLI = [sys.executable, "-c", "from sawtooth.cli import main; main()"]


def leaves(group: click.Group = sawtooth, name: str = "") -> Iterator[tuple[str, click.Command]]:
    for own, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{name} {own}".strip())
        else:
            yield f"{name} {own}".strip(), command


LEAVES = dict(leaves())


@pytest.mark.parametrize("name", LEAVES)
def test_quiet_and_verbose_are_the_same_in_every_command(name: str) -> None:
    options = {one.name: one for one in LEAVES[name].params if isinstance(one, click.Option)}
    for option in ("quiet", "verbose"):
        assert options[option].opts == [f"-{option[0]}", f"--{option}"]
        assert options[option].help == next(
            one.help for one in LEAVES["run"].params if isinstance(one, click.Option) and one.name == option
        )


@pytest.mark.parametrize("group", ["", "cc", "congestion", "kernel", "probe"])
def test_summaries_are_whole_sentences_on_80_columns(group: str) -> None:
    command = sawtooth.commands[group] if group else sawtooth
    with click.Context(command, info_name="sawtooth", terminal_width=80, **sawtooth.context_settings) as context:
        told = command.get_help(context)
    # The commands are listed in sections, each with a title.
    listed = [line for line in told.partition("-h, --help")[2].splitlines()[1:] if line.startswith("  ")]
    assert listed, told
    assert all(line.endswith((".", "?")) and not line.endswith("...") and len(line) <= 80 for line in listed)


def test_the_shipped_studies_are_reported_as_json() -> None:
    told = json.loads(CliRunner().invoke(sawtooth, ["studies", "--json"]).output)
    found = {one["name"]: one for one in told}["one-percent-loss"]
    assert set(found) == {"name", "title", "question", "file", "varies", "points"}
    assert "chain.loss" in found["varies"]


@pytest.mark.usefixtures("patience")
def test_a_run_is_reported_as_json(tmp_path: Path) -> None:
    asked = tmp_path / "one.toml"
    asked.write_text('duration = "2 s"\nprobes = [{ interval = "100 ms" }]\n')
    told = CliRunner().invoke(sawtooth, ["run", str(asked), "--out", str(tmp_path / "r"), "--json", "--jobs", "1"])
    found = json.loads(told.output)
    assert {"study", "engine", "results", "report", "warnings", "rows", "latency"} <= set(found)
    assert Path(found["report"]).is_file()
    assert found["rows"][0]["mean_mbps"] > 50
    assert found["latency"][0]["probe"] == "probe"


def test_clean_is_reported_as_json() -> None:
    assert set(json.loads(CliRunner().invoke(sawtooth, ["clean", "--json"]).output)) == {"removed", "ended", "refused"}


@pytest.mark.usefixtures("patience")
def test_verbose_says_on_standard_error_what_is_done(tmp_path: Path) -> None:
    asked = tmp_path / "one.toml"
    asked.write_text('duration = "2 s"\n')
    told = CliRunner().invoke(sawtooth, ["run", str(asked), "--out", str(tmp_path / "r"), "-v", "--jobs", "1"])
    assert "1 of 1 points to run" in told.stderr
    assert "point 0-seed1: done" in told.stderr
    told = CliRunner().invoke(sawtooth, ["run", str(asked), "--out", str(tmp_path / "r2"), "--jobs", "1"])
    assert "point" not in told.stderr


@pytest.mark.usefixtures("patience")
def test_what_was_written_is_named_and_identification_comes_on_top(tmp_path: Path) -> None:
    files = ["--html", str(tmp_path / "one.html"), "--pictures", str(tmp_path / "p"), "--out", str(tmp_path / "t")]
    told = CliRunner().invoke(sawtooth, ["capture", str(CAPTURE), "--identify", *files]).output
    assert "TCP connection" in " ".join(told.partition("\n\n")[0].split())
    assert "\ncongestion control" in told
    written = [line.removeprefix("wrote ") for line in told.splitlines() if line.startswith("wrote ")]
    assert {Path(one).name for one in written} >= {"one.html", "t", "over-time.png"}
    assert all(Path(one).exists() for one in written)


@pytest.mark.parametrize(
    ("frames", "words"), [([], "contains no packets"), ([bytes(12) + b"\x08\x06" + bytes(28)], "none of them TCP")]
)
def test_a_capture_without_tcp_says_what_it_holds(tmp_path: Path, frames: list[bytes], words: str) -> None:
    import struct

    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    body = b"".join(struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame for frame in frames)
    (tmp_path / "one.pcap").write_bytes(head + body)
    told = CliRunner().invoke(sawtooth, ["capture", str(tmp_path / "one.pcap")])
    assert words in told.output


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"flows.0.rate": "5 Mbit/s"}, "path.rate"),
        ({"flows.0.rtt": "5 ms"}, "path.rtt"),
        ({"path.bandwidth": "5 Mbit/s"}, '"rate"'),
        ({"path.delay": "5 ms"}, '"rtt"'),
        ({"path.mtu": 9000}, "host.mss"),
        ({"flows.parallel": 2}, '"count"'),
        ({"chain.ack_loss": "1%"}, "path.ack_loss"),
    ],
)
def test_a_field_in_the_wrong_place_is_answered_by_the_one_that_does_it(changes: dict[str, object], fix: str) -> None:
    with pytest.raises(SawtoothError) as caught:
        Scenario().set(changes)
    assert fix in (caught.value.fix or "")


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("run one-p", "plain,one-percent-loss"),
        ("run --set path.r", "plain,path.rtt="),
        ("run --set flows.cc=c", "plain,flows.cc=cubic"),
        ("run --set flows.0.r", "plain,flows.0.reader="),
        ("run --set flows.0.cc=c", "plain,flows.0.cc=cubic"),
        ("run --engine k", "plain,kernel"),
        ("cc show pr", "plain,prague"),
        ("whatif --cc bb", "plain,bbr"),
        ("schema sc", "plain,scenario"),
        ("predict --cc bb", "plain,bbr"),
    ],
)
def test_a_shell_completes_names_fields_and_controls(words: str, completed: str) -> None:
    asked = {
        "COMP_WORDS": f"sawtooth {words}",
        "COMP_CWORD": str(len(words.split())),
        "_SAWTOOTH_COMPLETE": "bash_complete",
    }
    told = subprocess.run(CLI, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert completed in told.stdout.splitlines()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_set_up_of_completion_is_printed(shell: str) -> None:
    assert "_SAWTOOTH_COMPLETE" in CliRunner().invoke(sawtooth, ["completion", shell]).output


@pytest.mark.usefixtures("patience")
def test_a_reader_that_has_seen_enough_hears_no_complaint() -> None:
    run = subprocess.run(
        f"{sys.executable} -c 'from sawtooth.cli import main; main()' studies | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    assert len(run.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "command",
    [
        ["query", "SELECT 1", "--csv", "--json"],
        ["compare", "a", "b", "--json", "--csv"],
        ["predict", "--rate", "1 Mbit/s", "--rtt", "1 ms", "--loss", "1%", "--csv", "--json"],
    ],
)
def test_an_answer_is_printed_in_one_form(command: list[str]) -> None:
    with expected_error(code="bad-usage", field="--csv", match="remove --csv or --json"):
        sawtooth.main(command, standalone_mode=False)
