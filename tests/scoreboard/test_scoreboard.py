"""Scoreboards: a file of networks is read and run, controls are compared, and each mistake is one clear error."""

import json
import math
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner

from dumped import dumped
from expected_error import expected_error
from sawtooth.cli.commands import sawtooth
from sawtooth.cli.program import status_of
from sawtooth.scenario import Scenario
from sawtooth.scoreboard import Board, Control, Networks, words, write_page
from sawtooth.scoreboard.lab_link import lab_link
from sawtooth.scoreboard.measures import MEASURES
from sawtooth.study import StudyResult, run_study

ROOT = Path(__file__).resolve().parents[2]

TOML = """
seeds = [1, 2]
controls = ["reno", "cubic", "dctcp"]

[scenario]
duration = "6 s"
host = { processing = "20 us" }

[lines.thin]
title = "a thin line"
set = { "path.rate" = "4 Mbit/s", "path.rtt" = "20 ms" }

[conditions.plain]

[conditions.marks]
set = { "path.queue" = { kind = "fq_codel" }, "host.ecn" = 1 }

[conditions.policed]
set = { "path.policer" = { rate = "2 Mbit/s", burst = "32 KiB" } }
possible = "2 Mbit/s"

[traffic.alone]
title = "one flow"
flows = [{ name = "own" }]

[traffic.beside]
flows = [{ name = "own" }, { name = "rival", cc = "cubic" }]

[traffic.pair]
flows = [{ name = "own" }, { name = "late", start = "1 s" }]

[traffic.short]
flows = [{ name = "own", source = { kind = "arrivals", load = "30%", sizes = "20 kB" } }]

[[networks]]
lines = ["thin"]
conditions = ["plain"]
traffic = ["alone", "beside", "pair", "short"]

[[networks]]
lines = ["thin"]
conditions = ["marks"]
traffic = ["alone"]

[[networks]]
lines = ["thin"]
conditions = ["policed"]
traffic = ["alone"]
"""

LATE = """
[[networks]]
lines = ["thin"]
conditions = ["plain"]
traffic = ["alone"]
"""

