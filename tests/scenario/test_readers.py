"""Sources that request their data: `requests`, `pages` and `video`, from the file to the tables of `sim`."""

import json
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth import engines, read_capture
from sawtooth.cli.scenario_text import describe
from sawtooth.errors import InputError
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.scenario.compiled import Compiled
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.traffic import orders

PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp"}
REQUESTS: dict[str, Any] = {"kind": "requests", "sizes": "30 kB", "think": "100 ms"}
PAGES: dict[str, Any] = {"kind": "pages", "objects": 12, "sizes": {"kind": "lognormal", "mean": "20 kB", "sigma": 1}}
VIDEO: dict[str, Any] = {"kind": "video", "rates": ["1 Mbit/s", "4 Mbit/s"], "rule": "throughput"}


def scenario(*sources: dict[str, Any], **tables: Any) -> Scenario:
    flows = [{"source": source} for source in sources]
    return Scenario(**{"path": PATH, "duration": "10 s", "flows": flows, "traffic": "native", **tables})


def run(*sources: dict[str, Any], **tables: Any) -> Run:
    return engines.get("sim").run(scenario(*sources, **tables))


def test_what_is_asked_for_is_compiled_with_the_connections_of_all_readers() -> None:
    flows = scenario(REQUESTS, PAGES, VIDEO).compile().to_dict()["flows"]
    assert flows[0]["asks"] == {"requests": {"sizes": {"fixed": 30_000}, "think": {"fixed_ns": 10**8}}}
    drawn = {"lognormal": {"mean_bytes": 20_000, "sigma_ppb": 10**9}}
    assert flows[1]["asks"] == {
        "pages": {"objects": 12, "sizes": drawn, "think": {"fixed_ns": 10**9}, "connections": 6, "keep": False}
    }
    assert flows[2]["asks"] == {
        "video": {
            "rates_bps": [10**6, 4 * 10**6],
            "segment_ns": 4 * 10**9,
            "buffer_ns": 30 * 10**9,
            "rule": "throughput",
        }
    }
    assert [flow["count"] for flow in flows] == [1, 6, 1]
    two = Scenario(flows=[{"count": 2, "source": PAGES}]).compile().flows[0]
    assert two.count == 12


def test_a_guest_reads_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "sizes.cdf"
    file.write_text("1000 0.5\n20000 1\n")
    by_file = {**REQUESTS, "sizes": {"kind": "cdf", "file": str(file)}, "think": {"kind": "exponential", "mean": "1 s"}}
    made = scenario(REQUESTS, PAGES, VIDEO, by_file).compile()
    assert Compiled.from_dict(json.loads(made.to_json())) == made


def test_the_native_source_gets_the_same(tmp_path: Path) -> None:
    file = tmp_path / "sizes.cdf"
    file.write_text("1000 0.5\n20000 1\n")
    by_file = {**REQUESTS, "sizes": {"kind": "cdf", "file": str(file)}, "think": {"kind": "exponential", "mean": "1 s"}}
    compiled = scenario(REQUESTS, PAGES, VIDEO, by_file).compile()
    place = Place(netem=True, vlan=True, macvlan=True, nftables=True, virtual=True)
    plan = build(compiled, place, "x-")
    told = orders(compiled, plan, "native", tmp_path, tmp_path, {}, capture=(), virtual=True).splitlines()
    assert [line for line in told if line.startswith("asks")] == [
        "asks 0 requests fixed 1 30000 100000000 0",
        "asks 1 pages lognormal 2 20000 1000000000 1000000000 0 12 6 0",
        "asks 2 video fixed 1 0 0 0 4000000000 30000000000 1 2 1000000 4000000",
        "asks 3 requests cdf 4 1000 500000000 20000 1000000000 1000000000 1",
    ]


