"""Closed forms: RFC 9438's own tables, limits that apply, and refusal of what no formula covers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expected_error import expected_error
from sawtooth.engines import get, model
from sawtooth.errors import SawtoothError
from sawtooth.scenario import Scenario

# RFC 9438, section 5.2, tables 1 and 2: loss, Reno, CUBIC at 100 ms and at 10 ms, in segments.
RFC_9438 = [
    (1e-2, 12, 12, 12),
    (1e-3, 38, 38, 38),
    (1e-4, 120, 187, 120),
    (1e-5, 379, 1054, 379),
    (1e-6, 1200, 5926, 1200),
    (1e-7, 3795, 33325, 5926),
    (1e-8, 12000, 187400, 33325),
]


@pytest.mark.parametrize(("loss", "reno", "slow", "fast"), RFC_9438)
def test_the_average_window_is_that_of_rfc_9438_section_5_2(loss, reno, slow, fast):
    assert model.RENO_C / math.sqrt(loss) == pytest.approx(reno, abs=0.51)
    assert model.cubic_segments(loss, 0.1) == pytest.approx(slow, abs=0.51)
    assert model.cubic_segments(loss, 0.01) == pytest.approx(fast, abs=0.51)


def goodput(**asked):
    table = model.predict(**({"rate": "1 Gbit/s", "rtt": "20 ms", "loss": "1%"} | asked))
    forms = [formula.split(",")[0].split(":")[0] for formula in table["formula"]]
    keys = zip(table["cc"], forms, strict=True)
    return dict(zip(keys, zip(table["goodput_bps"], table["limit"], strict=True), strict=True))


def test_each_congestion_control_has_a_line_with_its_source():
    table = model.predict(rate="2.5 Gbit/s", rtt="140 ms", loss="1.5%")
    assert list(table.columns) == ["cc", "formula", "goodput_bps", "limit", "source"]
    assert set(table["cc"]) == {"reno", "cubic", "bbr"}
    assert table["source"].str.len().min() > 10
    assert table.loc[table["cc"] == "cubic", "source"].str.contains("RFC 9438").all()


def test_without_loss_a_deep_queue_fills_the_line():
    found = goodput(loss="0%", queue="1 bdp")
    assert {limit for _, limit in found.values()} == {"line rate"}
    for bps, _ in found.values():
        assert bps == pytest.approx(1e9 * 1448 / 1514)


def test_where_every_packet_is_lost_loss_is_the_limit():
    found = goodput(loss="100%")
    assert {limit for _, limit in found.values()} == {"loss"}
    assert max(bps for bps, _ in found.values() if bps == bps) == 0


def test_half_of_the_receive_buffer_is_window_as_the_published_long_path_shows():
    found = goodput(rate="2.5 Gbit/s", rtt="140 ms", loss="0%", receive_buffer="12 MiB")
    for bps, limit in found.values():
        assert limit == "receive window"
        assert bps == pytest.approx(6 * 2**20 * 8 / 0.14)


def test_mathis_is_the_paper_s_arithmetic():
    # sqrt(3/2) / sqrt(0.01) = 12.247 segments of 1448 bytes every 20 ms.
    bps, limit = goodput()["reno", "Mathis"]
    assert limit == "loss"
    assert bps == pytest.approx(12.2474 * 1448 * 8 / 0.02, rel=1e-4)


def test_pftk_without_timeouts_to_speak_of_approaches_the_root_law():
    assert model.pftk_segments_a_second(1e-6, 0.1, 0.3) == pytest.approx(model.mathis_segments(1e-6) / 0.1, rel=0.02)


def test_pftk_with_a_window_limit_stays_below_it():
    assert model.pftk_segments_a_second(1e-6, 0.1, 0.3, window=20) == pytest.approx(20 / 0.1, rel=0.02)
    assert model.pftk_segments_a_second(1e-6, 0.1, 0.3, window=20) < 200


def test_linux_s_rto_is_the_rtt_and_200_ms_in_whole_ticks():
    assert model.rto_s(0.00044, 250) == pytest.approx(0.204)
    assert model.rto_s(0.00044, 1000) == pytest.approx(0.201)
    assert model.rto_s(0.14, 250) == pytest.approx(0.340)
    assert model.rto_s(0.1, 250, variation_s=0.1) == pytest.approx(0.5)


def test_bbr_keeps_the_line_until_20_percent_and_no_form_holds_beyond():
    bps, limit = goodput(loss="10%", cc="bbr")["bbr", "ceiling"]
    assert limit == "line rate"
    assert bps == pytest.approx(1e9 * 1448 / 1514 * 0.9)
    (beyond,) = goodput(loss="20%", cc="bbr").values()
    assert math.isnan(beyond[0])


def test_a_queue_too_short_for_a_decrease_leaves_the_line_idle():
    # Without a queue the window runs from beta to 1 bdp: mean (1 + beta) / 2.
    assert model.queue_utilisation("reno", 1000, 0) == pytest.approx(0.75)
    assert model.queue_utilisation("cubic", 1000, 0) == pytest.approx(0.85)
    assert model.queue_utilisation("reno", 1000, 1000) == 1.0
    assert model.queue_utilisation("bbr", 1000, 0) == 1.0
    assert goodput(loss="0%", queue="10 packets", cc="cubic")["cubic", "mean window"][1] == "queue"


@given(st.floats(1e-6, 0.19), st.floats(1e-6, 0.19), st.floats(1e-4, 1.0))
def test_more_loss_never_gives_more(one, other, rtt):
    low, high = sorted((one, other))
    assert model.cubic_segments(high, rtt) <= model.cubic_segments(low, rtt)
    assert model.mathis_segments(high) <= model.mathis_segments(low)
    pftk = [model.pftk_segments_a_second(p, rtt, model.rto_s(rtt), window=1e5) for p in (low, high)]
    assert pftk[1] <= pftk[0] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({"rtt": "0 s"}, "out-of-range", "rtt"),
        ({"rate": 100}, "missing-unit", "rate"),
        ({"loss": "101%"}, "out-of-range", "loss"),
        ({"cc": "cubik"}, "unknown-name", "cc"),
        ({"queue": "0 packets"}, "zero-queue", "queue"),
        ({"mss": 0}, "out-of-range", "mss"),
        ({"hz": 0}, "out-of-range", "hz"),
    ],
)
def test_nonsense_is_refused_by_field(asked, code, field):
    with expected_error(code=code, field=field):
        goodput(**asked)


def test_the_engine_answers_with_the_mean_in_every_interval_and_says_so():
    run = get("model").run(Scenario(path={"rate": "1 Gbit/s", "rtt": "20 ms", "loss": "1%"}, duration="10 s"))
    intervals = run.tables["intervals"]
    assert len(intervals) == 10
    assert intervals["t_s"].to_list() == [float(second) for second in range(1, 11)]
    assert intervals["goodput_bps"].nunique() == 1
    assert intervals["goodput_bps"][0] == pytest.approx(goodput(cc="cubic")["cubic", "mean window"][0])
    assert "gives only a mean" in run.warnings[0]


@pytest.mark.parametrize(
    ("tables", "field"),
    [
        ({"flows": [{"count": 2}]}, "flows"),
        ({"flows": [{}, {"cc": "bbr"}]}, "flows"),
        ({"flows": [{"bytes": "1 MB"}]}, "flows.0.bytes"),
        ({"flows": [{"start": "1 s"}]}, "flows.0.start"),
        ({"flows": [{"replace": {"lifetime": ["1 s", "2 s"]}}]}, "flows.0.replace"),
        ({"flows": [{"source": {"kind": "rate", "rate": "1 Mbit/s"}}]}, "flows.0.source"),
        ({"flows": [{"reader": {"rate": "1 Mbit/s"}}]}, "flows.0.reader"),
        ({"probes": [{}]}, "probes"),
        ({"path": {"ack_loss": "1%"}}, "loss"),
        ({"path": {"rtt": "0 s", "queue": "10 packets"}}, "delay"),
        ({"host": {"sack": False}}, "host.sack"),
        ({"host": {"offload": True}}, "host.offload"),
    ],
)
def test_what_no_closed_form_covers_is_refused_by_name(tables, field):
    with expected_error(code="unsupported", field=field):
        get("model").check(Scenario(**tables))


def test_a_return_path_too_slow_for_the_acknowledgements_is_refused():
    path = {"rate": "100 Mbit/s", "rtt": "20 ms", "reverse_rate": "3 Mbit/s"}
    get("model").check(Scenario(path=path))
    with pytest.raises(SawtoothError, match="acknowledgements that fill the return path"):
        get("model").check(Scenario(path=path | {"reverse_rate": "2 Mbit/s"}))


def test_a_congestion_control_without_a_formula_is_refused_by_name():
    with expected_error(code="unsupported", field="cc"):
        model.predict(rate="1 Gbit/s", rtt="20 ms", loss="1%", cc="yeah")
    with expected_error(code="unsupported", field="flows.0.cc") as caught:
        get("model").check(Scenario(flows=[{"cc": "htcp"}]))
    assert "--engine kernel" in str(caught.value.fix)


def test_bbr_version_3_has_no_closed_form_and_is_simulated_instead():
    with expected_error(code="unsupported", field="flows.0.cc", fix="use --engine sim") as caught:
        get("model").check(Scenario(flows=[{"cc": "bbr3"}]))
    assert caught.value.message == "the engine model has no closed form for bbr3, only for reno, cubic, bbr"
    with pytest.raises(SawtoothError, match="no closed form for bbr3"):
        model.predict(rate="1 Gbit/s", rtt="20 ms", loss="1%", cc="bbr3")
