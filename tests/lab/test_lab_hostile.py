"""Hostile inputs to the laboratory's page: each is answered or refused in words, and the next question is answered."""

import gzip
import itertools
import json
import random
import re
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from opened_lab import Opened, serving
from sawtooth import Scenario, Study, run
from sawtooth.figures.page_shell import _FIGURES
from sawtooth.lab import Server, Site
from sawtooth.report import write_report
from sawtooth.study import run_study

GOOD = {"duration": "1 s", "path": {"rate": "10 Mbit/s"}, "flows": [{"cc": "reno"}]}
HTML = "<img src=//foreign.example/x onerror=alert(1)><script>alert(2)</script>"
SCRIPT = "javascript:alert(3)"
CONTROLS = "a\u202eb\u2066c\u200bd\u2028e\ufefff"
DEEP = "[" * 4_000 + "]" * 4_000
NO_TEXT = {"toString": 1, "valueOf": 1}
"""A table without its own text."""


def link(asked: Any) -> str:
    """Ten lines of JSON are easier to read than the same with percent signs."""
    return quote(asked if isinstance(asked, str) else json.dumps(asked))


LINKS = {
    "JSON that breaks off": link('{"path":{"rate":"1'),
    "a percent sign alone": "%",
    "half a character": "%7B%22name%22%3A%22%E0%A4%22%7D",
    "a character that is too long": "%C0%80",
    "half a surrogate": link('{"name":"\\ud800","duration":"1 s"}'),
    "a NUL": link({"name": "a\0b"}),
    "directions and invisible characters": link({"name": CONTROLS, "flows": [{"name": CONTROLS}]}),
    "__proto__": link('{"__proto__":{"polluted":1},"duration":"1 s"}'),
    "__proto__ of the path": link('{"path":{"__proto__":{"polluted":1}}}'),
    "__proto__ of a flow": link('{"flows":[{"__proto__":{"polluted":1}}]}'),
    "constructor.prototype": link({"constructor": {"prototype": {"polluted": 1}}}),
    "a field of every object": link({"path": {"hasOwnProperty": 1, "toString": 1}}),
    "a queue called constructor": link({"path": {"queue": {"kind": "constructor"}}}),
    "a queue called __proto__": link({"path": {"queue": {"kind": "__proto__"}}}),
    "a queue whose kind is a table": link({"path": {"queue": {"kind": NO_TEXT, "limit": NO_TEXT}}}),
    "a control called toString": link({"flows": [{"cc": "toString"}]}),
    "a control that is a table": link({"flows": [{"cc": {"name": NO_TEXT, "variant": []}}]}),
    "a question called __proto__": link({"name": "__proto__", "duration": "1 s"}),
    "a rate without text": link({"path": {"rate": NO_TEXT}}),
    "a start without text": link({"flows": [{"start": NO_TEXT, "count": NO_TEXT}]}),
    "a name as long as a link may be": link({"name": "x" * 19_000}),
    "more than a link may be": "x" * 100_000,
    "lists in lists": link(f'{{"path":{{"queue":{DEEP}}}}}'),
    "tables in tables": link('{"path":' * 1_000 + "1" + "}" * 1_000),
    "a list where a table is": link({"path": [], "host": [], "flows": {}}),
    "null everywhere": link({"path": {"rate": None, "queue": None}, "host": {"ecn": None}, "flows": [{"cc": None}]}),
    "numbers beyond numbers": link('{"duration":1e999,"seed":-1e999,"flows":[{"count":1e999}]}'),
    "a duration of 1e308 s": link({"duration": "1e308 s"}),
    "a rate of 400 digits": link({"path": {"rate": f"{'9' * 400} Gbit/s"}}),
    "a thousand flows": link({"flows": [{}] * 1_000}),
    "a billion connections": link({"flows": [{"count": 10**9}]}),
    "HTML as names": link({"name": HTML, "duration": "1 s", "flows": [{"name": HTML}, {"name": f'"{HTML}'}]}),
    "HTML as values": link({"path": {"rate": HTML, "queue": {"kind": HTML, "limit": HTML}}, "flows": [{"cc": HTML}]}),
    "HTML as fields": link({HTML: HTML, "path": {HTML: 1}}),
    "a script as a name": link({"name": SCRIPT, "duration": "1 s", "flows": [{"name": SCRIPT}]}),
    "HTML that is no JSON": quote(HTML),
}

