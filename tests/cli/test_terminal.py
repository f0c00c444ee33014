"""Terminal output: no control sequences, no line that imitates ours, no value so long that it hides the rest."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sawtooth.cli import main
from sawtooth.cli.terminal import pass_on
from sawtooth.errors import InputError
from sawtooth.sanitize import is_plain, plain, printable, sentence
from sawtooth.scenario import Scenario
from sawtooth.study import Study

HOSTILE = "x\x1b]0;owned\x07\x1b[2J\rerror[internal]: forged\nerror[internal]: forged\u202e\x85\u2028\u2066y"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SOURCES = Path(__file__).parents[2] / "src" / "sawtooth"


@dataclass
class Told:
    """The output of a command, and its exit status."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Told]:
    def call(*arguments: str, text: str = "") -> Told:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        printed = capsys.readouterr()
        return Told(int(ended.value.code or 0), printed.out, printed.err)

    return call


def harmless(printed: str) -> bool:
    return STEERS.search(printed) is None and not re.search(r"^error\[internal\]: forged", printed, re.MULTILINE)


@given(st.text())
def test_a_plain_value_is_one_line_that_a_terminal_only_shows(text: str) -> None:
    assert is_plain(plain(text))
    assert "\n" not in plain(text)
    assert len(plain(text, 50)) <= 50 * 12


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), max_size=100))
def test_letters_of_any_script_stay_as_they_are(text: str) -> None:
    assert plain(text) == text


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
@pytest.mark.usefixtures("patience")
def test_json_stays_the_same_json(value: object) -> None:
    shown = printable(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps(value))
    assert STEERS.search(shown) is None


def test_of_a_long_value_the_middle_is_left_out() -> None:
    assert plain("1" * 5000 + "2", 20) == "1" * 10 + "…" + "1" * 8 + "2"


def test_further_lines_of_a_message_are_indented() -> None:
    assert sentence("it ended:\nerror[x]: y").splitlines() == ["it ended:", "    error[x]: y"]


def test_an_error_is_its_own_lines_whatever_it_quotes() -> None:
    error = InputError("unknown-field", f"{HOSTILE} is none", file=HOSTILE, field=HOSTILE, fix=HOSTILE)
    assert harmless(str(error))
    assert [line[:5] for line in str(error).splitlines() if not line.startswith("    ")] == ["error", "fix: "]


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", HOSTILE],
        ["run", "one-percent-loss", "--engine", HOSTILE],
        ["run", "one-percent-loss", "--out", f"/dev/null/{HOSTILE}", "--quiet", "--engine", "model"],
        ["show", "one-percent-loss", "--set", f"{HOSTILE}=1"],
        ["show", "one-percent-loss", "--set", f"chain.loss={HOSTILE}"],
        ["show", "one-percent-loss", "--set", f"flows.{HOSTILE}.cc=cubic"],
        ["show", "one-percent-loss", "--set", HOSTILE],
        ["predict", "--rate", HOSTILE, "--rtt", "1 ms", "--loss", "1%"],
        ["predict", "--rate", f"1 {HOSTILE}", "--rtt", "1 ms", "--loss", "1%"],
        [HOSTILE],
        ["show", "--" + HOSTILE],
        ["schema", HOSTILE],
        ["report", HOSTILE],
        ["compare", HOSTILE, HOSTILE],
        ["capture", HOSTILE],
        ["capture", "-", "--out", f"/dev/null/{HOSTILE}"],
        ["whatif", HOSTILE],
        ["explain", HOSTILE],
        ["congestion", "estimate", HOSTILE, "--quiet"],
        ["probe", "near", HOSTILE, "--hops", "1"],
        ["kernel", "build", "--quiet", "--source", f"/nonexistent/{HOSTILE}"],
        # A name that is not valid UTF-8.
        ["show", "\udcff\udc85.toml"],
    ],
)
def test_what_is_given_on_the_command_line_comes_back_harmless(arguments: list[str], called) -> None:
    told = called(*arguments)
    assert told.returncode in (1, 2)
    assert told.stderr.startswith("error[")
    assert not told.stderr.startswith("error[internal]")
    assert harmless(told.stdout + told.stderr)


