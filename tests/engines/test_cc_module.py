"""Modules: congestion controls as C sources written for Linux, compiled and run in a separate process by the engine
sim.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.engines.cc_module import interface
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from waiting import is_running, until

SIM = engines.get("sim")
RENO = """
#include <linux/module.h>
#include <net/tcp.h>

%(before)s
static void mine_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	%(avoid)s
	(void)tp;
	tcp_reno_cong_avoid(sk, ack, acked);
}

static struct tcp_congestion_ops mine = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = mine_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "%(name)s",
};

static int __init mine_register(void)
{
	return tcp_register_congestion_control(&mine);
}
%(after)s
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared by all tests of a run, so that each module is compiled once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def source(
    directory: Path, avoid: str = "", before: str = "", name: str = "mine", after: str = "module_init(mine_register);"
) -> Path:
    path = directory / "tcp_mine.c"
    path.write_text(RENO % {"avoid": avoid, "before": before, "name": name, "after": after})
    return path


def scenario(*ccs: Any, duration: str = "2 s", loss: str = "0.5%", **others: Any) -> Scenario:
    flows = [{"name": f"f{number}", "cc": cc} for number, cc in enumerate(ccs)]
    path = {"rate": "20 Mbit/s", "rtt": "10 ms", "loss": loss}
    return Scenario.from_dict({"duration": duration, "path": path, "flows": flows, **others})


def module(path: Path, **given: Any) -> dict[str, Any]:
    return {"source": str(path), **given}


def refusal(cc: Any) -> SawtoothError:
    with pytest.raises(SawtoothError) as caught:
        SIM.run(scenario(cc))
    return caught.value


def same(one: Run, other: Run) -> bool:
    return all(table.equals(other.tables[name]) for name, table in one.tables.items())


@pytest.mark.usefixtures("patience")
def test_a_module_of_renos_helpers_gives_renos_tables(tmp_path: Path) -> None:
    assert same(SIM.run(scenario("reno")), SIM.run(scenario(module(source(tmp_path)))))