FIELDS = [
    ("Rate", "NaN Mbit/s"),
    ("Rate", "-5 Mbit/s"),
    ("Rate", "1e999 Mbit/s"),
    ("Rate", "0x10 Mbit/s"),
    ("Rate", "0 Mbit/s"),
    ("Rate", "١٠ Mbit/s"),
    ("Rate", "10 Mbit/s\u202e"),
    ("Rate", HTML),
    ("Rate", "9" * 50_000),
    ("Round-trip time", "Infinity s"),
    ("Round-trip time", "1e-400 s"),
    ("Round-trip time", "20 furlongs"),
    ("Loss", "101%"),
    ("Loss", "-0%"),
    ("Loss", "1e999%"),
    ("Loss", ""),
    ("Queue", "1e30 packets"),
    ("Queue", "-1 bdp"),
    ("Duration", "0 s"),
    ("Duration", SCRIPT),
    ("connections", "1e999"),
    ("connections", "99999999999999999999"),
    ("starts at", "NaN"),
    ("sends", "-1 MB"),
]

FILES = {
    "nothing": b"",
    "zeros": bytes(4_096),
    "random bytes": random.Random(1).randbytes(4_096),
    "no UTF-8": b'name = "\xff\xfe"\n',
    "a mark of byte order": b"\xef\xbb\xbfduration = '1 s'\n",
    "more than a file may be": b"#" * (4 << 20) + b"##",
    "a megabyte of comment": b"#" * (1 << 20),
    "lists in lists": f"path.queue = {DEEP}".encode(),
    "a key of many parts": b"a." * 20_000 + b"a = 1",
    "__proto__": b"[__proto__]\npolluted = 1\n[path.__proto__]\npolluted = 1\n[constructor.prototype]\npolluted = 1\n",
    "the same key twice": b'duration = "1 s"\nduration = "2 s"\n',
    "no number": b"duration = nan\nseed = -inf\n",
    "a number of 400 digits": b"seed = " + b"9" * 400,
    "a time and a date": b"duration = 1979-05-27T07:32:00Z\n",
    "HTML as a name": f"name = {json.dumps(HTML)}\n[[flows]]\nname = {json.dumps(HTML)}\n".encode(),
    "a study of __proto__": b'[scenario]\n[vary]\n"flows.__proto__.cc" = ["cubic", "bbr"]\n',
    "a study of 5,000 controls": b"[scenario]\n[vary]\n" + f'"flows.x.cc" = {json.dumps(["bbr"] * 5_000)}\n'.encode(),
}

PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""A file header, for Ethernet."""
PCAPNG = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


def record(kept: int, content: bytes) -> bytes:
    return struct.pack("<IIII", 1, 0, kept, kept) + content


CAPTURES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "a byte": lambda: b"\xd4",
    "a header": lambda: PCAP,
    "half a header": lambda: PCAP[:13],
    "half a packet": lambda: PCAP + record(60, b"\0" * 30),
    "a packet of 4 GB": lambda: PCAP + record(0xFFFFFFFF, b"\0" * 100),
    "packets without a byte": lambda: PCAP + record(0, b"") * 10_000,
    "a link of no known kind": lambda: PCAP[:20] + struct.pack("<I", 0xFFFF) + record(60, b"\0" * 60),
    "random packets": lambda: PCAP + b"".join(record(60, random.Random(at).randbytes(60)) for at in range(1_000)),
    "random bytes": lambda: random.Random(2).randbytes(100_000),
    "a block of no length": lambda: PCAPNG + struct.pack("<III", 6, 0, 0),
    "a block of 4 GB": lambda: PCAPNG + struct.pack("<II", 6, 0xFFFFFFFC) + bytes(100),
    "an interface that is not there": lambda: PCAPNG + struct.pack("<IIIIIIIII", 6, 36, 9, 0, 0, 0, 0, 0, 36),
    "300 MB of zeros, packed": lambda: gzip.compress(bytes(300 << 20), 9),
    "packets of zeros, packed": lambda: gzip.compress(PCAP + bytes(48 << 20), 9),
    "packed twice": lambda: gzip.compress(gzip.compress(PCAP)),
    "half of what is packed": lambda: gzip.compress(PCAP + random.Random(3).randbytes(50_000))[:25_000],
    "a wrong sum": lambda: gzip.compress(PCAP)[:-8] + b"\xff" * 8,
    "HTML": lambda: f"<!doctype html>{HTML}".encode(),
}

RESULTS_LINKS = ["open=__proto__", "open=../../etc/passwd", f"open={link(HTML)}", "compare=,,,", "%", f"open={SCRIPT}"]
RESULTS_LINKS += [f"compare={'x,' * 5_000}", "open=%00&compare=__proto__", "compare=a,b&within=NaN&omit=1e999 s"]

STATE = """() => ({
  title: document.title,
  polluted: "polluted" in Object.prototype || Object.keys(Object.prototype).length > 0,
  elements: document.querySelectorAll("main img, main script, main iframe, #capture img, #capture script").length,
  alarming: [...document.querySelectorAll("a")].filter(({ protocol }) => protocol === "javascript:").length,
})"""
TOLD = """() => ["#link-wrong", "#wrong", "#sentence"].some((one) => {
  const told = document.querySelector(one);
  return told !== null && !told.hidden && told.textContent.trim() !== "";
})"""


class Watched(Opened):
    """A page that records its requests, its console and the pages that it opens."""

    def __init__(self, browser: Any, address: str) -> None:
        self.dialogs: list[str] = []
        super().__init__(browser, "about:blank", ready=False)
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(address)
        self.page.wait_for_selector("body[data-ready]")
        self.host = address.split("#")[0].split("?")[0].removesuffix("results")
        self.title = self.page.title()

    def unharmed(self) -> None:
        """Nothing ran, no other host was contacted, and the console is empty."""
        expected = {"title": self.title, "polluted": False, "elements": 0, "alarming": 0}
        assert self.page.evaluate(STATE) == expected
        assert [one for one in self.asked if not one.startswith((self.host, "data:", "blob:", "about:"))] == []
        said, self.said[:] = list(self.said), []
        assert said + self.dialogs == []


@pytest.fixture(scope="module")
def lasting(browser: Any, address: str) -> Iterator[Watched]:
    """One page for many inputs: none of them may leave anything behind."""
    opened = Watched(browser, f"{address}#{link(GOOD)}")
    opened.finish()
    yield opened
    opened.context.close()


SEEDS = itertools.count(1)


def again(opened: Watched) -> None:
    """The next question is answered, and the previous one did no harm."""
    opened.page.evaluate("asked => { location.hash = asked }", link(GOOD | {"seed": next(SEEDS)}))
    opened.finish()
    assert opened.sentence.startswith("10 Mbit/s")
    opened.unharmed()


@pytest.mark.parametrize("hash_", LINKS.values(), ids=LINKS)
def test_a_link(lasting: Watched, hash_: str) -> None:
    lasting.page.evaluate("asked => { location.hash = asked }", hash_)
    lasting.page.wait_for_function(TOLD)
    again(lasting)


@pytest.mark.parametrize(("label", "text"), FIELDS, ids=lambda one: ascii(one)[:40])
def test_a_field(lasting: Watched, label: str, text: str) -> None:
    again(lasting)
    field = lasting.page.get_by_label(label, exact=True)
    field.fill(text)
    assert field.get_attribute("aria-invalid") == "true" or text in ("-0%", "1e-400 s", "")
    wrong = lasting.page.locator(f"[id='{field.get_attribute('aria-describedby')}']")
    assert field.get_attribute("aria-invalid") is None or wrong.inner_text() != ""
    field.fill({"Loss": "1%"}.get(label, "1"))
    again(lasting)


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_scenario_that_is_opened(lasting: Watched, content: bytes) -> None:
    again(lasting)
    lasting.page.evaluate("() => { document.getElementById('took').textContent = '' }")
    file = {"name": f"{HTML}{CONTROLS}.toml", "mimeType": "text/plain", "buffer": content}
    lasting.page.set_input_files("#open", [file])
    lasting.page.wait_for_function("() => document.getElementById('took').textContent !== ''")
    lasting.page.wait_for_function(TOLD)
    again(lasting)


@pytest.mark.parametrize("content", CAPTURES.values(), ids=CAPTURES)
def test_a_capture(lasting: Watched, content: Callable[[], bytes], tmp_path: Path) -> None:
    file = tmp_path / f"{HTML.replace('/', '.')}{CONTROLS}.pcap"
    file.write_bytes(content())
    lasting.page.set_input_files("#capture-file", file)
    lasting.page.wait_for_function(
        """() => ["capture-wrong", "capture-said"].some((id) => {
          const told = document.getElementById(id);
          return !told.hidden && told.textContent !== "";
        }) && document.getElementById("capture-busy").hidden"""
    )
    again(lasting)


AXIS = {"label": HTML, "unit": HTML, "scale": "linear"}
FIGURE = {"name": HTML, "title": HTML, "sentence": HTML, "height": 1e308, "across": -1, "group": "__proto__"}
LINE = {"name": HTML, "colour": "url(//foreign.example/x)", "kind": "line", "x": [0, 1, 2], "y": [1e308, -1e308, None]}


def panel(*series: Any, **axis: Any) -> dict[str, Any]:
    return {"title": HTML, "x": AXIS | axis, "y": AXIS | axis, "series": list(series)}


FIGURES: dict[str, Any] = {
    "no figures": [1, None, "x", [], {}],
    "HTML as names": [FIGURE | {"panels": [panel(LINE, {**LINE, "kind": "points", "symbol": HTML})]}],
    "no panels": [FIGURE | {"panels": None}],
    "text as numbers": [FIGURE | {"panels": [panel({**LINE, "x": HTML, "y": [HTML] * 3})]}],
    "logarithms of nothing": [FIGURE | {"panels": [panel({**LINE, "y": [0, -1, 0]}, scale="log", low=0, high=0)]}],
    "axes that end before they begin": [FIGURE | {"panels": [panel(LINE, low=1e308, high=-1e308)]}],
    "names that are missing": [FIGURE | {"panels": [panel(LINE, scale="category", names=[])]}],
    "lists in lists": json.loads(DEEP[3_900:4_100]),
}
TABLES = {
    "a table of HTML": f"seed,{HTML.replace(',', '')}\nall,{SCRIPT}\n".encode(),
    "a table of other rows": b"seed,a\nall,1,2,3\n",
    "a table that is none": bytes(1_000),
}
DESCRIPTIONS = {"half a description": b'{"format": 1,', "a description of another kind": b"[]", "no description": b""}


@pytest.fixture(scope="module")
def foreign(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Results from strangers, with HTML in their titles, each with one file that was changed."""
    out = tmp_path_factory.mktemp("foreign") / "results"
    scenario: dict[str, Any] = {"duration": "1 s", "interval": "100 ms", "path": {"rate": "10 Mbit/s", "loss": "1%"}}
    told = {"name": "study", "title": HTML, "scenario": scenario, "vary": {"path.loss": ["0%", "1%"]}}
    study = run_study(Study.from_dict(told), out=out, jobs=1, quiet=True)
    report = write_report(study)
    run(Scenario.from_dict(scenario)).save(out / "runs" / "good")

    def other(name: str, file: str, content: bytes) -> None:
        shutil.copytree(study.directory, out / "others" / name)
        (out / "others" / name / file).write_bytes(content)

    for name, figures in FIGURES.items():
        page = report.read_text()
        page, _ = page.rsplit(_FIGURES, 1)
        content = json.dumps(figures).replace("</", "<\\/")
        other(name, report.name, f"{page}{_FIGURES}{content}</script>".encode())
    for name, content in TABLES.items():
        other(name, "table.csv", content)
    for name, content in DESCRIPTIONS.items():
        other(name, "study.json", content)
    with serving(site, out) as server:
        yield server


