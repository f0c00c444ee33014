"""The package has few verbs, and imports nothing heavy until one is used."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from expected_error import expected_error

CLI = [sys.executable, "-c", "from sawtooth.cli import main; main()"]


def test_the_public_names_are_these() -> None:
    assert sawtooth.__all__ == [
        "Capture",
        "Run",
        "SawtoothError",
        "Scenario",
        "Study",
        "doctor",
        "find",
        "load",
        "predict",
        "query",
        "read_capture",
        "report",
        "run",
        "schema",
        "watch",
        "worst",
    ]


@pytest.mark.parametrize("name", ["Run", "SawtoothError", "Scenario", "Study"])
def test_the_nouns_are_classes(name: str) -> None:
    assert isinstance(getattr(sawtooth, name), type)


@pytest.mark.parametrize("name", ["doctor", "load", "predict", "report", "run", "schema", "watch"])
def test_the_verbs_stay_verbs_when_modules_of_the_same_name_are_imported(name: str) -> None:
    import sawtooth.doctor
    import sawtooth.report
    import sawtooth.run
    import sawtooth.watch

    assert callable(getattr(sawtooth, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = sawtooth.runn


def test_dir_lists_the_public_names() -> None:
    assert set(sawtooth.__all__) <= set(dir(sawtooth))


def test_importing_the_package_or_its_command_line_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'pandas', 'matplotlib', 'pyarrow', 'scipy', 'pydantic', 'jinja2', 'tqdm'}"
    code = f"import sys, sawtooth.cli; print(sorted({heavy} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_page_of_the_package_is_its_docstrings() -> None:
    import api_reference as reference

    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run tools/api_reference.py"


def test_the_package_is_typed() -> None:
    assert (Path(sawtooth.__file__).parent / "py.typed").is_file()


def test_a_file_is_loaded_as_what_it_is(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('duration = "3 s"')
    study = tmp_path / "study.toml"
    study.write_text('name = "s"\n[scenario]\nduration = "3 s"')
    assert isinstance(sawtooth.load(scenario), sawtooth.Scenario)
    assert isinstance(sawtooth.load(study), sawtooth.Study)


@pytest.mark.parametrize("kind", ["scenario", "study"])
def test_the_schema_of_each_kind_of_file_is_a_json_schema(kind: str) -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(dict(sawtooth.schema(kind)))


def test_a_schema_of_something_else_is_refused() -> None:
    with pytest.raises(sawtooth.SawtoothError, match="no schema"):
        sawtooth.schema("scenari")


def test_running_a_scenario_gives_a_run() -> None:
    run = sawtooth.run(sawtooth.Scenario(path={"loss": "1%"}), engine="model", overrides={"duration": "3 s"})
    assert isinstance(run, sawtooth.Run)
    assert len(run.tables["intervals"]) == 3


def test_options_of_studies_are_refused_for_a_scenario() -> None:
    with pytest.raises(sawtooth.SawtoothError, match="full"):
        sawtooth.run(sawtooth.Scenario(), engine="model", full=True)


OFFICE = {"duration": "5 s", "path": {"rate": "20 Mbit/s", "rtt": "20 ms", "loss": "0.5%"}}


@pytest.mark.usefixtures("patience")
def test_seeds_give_what_the_command_line_says_of_them(tmp_path: Path) -> None:
    scenario = sawtooth.Scenario.from_dict(OFFICE)
    runs = sawtooth.run(scenario, seeds=[1, 2, 3], jobs=2, overrides={"flows.cc": "bbr"})
    assert [run.scenario.seed for run in runs] == [1, 2, 3]
    study = sawtooth.Study.from_dict({"name": "office", "scenario": OFFICE})
    result = sawtooth.run(study, seeds=[1, 2, 3], jobs=1, overrides={"flows.cc": "bbr"}, out=tmp_path)
    theirs, ours = result.mean().iloc[0], runs.mean()
    for column in ours.index.drop(["seed", "engine", "ci_of"]):
        assert ours[column] == pytest.approx(theirs[column], nan_ok=True), column
    assert (ours["ci_of"], ours["ci_n"]) == ("seeds", 3)
    assert runs.table["seed"].tolist() == [1, 2, 3, "all"]
    assert "3 runs of" in repr(runs)
    assert "95% interval" in repr(runs)
    assert "<table" in runs._repr_html_()
    for one in (runs, result, runs[0]):
        assert one.plot().axes


@pytest.mark.parametrize(
    ("seeds", "more", "code"),
    [
        ([], {}, "out-of-range"),
        ([1, 1], {}, "conflict"),
        ([1, 2], {"overrides": {"seed": 3}}, "bad-usage"),
        ([1, 2], {"jobs": 0}, "bad-usage"),
    ],
)
def test_seeds_that_make_no_sense_are_refused(seeds: list[int], more: dict[str, Any], code: str) -> None:
    with expected_error(code=code):
        sawtooth.run(sawtooth.Scenario.from_dict(OFFICE), seeds=seeds, engine="model", **more)


@pytest.mark.usefixtures("patience")
def test_query_is_a_table_with_the_answer_of_the_command(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from sawtooth.cli.program import sawtooth as program

    study = sawtooth.Study.from_dict({"name": "office", "scenario": OFFICE})
    sawtooth.run(study, seeds=[1, 2], jobs=1, engine="model", out=tmp_path)
    asked = "SELECT study, seed, mean_mbps FROM summary ORDER BY seed"
    found = sawtooth.query(asked, directory=tmp_path)
    told = CliRunner().invoke(program, ["query", asked, "--in", str(tmp_path), "--json"]).output
    assert found.to_dict("records") == json.loads(told)
    listed = sawtooth.query(directory=tmp_path)
    assert {"view", "column"} == set(listed.columns)
    assert "summary" in set(listed["view"])


@pytest.mark.usefixtures("patience")
def test_watch_is_an_iterator_of_what_the_command_prints_as_json() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()), listener.accept()[0]:
        port = listener.getsockname()[1]
        looks = list(sawtooth.watch(f"port {port}", interval=0.1, count=2))
        one = next(sawtooth.watch(f"port {port}", interval=0.1))
        words = ["watch", "--json", "--once", "--interval", "0.1", f"port {port}"]
        told = json.loads(subprocess.run([*CLI, *words], capture_output=True, text=True, check=True).stdout)
    assert len(looks) == 2
    assert one["connections_matching"] == told["connections_matching"] == 2
    assert set(one) == set(told)
    assert set(one["connections"][0]) == set(told["connections"][0])


@pytest.mark.parametrize("given", [{"interval": 0.0}, {"sort": "size"}, {"filter": "nonsense"}, {"count": 0}])
def test_watch_refuses_at_once_what_makes_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(sawtooth.SawtoothError):
        sawtooth.watch(**given)


def test_doctor_is_a_list_of_the_checks_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import sawtooth.doctor

    found = {
        "engines": {"sim": {"works": True, "reasons": []}, "netns": {"works": False, "reasons": ["privileges"]}},
        "tools": {"iperf3": {"path": None, "version": None, "package": "iperf3"}},
        "capabilities": {"qdiscs": {"fq": True, "cake": "module", "codel": "not built"}},
        "warnings": ["HZ is 100 here"],
    }
    monkeypatch.setattr(sys.modules["sawtooth.doctor"], "examine", lambda: found)
    checks = {check.name: check for check in sawtooth.doctor()}
    works = {name: check.works for name, check in checks.items()}
    assert works == {
        "engine sim": True,
        "engine netns": False,
        "tool iperf3": False,
        "qdiscs fq": True,
        "qdiscs cake": True,
        "qdiscs codel": False,
        "warning": False,
    }
    assert checks["engine netns"].reasons == ("privileges",)
    assert checks["tool iperf3"].reasons == ("install the package iperf3",)


def test_an_unknown_engine_is_refused_with_the_nearest() -> None:
    with pytest.raises(sawtooth.SawtoothError, match='did you mean "sim"'):
        sawtooth.run(sawtooth.Scenario(), engine="simm")


def test_prediction_is_a_table() -> None:
    table = sawtooth.predict(rate="100 Mbit/s", rtt="20 ms", loss="1%", cc="reno")
    assert set(table["cc"]) == {"reno"}
    assert (table["goodput_bps"] > 0).all()
