"""The laboratory's server beyond the page's files: who is answered, and results by id."""

import csv
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import quick
from opened_lab import serving
from sawtooth import Scenario, Study, run
from sawtooth.compare import compare
from sawtooth.compare.text import words
from sawtooth.io.atomic_io import write_description
from sawtooth.lab import Server
from sawtooth.lab.requests import JSON, TOML
from sawtooth.lab.results import identity
from sawtooth.report import write_report
from tests.lab.lab_client import SHORT, SITE, asked, refused

FOREIGN = "<img src=x onerror=alert(1)>"
STUDY = {
    "name": "small",
    "title": FOREIGN,
    "scenario": SHORT,
    "vary": {"path.loss": ["0%", "1%"]},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results in every state."""
    out = tmp_path_factory.mktemp("made") / "results"
    write_report(quick(Study.from_dict(STUDY), engine="sim", out=out))
    for name, cc in (("one", "cubic"), ("other", "bbr")):
        run(Scenario.from_dict(SHORT | {"name": name, "flows": [{"cc": cc}]})).save(out / "runs" / name)
    whole = next(path for path in (out / "small").iterdir() if not path.is_symlink())
    description = json.loads((whole / "study.json").read_text())
    del description["sha256"]
    steering = {"study": description["study"] | {"title": "\u202eevil\x1b[2J"}, "finished": None}
    for name, changes in (("interrupted", {"finished": None}), ("newer", {"format": 99}), ("steering", steering)):
        shutil.copytree(whole, out / name)
        write_description(out / name / "study.json", description | changes)
    shutil.rmtree(out / "interrupted" / "points" / description["points"][0]["id"])
    shutil.copytree(out / "runs" / "one", out / "older")
    told = json.loads((out / "older" / "run.json").read_text())
    del told["sha256"]
    write_description(out / "older" / "run.json", told | {"format": 1, "tables": list(told["tables"])})
    shutil.copytree(out / "runs" / "one", out / "gone")
    (out / "gone" / "intervals.parquet").unlink()
    for name, text in (
        ("cut", b'{"format": 1, "engi'),
        ("deep", b"[" * 100_000),
        ("no-utf8", b"\xff\xfe{}"),
        ("empty", b""),
    ):
        (out / name).mkdir()
        (out / name / "study.json").write_bytes(text)
    (out / "odd").mkdir()
    write_description(out / "odd" / "study.json", {"format": 1, "study": [], "points": 7, "engine": None})
    shutil.copytree(out / "runs" / "one", out / "broken")
    (out / "broken" / "intervals.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    return out


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    """A copy of the results, for one test."""
    return Path(shutil.copytree(made, tmp_path / "results", symlinks=True))


@pytest.fixture
def server(made: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """Serves the test's own copy if it has one: only such tests change anything."""
    results = request.getfixturevalue("results") if "results" in request.fixturenames else made
    with serving(SITE, results) as server:
        yield server


def known(server: Server, path: str, **more: str) -> Any:
    status, headers, body = asked(server, path, **more)
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8"), body
    return json.loads(body)


def rows(server: Server) -> dict[str, dict[str, Any]]:
    """Ids by name."""
    status, _, body = asked(server, "/api/results")
    assert status == 200
    *found, last = map(json.loads, body.splitlines())
    assert last["all"] == len(found)
    return {row["name"]: row for row in found}


# Which requests are answered.


@pytest.mark.parametrize("path", ["/api/hello", "/api/results", "/api/compare?ids=a,b", "/api/result/x"])
@pytest.mark.usefixtures("patience")
def test_what_is_known_needs_the_key_and_its_own_page(server: Server, path: str) -> None:
    assert asked(server, path, key=None)[0] == 403
    assert asked(server, path, key="x" * 32)[0] == 403
    assert asked(server, path, key="é")[0] == 403
    assert asked(server, path, Host="evil.example")[0] == 421
    assert asked(server, path, Origin="http://evil.example")[0] == 403
    assert asked(server, path, Origin="null")[0] == 403
    assert asked(server, path, Origin=f"http://127.0.0.1:{server.server_port + 1}")[0] == 403
    assert asked(server, f"{path}?key={server.key}", key=None)[0] == 403


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("kind", [JSON, TOML])
def test_a_run_needs_the_key_and_its_own_page(server: Server, kind: str) -> None:
    sent: Any = ("/run", "POST", "{}")
    assert asked(server, *sent, key=None, Content_Type=kind)[0] == 403
    assert asked(server, *sent, Host="evil.example:80", Content_Type=kind)[0] == 421
    assert asked(server, *sent, Origin="https://evil.example", Content_Type=kind)[0] == 403
    assert asked(server, "/run", key="")[0] == 404
    assert asked(server, "/run", "OPTIONS", Origin="https://evil.example")[0] == 501


def test_the_address_has_the_key_and_the_page_does_not(server: Server) -> None:
    assert server.opened == f"{server.address}?key={server.key}"
    assert len(server.key) >= 32
    assert server.key.encode() not in asked(server, "/")[2]


@pytest.mark.parametrize(
    "path", ["/results/", "/results/small", "/api", "/api/", "/report/", "/api/result/", "/results/../x", "/../x"]
)
def test_no_directory_is_listed_and_no_path_is_taken(server: Server, path: str) -> None:
    assert asked(server, path)[0] in (400, 404)


def test_an_id_that_is_not_known_leads_nowhere(server: Server, results: Path) -> None:
    (results.parent / "secret").mkdir()
    shutil.copytree(results / "older", results.parent / "secret" / "run")
    for wanted in ("..", "../secret/run", "%2e%2e%2fsecret", identity(Path("../secret/run")), "small", "a" * 9000):
        assert refused(asked(server, f"/api/result/{wanted}"))[:2] == (400, "not-a-result")


def test_links_are_neither_listed_nor_followed(server: Server, results: Path) -> None:
    outside = results.parent / "outside"
    shutil.copytree(results / "runs" / "one", outside)
    (results / "link").symlink_to(outside)
    shutil.copytree(results / "runs" / "one", results / "inner")
    (results / "inner" / "intervals.parquet").unlink()
    (results / "inner" / "intervals.parquet").symlink_to(outside / "intervals.parquet")
    found = rows(server)
    assert "link" not in found
    assert not [place for place in found if place.endswith("latest")]
    assert refused(asked(server, f"/api/result/{found['inner']['id']}"))[:2] == (400, "not-a-result")
    # A directory that becomes a result after it was listed.
    one = found["runs/one"]["id"]
    shutil.rmtree(results / "runs")
    (results.parent / "runs" / "one").mkdir(parents=True)
    (results / "runs").symlink_to(results.parent / "runs")
    assert refused(asked(server, f"/api/result/{one}"))[:2] == (400, "not-a-result")


# The list.


def test_every_result_is_listed_with_its_state(server: Server) -> None:
    found = rows(server)
    small = next(row for place, row in found.items() if place.startswith("small/"))
    assert (small["kind"], small["engine"], small["points"], small["state"]) == ("study", "sim", 2, "whole")
    assert (small["title"], small["latest"]) == (FOREIGN, True)
    assert "varies path.loss (2)" in small["scenario"]
    assert (found["runs/one"]["kind"], found["runs/one"]["state"]) == ("run", "whole")
    assert "10 Mbit/s" in found["runs/one"]["scenario"]
    interrupted = found["interrupted"]
    assert (interrupted["state"], interrupted["done"], interrupted["points"]) == ("interrupted", 1, 2)
    assert found["newer"]["state"] == "newer"
    assert (found["older"]["state"], found["older"]["older"]) == ("whole", True)
    for name in ("cut", "deep", "no-utf8", "empty", "odd"):
        assert found[name]["state"] == "damaged", name
        assert found[name]["problem"]
    times = [row["when"] for row in found.values() if row["kind"] == "run"]
    assert times == sorted(times, reverse=True)


def test_text_of_results_is_harmless_text(server: Server) -> None:
    assert rows(server)["steering"]["title"] == "\\u202eevil\\u001b[2J"


def test_a_directory_that_is_not_there_is_an_empty_list(results: Path) -> None:
    shutil.rmtree(results)
    with Server(SITE, results=results) as server:
        assert list(server.results.rows()) == [{"all": 0, "shown": 0, "directory": str(results)}]


@pytest.mark.usefixtures("patience")
def test_thousands_are_listed_in_bounded_time(server: Server, results: Path) -> None:
    text = (results / "older" / "run.json").read_bytes()
    for at in range(2000):
        (results / "many" / str(at)).mkdir(parents=True)
        (results / "many" / str(at) / "run.json").write_bytes(text)
    begun = time.process_time()
    assert len(rows(server)) > 2000
    assert time.process_time() - begun < 20


# One result, and several.


@pytest.mark.usefixtures("patience")
def test_a_run_is_opened_as_lines_figures_and_tables(server: Server) -> None:
    told = known(server, f"/api/result/{rows(server)['runs/one']['id']}")
    assert told["heading"].startswith("Run of one on sim")
    assert told["figures"][0]["panels"][0]["series"][0]["name"] == "cubic"
    assert told["tables"][0]["rows"][0][0] == "cubic"


@pytest.mark.usefixtures("patience")
def test_a_study_is_opened_and_has_its_report(server: Server) -> None:
    small = next(row for place, row in rows(server).items() if place.startswith("small/"))
    told = known(server, f"/api/result/{small['id']}")
    assert told["heading"] == f"{FOREIGN}, engine sim"
    assert [figure["name"] for figure in told["figures"]]
    assert told["tables"][0]["all"] == 2
    status, headers, page = asked(server, f"/{small['report']}", key=None)
    assert (status, page[:15].lower()) == (200, b"<!doctype html>")
    # The report has its own origin, without network: anybody may have written it.
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts allow-downloads; default-src 'none';")
    assert "allow-same-origin" not in policy
    place, _, key = small["report"].partition("?key=")
    assert key != server.key
    assert asked(server, f"/{place}", key=None)[0] == 404
    assert asked(server, f"/report/{rows(server)['newer']['id']}?key={key}", key=None)[0] == 404


def study_of(results: Path) -> Path:
    return next(path for path in (results / "small").iterdir() if not path.is_symlink())


@pytest.mark.usefixtures("patience")
def test_a_study_is_shown_from_what_it_stored_and_nothing_is_computed_again(server: Server, results: Path) -> None:
    directory = study_of(results)
    shutil.rmtree(directory / "points")
    identity = rows(server)[directory.relative_to(results).as_posix()]["id"]
    told = known(server, f"/api/result/{identity}")
    assert told["lines"][-1].startswith("Stored on ")
    means = told["tables"][0]
    shown = [dict(zip(means["columns"], row, strict=True)) for row in means["rows"]]
    stored = [row for row in csv.DictReader((directory / "table.csv").open()) if row["seed"] == "all"]
    assert [float(row["mean_mbps"]) for row in shown] == [pytest.approx(float(row["mean_mbps"])) for row in stored]
    assert (
        json.dumps(told["figures"][0], separators=(",", ":")).replace("<", "\\u003c")
        in (directory / "report.html").read_text()
    )


@pytest.mark.usefixtures("patience")
def test_what_is_not_stored_is_reported(server: Server, results: Path) -> None:
    directory = study_of(results)
    identity = rows(server)[directory.relative_to(results).as_posix()]["id"]
    (directory / "report.html").write_text("<p>of another version")
    told = known(server, f"/api/result/{identity}")
    assert told["figures"] == []
    assert f"no figures that can be read: `sawtooth report {directory}`" in " ".join(told["lines"])
    (directory / "report.html").unlink()
    (directory / "table.csv").unlink()
    told = known(server, f"/api/result/{identity}")
    assert (told["figures"], told["tables"]) == ([], [])
    lines = " ".join(told["lines"])
    assert "Figures are not stored: " in lines
    assert "Its tables are not stored: " in lines
    (directory / "table.csv").write_text("loss,mean\n1\n")
    assert refused(asked(server, f"/api/result/{identity}"))[:2] == (400, "not-a-result")


def test_a_report_that_is_a_link_is_not_opened(server: Server, results: Path) -> None:
    (results.parent / "secret.html").write_text("secret")
    report = results / "newer" / "report.html"
    report.unlink()
    report.symlink_to(results.parent / "secret.html")
    newer = rows(server)["newer"]
    assert newer["report"] is False
    path = f"/report/{newer['id']}?key={server.key_of(newer['id'])}"
    assert refused(asked(server, path))[:2] == (400, "not-a-result")


@pytest.mark.parametrize("place", ["interrupted", "newer", "gone", "broken", "cut", "deep", "odd", "empty", "no-utf8"])
@pytest.mark.usefixtures("patience")
def test_what_cannot_be_opened_says_why(server: Server, place: str) -> None:
    assert refused(asked(server, f"/api/result/{rows(server)[place]['id']}"))[:2] == (400, "not-a-result")


@pytest.mark.usefixtures("patience")
def test_results_are_compared_in_the_words_of_the_command(server: Server, results: Path) -> None:
    found = rows(server)
    ids = ",".join(found[place]["id"] for place in ("runs/one", "runs/other"))
    told = known(server, f"/api/compare?ids={ids}")
    assert told["heading"] == "other against one"
    printed = words(compare([results / "runs" / name for name in ("one", "other")]))
    assert told["lead"].rstrip(".").lower() == printed.splitlines()[-1].lower()
    assert any(line.startswith("Goodput in Mbit/s") for line in told["lines"])
    first, *others = told["tables"]
    assert first["title"] == "other against one"
    assert len(first["rows"]) == 1
    assert all(cell in printed for cell in (*first["columns"], *first["rows"][0]))
    assert [(one["title"], one["columns"][0]) for one in others] == [("The scenarios differ in", "field")]
    assert [one["name"] for one in told["figures"][0]["panels"][0]["series"]] == ["one", "other"]
    assert "within 300%" in known(server, f"/api/compare?ids={ids}&within=300%25")["lead"].lower()
    assert refused(asked(server, f"/api/compare?ids={ids}&within=3"))[1:] == ("missing-unit", "within")
    assert refused(asked(server, f"/api/compare?ids={ids}&omit=9%20s"))[1:] == ("out-of-range", "omit")


@pytest.mark.usefixtures("patience")
def test_comparing_what_cannot_be_compared_says_why(server: Server) -> None:
    found = rows(server)
    small = next(row for place, row in found.items() if place.startswith("small/"))
    one = found["runs/one"]["id"]
    assert refused(asked(server, f"/api/compare?ids={one},{small['id']}"))[1] == "conflict"
    assert refused(asked(server, f"/api/compare?ids={one}"))[1] == "bad-usage"
    assert refused(asked(server, f"/api/compare?ids={','.join([one] * 13)}"))[1] == "bad-usage"
    assert refused(asked(server, f"/api/compare?ids={one},..%2f..%2fetc"))[1] == "not-a-result"
