"""The command line: what it prints, its exit status, and one clear message for whatever goes wrong."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sawtooth.cli import main

COMMANDS = (
    "cc",
    "check",
    "compare",
    "doctor",
    "kernel",
    "predict",
    "query",
    "report",
    "results",
    "run",
    "schema",
    "show",
    "studies",
)
SHORT = 'duration = "3 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\nloss = "1%"\n'


class Answer:
    """What a call of the command line printed, and its exit status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Answer(caught.value.code, out, err)

    return run


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SHORT)
    return path


def test_help_names_every_command(call) -> None:
    answer = call("--help")
    assert answer.status == 0
    for command in COMMANDS:
        assert f"\n  {command} " in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(call, command: str) -> None:
    assert call(command, "--help").status == 0


@pytest.mark.usefixtures("patience")
def test_help_comes_within_three_tenths_of_a_second() -> None:
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", "--help"]
    subprocess.run(command, check=True, capture_output=True)
    took = []
    for _ in range(5):
        # Processor time, because a busy machine adds to the elapsed time.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 0.3


def test_the_version_is_the_packages(call) -> None:
    answer = call("--version")
    assert answer.status == 0
    assert answer.out.startswith("sawtooth 0.")


def test_prediction_prints_a_line_a_congestion_control_with_its_source(call) -> None:
    answer = call("predict", "--rate", "2.5 Gbit/s", "--rtt", "140 ms", "--loss", "1.5%")
    assert answer.status == 0
    for word in ("reno", "cubic", "bbr", "RFC 9438", "Mbit/s"):
        assert word in answer.out


def test_prediction_prints_json_and_csv(call) -> None:
    asked = ["predict", "--rate", "1gbit", "--rtt", "20ms", "--loss", "1%", "--cc", "cubic"]
    rows = json.loads(call(*asked, "--json").out)
    assert [row["cc"] for row in rows] == ["cubic"]
    assert call(*asked, "--csv").out.splitlines()[0].startswith("cc,formula,goodput_bps")


def test_show_says_path_rates_base_rtt_and_bandwidth_delay_product(call, scenario: Path) -> None:
    answer = call("show", scenario)
    assert answer.status == 0
    assert "sender → router → loss –[loss 1%]→ delay → receiver" in answer.out
    assert "base RTT 20 ms, bottleneck 10 Mbit/s, bandwidth-delay product 25 kB" in answer.out


def test_show_applies_overrides_and_prints_what_the_core_reads(call, scenario: Path) -> None:
    answer = call("show", scenario, "--json", "--set", "seed=9", "--set", "path.rtt=140 ms")
    compiled = json.loads(answer.out)
    assert compiled["seed"] == 9
    assert sum(link["delay_ns"] for link in compiled["links"]) == 140_000_000


def test_show_lists_programs(call) -> None:
    answer = call("show", "download")
    assert "on client: curl -sfo /dev/null -w '%{json}' http://server:8000/file\n" in answer.out
    assert "exec python3 -m http.server 8000 (a server, ready when: port 8000)\n" in answer.out


@pytest.mark.parametrize("kind", ["scenario", "study"])
def test_a_schema_is_printed_as_json(call, kind: str) -> None:
    assert json.loads(call("schema", kind).out)["type"] == "object"


def test_the_shipped_studies_are_listed_and_can_be_shown_by_name(call) -> None:
    assert "one-percent-loss" in call("studies").out
    answer = call("show", "one-percent-loss")
    assert answer.status == 0
    assert "198 points" in answer.out


