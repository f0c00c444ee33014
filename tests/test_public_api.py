"""The package offers few verbs and imports nothing heavy until one is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sawtooth


def test_the_public_names_are_these() -> None:
    assert sawtooth.__all__ == [
        "Capture",
        "Run",
        "SawtoothError",
        "Scenario",
        "Study",
        "find",
        "load",
        "predict",
        "read_capture",
        "report",
        "run",
        "schema",
    ]


@pytest.mark.parametrize("name", ["Run", "SawtoothError", "Scenario", "Study"])
def test_the_nouns_are_classes(name: str) -> None:
    assert isinstance(getattr(sawtooth, name), type)


@pytest.mark.parametrize("name", ["load", "predict", "report", "run", "schema"])
def test_the_verbs_stay_verbs_when_modules_of_the_same_name_are_imported(name: str) -> None:
    import sawtooth.report
    import sawtooth.run

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
    with pytest.raises(sawtooth.SawtoothError, match="jobs"):
        sawtooth.run(sawtooth.Scenario(), engine="model", jobs=3)


def test_an_unknown_engine_is_refused_with_the_nearest() -> None:
    with pytest.raises(sawtooth.SawtoothError, match='did you mean "sim"'):
        sawtooth.run(sawtooth.Scenario(), engine="simm")


def test_prediction_is_a_table() -> None:
    table = sawtooth.predict(rate="100 Mbit/s", rtt="20 ms", loss="1%", cc="reno")
    assert set(table["cc"]) == {"reno"}
    assert (table["goodput_bps"] > 0).all()