@pytest.mark.parametrize(
    "text",
    [
        '"a\\u001b[31m\\u202e\\nerror[internal]: forged" = 1',
        'topology = "a\\u001b[31m\\u202e\\nerror[internal]: forged"',
        '[path]\nrate = "1 a\\u001b[31m\\u202e\\nerror[internal]: forged"',
        '[hosts."a\\u001b[31m\\nerror[internal]: forged"]\nhz = 250',
        '[[flows]]\ncc = "a\\u0085\\nerror[internal]: forged"',
        '[[flows]]\nname = "a\\u0085\\nerror[internal]: forged"',
        "a\x1b[31m = 1",
        '[path]\nrate = "' + "9" * 5000 + ' bit/s"',
        '[path]\nrtt = "' + "9" * 29 + ' ms"',
        "[" + "a" * 250 + "]",
        'name = "a\\u202eb"',
        'name = "a\\u0085b"',
        "name = 'x\u2028error[internal]: forged'",
        'name = "x"\ntitle = "a\\u001b"\n[scenario]\n',
        'name = "x"\nquestion = "a\\u001b"\n[scenario]\n',
        'name = "x"\n[scenario]\n[vary]\n"flows.cc\\u001b" = ["cubic"]',
        'name = "x"\n[scenario]\n[vary]\n"flows.cc" = ["cubic\\u001b"]',
        'name = "x"\n[scenario]\n[vary]\nflows.cc = ["cubic"]\n[columns.cc]\nfield = "flows.cc"\ntitle = "\\u202e"',
        'name = "x"\n[scenario]\n[columns.cc]\nfield = "flows.cc"\nlabels = { cubic = "\\u009b31m" }',
    ],
)
def test_what_is_in_a_file_comes_back_harmless_and_short(text: str, called) -> None:
    told = called("show", "-", text=text)
    assert told.returncode == 2, told.stdout
    assert not told.stderr.startswith("error[internal]")
    assert harmless(told.stdout + told.stderr)
    assert len(told.stderr) < 1500
    assert len(told.stderr.splitlines()) == 2


@pytest.mark.parametrize("character", ["\x1b", "\x85", "\x9b", "\u202e", "\u2066", "\u2028", "\ud800", "\n", "\x7f"])
def test_names_and_titles_with_what_steers_a_terminal_are_refused(character: str) -> None:
    with pytest.raises(InputError) as caught:
        Scenario(name=f"a{character}b")
    assert caught.value.code in ("bad-name", "wrong-type")
    for table in ({"name": f"a{character}b"}, {"name": "x", "title": f"a{character}b"}):
        with pytest.raises(InputError) as caught:
            Study.from_dict({"scenario": {}} | table)
        assert caught.value.code in ("bad-name", "wrong-type")


@pytest.mark.usefixtures("patience")
def test_a_terminal_that_takes_ascii_only_gets_the_rest_written_out(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("")
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", "show", str(tmp_path / "a.toml")]
    environment = {"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}
    told = subprocess.run(command, capture_output=True, env=environment, timeout=200)
    assert told.returncode == 0, told.stderr
    assert b"sender \\u2192 router" in told.stdout


def test_commands_print_in_one_place_only() -> None:
    """A separate program whose parent reads its output prints it unchanged. So does an interrupt that comes before the
    printing module is imported.
    """
    programs = {"browser.py", "doctor/probe.py", "doctor/tracing.py", "kernel/guest_keeper.py", "testbed/__main__.py"}
    # Output of the user's module is passed on, made safe for a terminal.
    programs |= {"engines/cc_module/printed_text.py"}
    printing = re.compile(r"\bclick\.(?:echo|secho)\(|(?<![\w.])print\(|sys\.(?:stdout|stderr)\.write\(")
    found = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if any(printing.search(line) and ">>>" not in line for line in path.read_text().splitlines())
    }
    assert found - programs == {"cli/__init__.py", "cli/terminal.py"}


def test_states_of_a_progress_bar_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    pass_on(b"", b"\r 10%\r 20%\r\nend\n")
    assert capsys.readouterr().err == "\n 10%\n 20%\nend\n"
