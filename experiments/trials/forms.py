"""Names and texts that would end a field and begin another, in each format that we write."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from experiments.trials.command import sawtooth

TEXTS = (
    *('a"b', "a'b", "a`id`b", "a$(touch OWNED)b", "a${HOME}b", "a;touch OWNED;b", "a|touch OWNED", "a\\b", "a\\nb"),
    *("a]]>b", "a<!--b", "a--><script>window.owned=1</script>", "<img src=x onerror=owned=1>", "&lt;b&gt;&amp;&#0;"),
    *("</script><script>owned=1</script>", "</style><b>", "</title><b>", "{{7*7}}", "{% raw %}", "${7*7}", "%7B%7B"),
    *("%0A::error::x", "::error::x", "a%0D%0A::warning::x", "::set-output name=a::b", "a,file=x::b", "##[error]x"),
    *("=cmd|' /C calc'!A0", "=1+1", "+1+1", "-1+1", "@SUM(1)", "a,b", 'a","b', 'a"\r"b'.replace("\r", ""), "'=1"),
    *("[a](javascript:owned)", "![a](http://x/y)", "a|b|c", "**a**", "# a", "`a`", "~~~", "<a href=javascript:x>"),
    *('a"} 1', 'a\\"b', "__proto__", "constructor", "null", "NaN", "1e999", "true", "../../x", "a/../b", "~", "-rf"),
)
"""For a flow's name, a study's title and question, and an expectation's name."""


def forms(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Runs, judges and compares a study with each text in all its places. The format's own reader reads the output,
    which must have the text, or its plain form, and nothing more from it.
    """
    held = Counter[str]()
    texts = list(TEXTS)
    rng.shuffle(texts)
    for number, text in enumerate(texts[:times]):
        study, out = home / f"{number}.toml", home / f"out-{number}"
        quoted = json.dumps(text, ensure_ascii=False)
        for name in (quoted, '"plain"'):
            study.write_text(
                f'name = "trial"\ntitle = {quoted}\nquestion = {quoted}\n[scenario]\nduration = "2 s"\n'
                f'[scenario.path]\nrate = "10 Mbit/s"\n[[scenario.flows]]\nname = {name}\n[repeat]\nseeds = [1]\n'
                f'[expect]\n{quoted} = "mean_mbps > 9.5 Mbit/s"\n'
            )
            told = sawtooth("show", study).communicate()[1]
            if not told:
                break
            held["refused as a flow's name"] += "error[bad-name]" in told and "flows.0.name" in told
        junit = home / f"{number}.xml"
        program = sawtooth(
            *("run", study, "--quiet", "--engine", "model", "--jobs", "1", "--out", out),
            cwd=home,
            stdout=subprocess.PIPE,
        )
        printed, told = program.communicate(timeout=300)
        held["tried"] += 1
        if program.returncode == 2 and "error[" in told and "error[internal]" not in told:
            held["refused, with a code"] += 1
            continue
        directory = (out / "trial" / "latest").resolve()
        judged = sawtooth(*("check", directory, "--junit", junit, "--github"), cwd=home, stdout=subprocess.PIPE)
        answered, annotated = judged.communicate(timeout=300)
        held["run, and judged"] += program.returncode in (0, 3, 4) and judged.returncode in (0, 3, 4)
        for name, check in _CHECKS.items():
            try:
                good = check(directory, junit, annotated, text)
            except Exception as error:  # what a reader raises for a broken file
                good, told = False, f"{told} {type(error).__name__}: {error}"
            held[f"{name}: holds" if good else f"{name}: BROKEN"] += 1
            if not good:
                print(f"{name}: {text!r} {told[:300]} {printed[:100]}", flush=True)
        held["NEW FILES"] += any(home.glob("**/OWNED"))
        del answered
    return held


def _junit(_: Path, junit: Path, __: str, text: str) -> bool:
    (case,) = ElementTree.fromstring(junit.read_bytes()).iter("testcase")
    return case.get("name") == text and {child.tag for child in case} <= {"failure", "error", "system-out"}


def _github(_: Path, __: Path, annotated: str, text: str) -> bool:
    """One workflow command per line, all ours: the runner splits at line ends, then properties at "," and "::"."""
    commands = [line for line in annotated.splitlines() if re.match(r"\s*(::|##\[)", line)]
    found = [re.fullmatch(r"::(error|warning) ([^:]*)::(.*)", line) for line in commands]
    if len(commands) != 1 or found[0] is None:
        return False
    properties = dict(one.split("=", 1) for one in found[0][2].split(","))
    return set(properties) <= {"file", "line", "title"} and _said(properties["title"]).endswith(text)


def _said(text: str) -> str:
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def _csv(directory: Path, _: Path, __: str, text: str) -> bool:
    """Each row is as long as the header and has the whole name; no cell is a formula other than a sum."""
    for path in directory.rglob("*.csv"):
        rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
        if any(len(row) != len(rows[0]) for row in rows):
            return False
        cells = [cell for row in rows for cell in row]
        if any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") and re.search(r"[^\w.+-]", cell) for cell in cells):
            return False
    return True


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.acts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag] += 1
        self.acts += [f"{tag} {name}={value}" for name, value in attrs if name.startswith("on")]
        self.acts += [
            f"{tag} {name}={value}" for name, value in attrs if (value or "").lower().startswith("javascript")
        ]


_usual: dict[str, Counter[str]] = {}


def _html(directory: Path, _: Path, __: str, text: str) -> bool:
    """The same scripts, styles, links and pictures as with a plain name, and no event handler."""
    reader = _Tags()
    page = (directory / "report.html").read_text()
    reader.feed(page)
    kinds = {tag: reader.found[tag] for tag in ("script", "style", "a", "img", "iframe", "title", "b")}
    first = _usual.setdefault("tags", Counter(kinds))
    return not reader.acts and Counter(kinds) == first and "{{7*7}}" not in page.replace(text, "")


def _json(directory: Path, _: Path, __: str, text: str) -> bool:
    described: dict[str, Any] = json.loads((directory / "study.json").read_text())
    return bool(described["study"]["title"] == text)


def _svg(directory: Path, _: Path, __: str, ___: str) -> bool:
    found = [ElementTree.parse(path).getroot() for path in directory.rglob("*.svg")]
    return bool(found) and not any(one.tag.rpartition("}")[2] == "script" for root in found for one in root.iter())


_CHECKS: dict[str, Callable[[Path, Path, str, str], bool]] = {
    "JUnit's XML": _junit,
    "GitHub's annotations": _github,
    "CSV": _csv,
    "report.html": _html,
    "study.json": _json,
    "SVG": _svg,
}
