"""Study files: axes, points in a stable order, columns, and one clear error for each mistake."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.errors import SawtoothError
from sawtooth.sanitize import is_plain
from sawtooth.scenario import Scenario
from sawtooth.study import Study
from sawtooth.study.axis import LONGEST_NAME, expand, in_unit, text
from sawtooth.study.shipped import shipped


def small(**changes):
    content = {
        "name": "small",
        "scenario": {"topology": "chain", "duration": "3 s"},
        "vary": {"flows.cc": ["cubic", "bbr"], "chain.loss": {"from": "0%", "to": "2%", "step": "1%"}},
        "columns": {"cc": {"field": "flows.cc"}, "loss_percent": {"field": "chain.loss", "unit": "%"}},
        "repeat": {"seeds": [1, 2]},
        "full": {"duration": "30 s", "seeds": [5]},
    }
    return Study.from_dict(content | changes)


def test_points_are_the_product_of_the_axes_in_the_file_s_order_with_seeds_innermost():
    points = small().points()
    assert [(point.key["cc"], point.key["loss_percent"], point.seed) for point in points] == [
        (cc, loss, seed) for cc in ("cubic", "bbr") for loss in (0, 1, 2) for seed in (1, 2)
    ]
    assert points[0].id == "00-cubic-0pct-seed1"
    assert len({point.id for point in points}) == 12


def test_each_point_s_scenario_has_its_values_and_its_seed():
    point = small().points()[-1]
    assert point.scenario.flows[0].cc == "bbr"
    assert str(point.scenario.chain_table.loss) == "2%"
    assert point.scenario.seed == 2
    assert point.scenario.duration.seconds == 3


def test_a_part_of_the_points_is_the_same_as_among_all():
    study = small()
    every = {point.id: point for point in study.points() if point.key == {"cc": "bbr", "loss_percent": 1}}
    part = {point.id: (point, scenario) for point, scenario in study.each(only={("bbr", 1)})}
    assert {name: point for name, (point, _) in part.items()} == every
    assert len(part) == 2
    for point, scenario in part.values():
        assert point.scenario == scenario
        assert point.digest == scenario.digest()


def test_full_applies_its_overrides_and_seeds():
    points = small().points(full=True)
    assert len(points) == 6
    assert {point.scenario.duration.seconds for point in points} == {30}
    assert {point.seed for point in points} == {5}


def test_what_is_set_by_hand_wins_over_full_and_leaves_one_value_of_a_varied_field():
    points = small().points(full=True, seeds=[8, 9], overrides={"duration": "7 s", "chain.loss": "4%"})
    assert [(point.key["cc"], point.key["loss_percent"], point.seed) for point in points] == [
        ("cubic", 4, 8),
        ("cubic", 4, 9),
        ("bbr", 4, 8),
        ("bbr", 4, 9),
    ]
    assert {point.scenario.duration.seconds for point in points} == {7}


def test_a_varied_field_may_be_written_as_a_table_or_as_a_dotted_name():
    nested = small(
        vary={"flows": {"cc": ["cubic", "bbr"]}, "chain": {"loss": {"from": "0%", "to": "2%", "step": "1%"}}}
    )
    assert nested == small()


def test_labels_name_values_and_a_field_without_a_column_is_named_after_itself():
    study = small(
        vary={"topology": ["chain", "chain-asymmetric"], "flows.0.cc": ["cubic"], "host.hz": [100, 250]},
        columns={"path": {"field": "topology", "labels": {"chain": "symmetric"}}},
    )
    assert [point.key for point in study.points(seeds=[1])][:2] == [
        {"path": "symmetric", "cc": "cubic", "host_hz": 100},
        {"path": "symmetric", "cc": "cubic", "host_hz": 250},
    ]
    assert study.points()[-1].key["path"] == "chain-asymmetric"


def test_a_scenario_beside_the_study_is_read_and_kept_in_it(tmp_path):
    (tmp_path / "base.toml").write_text('topology = "chain"\nduration = "3 s"\n')
    (tmp_path / "study.toml").write_text('name = "x"\nscenario = "base.toml"\nvary.flows.cc = ["cubic"]\n')
    study = Study.load(tmp_path / "study.toml")
    assert study.scenario == {"topology": "chain", "duration": "3 s"}
    assert study.origin == str(tmp_path / "study.toml")


def test_a_study_in_which_nothing_varies_is_one_point():
    (point,) = small(vary={}, columns={}, repeat={"seeds": [3]}).points()
    assert (point.id, point.key, point.seed) == ("0-seed3", {"study": "small"}, 3)


def test_a_study_is_rebuilt_from_its_dictionary_through_json():
    study = Study.load(shipped()["one-percent-loss"])
    again = Study.from_dict(json.loads(json.dumps(study.to_dict())))
    assert again == study
    assert again.digest() == study.digest()
    assert small().digest() != small(title="other").digest()


@pytest.mark.usefixtures("patience")
def test_the_published_study_is_198_short_runs_or_66_full_ones():
    study = Study.load(shipped()["one-percent-loss"])
    short, full = study.points(), study.points(full=True)
    assert (len(short), len(full)) == (198, 66)
    assert {point.scenario.duration.seconds for point in short} == {60}
    assert {point.scenario.duration.seconds for point in full} == {10_800}
    assert {point.key["path"] for point in short} == {"symmetric", "asymmetric"}
    assert sorted({point.key["loss_percent"] for point in short}) == list(range(11))
    assert {str(point.scenario.chain_table.rtt) for point in short} == {"400 us"}


@pytest.mark.parametrize("path", shipped().values(), ids=lambda path: path.stem)
def test_every_shipped_study_is_valid_and_names_what_it_asks(path):
    study = Study.load(path)
    assert study.name == path.stem
    assert study.title
    assert study.question
    assert study.points()
    assert study.points(full=True)


def test_the_json_schema_describes_every_field():
    schema = Study.model_json_schema()
    assert set(schema["properties"]) >= {"name", "scenario", "vary", "columns", "repeat", "full", "published", "report"}
    assert schema["additionalProperties"] is False


def test_roles_come_from_the_columns_where_the_file_does_not_say():
    roles = small().roles()
    assert (roles.x, roles.series, roles.panels, roles.baseline, roles.detail) == ("loss_percent", "cc", (), 0, 2)
    roles = small(report={"baseline": 1, "detail": 2}).roles()
    assert (roles.baseline, roles.detail) == (1, 2)


@pytest.mark.parametrize(
    ("given_", "values"),
    [
        (["a", "b"], ("a", "b")),
        ({"from": "0%", "to": "0.3%", "step": "0.1%"}, ("0%", "0.1%", "0.2%", "0.3%")),
        ({"from": "10 ms", "to": "35 ms", "step": "10 ms"}, ("10 ms", "20 ms", "30 ms")),
        ({"from": 1, "to": 7, "step": 3}, (1, 4, 7)),
    ],
)
def test_an_axis_is_a_list_or_a_range_with_both_ends(given_, values):
    assert expand(given_, "vary.x") == values


@given(st.integers(0, 500), st.integers(0, 60), st.integers(1, 9), st.sampled_from(["%", "ms", "Mbit/s"]))
def test_a_range_has_exact_steps_and_never_passes_its_end(low, count, step, unit):
    space = "" if unit == "%" else " "
    asked = {"from": f"{low / 10}{space}{unit}", "to": f"{(low + count * step) / 10}{space}{unit}"}
    values = expand(asked | {"step": f"{step / 10}{space}{unit}"}, "vary.x")
    assert len(values) == count + 1
    assert [float(value.removesuffix(unit)) for value in values] == [(low + at * step) / 10 for at in range(count + 1)]


@pytest.mark.parametrize(
    ("value", "unit", "number"),
    [
        ("1%", "%", 1),
        ("0.5%", "%", 0.5),
        ("140 ms", "ms", 140),
        ("2.5 Gbit/s", "Mbit/s", 2500),
        ("1 MiB", "KiB", 1024),
        ("0.05 bdp", "bdp", 0.05),
    ],
)
def test_a_column_s_unit_turns_a_quantity_into_a_number(value, unit, number):
    assert in_unit(value, unit, "x") == number


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"name": ""}, "bad-name", "name"),
        ({"name": "a\nb"}, "bad-name", "name"),
        ({"name": "x" * 101}, "bad-name", "name"),
        ({"vary": {"seed": [1, 2]}}, "conflict", "vary.seed"),
        ({"full": {"seed": 3}}, "conflict", "full.seed"),
        ({"vary": {"flows.0.cc": ["cubic"], "flows.cc": ["bbr"]}}, "duplicate-name", "vary.flows.0.cc"),
        ({"vary": {"chain.loss": [{"every": 1000}, {"every": 1000}]}}, "duplicate-name", "vary.chain.loss"),
        ({"nane": "x"}, "unknown-field", "nane"),
        ({"scenario": {"topology": "chian"}}, "unknown-name", "scenario.topology"),
        ({"scenario": {"duration": 60}}, "missing-unit", "scenario.duration"),
        ({"vary": {"chain.loss": []}}, "empty-axis", "vary.chain.loss"),
        ({"vary": {"chain.loss": "1%"}}, "wrong-type", "vary.chain.loss"),
        ({"vary": {"chain.loss": ["1%", "1%"]}}, "duplicate-name", "vary.chain.loss"),
        ({"vary": {"chain.loss": {"from": "0%", "to": "1%"}}}, "missing-field", "vary.chain.loss.step"),
        (
            {"vary": {"chain.loss": {"from": "0%", "to": "1%", "step": "1%", "x": 1}}},
            "unknown-field",
            "vary.chain.loss.x",
        ),
        ({"vary": {"chain.loss": {"from": "0%", "to": "1%", "step": "0%"}}}, "out-of-range", "vary.chain.loss.step"),
        ({"vary": {"chain.loss": {"from": "2%", "to": "1%", "step": "1%"}}}, "empty-axis", "vary.chain.loss"),
        ({"vary": {"chain.loss": {"from": "0%", "to": "1 ms", "step": "1%"}}}, "bad-quantity", "vary.chain.loss"),
        (
            {"vary": {"chain.loss": {"from": "0%", "to": "100%", "step": "0.0001%"}}},
            "too-many-points",
            "vary.chain.loss",
        ),
        (
            {"vary": {"chain.loss": {"from": "0%", "to": "10%", "step": "1e-7%"}}},
            "too-many-points",
            "vary.chain.loss",
        ),
        ({"columns": {"cc": {"field": "flows.c"}}}, "unknown-name", "columns.cc.field"),
        ({"columns": {"seed": {"field": "flows.cc"}}}, "conflict", "columns.seed"),
        ({"columns": {"mean_mbps": {"field": "flows.cc"}}}, "conflict", "columns.mean_mbps"),
        ({"columns": {"loss": {"field": "chain.loss", "unit": "ms"}}}, "unknown-unit", "chain.loss"),
        ({"columns": {"loss": {"field": "chain.loss", "unit": "percents"}}}, "unknown-unit", "chain.loss"),
        ({"columns": {"ratio": {"field": "flows.cc"}}}, "conflict", "columns.ratio"),
        ({"columns": {"jain": {"field": "flows.cc"}}}, "conflict", "columns.jain"),
        (
            {"columns": {"loss": {"field": "chain.loss", "labels": {"0%": "some", "1%": "some"}}}},
            "duplicate-name",
            "vary.chain.loss",
        ),
        ({"report": {"x": "rtt"}}, "unknown-name", "report.x"),
        ({"report": {"x": "cc", "series": "cc"}}, "conflict", "report.series"),
        ({"report": {"baseline": 7}}, "unknown-name", "report.baseline"),
        ({"report": {"baseline": "7%"}}, "unknown-name", "report.baseline"),
        ({"report": {"detail": "3 s"}}, "unknown-name", "report.detail"),
        ({"report": {"baseline": 1, "detail": "1%"}}, "conflict", "report.detail"),
        ({"report": {"plots": ["pie"]}}, "unknown-name", "report.plots.0"),
        ({"repeat": {"seeds": []}}, "out-of-range", "repeat.seeds"),
        ({"scenario": {"topology": "chain", "seed": 3}}, "conflict", "scenario.seed"),
        ({"scenario": {"topology": "chain", "seed": 3}, "repeat": {}}, "conflict", "scenario.seed"),
        ({"full": {"seeds": [-1]}}, "wrong-type", "full.seeds"),
    ],
)
def test_a_mistake_is_one_error_with_its_code_and_field(changes, code, field):
    if "vary" in changes:
        changes = {"columns": {}} | changes
    with expected_error(code=code, field=field) as caught:
        small(**changes)
    assert caught.value.fix


@pytest.mark.parametrize("name", ["a/b", "..", "日本 – é", "a b.c", " ", "x" * 100, "", "a\tb", "\x7f", "y" * 101])
def test_a_study_is_named_as_a_scenario_is(name):
    def accepted(make):
        try:
            make()
        except SawtoothError as error:
            assert error.code == "bad-name"
            return False
        return True

    assert accepted(lambda: small(name=name)) == accepted(lambda: Scenario(name=name))


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")).filter(is_plain), min_size=1, max_size=100))
def test_a_study_s_directory_is_one_short_name_of_letters_digits_and_dashes(name):
    directory = small(name=name).directory
    assert directory
    assert all(letter.isalnum() or letter in "-+_" for letter in directory)
    assert len(directory.encode()) <= 255


def test_a_study_s_directory_is_its_name_where_that_can_be_one():
    assert small(name="one-percent_loss+1").directory == "one-percent_loss+1"
    assert small(name="../x y").directory == "x-y"
    assert small(name="..").directory == "study"


def test_tables_and_lists_are_values_of_an_axis_with_short_names_in_columns_and_directories():
    flows = [[{"cc": "cubic"}], [{"cc": "cubic"}, {"cc": "bbr"}]]
    hosts = [{"sack": True, "hz": 250}, {"sack": False}]
    points = small(vary={"flows": flows, "host": hosts}, columns={}).points(seeds=[1])
    assert [point.key for point in points][:2] == [
        {"flows": "cc cubic", "host": "sack true, hz 250"},
        {"flows": "cc cubic", "host": "sack false"},
    ]
    assert points[2].key["flows"] == "cc cubic + cc bbr"
    assert points[3].id == "3-cccubicccbbr-sackfalse-seed1"
    assert points[3].scenario.host.sack is False
    assert [flow.cc for flow in points[3].scenario.flows] == ["cubic", "bbr"]


def test_a_loss_model_is_a_value_beside_a_share_and_a_label_gives_it_a_name():
    column = {"field": "chain.loss", "labels": {"every 1000": "periodic"}}
    study = small(vary={"chain.loss": ["1%", {"every": 1000}]}, columns={"loss": column})
    points = study.points(seeds=[1])
    assert [point.key["loss"] for point in points] == ["1%", "periodic"]
    assert points[1].scenario.digest() != points[0].scenario.digest()


def test_seeds_at_the_top_are_led_into_their_table_and_to_a_list():
    with expected_error(code="unknown-field", fix="move it below [repeat]: seeds = [ … ]"):
        small(seeds=3)
    with expected_error(code="wrong-type", fix="write it as a list: seeds = [ … ]"):
        small(repeat={"seeds": 3})


def test_a_table_that_the_scenario_does_not_allow_is_one_error():
    with expected_error(code="wrong-type", field="chain.rtt"):
        small(vary={"chain.rtt": [{"every": 1000}]}, columns={}).points()


def test_a_table_is_no_number_of_a_unit():
    with expected_error(code="unknown-unit", field="chain.loss", match="every 1000"):
        small(vary={"chain.loss": [{"every": 1000}]}, columns={"loss": {"field": "chain.loss", "unit": "%"}})


def test_a_variant_of_a_control_has_the_name_that_its_flows_get():
    assert text({"name": "bbr3", "variant": "draft"}) == "bbr3-draft"


def test_long_values_are_cut_and_need_labels_where_they_become_the_same():
    assert len(text(["x" * 50, "y" * 50])) == LONGEST_NAME
    flows = [[{"cc": "cubic"}] * 9, [{"cc": "cubic"}] * 8]
    with expected_error(code="duplicate-name", field="vary.flows", match="shown as"):
        small(vary={"flows": flows}, columns={})


@pytest.mark.parametrize("values", [["1%", "1 %"], ["0.5%", "0.50%", "1%"], ["1e0%", "1%"]])
def test_a_value_written_twice_in_two_ways_is_there_twice(values):
    with expected_error(code="duplicate-name", match="is the same point as"):
        small(vary={"chain.loss": values}, columns={}).points()


def test_a_field_whose_own_name_every_table_has_gets_a_longer_column():
    study = small(vary={"flows.count": [1, 10]}, columns={})
    assert list(study.points()[0].key) == ["flows_count"]


def test_baseline_and_detail_may_be_written_as_the_axis_has_them():
    roles = small(report={"baseline": "1%", "detail": 2}).roles()
    assert (roles.baseline, roles.detail) == (1, 2)


def test_a_study_cannot_be_given_one_seed():
    with expected_error(code="conflict", field="seed"):
        small().points(overrides={"seed": 3})


def test_a_seed_in_a_study_s_scenario_is_refused_and_reported_where_it_belongs(tmp_path):
    (tmp_path / "base.toml").write_text("seed = 7\n")
    (tmp_path / "study.toml").write_text('name = "x"\nscenario = "base.toml"\nrepeat.seeds = [1, 7]\n')
    with expected_error(code="conflict", field="scenario.seed") as caught:
        Study.load(tmp_path / "study.toml")
    assert "seeds = [1, 2, 3] below [repeat]" in caught.value.fix


def test_a_scenario_may_be_repeated_with_just_its_own_seed():
    (point,) = small(vary={}, columns={}, scenario={"seed": 7}, repeat={"seeds": [7]}).points()
    assert point.scenario.seed == 7


def test_a_range_may_have_exponents_and_stays_exact():
    asked = {"from": "0%", "to": "4e-7%", "step": "1e-7 %"}
    assert expand(asked, "vary.x") == ("0%", "0.0000001%", "0.0000002%", "0.0000003%", "0.0000004%")
    asked = {"from": "123456789012345 x", "to": "123456789012345.000000000001 x", "step": "1e-12 x"}
    assert expand(asked, "vary.x") == ("123456789012345 x", "123456789012345.000000000001 x")


def test_a_study_and_its_scenario_are_read_from_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "study.toml").write_text('name = "x"\nscenario = "pipe.toml"\n')
    for path in (tmp_path / "pipe.toml", tmp_path / "study.toml"):
        with expected_error(code="file-unreadable", file=str(tmp_path / "pipe.toml"), match="is a pipe"):
            Study.load(path)


def test_an_error_names_the_file(tmp_path):
    (tmp_path / "study.toml").write_text('name = "x"\nscenario = {}\nvary.chain.loss = []\n')
    with expected_error(file=str(tmp_path / "study.toml")):
        Study.load(tmp_path / "study.toml")


def test_a_value_that_the_scenario_refuses_names_the_point():
    study = small(vary={"chain.loss": ["1%", "101%"]}, columns={})
    with expected_error(code="out-of-range", field="chain.loss", match=r"chain\.loss = 101%"):
        study.points()


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_are_different_and_there_is_one(seeds):
    with expected_error(code="bad-override"):
        small().points(seeds=seeds)


def test_too_many_points_are_refused_before_any_is_made():
    with expected_error(code="too-many-points"):
        small().points(seeds=range(100_000))


tables = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*Study.model_fields, "x"]), tables, max_size=4))
@pytest.mark.usefixtures("patience")
def test_whatever_a_study_holds_it_is_accepted_or_refused_with_one_error(changes):
    content = {"name": "small", "scenario": {"topology": "chain"}} | changes
    try:
        study = Study.from_dict(content)
        points = study.points()
    except SawtoothError as error:
        assert error.message
        return
    assert all(isinstance(point.scenario, Scenario) for point in points)