def test_each_answer_has_a_row_and_pages_and_segments_have_theirs() -> None:
    made = run(REQUESTS, PAGES, VIDEO, path={**PATH, "queue": "4 bdp"})
    responses, pages, segments = (made.tables[name] for name in ("responses", "pages", "segments"))
    assert list(responses.columns) == ["t_s", "flow", "connection", "generation", "number", "bytes", "response_s"]
    assert responses["t_s"].is_monotonic_increasing
    of_pages = responses[responses["flow"] == 1]
    whole = pages["objects"].sum()
    assert whole <= len(of_pages) < whole + 12
    assert (pages["objects"] == 12).all()
    assert of_pages["bytes"].head(12).sum() == pages["bytes"][0]
    assert pages["load_s"].min() > 0.08, "a handshake and a round trip"
    of_video = responses[responses["flow"] == 2].reset_index(drop=True)
    assert of_video["response_s"].tolist() == segments["download_s"].tolist()
    assert (segments["buffer_s"] <= 30).all()
    assert segments["bytes"].tolist() == [bps * 4 // 8 for bps in segments["rate_bps"]]
    delivered = made.tables["flows"].groupby("flow")["delivered_bytes"].sum()
    assert delivered[0] - responses[responses["flow"] == 0]["bytes"].sum() < 30_000, "but for the last"


def test_a_run_without_readers_has_none_of_these_tables() -> None:
    tables = run({"kind": "rate", "rate": "1 Mbit/s"}).tables
    assert not {"responses", "pages", "segments"} & set(tables)


def test_tables_of_readers_are_saved_and_loaded(tmp_path: Path) -> None:
    made = run(PAGES)
    made.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.tables["responses"].equals(made.tables["responses"])
    assert loaded.tables["pages"].equals(made.tables["pages"])


def test_another_reader_does_not_change_what_one_asks_for() -> None:
    sizes = {"kind": "pareto", "least": "1 kB", "most": "1 MB", "shape": 1.2}
    drawn = {**REQUESTS, "sizes": sizes, "think": {"kind": "exponential", "mean": "100 ms"}}
    alone, beside = run(drawn), run(drawn, {**drawn, "think": "0 s"})
    asked = [made.tables["responses"].query("flow == 0")["bytes"].tolist() for made in (alone, beside)]
    least = min(map(len, asked))
    assert least > 20
    assert asked[0][:least] == asked[1][:least]
    other = run(drawn, seed=2).tables["responses"]["bytes"].tolist()
    assert other[:20] != asked[0][:20]


@pytest.mark.parametrize("source", [REQUESTS, PAGES, VIDEO])
def test_iperf3_and_closed_forms_have_none_of_them(source: dict[str, Any]) -> None:
    asked = scenario(source, traffic="iperf3")
    for engine in ("model", "kernel"):
        with expected_error(code="unsupported", kind=InputError):
            engines.get(engine).check(asked)


@pytest.mark.parametrize(
    ("source", "code", "field"),
    [
        ({"kind": "requests"}, "missing-field", "sizes"),
        ({**REQUESTS, "sizes": "0 bytes"}, "out-of-range", "sizes"),
        ({**REQUESTS, "sizes": 1000}, "missing-unit", "sizes"),
        ({**REQUESTS, "think": 1}, "missing-unit", "think"),
        ({**REQUESTS, "think": "2 h"}, "out-of-range", "think"),
        ({**REQUESTS, "think": {"kind": "normal", "mean": "1 s"}}, "unknown-name", "think.kind"),
        ({**REQUESTS, "think": {"kind": "exponential", "mean": "0 s"}}, "out-of-range", "think.mean"),
        ({**REQUESTS, "objects": 3}, "unknown-field", "objects"),
        ({**PAGES, "objects": 0}, "out-of-range", "objects"),
        ({**PAGES, "connections": 0}, "out-of-range", "connections"),
        ({**PAGES, "keep": "yes"}, "wrong-type", "keep"),
        ({**VIDEO, "rates": []}, "out-of-range", "rates"),
        ({**VIDEO, "rates": ["2 Mbit/s", "1 Mbit/s"]}, "out-of-range", "rates"),
        ({**VIDEO, "rates": "2 Mbit/s"}, "wrong-type", "rates"),
        ({**VIDEO, "segment": "1 ms"}, "out-of-range", "segment"),
        ({**VIDEO, "buffer": "3 s"}, "out-of-range", "buffer"),
        ({**VIDEO, "rule": "bola"}, "unknown-name", "rule"),
    ],
)
def test_what_has_no_meaning_is_refused_by_its_field(source: dict[str, Any], code: str, field: str) -> None:
    with expected_error(code=code, field=f"flows.0.source.{field}", kind=InputError) as refused:
        scenario(source)
    assert refused.value.fix


@pytest.mark.parametrize("more", [{"bytes": "1 MB"}, {"replace": {"lifetime": ["1 s", "2 s"]}}])
def test_a_reader_says_itself_what_is_sent_and_when_a_connection_ends(more: dict[str, Any]) -> None:
    with expected_error(code="conflict", kind=InputError):
        Scenario(flows=[{"source": REQUESTS, **more}])


def test_show_says_what_is_asked_for() -> None:
    told = describe(scenario(REQUESTS, PAGES, VIDEO))
    assert "requested by the receiver: responses of 30 kB, 100 ms after each" in told
    assert "pages of 12 objects of lognormal sizes over 6 connections, new ones for each, 1 s after each" in told
    assert "video, segments of 4 s at 1 Mbit/s, 4 Mbit/s, buffer of 30 s" in told


def test_a_capture_shows_the_readers_handshake_its_requests_and_the_answers(tmp_path: Path) -> None:
    asked = scenario(REQUESTS, duration="2 s")
    made = engines.get("sim").capturing(tmp_path).run(asked)
    answers = len(made.tables["responses"])
    for file in sorted(tmp_path.glob("*.pcap")):
        capture = read_capture(file)
        (facts,) = capture.facts["connections"]
        assert facts["client"].startswith("10.0.0.5:"), "the receiving host opens it"
        assert facts["handshake"]["seen"]
        client, server = facts["directions"]
        assert client["payload_bytes"] in (400 * answers, 400 * (answers + 1))
        assert server["payload_bytes"] >= 30_000 * answers
        assert not client["retransmits"]
        assert not server["retransmits"]


def test_a_video_is_offered_in_a_known_ladder_where_none_is_given() -> None:
    asks = Scenario(flows=[{"source": {"kind": "video"}}]).compile().flows[0].asks
    assert asks is not None
    assert (told := asks.video) is not None
    assert (len(told.rates_bps), told.rates_bps[0], told.rates_bps[-1]) == (10, 235_000, 5_800_000)
