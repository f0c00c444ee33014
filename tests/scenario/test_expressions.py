"""Expressions: what can be written, what it means, and the errors for what cannot."""

from typing import Any

import numpy as np
import pytest

from expected_error import expected_error
from sawtooth.errors import InputError
from sawtooth.scenario.expressions import NUMBER, RATE, SIZE, TIME, Amount, Measure, parse, parse_expression

KNOWN = {
    "goodput": Amount(45e6, RATE),
    "path.rate": Amount(50e6, RATE),
    "path.rtt": Amount(0.02, TIME),
    "queue_delay_p95_ms": Amount(0.03, TIME),
    "flows.0.bytes": Amount(8e6, SIZE),
    "call_mos": Amount(3.5),
    "parking-lot.rate": Amount(1e6, RATE),
}


def resolve(measure: Measure) -> Amount:
    return KNOWN[measure.name]


def value(text: str) -> Any:
    return parse_expression(text).amount_of(resolve)


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("goodput >= 90% of path.rate", 0),
        ("goodput > 40 Mbit/s", 5e6),
        ("goodput < 40Mbit/s", -5e6),
        ("90% of path.rate <= goodput", 0),
        ("queue_delay_p95_ms < 20 ms", -0.01),
        ("queue_delay_p95_ms<path.rtt*2", 0.01),
        ("call_mos > 3.6", -0.1),
        ("goodput > 0", 45e6),
        ("flows.0.bytes / path.rate < 1 s", 1 - 0.16),
        ("parking-lot.rate > goodput - path.rate", 6e6),
    ],
)
def test_the_margin_is_above_zero_where_it_holds(text: str, margin: float) -> None:
    assert parse(text).margin(resolve) == pytest.approx(margin, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("2 - 3 - 4", -5),
        ("8 / 4 / 2", 1),
        ("-2 * -3", 6),
        ("50% of 30% of 2", 0.3),
        ("1.5e3", 1500),
        ("50%", 0.5),
    ],
)
def test_operators_bind_as_they_do_on_paper(text: str, expected: float) -> None:
    assert value(text) == Amount(pytest.approx(expected), NUMBER)


@pytest.mark.parametrize(
    ("text", "dimension", "expected"),
    [("50 Mbit/s", RATE, 50e6), ("20ms", TIME, 0.02), ("64 KiB", SIZE, 64 * 1024 * 8), ("3 us", TIME, 3e-6)],
)
def test_units_are_those_of_scenario_files(text: str, dimension: object, expected: float) -> None:
    assert value(text) == Amount(pytest.approx(expected), dimension)


def test_a_measure_may_set_fields_for_itself() -> None:
    text = "mean_mbps(cc='bbr', path.loss=1%, flows.0.count=3, rtt=20 ms, x=true) > mean_mbps(cc=cubic)"
    found = parse(text)
    settings = (("cc", "bbr"), ("path.loss", "1%"), ("flows.0.count", 3), ("rtt", "20 ms"), ("x", True))
    assert found.measures == [
        Measure("mean_mbps", settings, 1),
        Measure("mean_mbps", (("cc", "cubic"),), text.rindex("mean") + 1),
    ]
    assert str(found.measures[1]) == "mean_mbps(cc='cubic')"


def test_measures_may_be_one_value_a_seed() -> None:
    seeds = Amount(np.array([40e6, 50e6]), RATE)
    assert parse("goodput >= 90% of 50 Mbit/s").margin(lambda _: seeds).tolist() == [-5e6, 5e6]


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("mean_mbps", Amount(2e6, RATE)),
        ("queue_delay_p95_ms", Amount(0.002, TIME)),
        ("fct_ms_p50", Amount(0.002, TIME)),
        ("converges_s", Amount(2.0, TIME)),
        ("latency_lost_percent", Amount(0.02)),
        ("call_mos", Amount(2.0)),
    ],
)
def test_a_column_has_the_unit_that_its_name_ends_in(name: str, amount: Amount) -> None:
    assert Amount.of_column(name, 2.0) == amount


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "bad-expression", "at character 1: a number or a name is missing before the end"),
        ("goodput", "bad-expression", "at character 8: a comparison is missing before the end"),
        ("goodput = 5", "bad-expression", 'at character 9: "=" does not compare'),
        ("goodput > 1 Mbit/s > 2", "bad-expression", 'at character 20: nothing can follow here, but ">" does'),
        ("goodput >= 90% off path.rate", "bad-expression", 'at character 16: nothing can follow here, but "off" does'),
        ("goodput >= 3 of path.rate", "bad-expression", 'at character 14: "of" comes after a share'),
        ("goodput > 45", "missing-unit", "45 has no unit, but the other side is a rate"),
        ("goodput > 20 ms", "bad-expression", "a rate and a time cannot stand on the two sides"),
        ("goodput > 5 parsec", "unknown-unit", '"parsec" is not a unit'),
        ("goodput > 5 mbps", "unknown-unit", "mbps"),
        ("goodput > (path.rate", "bad-expression", '")" is missing before the end'),
        ("goodput(cc 'x') > 1", "bad-expression", '"=" is missing'),
        ("goodput(cc='x', cc='y') > 1", "bad-expression", "cc is set twice"),
        ("goodput() > 1", "bad-expression", "a field's name is missing"),
        ("goodput > 5 / 0", "bad-expression", "divides by 0"),
        ("goodput > 5,5 Mbit/s", "bad-expression", "at character 11: 5,5 Mbit/s is not part of an expression"),
        ("__import__('os')", "bad-expression", "a field's name is missing"),
        ("(" * 50 + "1", "bad-expression", "more than 20 deep"),
        ("1 > " + "9" * 1000, "bad-expression", "at most 500"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_place(text: str, code: str, words: str) -> None:
    with expected_error(code=code, kind=InputError) as told:
        parse(text).margin(resolve)
    assert words in told.value.message
    assert told.value.fix
