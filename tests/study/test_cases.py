"""Cases: a study's points listed one by one."""

import pytest

from expected_error import expected_error
from followed import retyped
from sawtooth.study import Study

CASES = [
    {"key": {"line": "home", "cc": "cubic"}, "set": {"path.rate": "50 Mbit/s"}},
    {"key": {"line": "office", "cc": "bbr"}, "set": {"path.rate": "1 Gbit/s", "flows.0.cc": "bbr"}},
]


def study(**changes) -> Study:
    content = {"name": "cases", "scenario": {"duration": "1 s", "flows": [{"cc": "cubic"}]}, "cases": CASES}
    return Study.from_dict(content | changes)


def test_the_points_are_the_cases_with_their_seeds() -> None:
    points = study(repeat={"seeds": [1, 2]}).points()
    assert [(point.key["line"], point.seed) for point in points] == [
        ("home", 1),
        ("home", 2),
        ("office", 1),
        ("office", 2),
    ]
    assert points[2].scenario.flows[0].cc == "bbr"
    assert str(points[2].scenario.to_dict()["path"]["rate"]) == "1 Gbit/s"


def test_an_override_goes_before_what_a_case_sets() -> None:
    points = study().points(overrides={"path.rate": "7 Mbit/s"})
    assert {point.scenario.to_dict()["path"]["rate"] for point in points} == {"7 Mbit/s"}


def test_key_columns_are_axes_and_have_titles() -> None:
    titled = study(columns={"line": {"field": "line", "title": "access line"}}, report={"x": "line"})
    assert titled.title_of("line") == "access line"
    assert titled.roles().series == "cc"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"vary": {"path.rate": ["1 Mbit/s"]}}, "conflict"),
        ({"cases": [CASES[0], CASES[0]]}, "duplicate-name"),
        ({"cases": [CASES[0], {"key": {"cc": "cubic"}}]}, "conflict"),
        ({"cases": [{"key": {"mean_mbps": 1}}]}, "conflict"),
        ({"cases": []}, "out-of-range"),
        ({"columns": {"lines": {"field": "line"}}}, "unknown-name"),
    ],
)
def test_what_is_wrong_with_cases_is_one_error(changes, code) -> None:
    with expected_error(code=code) as caught:
        study(**changes)
    assert caught.value.fix


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_key_that_is_no_finite_number_is_refused_and_its_fix_is_text(number) -> None:
    content = {"name": "cases", "scenario": {"duration": "1 s"}, "cases": [{"key": {"a": 1.5}}, {"key": {"a": number}}]}
    with expected_error(code="out-of-range", field="cases.1.key.a", match="not a finite number") as caught:
        Study.from_dict(content)
    typed = caught.value.fix.removeprefix("write it as text: ")
    fixed = Study.from_dict(retyped(content, "out-of-range", "cases.1.key.a", typed))
    assert [point.key for point in fixed.points()] == [{"a": 1.5}, {"a": str(number)}]
