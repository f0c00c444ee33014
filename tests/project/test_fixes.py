"""Fixes that can be typed, followed literally: the error that had them is gone.

``fixes.txt`` has what is wrong, a file or a command line, and the words of the fix to type; ``followed.py`` types them
into the file, and of a command line the table has the one that comes of it. The last test finds every error of the
package in its sources: one whose fix can be typed is tried here, or ``ELSEWHERE`` says what trying it would take.
"""

import ast
import functools
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import sawtooth
from followed import retyped
from sawtooth import Scenario, Study, run
from sawtooth.cli.program import status_of
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.scenario.toml import parse_toml, toml_text
from sawtooth.study import run_study

TABLE = Path(__file__).parents[1] / "fixes.txt"
PACKAGE = Path(sawtooth.__file__).parent
SHORT = 'duration = "0.5 s"\ninterval = "50 ms"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\n'
STUDY = f"""
name = "study"
scenario = {{ {", ".join(SHORT.splitlines())} }}
vary = {{ "path.loss" = ["0%", "1%"] }}
"""
FILES = {
    "plain.toml": SHORT + 'flows = [{ cc = "cubic" }, { cc = "reno", name = "old" }]\n',
    "alone.toml": SHORT + 'flows = [{ name = "old" }]\n',
    "probed.toml": SHORT + 'probes = [{ interval = "20 ms" }]\n',
    "calling.toml": SHORT + 'flows = [{ source = { kind = "udp", rate = "100 kbit/s" } }]\n',
    "study.toml": STUDY,
    "expecting.toml": STUDY + 'expect = { goodput = "mean_mbps > 1 Mbit/s" }\n',
    "tcp_mine.c": "",
    "script.pkt": "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n",
}


@dataclass(frozen=True)
class Case:
    """What is wrong, the words of its fix, and for a command line the next line of the table."""

    wrong: str
    typed: tuple[str, ...]
    after: str | None

    def __str__(self) -> str:
        return f"{self.wrong.splitlines()[-1][:60]}-{self.typed[0]}"


def _cases() -> Iterator[Case]:
    for block in TABLE.read_text(encoding="utf-8").strip().split("\n\n")[1:]:
        lines = block.splitlines()
        typed = tuple(line.removeprefix("> ") for line in lines if line.startswith("> "))
        commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        if commands:
            before, after = commands
            yield Case(before, typed, after)
        else:
            yield Case("\n".join(line for line in lines if not line.startswith("> ")), typed, None)


CASES = list(_cases())
SEEN: set[tuple[str, int]] = set()
"""Files and lines of the package that raised an error in these tests."""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files, results and a capture."""
    home = tmp_path_factory.mktemp("office")
    for name, text in FILES.items():
        (home / name).write_text(text)
    for name in ("one", "other"):
        run(Scenario.load(home / "probed.toml")).save(home / name)
    run_study(Study.load(home / "study.toml"), out=home / "made", jobs=1, quiet=True)
    (home / "made" / "study" / "latest").resolve().rename(home / "results")
    Sim(capture=home, capture_at=("sender",)).run(Scenario.from_dict(parse_toml(SHORT) | {"duration": "4 s"}))
    (home / "capture-sender.pcap").rename(home / "capture.pcap")
    return home


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch, office: Path) -> None:
    """Records where errors come from."""
    monkeypatch.chdir(office)
    plain = SawtoothError.__init__

    @functools.wraps(plain)
    def noting(self: SawtoothError, *given: object, **named: object) -> None:
        frame = sys._getframe(1)
        SEEN.add((frame.f_code.co_filename, frame.f_lineno))
        plain(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(SawtoothError, "__init__", noting)


def _told(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str]:
    """The command line's error: code, place, and fix; empty if there is none."""
    capsys.readouterr()
    status_of(shlex.split(line))
    said = capsys.readouterr().err
    found = re.search(r"^error\[([a-z-]+)\]: (.*?)\nfix: (.*)\Z", said, re.MULTILINE | re.DOTALL)
    return (found[1], found[2], found[3].strip()) if found else ("", "", "")