@pytest.mark.usefixtures("patience")
def test_several_modules_and_controls_of_the_core_share_a_run(tmp_path: Path) -> None:
    mine = module(source(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    theirs = module(source(other))
    assert same(SIM.run(scenario("reno", "bbr", "reno")), SIM.run(scenario(mine, "bbr", theirs)))


@pytest.mark.usefixtures("patience")
def test_each_connection_has_its_own_private_memory_and_each_run_a_fresh_module(tmp_path: Path) -> None:
    counting = """
	u64 *calls = inet_csk_ca(sk);
	static u64 all;
	if (++*calls > 1000000 || ++all > 1000000)
		BUG();
	if (*calls == 1)
		tcp_snd_cwnd_set(tp, 20 + (u32)all);
    """
    one = scenario(module(source(tmp_path, counting)), module(source(tmp_path, counting)))
    assert same(SIM.run(one), SIM.run(one))


@pytest.mark.usefixtures("patience")
def test_hz_is_that_of_the_sending_host(tmp_path: Path) -> None:
    path = source(tmp_path, "if (HZ != 1000 || usecs_to_jiffies(1500) != 2) BUG();")
    SIM.run(scenario(module(path), host={"hz": 1000}))
    with pytest.raises(SawtoothError, match=r"BUG\(\)"):
        SIM.run(scenario(module(path)))


def test_what_is_in_flight_is_reported_in_bytes_and_the_peers_timestamps_have_an_offset(tmp_path: Path) -> None:
    before = """
    static void mine_acked(struct sock *sk, const struct ack_sample *sample)
    {
        const struct tcp_sock *tp = tcp_sk(sk);
        u32 apart = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr;

        if (sample->in_flight % tp->mss_cache)
            BUG();
        if (tp->rx_opt.rcv_tsval && apart + 100000 < 200000)
            BUG();
    }
    """
    path = source(tmp_path, before=before)
    path.write_text(path.read_text().replace(".undo_cwnd", ".pkts_acked = mine_acked,\n\t.undo_cwnd"))
    assert same(SIM.run(scenario("reno")), SIM.run(scenario(module(path))))


def test_parameters_change_what_a_module_does_and_two_flows_may_have_other_ones(tmp_path: Path) -> None:
    before = 'static int most = 1000;\nmodule_param(most, int, 0644);\nMODULE_PARM_DESC(most, "largest window");'
    path = source(tmp_path, "tp->snd_cwnd_clamp = most;", before)
    run = SIM.run(scenario(module(path, parameters={"most": 4}), module(path)))
    info = run.tables["tcp_info"]
    windows = [int(info[info["flow"] == flow]["cwnd_segments"].max()) for flow in (0, 1)]
    assert windows[0] <= 10 < windows[1]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("kind", "value", "takes"),
    [
        ("int", -3, True),
        ("int", 2**31, False),
        ("uint", -1, False),
        ("bool", True, True),
        ("bool", 2, False),
        ("int", "seven", False),
        ("int", "0x10", True),
        ("ushort", 65_536, False),
        ("charp", "words", True),
        ("byte", 255, True),
    ],
)
def test_a_parameter_takes_what_its_type_holds(tmp_path: Path, kind: str, value: object, takes: bool) -> None:
    c = {"uint": "unsigned int", "bool": "bool", "ushort": "unsigned short", "charp": "char *", "byte": "unsigned char"}
    path = source(tmp_path, before=f"static {c.get(kind, kind)} knob;\nmodule_param(knob, {kind}, 0444);")
    asked = scenario(module(path, parameters={"knob": value}), duration="10 ms", interval="10 ms")
    if takes:
        SIM.run(asked)
        return
    with expected_error(code="module-refused", field="flows.0.cc.parameters.knob"):
        SIM.run(asked)


def test_an_unknown_parameter_is_reported_with_the_nearest(tmp_path: Path) -> None:
    path = source(tmp_path, before="static int beta = 1;\nmodule_param(beta, int, 0644);")
    error = refusal(module(path, parameters={"betta": 7}))
    assert (error.code, error.fix) == ("unknown-name", 'did you mean "beta"?')


@pytest.mark.parametrize("value", [1.5, [1], {"a": 1}, 2**70])
def test_a_parameter_of_no_type_of_a_module_is_refused_before_anything_is_compiled(value: object) -> None:
    with expected_error(field="flows.0.cc.parameters.beta"):
        scenario({"source": "mine.c", "parameters": {"beta": value}})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"after": ""}, "no module_init"),
        ({"name": ""}, "has no name"),
        ({"name": "longer_than_the_kernel_allows"}, "longer than 15 characters"),
        ({"name": "a/\\x1b[1m"}, "more than letters, digits, _ and -"),
        ({"after": "static int no(void) { return -5; }\nmodule_init(no);"}, "returned -5"),
        ({"after": "static int no(void) { return 0; }\nmodule_init(no);"}, "registers no congestion control"),
        (
            {"after": "static int two(void) { mine_register(); return mine_register(); }\nmodule_init(two);"},
            '"mine" is registered twice',
        ),
    ],
)
def test_a_module_that_does_not_begin_says_why(tmp_path: Path, given: dict[str, str], says: str) -> None:
    error = refusal(module(source(tmp_path, **given)))
    assert error.code == "module-refused"
    assert says in error.message


@pytest.mark.usefixtures("patience")
def test_of_several_a_name_chooses(tmp_path: Path) -> None:
    after = """
	static struct tcp_congestion_ops other;
	static int both(void)
	{
		other = mine;
		strcpy(other.name, "other");
		return mine_register() ?: tcp_register_congestion_control(&other);
	}
	module_init(both);
    """
    path = source(tmp_path, after=after)
    error = refusal(module(path))
    assert (error.code, error.fix) == ("module-refused", 'choose one: cc = { source = "tcp_mine.c", name = "mine" }')
    assert refusal(module(path, name="othr")).fix == 'did you mean "other"?'
    assert SIM.run(scenario(module(path, name="other"))).meta["delivered_packets"] > 0


@pytest.mark.parametrize(
    ("avoid", "says"),
    [
        ("tp->snd_cwnd = 100 / (tp->mss_cache - 1448);", "divided by zero, in its cong_avoid"),
        ("*(volatile int *)8 = 1;", "reached for memory that is not there, in its cong_avoid"),
        ("BUG();", "came to a BUG()"),
        ("((u64 *)inet_csk_ca(sk))[13] = 1;", "wrote beyond its private memory"),
    ],
)
def test_a_module_that_fails_ends_its_run_and_nothing_else(tmp_path: Path, avoid: str, says: str) -> None:
    error = refusal(module(source(tmp_path, avoid)))
    assert (error.code, error.file, error.field) == ("module-failed", str(tmp_path / "tcp_mine.c"), "flows.0.cc")
    assert says in error.message
    assert SIM.run(scenario("reno")).meta["delivered_packets"] > 0


