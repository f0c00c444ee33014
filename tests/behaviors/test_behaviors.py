"""Behaviors of kernels: the catalogue is read, kernels are measured by a stand-in, and differences are judged."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth import engines
from sawtooth.behaviors import Catalogue, Measured, compared, measure, words, write_page
from sawtooth.behaviors.changes import CHANGED, EQUAL, INCONCLUSIVE, SAME
from sawtooth.behaviors.measurements import _digest
from sawtooth.cli.kernel_commands import kernel as command
from sawtooth.engines import kernel as engine
from sawtooth.errors import SawtoothError
from sawtooth.kernel import Kernel
from sawtooth.kernel import kernel as kernels
from sawtooth.run import Run
from sawtooth.scenario import Scenario

TOML = """
title = "two situations"
seeds = [1, 2, 3]

[scenario]
duration = "1 s"
interval = "100 ms"

[situations.bulk]
axes = { cc = ["reno", "cubic"] }
set = { "flows.0.cc" = "{cc}" }
case = "path.loss"
cases = { none = "0%", some = "1%" }
measures = ["goodput", "cwnd_max"]

[situations.sparse]
flows = [{ source = { kind = "rate", rate = "1 Mbit/s" } }]
measures = ["rtt"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "behaviors.toml"
    path.write_text(TOML)
    return path


def kernel(name: str = "", digest: str = "0") -> Kernel:
    return Kernel(Path("linux"), "6.12", 250, ("reno", "cubic"), digest, "", "", "", "", 0.0, name=name)


def measured(values: Sequence[Sequence[float]], name: str = "", tables: str = "") -> Measured:
    """``values``: by seed, of behaviors of situations s0, s1 … The tables are digests of them, or all ``tables``."""
    by_seed = {seed: {f"s{at}": {"rtt": one} for at, one in enumerate(some)} for seed, some in enumerate(values)}
    digests = {seed: {place: tables or str(one) for place, one in some.items()} for seed, some in by_seed.items()}
    return Measured(kernel(name), by_seed, digests, {})


def catalogue(count: int) -> Catalogue:
    from sawtooth.behaviors import Situation

    return Catalogue("", (1, 2), tuple(Situation(f"s{at}", "", Scenario(), ("rtt",)) for at in range(count)))


def test_the_shipped_catalogue_has_about_300_behaviors_of_short_situations() -> None:
    found = Catalogue.load()
    assert found.behaviors >= 300
    assert len({one.name for one in found.situations}) == len(found.situations)
    assert max(one.scenario.duration.seconds for one in found.situations) <= 12


def test_axes_and_cases_make_situations_and_parts_choose_some(file: Path) -> None:
    found = Catalogue.load(file)
    names = [one.name for one in found.situations]
    assert names == ["bulk/reno/none", "bulk/reno/some", "bulk/cubic/none", "bulk/cubic/some", "sparse"]
    assert found.situations[1].scenario.flows[0].cc == "reno"
    assert found.situations[1].scenario.path.loss.probability == pytest.approx(0.01)
    assert found.behaviors == 9
    assert [one.name for one in found.chosen(["cubic/some", "sparse"]).situations] == ["bulk/cubic/some", "sparse"]
    with pytest.raises(SawtoothError, match="no situation has cubik") as caught:
        found.chosen(["cubik"])
    assert caught.value.fix is not None
    assert "cubic" in caught.value.fix


@pytest.mark.parametrize(
    ("old", "new", "code", "field"),
    [
        ('["rtt"]', '["rt"]', "unknown-name", "situations.sparse.measures"),
        ('case = "path.loss"\n', "", "missing-field", "situations.bulk"),
        ('"path.loss"', '"path.los"', "unknown-field", "situations.bulk"),
        ("seeds", "seds", "unknown-field", "seds"),
    ],
)
def test_a_mistake_in_a_catalogue_names_its_field(file: Path, old: str, new: str, code: str, field: str) -> None:
    file.write_text(TOML.replace(old, new, 1))
    with expected_error(code=code) as caught:
        Catalogue.load(file)
    assert caught.value.field is not None
    assert caught.value.field.startswith(field)


def test_each_verdict() -> None:
    before = [[10.0, 10.0, 10.0, 10.0, 10.0], [10.1, 10.01, 11.0, 10.1, 10.0], [9.9, 9.99, 9.0, 9.9, 10.0]]
    after = [[10.0, 10.0, 11.5, 20.0, 10.2], [10.1, 10.02, 9.5, 20.1, 10.2], [9.9, 9.98, 10.0, 19.9, 10.2]]
    found = compared(measured(before), measured(after, "other"), catalogue(5), 0.01)
    assert [one.verdict for one in found.changes] == [SAME, EQUAL, INCONCLUSIVE, CHANGED, CHANGED]
    assert found.changes[3].effect == pytest.approx(1.0)
    assert found.changes[3].low < 10 < found.changes[3].high
    assert [one.situation for one in found.changed] == ["s3", "s4"], "the largest first"
    assert "+100.0%" in words([found])


def test_one_kernel_has_no_value_and_the_other_has() -> None:
    nothing = measured([[float("nan")], [float("nan")]], tables="x")
    found = compared(nothing, measured([[1.0], [1.0]], "other"), catalogue(1), 0.01)
    assert found.changes[0].verdict == INCONCLUSIVE
    assert compared(nothing, measured([[float("nan")]] * 2, "other"), catalogue(1), 0.01).changes[0].verdict == EQUAL


def test_few_of_the_changes_are_false_where_nothing_changed_and_all_large_ones_are_found() -> None:
    random.seed(1)
    false, missed = 0, 0
    for _ in range(20):
        before = [[random.gauss(10, 0.3) for _ in range(300)] for _ in range(5)]
        after = [[random.gauss(10 if at < 280 else 14, 0.3) for at in range(300)] for _ in range(5)]
        found = compared(measured(before), measured(after, "other"), catalogue(300), 0.01)
        false += sum(one.verdict == CHANGED for one in found.changes[:280])
        missed += sum(one.verdict != CHANGED for one in found.changes[280:])
    assert false <= 0.05 * 20 * 20
    assert missed == 0


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Guests are replaced by the simulator; ``other`` has a larger initial window. Counts the guests."""
    guests: list[int] = []

    def series(scenarios: Sequence[Scenario], **options: Any) -> list[Run | SawtoothError]:
        guests.append(scenarios[0].seed)
        wide = {"host.initial_window": 40 if scenarios[0].host.kernel == "other" else 10}
        return [engines.get("sim").run(one.set(wide | {"host.kernel": "default"})) for one in scenarios]

    monkeypatch.setattr(engine, "series", series)
    known = {"default": kernel(), "equal": kernel("equal", "1"), "other": kernel("other", "2")}
    monkeypatch.setattr(kernels, "find", lambda hz, name: known[name])
    return guests


def test_the_command_tells_what_changed_and_a_second_call_measures_nothing(
    tmp_path: Path, file: Path, ran: list[int]
) -> None:
    words_ = ["compare", "default", "equal", "other", "--file", str(file), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command, words_)
    assert done.exit_code == 3, done.output
    assert "changed in other" in done.output
    assert "changed in equal" not in done.output
    assert sorted(ran) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    page = (tmp_path / "out" / "kernels.html").read_text()
    assert "bulk/reno/none" in page
    assert (tmp_path / "out" / "kernels.csv").read_text().startswith("reference,kernel,situation,quantity")
    done = CliRunner().invoke(command, [*words_, "--json"])
    about = json.loads(done.stdout)
    assert about["comparisons"][0]["counts"] == {"changed": 0, "inconclusive": 0, "equal": 0, "same": 9}
    assert about["comparisons"][1]["counts"]["changed"] > 0
    assert len(ran) == 9
    same = CliRunner().invoke(command, [*words_[:3], *words_[4:]])
    assert same.exit_code == 0, same.output


def test_a_run_that_fails_is_listed(
    tmp_path: Path, file: Path, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    series = engine.series

    def broken(scenarios: Sequence[Scenario], **options: Any) -> list[Run | SawtoothError]:
        return [*series(scenarios)[:-1], SawtoothError("testbed-failed", "no such queue")]

    monkeypatch.setattr(engine, "series", broken)
    some = Catalogue.load(file)
    found = measure([kernel(), kernel("equal", "1")], some, tmp_path / "measured")
    judged = compared(found[0], found[1], some, 0.01)
    assert "no such queue" in write_page([judged], some, tmp_path).read_text()
    assert [one.verdict for one in judged.changes if one.situation == "sparse"] == [INCONCLUSIVE]
    assert "Failed runs: default 3, equal 3." in words([judged])
    why = {"seed": 1, "situation": "sparse", "why": "no such queue"}
    assert [some[0] for some in judged.describe()["failed"].values()] == [why, why]


def test_situations_are_listed_and_two_different_kernels_are_needed(file: Path) -> None:
    listed = CliRunner().invoke(command, ["compare", "default", "--list", "--file", str(file)])
    assert "bulk/reno/some" in listed.output
    for names, message in ((["default"], "one kernel"), (["v6.1", "default", "v6.1"], '"v6.1" is named twice')):
        done = CliRunner().invoke(command, ["compare", *names, "--file", str(file)])
        assert isinstance(done.exception, SawtoothError)
        assert done.exception.code == "bad-usage"
        assert message in done.exception.message


def test_two_situations_of_one_name_are_refused(file: Path) -> None:
    file.write_text(TOML.replace('axes = { cc = ["reno", "cubic"] }', 'axes = { cc = ["reno", "reno"] }'))
    with expected_error(
        code="duplicate-name", field="situations.bulk", match="two situations are called bulk/reno/none"
    ):
        Catalogue.load(file)
    file.write_text(TOML.replace('axes = { cc = ["reno", "cubic"] }', 'axes = { cc = ["reno"] }'))
    assert len(Catalogue.load(file).situations) == 3, "the fix: one of the values is removed"


def test_a_seed_with_a_failed_run_is_measured_again(
    tmp_path: Path, file: Path, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    series, some = engine.series, Catalogue.load(file)

    def broken(scenarios: Sequence[Scenario], **options: Any) -> list[Run | SawtoothError]:
        found = series(scenarios)
        return [*found[:-1], SawtoothError("testbed-failed", "no memory")] if scenarios[0].seed == 2 else found

    monkeypatch.setattr(engine, "series", broken)
    (first,) = measure([kernel()], some, tmp_path)
    assert [one["seed"] for one in first.failures] == [2]
    monkeypatch.setattr(engine, "series", series)
    ran.clear()
    (second,) = measure([kernel()], some, tmp_path)
    assert ran == [2]
    assert second.failures == []


def test_what_is_measured_otherwise_is_measured_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = Catalogue.load(file)
    before = some.digest()
    monkeypatch.setattr("sawtooth.behaviors.catalogue.FORMAT", 2)
    assert some.digest() != before


def test_runs_with_other_counters_of_their_hosts_are_not_the_same() -> None:
    run = engines.get("sim").run(Scenario.from_dict({"duration": "0.1 s", "interval": "50 ms"}))
    before = _digest(run)
    run.meta["hosts"] = {"sender": {"timeouts": 7, "tail_probes": 0, "window_probes": 0}}
    assert _digest(run) != before


def test_the_tolerance_is_told_exactly(tmp_path: Path) -> None:
    one = measured([[1.0], [1.0]])
    found = compared(one, one, catalogue(1), 0.005)
    assert "tolerance 0.5%" in words([found])
    assert "Tolerance: 0.5% " in write_page([found], catalogue(1), tmp_path).read_text()
