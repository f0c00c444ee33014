"""Records of measures: what figures, goals, expectations and the documentation use of a column."""

import re

from sawtooth.study import measures
from sawtooth.study.mean_counts import COUNTS


def test_the_reference_page_has_the_records() -> None:
    import measure_table

    assert measure_table.PAGE.read_text(encoding="utf-8") == measure_table.page(), "run tools/measure_table.py"


def test_a_column_and_an_alias_have_one_record() -> None:
    names = [name for one in measures.RECORDS for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names))


def test_titles_end_with_the_unit_of_the_column() -> None:
    units = {"_ms": "ms", "_s": "s", "_mbps": "Mbit/s", "_percent": "%"}
    for one in measures.RECORDS:
        ending = next((ending for ending in units if re.search(rf"{ending}(_p\d+)?$", one.name)), None)
        if one.title and ending is not None:
            assert one.title.endswith(f", {units[ending]}"), one.name
        if one.title and one.counts:
            assert one.title.endswith(" per run"), one.name


def test_columns_that_were_added_later_are_at_the_end() -> None:
    added = ("fct_ms_p95", "slowdown_p95", "response_ms_p95", "page_ms_p95", "utilization_percent")
    assert measures.MEASURES[-len(added) :] == added
    assert set(COUNTS) >= {"retransmits", "queue_drops", "transfers", "video_stalls"}