@pytest.mark.usefixtures("patience")
def test_a_bare_scenario_is_run_as_a_study_of_one_point(call, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    answer = call("run", scenario, "--engine", "model", "--out", out, "--jobs", "1", "--set", "path.loss=2%")
    assert answer.status == 0, answer.err
    page = Path(answer.out.splitlines()[-1].removeprefix("report: "))
    assert page.is_file()
    assert page.parent.parent.parent == out
    assert len((page.parent / "summary.csv").read_text().splitlines()) >= 2


@pytest.mark.usefixtures("patience")
def test_the_seed_of_a_bare_scenario_can_be_set(call, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    assert call("run", scenario, "--engine", "model", "--out", out, "--jobs", "1", "--set", "seed=7").status == 0
    runs = [json.loads(path.read_text()) for path in out.glob("*/2*/points/*/run.json")]
    assert [run["seed"] for run in runs] == [7]


@pytest.mark.usefixtures("patience")
def test_omit_sets_the_warm_up_and_the_table_says_so(call, scenario: Path, tmp_path: Path) -> None:
    asked = ("run", scenario, "--engine", "model", "--out", tmp_path / "results", "--jobs", "1", "--omit")
    answer = call(*asked, "1 s")
    assert "means of 2 s, the first 1 s omitted" in answer.out
    (run,) = (tmp_path / "results").glob("*/2*/points/*/run.json")
    assert json.loads(run.read_text())["scenario"]["warmup"] == "1 s"
    answer = call(*asked, "1 s", "--set", "warmup=2 s")
    assert answer.status == 2
    assert "error[bad-usage]: --omit" in answer.err


@pytest.mark.usefixtures("patience")
def test_a_flow_that_nothing_limits_is_reported_in_the_first_line_and_in_the_report(call, tmp_path: Path) -> None:
    path = tmp_path / "up.toml"
    path.write_text(
        'duration = "1 s"\n[path]\n[host]\nreceive_buffer = "64 KiB"\n[[flows]]\nfrom = "receiver"\nto = "sender"'
    )
    answer = call("run", path, "--out", tmp_path / "results", "--jobs", "1")
    told = 'flow "cubic" sends from receiver to sender, and no link on the way has a rate'
    assert " ".join(answer.out.split()).startswith(f"warning: {told}")
    page = Path(answer.out.splitlines()[-1].removeprefix("report: "))
    assert told.replace('"', "&#34;") in page.read_text()


@pytest.mark.usefixtures("patience")
def test_a_report_is_written_again_from_the_results(call, scenario: Path, tmp_path: Path) -> None:
    answer = call("run", scenario, "--engine", "model", "--out", tmp_path / "results", "--jobs", "1", "--quiet")
    page = Path(answer.out.splitlines()[-1].removeprefix("report: "))
    page.unlink()
    assert call("report", page.parent).status == 0
    assert page.is_file()


@pytest.mark.usefixtures("patience")
def test_seeds_repeat_every_point(call, tmp_path: Path, scenario: Path) -> None:
    out = tmp_path / "results"
    answer = call("run", scenario, "--engine", "model", "--out", out, "--jobs", "1", "--seeds", "3")
    assert answer.status == 0, answer.err
    assert len(list(out.glob("*/*/points/*/run.json"))) == 3 + 3 * len(list(out.glob("*/latest")))


@pytest.mark.parametrize(
    ("arguments", "status", "code", "word"),
    [
        (["show", "{missing}"], 2, "file-not-found", "fix: "),
        (["show", "one-percent-los"], 2, "file-not-found", "one-percent-loss"),
        (["run", "{missing}"], 2, "file-not-found", "fix: "),
        (["run", "{scenario}", "--engine", "simm"], 2, "unknown-name", '"sim"'),
        (["run", "{scenario}", "--engine", "model", "--set", "path.rtt=20"], 2, "missing-unit", '"20 ms"'),
        (["run", "{scenario}", "--engine", "model", "--set", "path.rtx=20 ms"], 2, "unknown-field", '"rtt"'),
        (["run", "{scenario}", "--engine", "model", "--set", "flows.cc=cubik"], 2, "unknown-name", '"cubic"'),
        (["run", "one-percent-loss", "--set", "seed=3"], 2, "conflict", "--seeds"),
        (["run", "{scenario}", "--set", "path.rtt"], 2, "bad-override", "140 ms"),
        (["run", "{scenario}", "--engine", "model", "--out", "{scenario}/x"], 1, "unwritable-output", "scenario.toml"),
        (["run", "{scenario}", "--jobs", "0"], 2, "bad-usage", "--help"),
        (["run", "{scenario}", "--seeds", "-1"], 2, "bad-usage", "--help"),
        (["run", "{scenario}", "--engin", "model"], 2, "bad-usage", "--engine"),
        (["rum"], 2, "bad-usage", "run"),
        (["show", "/dev/zero"], 2, "file-unreadable", "a device"),
        (["show", "{pipe}"], 2, "file-unreadable", "a pipe"),
        (["run", "{pipe}"], 2, "file-unreadable", "a pipe"),
        (["show", "/"], 2, "file-unreadable", "a directory"),
        (["report", "{pipe}"], 2, "not-a-result", "pipe"),
        (["report", "{scenario}"], 2, "not-a-result", "fix: "),
        (["predict", "--rate", "100", "--rtt", "20 ms", "--loss", "1%"], 2, "missing-unit", "rate"),
        (["predict", "--rate", "1gbit", "--rtt", "-20 ms", "--loss", "1%"], 2, "out-of-range", "rtt"),
        (["predict", "--rate", "1gbit", "--rtt", "20 ms", "--loss", "1%", "--cc", "cubik"], 2, "unknown-name", "cubic"),
        (["predict", "--rate", "1gbit", "--rtt", "20 ms"], 2, "bad-usage", "--loss"),
        (["report", "{missing}"], 2, "file-not-found", "missing"),
        (["schema", "studdy"], 2, "unknown-name", '"study"'),
    ],
)
def test_whatever_is_wrong_is_one_message_with_code_fix_and_status(
    call, scenario: Path, tmp_path: Path, arguments: list[str], status: int, code: str, word: str
) -> None:
    places = {"scenario": scenario, "missing": tmp_path / "missing.toml", "pipe": tmp_path / "pipe"}
    os.mkfifo(places["pipe"])
    answer = call(*(argument.format(**places) for argument in arguments))
    assert answer.status == status
    assert answer.err.startswith(f"error[{code}]: ")
    assert word in answer.err
    assert answer.err.count("error[") == 1
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_without_a_command_help_is_shown(call) -> None:
    answer = call()
    assert answer.status == 2
    assert "Usage: sawtooth" in answer.out + answer.err


def test_a_defect_is_one_message_too(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kind: str) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr("sawtooth.api.schema", broken)
    answer = call("schema", "scenario")
    assert answer.status == 1
    assert answer.err.startswith("error[internal]: RuntimeError: oh")


def test_a_core_that_is_not_built_is_reported() -> None:
    without = "import sys; sys.modules['sawtooth._core'] = None; from sawtooth.cli import main; main(['run', 'a.toml'])"
    told = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
    assert (told.returncode, told.stderr.split(":")[0]) == (1, "error[core-missing]")
    assert "fix: build it: make demo" in told.stderr


def test_ctrl_c_ends_with_status_130(call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(kind: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sawtooth.api.schema", interrupted)
    answer = call("schema", "scenario")
    assert answer.status == 130
    assert answer.err.strip().splitlines()[0] == "error[interrupted]: interrupted"


def test_an_interrupt_that_a_library_made_an_error_of_its_own_is_one_all_the_same(call, monkeypatch) -> None:
    def wrapping(kind: str) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt as error:
            raise ValueError(f"a serializer failed: {error!r}") from error

    monkeypatch.setattr("sawtooth.api.schema", wrapping)
    answer = call("schema", "scenario")
    assert answer.status == 130
    assert answer.err.startswith("error[interrupted]: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_the_commands_are_imported_is_a_message_too() -> None:
    code = """if True:
        import sys
        class Interrupted:
            def find_spec(self, name, *rest):
                if name == "sawtooth.cli.commands":
                    raise KeyboardInterrupt
        sys.meta_path.insert(0, Interrupted())
        from sawtooth.cli import main
        main(["--help"])
    """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert (told.returncode, told.stdout, told.stderr) == (130, "", "error[interrupted]: interrupted\n")


def test_one_seed_and_a_number_of_seeds_exclude_each_other(call, scenario: Path) -> None:
    answer = call("run", str(scenario), "--set", "seed=3", "--seeds", "2")
    assert answer.status == 2
    assert "--seeds" in answer.err


def in_shell(command: str, **options: str) -> subprocess.CompletedProcess[str]:
    """``sawtooth`` in the command is the command line; standard input is empty unless given as ``input``."""
    program = f"{sys.executable} -c 'from sawtooth.cli import main; main()'"
    command = command.replace("sawtooth", program, 1)
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=200, **({"input": ""} | options)
    )


PREDICT = 'sawtooth predict --rate "1 Gbit/s" --rtt "20 ms" --loss 1%'


def test_a_reader_that_goes_away_is_no_defect() -> None:
    told = in_shell("sawtooth schema scenario | head -c 10")
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("arguments", [PREDICT, "sawtooth --help", "sawtooth schema scenario", "sawtooth"])
@pytest.mark.parametrize("buffered", ["", "1"])
def test_output_to_a_full_device_is_one_message(arguments: str, buffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", buffered)
    told = in_shell(f"{arguments} > /dev/full")
    assert told.returncode == 1
    assert told.stderr.startswith("error[disk-full]: cannot write to standard output: ")
    assert "fix: " in told.stderr
    assert len(told.stderr.splitlines()) == 2


def test_a_closed_output_is_one_message() -> None:
    told = in_shell(f"{PREDICT} >&-")
    assert told.returncode == 1
    assert told.stderr.startswith("error[unwritable-output]: standard output is closed\nfix: ")


@pytest.mark.parametrize("messages", ["2> /dev/full", "2>&-", "2> >(true)"])
@pytest.mark.usefixtures("patience")
def test_messages_that_nobody_takes_change_neither_output_nor_status(messages: str, tmp_path: Path) -> None:
    assert in_shell(f"{PREDICT} {messages}").stdout == in_shell(PREDICT).stdout
    assert in_shell(f"sawtooth show {tmp_path}/absent.toml {messages}").returncode == 2


@pytest.mark.usefixtures("patience")
def test_a_study_continues_when_nobody_takes_its_messages(scenario: Path, tmp_path: Path) -> None:
    told = in_shell(f"sawtooth run {scenario} --engine model --jobs 1 --out {tmp_path}/results 2> /dev/full")
    assert told.returncode == 0
    assert "report: " in told.stdout


@pytest.mark.parametrize("source", ["-", "- --set path.rtt=20ms"])
@pytest.mark.usefixtures("patience")
def test_a_scenario_is_read_from_standard_input(source: str) -> None:
    told = in_shell(f"cat | sawtooth show {source}", input=SHORT)
    assert "base RTT 20 ms, bottleneck 10 Mbit/s" in told.stdout
    told = in_shell(f"sawtooth show {source}", input="duration = 3")
    assert told.returncode == 2
    assert told.stderr.startswith("error[missing-unit]: -: duration: ")


@pytest.mark.usefixtures("patience")
def test_a_study_from_standard_input_names_its_scenario_from_here(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scenario.parent)
    told = in_shell("sawtooth show -", input=f'name = "s"\nscenario = "{scenario.name}"\nvary."path.loss" = ["1%"]')
    assert told.stdout.startswith("study s: 1 points")


def test_where_no_formula_holds_the_prediction_is_unknown(call) -> None:
    asked = ["predict", "--rate", "1 Gbit/s", "--rtt", "20 ms", "--loss", "50%"]
    answer = call(*asked)
    assert "nan" not in answer.out
    assert " bbr unknown loss" in " ".join(answer.out.split())
    assert [row["goodput_bps"] for row in json.loads(call(*asked, "--json").out) if row["cc"] == "bbr"] == [None]


@pytest.mark.usefixtures("patience")
def test_sigterm_ends_as_ctrl_c_does_and_nothing_else_is_reported(scenario: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", "run", str(scenario)]
    command += ["--set", "duration=20 d", "--set", "interval=1 h", "--out", str(tmp_path / "results"), "--jobs", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("results/*/*/progress/*")):
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.05)
        process.terminate()
        _, said = process.communicate(timeout=200)
    assert process.returncode == 130
    lines = [line for line in said.splitlines() if "%" not in line]
    assert lines[0].startswith("error[interrupted]: interrupted; 0 of 1 points are finished")
    assert len(lines) == 2
