"""The cost of reading a TOML file: in proportion to its size, whatever it holds."""

import time
import tracemalloc
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth.api import load
from sawtooth.cli.scenario_text import describe
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario
from sawtooth.scenario.overrides import parse_assignment
from sawtooth.scenario.toml import DEEPEST, LARGEST, parse_toml

pytestmark = pytest.mark.usefixtures("patience")

DOTS = ".".join("a" * 20_000)
DEAR = {
    "a key of 20,000 parts": f"{DOTS} = 1",
    "quoted parts": ".".join(['"a"'] * 20_000) + " = 1",
    "parts with blanks between": " . ".join("a" * 20_000) + " = 1",
    "a header of 20,000 parts": f"[{DOTS}]",
    "a list of tables of 20,000 parts": f"[[{DOTS}]]",
    "a key in a table in a line": f"x = {{ {DOTS} = 1 }}",
    "a key after text that looks like a comment": f'x = "# \\" #"\n{DOTS} = 1',
    "a key after text in three quotes": f'x = """a\n"# \\""" "" """""\n{DOTS} = 1',
    "a key after literal text in three quotes": f"x = '''a\n'# \\'''''\n{DOTS} = 1",
    "lists in lists": "x = " + "[" * 20_000 + "]" * 20_000,
    "tables in tables in a line": "x = " + "{a = " * 20_000 + "1" + "}" * 20_000,
    "a number of 20,000 digits": "x = " + "9" * 20_000,
    "a number of 20,000 hexadecimal digits": "x = 0x" + "f" * 20_000,
    "headers in keys in tables": "\n".join(
        [f"[{'.'.join('a' * 12)}]", f"{'.'.join('b' * 12)} = {{ {'.'.join('c' * 12)} = {'[' * 12}{']' * 12} }}"]
    ),
}


@pytest.mark.parametrize("text", DEAR.values(), ids=DEAR)
def test_what_the_parser_would_take_long_over_is_refused_at_once(text: str) -> None:
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(SawtoothError) as caught:
        parse_toml(text)
    took, memory = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == "not-toml"
    assert took < 0.5
    assert memory < 20e6


@pytest.mark.parametrize(
    "text",
    [
        '"""' + '\\"""' * 250_000,
        "'''" + "''\n" * 250_000,
        "x = '" * 200_000,
        'x = "' + "\\" * 1_000_001,
        "[[a]]\n" * 150_000,
        "x = [" + "[]," * 300_000 + "]",
        "\n" * 1_000_000 + "=",
    ],
)
def test_a_megabyte_of_anything_takes_seconds_at_most(text: str) -> None:
    start = time.process_time()
    try:
        parse_toml(text)
    except SawtoothError as error:
        assert error.code == "not-toml"
    assert time.process_time() - start < 8


def test_what_is_as_deep_as_allowed_is_read() -> None:
    key = ".".join("a" * DEEPEST)
    assert parse_toml(f"{key} = 1")
    assert parse_toml("x = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1))
    assert parse_toml("x = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]")


def test_a_file_of_more_than_four_mebibytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text("#" * (LARGEST + 1))
    with expected_error(code="file-unreadable"):
        load(path)


@pytest.mark.parametrize("key", [DOTS, "flows.0." + DOTS, ".".join("a" * (DEEPEST + 1))])
def test_an_override_of_many_parts_is_refused(key: str) -> None:
    start = time.process_time()
    with expected_error(code="bad-override"):
        Scenario().set(dict([parse_assignment(f"{key}=1")]))
    assert time.process_time() - start < 0.5


def test_the_value_of_an_override_is_text_where_it_is_too_deep() -> None:
    start = time.process_time()
    assert parse_assignment("name={" + DOTS + "=1}")[1] == "{" + DOTS + "=1}"
    assert time.process_time() - start < 0.5


def flows(count: int) -> str:
    return "".join(f'[[flows]]\ncc = "cubic"\nstart = "{number} ms"\n' for number in range(count))


def pairs(count: int) -> str:
    ends = (f'[[flows]]\nfrom = "s{number}"\nto = "r{number}"\n' for number in range(1, count + 1))
    return f'topology = "dumbbell"\n[dumbbell]\npairs = {count}\n' + "".join(ends)


def star(count: int) -> str:
    text = 'topology = "custom"\n[hosts.hub]\n' + "".join(f"[hosts.h{number}]\n" for number in range(count))
    text += "".join(f'[[links]]\nfrom = "h{number}"\nto = "hub"\n' for number in range(count))
    return text + "".join(f'[[flows]]\nfrom = "h{at}"\nto = "h{(at + 7) % count}"\n' for at in range(count))


def routes(count: int) -> str:
    ways = (f'[[routes]]\nfrom = "h{at}"\nto = "h{(at + 7) % count}"\nvia = ["hub"]\n' for at in range(count))
    return star(count) + "".join(ways)


@pytest.mark.parametrize("made", [flows, pairs, star, routes])
def test_reading_and_showing_take_time_in_proportion_to_the_flows(made, tmp_path: Path) -> None:
    def took(count: int) -> float:
        path = tmp_path / f"{count}.toml"
        path.write_text(made(count))
        tries = []
        for _ in range(3):
            start = time.process_time()
            describe(Scenario.load(path))
            tries.append(time.process_time() - start)
        return min(tries)

    assert took(4000) < 8 * took(1000)


def test_ten_thousand_flows_cost_ten_times_what_a_thousand_cost(tmp_path: Path) -> None:
    path = tmp_path / "flows.toml"

    def cost(count: int) -> tuple[float, str]:
        path.write_text(flows(count))
        tries = []
        for _ in range(5):
            start = time.process_time()
            shown = describe(Scenario.load(path))
            tries.append(time.process_time() - start)
        return min(tries), shown

    few, _ = cost(1000)
    many, shown = cost(10_000)
    assert many < 20 * few, "and not a hundred times"
    assert "flow cubic-10000: 1 connection" in shown
