"""Examples use addresses that belong to nobody: those of RFC 5737 and RFC 3849 for documentation, and loopback."""

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sawtooth.cli.program import sawtooth

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]
KEPT = [
    ipaddress.ip_network(one)
    for one in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "127.0.0.0/8", "2001:db8::/32", "::1/128")
]
GUESTS = ipaddress.ip_network("10.0.0.0/24")
"""Addresses of a scenario's hosts on the engine kernel, which no card reaches and which its captures show. Allowed on
the pages that show some.
"""
OF_GUESTS = {"reference/kernel.md", "tutorial-capture.md"}
_SECTION = re.compile(r"\b[Ss]ections?(?:,?\s(?:(?:and|to)\s)?[0-9]+(?:\.[0-9]+)*)+")
_IPV4 = re.compile(r"(?<![\w.-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w.-]*[0-9]\.|\w)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-fA-F:]*[0-9])[0-9a-fA-F]{0,4}:(?:[0-9a-fA-F]{0,4}:)+[0-9a-fA-F]{0,4}(?![\w:.])"
)


def addresses(text: str) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """All addresses in a text; section numbers and times of day do not count."""
    for found in (*_IPV4.findall(_SECTION.sub("", text)), *_IPV6.findall(text)):
        try:
            yield ipaddress.ip_address(found)
        except ValueError:
            continue


def foreign(text: str, *more: ipaddress.IPv4Network) -> list[str]:
    """Addresses that may belong to somebody."""
    return [
        str(one)
        for one in addresses(text)
        if not any(one in net for net in (*KEPT, *more) if net.version == one.version)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_addresses_kept_for_documentation_only(page: Path) -> None:
    more = [GUESTS] if str(page.relative_to(ROOT)).removeprefix("docs/") in OF_GUESTS else []
    assert foreign(page.read_text(encoding="utf-8"), *more) == []


def commands(group: click.Group = sawtooth, *before: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*before, name)
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


def test_help_names_addresses_kept_for_documentation_only() -> None:
    told = {" ".join(words): CliRunner().invoke(sawtooth, [*words, "--help"]).output for words in commands()}
    assert sum(len(list(addresses(text))) for text in told.values()) >= 2
    assert {name: found for name, text in told.items() if (found := foreign(text))} == {}


def test_messages_and_fixes_name_addresses_kept_for_documentation_only() -> None:
    """Only IPv4, because Python's slices and types look like IPv6."""
    found = {}
    for path in (ROOT / "src" / "sawtooth").rglob("*.py"):
        named = [str(one) for one in addresses(path.read_text(encoding="utf-8")) if one.version == 4]
        wrong = [one for one in named if foreign(one) and one not in ("0.0.0.0", "255.255.255.255")]
        if wrong:
            found[path.name] = wrong
    # The survey assigns it to a device in a separate namespace; packetdrill's runners give scripts these in a guest.
    runners = ["192.168.0.1", "192.168.0.1", "255.255.0.0"]
    assert found == {"kernel_features.py": ["100.64.0.0"], "guest.py": runners}


@pytest.mark.parametrize("text", ["dst 192.168.1.7", "10.9.1.2/24", "ping 8.8.8.8", "from fe80::1", "172.16.0.1:80"])
def test_an_address_of_somebody_is_found(text: str) -> None:
    assert foreign(text)


@pytest.mark.parametrize(
    "text", ["RFC 9293 section 3.10.7.4, RFC 1122", "sections 5.3 and 5.3.1.2", "at 12:30:05", "::1"]
)
def test_sections_and_times_are_no_addresses(text: str) -> None:
    assert not foreign(text)