def test_endless_recursion_is_a_fault_of_the_module(tmp_path: Path) -> None:
    deep = "static noinline int deep(volatile int *n) { volatile int x = *n; return deep(&x) + x; }"
    error = refusal(module(source(tmp_path, "volatile int n = 1; tp->snd_cwnd += deep(&n);", deep)))
    assert "reached for memory that is not there, in its cong_avoid" in error.message


@pytest.mark.usefixtures("patience")
def test_a_module_that_loops_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sawtooth.engines.cc_module.isolated_process.PATIENCE_S", 1)
    path = source(tmp_path, "for (volatile int i = 0;;) i++;")
    error = refusal(module(path))
    assert error.code == "module-failed"
    assert "in its cong_avoid" in error.message
    # The line of the loop, if binutils are installed to find it.
    assert "tcp_mine.c line 9" in error.message or not _has("addr2line")


def test_a_module_that_ends_the_process_is_named(tmp_path: Path) -> None:
    before = "extern void _exit(int status);"
    assert "ended with status 3" in refusal(module(source(tmp_path, "_exit(3);", before))).message


@pytest.mark.parametrize("then", ["", "_exit(3);"], ids=["goes on", "ends"])
def test_a_process_that_a_module_began_ends_with_the_run(tmp_path: Path, then: str) -> None:
    before = """
        extern int fork(void), open(const char *, int, ...), dprintf(int, const char *, ...);
        extern unsigned sleep(unsigned);
        extern void _exit(int);
        static int began;
    """
    began = tmp_path / "began"
    told = f'dprintf(open("{began}", 0101, 0600), "%d", began);'
    avoid = f"if (!began) {{ began = fork(); if (!began) {{ sleep(600); _exit(0); }} {told} {then} }}"
    path = source(tmp_path, avoid, before)
    if then:
        assert "ended with status 3" in refusal(module(path)).message
    else:
        SIM.run(scenario(module(path)))
    until(lambda: not is_running(int(began.read_text())))


@pytest.mark.parametrize(
    ("avoid", "line", "fix"),
    [
        ("tp->snd_cwndd = 1;", 9, "did you mean snd_cwnd?"),
        ("tcp_reno_cong_avoidd(sk, ack, acked);", 9, '"tcp_reno_cong_avoid"'),
        ("tp->snd_cwnd = 1", 9, "correct the source"),
    ],
)
def test_what_a_compiler_refuses_is_reported_with_its_line_and_what_there_is(
    tmp_path: Path, avoid: str, line: int, fix: str
) -> None:
    error = refusal(module(source(tmp_path, avoid)))
    assert (error.code, error.file) == ("compile-failed", str(tmp_path / "tcp_mine.c"))
    assert f"line {line}:" in error.message
    assert fix in (error.fix or "")


def test_a_missing_header_is_reported_with_those_that_there_are(tmp_path: Path) -> None:
    error = refusal(module(source(tmp_path, before="#include <linux/win_minmaxx.h>")))
    assert "did you mean <linux/win_minmax.h>?" in (error.fix or "")


def test_a_missing_function_of_another_file_is_named(tmp_path: Path) -> None:
    error = refusal(module(source(tmp_path, "elsewhere(sk);", "void elsewhere(struct sock *sk);")))
    assert "it uses elsewhere, which is not defined" in error.message