DEAF = """
#include <linux/module.h>
#include <net/tcp.h>

static void deaf_avoid(struct sock *sk, u32 ack, u32 acked) { tcp_snd_cwnd_set(tcp_sk(sk), 1); }
static u32 deaf_ssthresh(struct sock *sk) { return 2; }
static u32 deaf_undo(struct sock *sk) { return 1; }
static struct tcp_congestion_ops deaf = {
    .name = "deaf", .owner = THIS_MODULE, .ssthresh = deaf_ssthresh, .cong_avoid = deaf_avoid, .undo_cwnd = deaf_undo,
};
static int __init deaf_register(void) { return tcp_register_congestion_control(&deaf); }
static void __exit deaf_unregister(void) { tcp_unregister_congestion_control(&deaf); }
module_init(deaf_register);
module_exit(deaf_unregister);
MODULE_LICENSE("GPL");
"""
"""A window of one segment."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "few.toml"
    path.write_text(TOML)
    return path


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    place = tmp_path_factory.mktemp("few")
    (place / "few.toml").write_text(TOML)
    return ran(place / "few.toml", place / "out")


def ran(file: Path, out: Path, *controls: str) -> Board:
    networks = Networks.load(file)
    compared = networks.controls(controls)
    result = run_study(networks.study(networks.networks, compared), out=out, jobs=1, quiet=True)
    return Board.of(result, networks.networks, compared)


def cell(board: Board, network: str, control: str):
    return next(one for one in board.cells if (one.network.name, one.control.name) == (network, control))


def value(board: Board, network: str, control: str, measure: str):
    return cell(board, network, control).interval(next(one for one in MEASURES if one.name == measure))


class TestNetworks:
    def test_the_shipped_file_has_about_two_hundred_networks_that_all_can_run(self) -> None:
        shipped = Networks.load()
        assert len(shipped.networks) > 200
        points = shipped.study(shipped.networks, shipped.controls([])).points(seeds=[1])
        for point in points:
            point.scenario.check_simulated()
        assert {one.possible_mbps is None for one in shipped.networks} == {False}

    def test_a_control_that_depends_on_marks_runs_only_where_packets_are_marked(self, board: Board) -> None:
        assert [one.network.name for one in board.cells if one.control.name == "dctcp"] == ["thin/marks/alone"]
        assert [one.control.name for one in board.standings(marks=False)] == ["reno", "cubic"]
        assert [one.control.name for one in board.standings(marks=True)] == ["reno", "cubic", "dctcp"]

    @pytest.mark.parametrize(
        ("only", "count"), [(["thin"], 6), (["pair"], 1), (["marks", "short"], 2), (["plain/alone"], 1), ([], 6)]
    )
    def test_networks_are_chosen_by_their_parts(self, file: Path, only: list[str], count: int) -> None:
        assert len(Networks.load(file).chosen(only)) == count

    @pytest.mark.parametrize(
        ("old", "new", "code", "field"),
        [
            ("[lines.thin]", "[lines.thick]", "unknown-name", "networks.0.lines"),
            ("controls =", "control =", "unknown-field", "control"),
            ('flows = [{ name = "own" }]', "flows = [{}]", "missing-field", "traffic.alone.flows.0.name"),
            ('[{ name = "own" }]', '[{ name = "own", cc = "bbr" }]', "conflict", "traffic.alone.flows"),
            ('conditions = ["marks"]', 'conditions = ["plain"]', "duplicate-name", "networks.1"),
            ('"path.rtt" = "20 ms"', '"path.rrt" = "20 ms"', "unknown-field", "path.rrt"),
            ('possible = "2 Mbit/s"', 'possible = "2"', "missing-unit", "conditions.policed.possible"),
            ('"reno", "cubic"', '"reno", "cubik"', "unknown-name", "controls.1"),
            ('"reno", "cubic"', '"reno", "reno"', "duplicate-name", "controls.1"),
            ('"reno", "cubic"', '"reno", "mine.c"', "file-not-found", "controls.1"),
        ],
    )
    def test_a_mistake_in_the_file_names_its_field(self, file: Path, old: str, new: str, code: str, field: str) -> None:
        assert old in TOML
        file.write_text(TOML.replace(old, new, 1))

        def points() -> None:
            networks = Networks.load(file)
            networks.study(networks.networks, networks.controls([])).points()

        with expected_error(code=code, field=field) as caught:
            points()
        assert caught.value.fix
        assert str(file) in str(caught.value)

    @pytest.mark.parametrize("ecn", ['"host.ecn" = 1', "host = { ecn = 1 }", '"host.ecn" = true'])
    def test_a_network_has_marks_if_its_hosts_ask_for_ecn_however_that_is_written(self, file: Path, ecn: str) -> None:
        file.write_text(TOML.replace('"host.ecn" = 1', ecn))
        assert [one.name for one in Networks.load(file).networks if one.marks] == ["thin/marks/alone"]
        file.write_text(TOML.replace('"host.ecn" = 1', '"host.ecn" = 2'))
        assert not any(one.marks for one in Networks.load(file).networks)

    def test_files_that_the_file_names_are_found_beside_it(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir("/")
        (file.parent / "own.csv").write_text("t_s,rate_bps\n0,4000000\n10,2000000\n")
        (file.parent / "deaf.c").write_text(DEAF)
        text = TOML.replace('"path.rate" = "4 Mbit/s"', '"path.trace" = "own.csv"').replace('"dctcp"', '"deaf.c"')
        file.write_text(text.replace('possible = "2 Mbit/s"', ""))
        networks = Networks.load(file)
        assert [one.name for one in networks.controls([])] == ["reno", "cubic", "deaf"]
        assert all(one.possible_mbps for one in networks.networks)
        assert networks.study(networks.networks, networks.controls([])).points()


@pytest.mark.usefixtures("patience")
class TestBoard:
    def test_goodput_is_relative_to_what_headers_leave_of_the_rate(self, board: Board) -> None:
        one = cell(board, "thin/plain/alone", "reno")
        goodput = value(board, "thin/plain/alone", "reno", "goodput_percent")
        assert one.network.possible_mbps == pytest.approx(4 * 1448 / 1514, abs=0.01)
        assert goodput.mean == pytest.approx(100 * one.runs[1].own_mbps / one.network.possible_mbps, rel=0.02)
        assert 80 < goodput.mean <= 100
        assert goodput.n == 2

    def test_behind_a_policer_it_is_relative_to_the_rate_that_the_file_names(self, board: Board) -> None:
        assert cell(board, "thin/policed/alone", "reno").network.possible_mbps == pytest.approx(1.91, abs=0.01)

    def test_harm_compares_the_rival_with_itself_alone(self, board: Board) -> None:
        one = cell(board, "thin/plain/beside", "cubic").runs[1]
        harm = 100 * (1 - one.mbps["rival"] / one.alone_mbps)
        assert one.alone_mbps > one.mbps["rival"]
        assert value(board, "thin/plain/beside", "cubic", "harm_percent").mean == pytest.approx(harm, abs=15)
        assert value(board, "thin/plain/alone", "cubic", "harm_percent") is None

    def test_only_measures_of_the_traffic_have_a_value(self, board: Board) -> None:
        def names(network: str) -> set[str]:
            return {one.name for one in MEASURES if value(board, network, "reno", one.name) is not None}

        assert names("thin/plain/alone") == {"goodput_percent", "queue_delay_mean_ms"}
        assert names("thin/plain/beside") == {"share_percent", "harm_percent", "queue_delay_mean_ms"}
        assert names("thin/plain/pair") >= {"goodput_percent", "jain", "converged_percent", "queue_delay_mean_ms"}
        assert names("thin/plain/short") == {"slowdown_p50"}

    def test_a_control_is_pooled_over_networks_by_seed(self, board: Board) -> None:
        [reno] = [one for one in board.standings(marks=False) if one.control.name == "reno"]
        networks = ("thin/plain/alone", "thin/plain/pair", "thin/policed/alone")
        each = [value(board, name, "reno", "goodput_percent").mean for name in networks]
        assert reno.pooled["goodput_percent"].mean == pytest.approx(sum(each) / 3)
        assert reno.pooled["goodput_percent"].n == 2
        assert (reno.broken, reno.runs) == (0, 10)

    def test_the_same_networks_give_the_same_board(self, board: Board, file: Path) -> None:
        again = ran(file, file.parent / "out")
        assert again.table().equals(board.table())

    def test_the_result_is_a_study_that_other_commands_read(self, board: Board) -> None:
        loaded = StudyResult.load(board.result.directory)
        assert list(loaded.pooled.columns[1:5]) == ["line", "condition", "traffic", "cc"]
        again = Board.of(loaded, board.networks, board.controls)
        assert again.table().equals(board.table())


@pytest.mark.usefixtures("patience")
def test_a_file_in_c_is_compared_with_the_others_and_its_fault_is_found(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = file.parent / "deaf.c"
    source.write_text(DEAF)
    file.write_text(TOML.replace("4 Mbit/s", "40 Mbit/s"))
    board = ran(file, file.parent / "out", str(source))
    assert [one.name for one in board.controls] == ["reno", "cubic", "dctcp", "deaf"]
    assert {one.control.name for one in board.broken} == {"deaf"}
    assert cell(board, "thin/plain/alone", "deaf").broken == 2
    assert "deaf     thin/plain/alone" in words(board, 120)


@pytest.mark.usefixtures("patience")
class TestPage:
    def test_in_a_browser_the_table_sorts_by_a_control_and_links_to_every_run(
        self, board: Board, chromium: str
    ) -> None:
        page = write_page(board)
        document, console = dumped(chromium, page)
        assert console == ""
        assert "4 of 6 networks have this measure and match." in document
        run = re.search(r'href="(points/[^"]+/run.json)"', document)
        assert run is not None
        assert (page.parent / unquote(run[1])).is_file()
        sorting = page.with_name("sorting.html")
        frame = (
            f'<iframe src="{page.name}"></iframe><script>onload = () => {{'
            "const inside = frames[0].document; inside.querySelectorAll('#cells th button')[0].click();"
            "const rows = [...inside.querySelectorAll('#rows tr')].map((row) => parseFloat(row.cells[1].textContent));"
            "document.body.dataset.values = rows.join(); }</script>"
        )
        sorting.write_text(frame)
        document, console = dumped(chromium, sorting, "--allow-file-access-from-files")
        found = re.search(r'data-values="([^"]+)"', document)
        assert found is not None, console
        values = [float(one) for one in found[1].split(",")]
        assert len(values) == 4
        assert values == sorted(values, reverse=True)

    def test_a_seed_without_a_value_does_not_keep_the_table_from_the_page(self, board: Board, chromium: str) -> None:
        page = write_page(board)
        text = page.read_text()
        content = re.search(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
        assert content is not None
        told = json.loads(content[1])
        told["values"][0][0][0] = [50.0, None, [50.0, None]]
        page.with_name("unknown.html").write_text(text.replace(content[1], json.dumps(told)))
        document, console = dumped(chromium, page.with_name("unknown.html"))
        assert console == ""
        assert "by seed: 50.0, –" in document
        assert "4 of 6 networks have this measure and match." in document

    def test_the_table_on_disk_has_every_cell(self, board: Board) -> None:
        page = write_page(board)
        lines = page.with_name("scoreboard.csv").read_text().splitlines()
        assert len(lines) == 1 + len(board.cells) == 1 + 5 * 2 + 3


class TestLabLinks:
    def test_a_link_holds_the_whole_question(self) -> None:
        network = next(one for one in Networks.load().networks if one.name == "cable/l4s/beside-cubic")
        tables = network.scenario(Control.of("bbr3")).to_dict()
        link = lab_link(tables)
        assert link is not None
        assert re.fullmatch(r"#[A-Za-z0-9_.%:,/-]+", link)
        told = Scenario.from_dict(json.loads(unquote(link[1:])) | {"traffic": "native"})
        assert told.to_dict() == tables

    @pytest.mark.parametrize("name", ["lte/plain/alone", "cable/plain/web", "mixed/plain/far", "dsl/burst-1%/alone"])
    def test_what_the_page_lacks_has_no_link(self, name: str) -> None:
        network = next(one for one in Networks.load().networks if one.name == name)
        assert lab_link(network.scenario(Control.of("reno")).to_dict()) is None


@pytest.mark.usefixtures("patience")
def test_a_flow_that_starts_late_has_not_stalled(file: Path) -> None:
    late = TOML.replace('flows = [{ name = "own" }]', 'flows = [{ name = "own", start = "3500 ms" }]', 1)
    file.write_text(late.split("[[networks]]", maxsplit=1)[0] + LATE)
    assert ran(file, file.parent / "out").broken == []


@pytest.mark.usefixtures("patience")
def test_the_command_prints_the_board_and_names_its_page(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    arguments = [
        "scoreboard",
        str(file),
        "--only",
        "plain/alone",
        "--cc",
        "reno",
        "--seeds",
        "2",
        "--jobs",
        "1",
        "--quiet",
    ]
    told = CliRunner().invoke(sawtooth, arguments)
    assert told.exit_code == 0
    assert "1 network without marks" in told.output
    assert "scoreboard.html" in told.output
    described = json.loads(CliRunner().invoke(sawtooth, [*arguments, "--json"]).output)
    assert [row["cc"] for row in described["rows"]] == ["reno"]
    assert described["standings"][0]["runs"] == 2
    assert not math.isnan(described["standings"][0]["goodput_percent"]["mean"])


def test_networks_are_listed_without_a_run(file: Path) -> None:
    told = CliRunner().invoke(sawtooth, ["scoreboard", str(file), "--list"])
    assert "thin/plain/alone" in told.output
    assert "a thin line; one flow" in told.output
    listed = json.loads(CliRunner().invoke(sawtooth, ["scoreboard", str(file), "--list", "--json"]).output)
    assert len(listed) == 6


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing.toml"], "file-not-found"),
        (["--cc", "nothing.c"], "file-not-found"),
        (["--cc", "cubik"], "unknown-name"),
        (["--only", "lite"], "unknown-name"),
        (["--only", "lte/l4s"], "unknown-name"),
        (["--only", "lte", "--cc", "dctcp"], "unsupported"),
        (["--cc", "reno.c"], "duplicate-name"),
    ],
)
def test_a_wrong_call_is_one_error_with_its_code(arguments, code, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reno.c").write_text("")
    assert status_of(["scoreboard", *arguments]) == 2
    assert f"[{code}]" in capsys.readouterr().err