@pytest.fixture
def results(browser: Any, foreign: Server) -> Iterator[Watched]:
    opened = Watched(browser, f"{foreign.address}results?key={foreign.key}")
    yield opened
    opened.context.close()


def opens(opened: Watched, name: str) -> None:
    """The page shows something of it, or why there is nothing."""
    opened.page.get_by_label("Find").fill(name)
    opened.page.locator("td.result button").first.click()
    opened.page.wait_for_function(SHOWN)


SHOWN = """() => document.getElementById("busy").textContent === ""
  && (!document.getElementById("wrong").hidden || document.body.dataset.shown === location.hash)"""


@pytest.mark.parametrize("name", [*FIGURES, *TABLES, *DESCRIPTIONS])
def test_a_result_of_somebody_else(results: Watched, name: str) -> None:
    opens(results, f"others/{name}")
    told = results.page.inner_text("#wrong") if results.page.locator("#wrong").is_visible() else ""
    assert not re.search("TypeError|undefined|null|not iterable|not a function", told), told
    # A browser logs every answer 400.
    results.said[:] = [one for one in results.said if "status of 4" not in one]
    opens(results, "runs/good")
    results.unharmed()


@pytest.mark.parametrize("hash_", RESULTS_LINKS, ids=lambda one: one[:40])
def test_a_link_to_results(results: Watched, hash_: str) -> None:
    results.page.evaluate("asked => { location.hash = asked }", hash_)
    results.page.wait_for_function("() => document.getElementById('busy').textContent === ''")
    results.said[:] = [one for one in results.said if "status of 4" not in one]
    opens(results, "runs/good")
    results.unharmed()
