"""A judgement for machines: JUnit XML for continuous integration, and annotations for GitHub workflows."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from sawtooth.assertions.judgement import ABSENT, FAILS, HOLDS, UNKNOWN, Judgement, Verdict
from sawtooth.assertions.text import expectation_text
from sawtooth.errors import SawtoothError
from sawtooth.io.untrusted import read_bytes
from sawtooth.sanitize import plain

_KINDS = {FAILS: "failure", UNKNOWN: "error", ABSENT: "skipped"}
_LARGEST = 1 << 24
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(found: Judgement) -> bytes:
    """A test suite with one test case per verdict.

    A failed expectation is a failure, an inconclusive one an error, one that was not asked is skipped.
    """
    suite = ElementTree.Element("testsuite", name=_in_xml(found.study), tests=str(len(found.verdicts)))
    suite.attrib |= {
        "failures": str(found.count(FAILS)),
        "errors": str(found.count(UNKNOWN)),
        "skipped": str(found.count(ABSENT)),
    }
    for one in found.verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname=_in_xml(found.study), name=_in_xml(one.title))
        case.attrib |= {"file": _in_xml(found.source)} if found.source else {}
        if one.verdict == HOLDS:
            ElementTree.SubElement(case, "system-out").text = _in_xml(expectation_text(one))
        else:
            kind = _KINDS[one.verdict]
            child = ElementTree.SubElement(case, kind, type=one.verdict, message=_in_xml(expectation_text(one)))
            child.text = _in_xml(one.text)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    text: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def annotated(found: Judgement) -> list[str]:
    """Workflow commands at the lines of the study: an error for each failure, a warning for each inconclusive case."""
    lines = _lines(found.source)
    return [_annotation(one, found.source, lines) for one in found.verdicts if one.verdict in (FAILS, UNKNOWN)]


def _annotation(one: Verdict, source: str | None, lines: list[str]) -> str:
    about = {"title": f"{one.verdict}: {one.title}"}
    if source is not None:
        about = {"file": source} | about
        line = next((at for at, text in enumerate(lines, 1) if one.text in text or one.name in text), None)
        about |= {"line": str(line)} if line is not None else {}
    properties = ",".join(f"{name}={_property(value)}" for name, value in about.items())
    return f"::{'error' if one.verdict == FAILS else 'warning'} {properties}::{_message(expectation_text(one))}"


def _lines(source: str | None) -> list[str]:
    """The lines of the study's file, if it can still be read."""
    if source is None or not Path(source).is_file():
        return []
    try:
        return read_bytes(source, _LARGEST).decode(errors="replace").splitlines()
    except SawtoothError:
        return []


def _message(text: str) -> str:
    return plain(text, 1000).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
