"""Sources that omit lost probes: gaps between the answers count as lost, if they can be recognized."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sawtooth.link_estimate import RttSeries, read_series
from sawtooth.link_estimate.inputs.silent import with_lost

LOST = (2, 3, 9)


def sent(count: int = 30, **more: object) -> RttSeries:
    rtt_s = 0.02 + np.arange(count) * 1e-5
    return RttSeries(np.arange(count) * 0.1, rtt_s, 0.1, "test", clock="start", **more)


def answers(series: RttSeries) -> RttSeries:
    return series.part(np.array([index for index in range(len(series)) if index not in LOST]))


def lost(series: RttSeries) -> list[int]:
    return np.flatnonzero(~series.answered).tolist()


def test_a_gap_of_whole_paces_is_one_of_lost_probes() -> None:
    found = with_lost(answers(sent()))
    assert lost(found) == list(LOST)
    assert found.sent_s == pytest.approx(sent().sent_s)
    assert [remark.code for remark in found.remarks] == ["silent-losses"]
    assert "3 of 30 probes" in found.remarks[0].text


def test_numbers_tell_what_is_missing_where_there_are_no_times() -> None:
    counted = replace(answers(sent()), sent_s=np.arange(27) * 0.1, clock="counted")
    numbers = np.array([index for index in range(30) if index not in LOST], dtype=float)
    assert lost(with_lost(counted, numbers)) == list(LOST)
    assert lost(with_lost(counted)) == []


def test_what_goes_with_each_answer_stays_with_it() -> None:
    whole = sent(address=np.array([f"r{index}" for index in range(30)], dtype=object), late_s=np.arange(30) * 1e-4)
    found = with_lost(answers(whole))
    assert found.address is not None
    assert found.late_s is not None
    assert [found.address[index] for index in (1, 2, 4)] == ["r1", "", "r4"]
    assert found.late_s[4] == pytest.approx(4e-4)


def test_a_source_that_records_losses_is_left_as_it_is() -> None:
    part = answers(sent())
    recorded = replace(part, rtt_s=np.where(np.arange(27) == 5, np.nan, part.rtt_s))
    assert with_lost(recorded) is recorded


@pytest.mark.parametrize("shift_s", [2.5, 0.05])
def test_a_pause_and_a_late_probe_are_no_losses(shift_s: float) -> None:
    series = sent()
    assert lost(with_lost(replace(series, sent_s=series.sent_s + np.where(np.arange(30) > 20, shift_s, 0)))) == []


def test_probes_at_no_pace_are_left_as_they_are() -> None:
    random = np.random.default_rng(1)
    series = sent()
    assert lost(with_lost(replace(series, sent_s=np.cumsum(random.exponential(0.1, 30))))) == []


def test_a_file_of_answers_only_has_its_losses_back(tmp_path: Path) -> None:
    rows = "".join(f"{index / 10},{20 + index % 7}\n" for index in range(1000) if index % 50 != 3)
    (tmp_path / "answers.csv").write_text(f"sent_s,rtt_ms\n{rows}")
    (found,) = read_series(tmp_path / "answers.csv")
    assert (len(found), found.loss) == (1000, pytest.approx(0.02))


def test_what_is_missing_in_a_file_of_the_prober_was_never_sent(tmp_path: Path) -> None:
    (found,) = read_series(answers(sent()).save(tmp_path / "prober.csv"))
    assert (len(found), found.loss) == (27, 0)