def _is_in(typed: str, fix: str) -> bool:
    """Whether the fix says to type it; for ``remove X or Y``, either may be typed."""
    words = typed.split()
    return typed in fix or (words[0] in ("remove", "swap") and all(word in fix for word in words))


@pytest.mark.parametrize("case", [case for case in CASES if case.after is None], ids=str)
@pytest.mark.usefixtures("patience")
def test_a_fix_typed_into_the_file_mends_it(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(case.wrong)
    code, where, fix = _told(f"show {file}", capsys)
    assert code
    field = where.removeprefix(f"{file}: ").partition(": ")[0]
    for typed in case.typed:
        assert _is_in(typed, fix), fix
        file.write_text(toml_text(retyped(parse_toml(case.wrong), code, field, typed)))
        again, elsewhere, _ = _told(f"show {file}", capsys)
        assert (again, elsewhere) != (code, where), typed


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("case", [case for case in CASES if case.after is not None], ids=str)
def test_a_fix_typed_on_the_command_line_mends_it(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    code, where, fix = _told(case.wrong, capsys)
    assert code
    assert _is_in(case.typed[0], fix), fix
    again, elsewhere, _ = _told(case.after or "", capsys)
    assert (again, elsewhere) != (code, where)
    assert again not in ("internal", "bad-usage"), elsewhere


ELSEWHERE = {
    "the real kernel and programs, or an answer of a worker: test_programs.py, test_cluster_liars.py": """
        cli/exec_command:_measures
        cli/exec_command:_with_programs
        cli/exec_command:_scenario
        cli/exec_command:exec_
        programs/measure:check_place
        study/runner:_run_tasks
    """,
    "a defect, or what only a broken installation has": """
        cli/watch_command:_run
        errors:unforeseen
    """,
    "a package, compiler or tool that is absent": """
        cli/watch_command:_extra
        dask/cluster:needed
        dask/secure:made
        link_estimate/gaussian:scikit
        packetdrill/guest:find_program
        engines/cc_module/compiler:_compiler
        engines/onnx_layers:read
        gym/__init__:__getattr__
        results/query:_duckdb
        study/dataset:__init__
        testbed/compiler:_compiled
        testbed/unsupported:check_tools
        watch/netlink:_unsupported
    """,
    "root, or its absence; a network, or namespaces": """
        explain/live:live
        cli/clean_command:clean
        cli/probe_command:_measure
        cli/probe_command:_probes
        probe/opening:_missing
        link_estimate/series:_unpaired
        engines/netns:_measure
        engines/netns:_check
        engines/netns:_check_control
        testbed/outcome:_ends
        testbed/__main__:_unforeseen
        testbed/traffic:check_source
        testbed/kernel_features:place
        watch/netlink:_within
    """,
    "a kernel that is built, or building one": """
        behaviors/bisect:_check
        behaviors/bisect:_searched
        cli/kernel_bisect:bisect
        cli/kernel_commands:_named
        cli/kernel_commands:compare
        cli/kernel_commands:remove
        engines/kernel:_called
        engines/kernel:_check_control
        engines/kernel:_check_queues
        engines/kernel:_words
        compare/fidelity/campaign:_away
        compare/fidelity/measurements:unmeasured
        kernel/additions:patch
        kernel/history:resolve
        kernel/kernel:find
        kernel/kernel:find_with
        kernel/provenance:_wrong
    """,
    "controls in Python and in NumPy files, and environments: tests/gym": """
        engines/agents:_only
        engines/agents:check_alone
        engines/policy:__post_init__
        engines/policy:checked_action
        engines/policy:interval
        gym/episodes:_check_lasting
        gym/episodes:flow_of
    """,
    "a cluster": """
        dask/cluster:__init__
        dask/cluster:_connected
        dask/workers:refresh
        dask/local:_mourn
        dask/secure:security
        cli/workers:workers
        study/dataset:contents
        study/dataset:read
        study/worker:_run_apart
    """,
    "a limit of memory or a full disk, an interruption, or a port that is taken": """
        cli/common_options:invoke
        cli/lab_command:serve
        link_estimate/calibrate:make
        io/atomic_io:writing
        watch/record:__init__
        watch/record:_writing
    """,
    "results that were damaged, or written by another version": """
        link_estimate/calibrate:read
        link_estimate/model:_read
        report/page:write_report
        results/parquet_scan:scanned
        io/atomic_io:read_description
        behaviors/bisect:_journal
        watch/replay:_check
    """,
    "Python: the command line gives no such value": """
        link_estimate/inputs/__init__:read_series
        stats/call:call
        api:run
        watch/sampler:describing
        watch/watcher:in_order
    """,
    "a C module": """
        engines/cc_module/isolated_process:_refused
        engines/cc_module/compiler_errors:refused
    """,
    "a file that would have to be written for it": """
        capture/busiest_connection:read_busiest
        cli/congestion_command:calibrate
        link_estimate/inputs/__init__:_text
        link_estimate/inputs/csv:_columns
        link_estimate/inputs/csv:_pace_s
        compare/fidelity/grid:points
        study/published:_table
        study/published:load
        scenario/toml:_check
        replication/cells:check_condition
        replication/cells:filled
        replication/evaluation:_measured
        replication/replication:_check_columns
        behaviors/catalogue:_situations
        behaviors/catalogue:load
        behaviors/catalogue:of
        scoreboard/networks:_networks
        study/axis:in_unit
        study/cases:axes_of
        study/study:_check_axis
        explain/inputs:_kind_of_json
        explain/inputs:_read
        explain/mtr:_wrong
        whatif/inputs:_text
        whatif/ss:from_ss
    """,
    "names within a list or an expression": """
        assertions/observations:_field
        assertions/observations:_without_parts
        assertions/observations:sample
        scenario/expressions/parser:__init__
    """,
}
"""Functions with an error whose fix can be typed but is not tried here, by what a trial would need."""
TYPED = re.compile(r'"[^"]+"| = |--\w|sawtooth \w|\bremove |did you mean|\bswap |pip install|modprobe|apt |ulimit')
"""Something to type, in a fix."""


def _sites() -> Iterator[tuple[str, ast.Call, str]]:
    """Every error of the package: "module:function", the call, and its fix in the source."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"), str(path))
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        functions = [one for one in ast.walk(module) if isinstance(one, ast.FunctionDef)]
        for call in ast.walk(module):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("SawtoothError", "InputError"):
                around = [one for one in functions if one.lineno <= call.lineno <= (one.end_lineno or 0)]
                within = max(around, key=lambda one: one.lineno)
                values = {name: [value] for name, value in _set(module.body)}
                for set_, value in _set(ast.walk(within)):
                    values.setdefault(set_, []).append(value)
                fixes = [word.value for word in call.keywords if word.arg == "fix"]
                yield f"{name}:{within.name}", call, " ".join(_words(fix, values) for fix in fixes)


def _set(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Names, and their values."""
    for one in nodes:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            yield one.targets[0].id, one.value


def _words(expression: ast.expr, values: Mapping[str, Sequence[ast.expr]]) -> str:
    """The text in it, and in the values of its names."""
    said = []
    for one in ast.walk(expression):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            said.append(one.value)
        elif isinstance(one, ast.Name):
            said.append({"suggestion": "did you mean", "install_extra": "pip install"}.get(one.id, ""))
            said += [_words(value, {}) for value in values.get(one.id, ())]
    return "".join(said)


@pytest.mark.usefixtures("patience")
def test_every_fix_that_can_be_typed_is_tried(request: pytest.FixtureRequest) -> None:
    ran = {item.name for item in request.session.items if item.path == request.path}
    if len(ran) <= len(CASES):
        pytest.skip("only the whole file tries them all")
    tried, untried, counts = set(), set(), Counter[str]()
    for place, call, words in _sites():
        file = str(PACKAGE / f"{place.partition(':')[0]}.py")
        if any((file, line) in SEEN for line in range(call.lineno, (call.end_lineno or call.lineno) + 1)):
            tried.add(place)
            counts["tried"] += 1
        elif TYPED.search(words):
            untried.add(place)
            counts["something to type, not tried"] += 1
        else:
            counts["nothing to type, not tried"] += 1
    print(f"places in the sources that make an error: {dict(counts)}")
    assert untried - tried == {place for places in ELSEWHERE.values() for place in places.split()}
