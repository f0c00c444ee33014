"""Quantities: what is accepted, what is refused, and that printing and reading are inverse."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.errors import InputError
from sawtooth.scenario.units import Loss, Quantity, Queue, Rate, Size, Span


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("50 Mbit/s", 50_000_000),
        ("50Mbit", 50_000_000),
        ("1gbit", 10**9),
        ("2.5 Gbit/s", 2_500_000_000),
        ("1 bit/s", 1),
        ("10 Tbit/s", 10**13),
        ("  1e3 kbit/s ", 10**6),
        (".5 kbit", 500),
    ],
)
def test_a_rate_is_read_in_bits_a_second(text: str, bps: int) -> None:
    assert Rate.parse(text) == Rate(bps)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("20 ms", 20_000_000),
        ("20ms", 20_000_000),
        ("0.44 ms", 440_000),
        ("10800 s", 10_800 * 10**9),
        ("3 h", 10_800 * 10**9),
        ("2 min", 120 * 10**9),
        ("30 d", 30 * 86_400 * 10**9),
        ("7 µs", 7_000),
        ("7 us", 7_000),
        ("0 s", 0),
    ],
)
def test_a_span_is_read_in_nanoseconds(text: str, ns: int) -> None:
    assert Span.parse(text) == Span(ns)


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 MiB", 64 * 2**20), ("10 MB", 10**7), ("1500 bytes", 1500), ("1 byte", 1), ("0 bytes", 0), ("1.5KiB", 1536)],
)
def test_a_size_is_read_in_bytes(text: str, size: int) -> None:
    assert Size.parse(text) == Size(size)


@pytest.mark.parametrize(
    ("text", "ppb"),
    [("1%", 10**7), ("1 %", 10**7), ("0%", 0), ("100%", 10**9), ("0.0000001%", 1), ("1.5 percent", 15 * 10**6)],
)
def test_a_loss_is_read_in_parts_per_billion(text: str, ppb: int) -> None:
    assert Loss.parse(text) == Loss(ppb)


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("1000 packets", "packets", 1000),
        ("1 packet", "packets", 1),
        ("1000p", "packets", 1000),
        ("64 KiB", "bytes", 65536),
        ("48 ms", "ns", 48_000_000),
        ("1 bdp", "bdp", 1),
        ("0.02 bdp", "bdp", Fraction(1, 50)),
    ],
)
def test_a_queue_keeps_the_unit_that_it_was_given_in(text: str, unit: str, amount: Fraction) -> None:
    assert Queue.parse(text) == Queue(unit, Fraction(amount))


@pytest.mark.parametrize(
    ("kind", "value", "code", "in_fix"),
    [
        (Rate, 50, "missing-unit", '"50 Mbit/s"'),
        (Rate, "50", "missing-unit", '"50 Mbit/s"'),
        (Rate, 10**400, "missing-unit", "Mbit/s"),
        (Rate, "50 Mbps", "unknown-unit", "Mbit/s"),
        (Rate, "50 furlongs", "unknown-unit", "bit/s"),
        *((Rate, f"{number} Mbit/s", "bad-quantity", "50 Mbit/s") for number in ("1e400", "50,5", "50_000", "5.0.1")),
        (Rate, "0 bit/s", "out-of-range", "Mbit/s"),
        (Rate, "-1 Mbit/s", "out-of-range", "Mbit/s"),
        (Rate, "11 Tbit/s", "out-of-range", "Mbit/s"),
        (Rate, "0.5 bit/s", "bad-quantity", "round"),
        (Rate, "fast", "bad-quantity", "50 Mbit/s"),
        (Rate, "", "bad-quantity", "50 Mbit/s"),
        (Rate, None, "wrong-type", "50 Mbit/s"),
        (Rate, True, "wrong-type", "50 Mbit/s"),
        (Rate, ["50 Mbit/s"], "wrong-type", "50 Mbit/s"),
        (Span, 20, "missing-unit", '"20 ms"'),
        (Span, 0.5, "missing-unit", '"0.5 ms"'),
        (Span, float("nan"), "missing-unit", "ms"),
        (Span, "-20 ms", "out-of-range", "ms"),
        (Span, "31 d", "out-of-range", "ms"),
        (Span, "0.1 ns", "bad-quantity", "round"),
        (Span, "20 sm", "unknown-unit", "ms"),
        (Span, "1e99 s", "out-of-range", "ms"),
        (Span, "1e999999999 s", "bad-quantity", "20 ms"),
        (Span, "٢٠ ms", "bad-quantity", "20 ms"),
        (Size, 1500, "missing-unit", '"1500 bytes"'),
        (Size, "1 Mbit", "unknown-unit", "MiB"),
        (Size, "-1 bytes", "out-of-range", "MiB"),
        (Size, "0.5 bytes", "bad-quantity", "round"),
        (Loss, 0.01, "missing-unit", '"1%" for a share of 0.01, or "0.01%"'),
        (Loss, "0.01", "missing-unit", '"1%" for a share of 0.01, or "0.01%"'),
        (Loss, "101%", "out-of-range", "1%"),
        (Loss, "-1%", "out-of-range", "1%"),
        (Loss, "1 ppm", "unknown-unit", "%"),
        (Queue, 1000, "missing-unit", '"1000 packets"'),
        (Queue, "0 packets", "zero-queue", "1 packet"),
        (Queue, "0 bdp", "zero-queue", "1 packet"),
        (Queue, "0 ms", "zero-queue", "1 packet"),
        (Queue, "0 bytes", "zero-queue", "1 packet"),
        (Queue, "-1 packets", "out-of-range", "packets"),
        (Queue, "0.5 packets", "bad-quantity", "round"),
        (Queue, "1e12 packets", "out-of-range", "packets"),
        (Queue, "1000 pakets", "unknown-unit", "packets"),
    ],
)
def test_a_bad_quantity_is_refused_with_a_code_and_a_fix(
    kind: type[Quantity], value: object, code: str, in_fix: str
) -> None:
    with expected_error(code=code, kind=InputError) as caught:
        kind.parse(value)
    assert in_fix in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("50000 kbit", "50 Mbit/s"),
        ("2500mbit", "2.5 Gbit/s"),
        ("999 bit/s", "999 bit/s"),
    ],
)
def test_a_rate_prints_in_the_largest_unit_that_leaves_at_least_one(text: str, canonical: str) -> None:
    assert str(Rate.parse(text)) == canonical


@given(st.integers(Rate.LOW, Rate.HIGH).map(Rate))
def test_printing_a_rate_loses_nothing(rate: Rate) -> None:
    assert Rate.parse(str(rate)) == rate


@given(st.integers(0, Span.HIGH).map(Span))
def test_printing_a_span_loses_nothing(span: Span) -> None:
    assert Span.parse(str(span)) == span


@given(st.integers(0, Size.HIGH).map(Size))
def test_printing_a_size_loses_nothing(size: Size) -> None:
    assert Size.parse(str(size)) == size


@given(st.integers(0, 10**9).map(Loss))
def test_printing_a_loss_loses_nothing(loss: Loss) -> None:
    assert Loss.parse(str(loss)) == loss


@given(
    st.one_of(
        st.integers(1, 10**9).map(lambda n: Queue("packets", Fraction(n))),
        st.integers(1, 2**40).map(lambda n: Queue("bytes", Fraction(n))),
        st.integers(1, 3600 * 10**9).map(lambda n: Queue("ns", Fraction(n))),
        st.integers(1, 10**15).map(lambda n: Queue("bdp", Fraction(n, 10**9))),
    )
)
def test_printing_a_queue_loses_nothing(queue: Queue) -> None:
    assert Queue.parse(str(queue)) == queue


_WORDS = st.text(max_size=40) | st.from_regex(r"[-+]?[0-9.eE]{0,12} ?[a-zA-Z%/]{0,8}", fullmatch=True)


@given(st.sampled_from([Rate, Span, Size, Loss, Queue]), _WORDS | st.integers() | st.floats() | st.none() | st.binary())
def test_whatever_is_given_is_read_or_refused_as_bad_input(kind: type[Quantity], value: object) -> None:
    try:
        read = kind.parse(value)
    except InputError as error:
        assert error.fix
    else:
        assert kind.parse(str(read)) == read


def test_a_quantity_is_shown_as_what_makes_it_again() -> None:
    for quantity in (Rate.parse("50 Mbit/s"), Span.parse("20 ms"), Size.parse("64 MiB"), Loss.parse("0.5%")):
        assert eval(repr(quantity)) == quantity
    assert repr(Queue.parse("2 bdp")) == "Queue.parse('2 bdp')"


def test_a_bare_length_of_time_may_be_seconds_or_milliseconds() -> None:
    with expected_error(fix='write "60 s" or "60 ms"', kind=InputError):
        Span.parse(60)