def test_files_that_belong_together_are_one_module(tmp_path: Path) -> None:
    path = source(tmp_path, "elsewhere(sk);", "void elsewhere(struct sock *sk);")
    other = tmp_path / "other.c"
    other.write_text("#include <net/tcp.h>\nvoid elsewhere(struct sock *sk);\nvoid elsewhere(struct sock *sk) {}\n")
    run = SIM.run(scenario({"source": [str(path), str(other)]}))
    assert same(run, SIM.run(scenario("reno")))


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x00\xff\xfe" * 50, b"int x;", b"\x00", b"}{" * 500])
def test_what_is_no_module_is_refused_with_its_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.c"
    path.write_bytes(content)
    error = refusal(module(path))
    assert (error.code in ("compile-failed", "module-refused"), error.file) == (True, str(path))


def test_a_source_that_is_a_directory_or_missing_is_reported_before_anything_is_compiled(tmp_path: Path) -> None:
    assert refusal(module(tmp_path)).code == "file-unreadable"
    error = refusal(module(tmp_path / "none.c"))
    assert (error.code, error.field) == ("file-not-found", "flows.0.cc.source")


def test_without_a_compiler_the_fix_is_to_install_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    error = refusal(module(source(tmp_path)))
    assert error.code == "tool-missing"
    assert "apt install gcc" in (error.fix or "")


def test_a_scenario_file_names_its_source_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    source(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text('duration = "1 s"\n[[flows]]\ncc = { source = "tcp_mine.c" }\n')
    loaded = Scenario.load(file)
    assert loaded.flows[0].cc.source == (str(tmp_path / "tcp_mine.c"),)
    assert loaded.compile().flows[0].name == "tcp_mine"
    assert SIM.run(loaded).meta["delivered_packets"] > 0


def test_a_field_by_its_path_makes_a_module_of_a_name() -> None:
    changed = Scenario().set({"flows.0.cc.source": "a.c", "flows.0.cc.parameters.beta": 7})
    assert changed.to_dict()["flows"][0]["cc"] == {"source": "a.c", "parameters": {"beta": 7}}
    assert Scenario.from_dict(changed.to_dict()) == changed


def test_a_scenario_is_another_one_once_its_source_says_something_else(tmp_path: Path) -> None:
    path = source(tmp_path)
    before = scenario(module(path)).digest()
    moved = tmp_path / "moved"
    moved.mkdir()
    assert scenario(module(source(moved))).digest() == before
    source(tmp_path, "tp->snd_cwnd = 7;")
    assert scenario(module(path)).digest() != before


@pytest.mark.parametrize("engine", ["model", "netns"])
def test_engines_that_run_no_source_say_so(engine: str, tmp_path: Path) -> None:
    with expected_error(code="unsupported"):
        engines.get(engine).check(scenario(module(source(tmp_path))))


def test_a_control_that_the_simulator_lacks_may_be_given_by_its_source() -> None:
    with pytest.raises(SawtoothError, match=r"tcp_westwood\.c"):
        SIM.run(scenario("westwood"))


def test_captures_and_progress_are_those_of_a_run_without_modules(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    seen: list[float] = []
    SIM.capturing(ours).run(scenario("reno", duration="1 s"))
    SIM.capturing(theirs).run(scenario(module(source(tmp_path)), duration="1 s"), progress=seen.append)
    assert seen[-1] == 1.0
    for file in ours.iterdir():
        assert file.read_bytes() == (theirs / file.name).read_bytes()


def test_stop_ends_the_process_that_runs_the_module(tmp_path: Path) -> None:
    with expected_error(code="interrupted"):
        SIM.run(scenario(module(source(tmp_path))), stop=lambda: True)
    assert not _apart()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_kill_leave_no_process_even_of_a_module_that_loops(tmp_path: Path, number: signal.Signals) -> None:
    source(tmp_path, "for (volatile int i = 0;;) i++;")
    (tmp_path / "loop.toml").write_text('[[flows]]\ncc = { source = "tcp_mine.c" }\n')
    program = textwrap.dedent(
        f"""
        from sawtooth import engines
        from sawtooth.scenario import Scenario
        engines.get("sim").run(Scenario.load({str(tmp_path / "loop.toml")!r}))
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as process:
        found = until(lambda: _apart(process.pid))
        time.sleep(0.3)
        process.send_signal(number)
        process.wait(60)
        until(lambda: not [one for one in found if Path(f"/proc/{one}").exists()])


def test_the_headers_offer_what_linuxs_own_controls_use() -> None:
    assert {"tcp_slow_start", "tcp_cong_avoid_ai", "minmax_running_max", "div64_u64", "get_random_u32_below"} <= set(
        interface.functions()
    )
    assert {"snd_cwnd", "snd_ssthresh", "delivered", "srtt_us", "rx_opt"} <= set(
        interface.structures()["struct tcp_sock"]
    )
    assert {"ssthresh", "cong_control", "in_ack_event"} <= set(interface.structures()["struct tcp_congestion_ops"])


def _has(program: str) -> bool:
    return any((Path(place) / program).exists() for place in os.environ["PATH"].split(":"))


def _apart(parent: int | None = None) -> list[int]:
    """Processes that run modules for ``parent``, by default for this process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(after[1]) == (parent or os.getpid()) and b"sawtooth.engines.cc_module" in command and after[0] != "Z":
            found.append(int(status.parent.name))
    return found


def test_the_pages_names_are_those_of_the_headers() -> None:
    import module_reference as reference

    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run tools/module_reference.py"


def test_the_engine_kernel_says_how_to_build_a_kernel_that_has_the_file(tmp_path: Path) -> None:
    path = source(tmp_path)
    with expected_error(code="kernel-missing") as caught:
        engines.get("kernel").check(scenario(module(path), traffic="native"))
    assert f"sawtooth kernel build --with {path}" in (caught.value.fix or "")
