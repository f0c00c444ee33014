"""Published figures: bundled as printed, misprints excluded from comparisons, and invalid files refused."""

import math
import os

import pytest

from expected_error import expected_error
from sawtooth.study.published import load, shipped


def test_the_shipped_figures_are_listed_and_name_their_source():
    assert shipped() == ["fiber-in-paris", "long-fat-path", "one-percent-loss"]
    for name in shipped():
        assert len(load(name).source) > 20
        assert load(name).setting
    assert "Kemal Šanjta" in load("one-percent-loss").source


@pytest.mark.parametrize(
    ("cc", "path", "loss", "column", "value"),
    [
        ("cubic", "symmetric", 0, "mean_mbps", 804.67),
        ("cubic", "asymmetric", 0, "max_mbps", 900.0),
        ("cubic", "symmetric", 1, "mean_mbps", 235.51),
        ("cubic", "asymmetric", 1, "q50_mbps", 222.73),
        ("cubic", "symmetric", 10, "std_mbps", 4.33),
        ("bbr", "symmetric", 0, "mean_mbps", 868.5),
        ("bbr", "asymmetric", 1, "mean_mbps", 763.42),
        ("bbr", "asymmetric", 6.0, "mean_mbps", 793.79),
    ],
)
def test_a_figure_is_found_by_its_point(cc, path, loss, column, value):
    key = {"cc": cc, "path": path, "loss_percent": loss, "something_else": 1}
    assert load("one-percent-loss").figure(key, column) == value


def test_the_published_study_has_44_points_less_the_illegible_ones():
    figures = load("one-percent-loss").figures
    assert len(figures) == 37
    assert figures.loc[figures["cc"] == "cubic"].shape[0] == 22


@pytest.mark.parametrize(("loss", "printed"), [(9, 36.59), (10, 15.52)])
def test_the_misprints_are_shown_only_when_asked_for(loss, printed):
    key = {"cc": "cubic", "path": "asymmetric", "loss_percent": loss}
    published = load("one-percent-loss")
    assert math.isnan(published.figure(key))
    assert published.figure(key, untrusted=True) == printed
    untrusted = published.figures[~published.figures["trusted"]]
    assert len(untrusted) == 2


def test_a_point_that_was_not_published_has_no_figure():
    published = load("one-percent-loss")
    assert math.isnan(published.figure({"cc": "bbr", "path": "symmetric", "loss_percent": 10}))
    assert math.isnan(published.figure({"cc": "bbr"}))
    assert published.row({"cc": "reno", "path": "symmetric", "loss_percent": 1}) is None


def test_a_file_of_ones_own_is_beside_the_study(tmp_path):
    (tmp_path / "mine.csv").write_text("rtt,mean_mbps\n10,5.5\n20,\n")
    published = load("mine.csv", beside=tmp_path, source="me")
    assert published.source == "me"
    assert published.figure({"rtt": 10}) == 5.5
    assert math.isnan(published.figure({"rtt": 20}))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        ("", "not a CSV table"),
        ("rtt,mean\n1,2\n", "no column mean_mbps"),
        ("rtt,mean_mbps\n1,fast\n", 'line 2: "fast" is not a number'),
        ("rtt,mean_mbps,trusted\n1,2,maybe\n", "yes"),
    ],
)
def test_a_bad_file_is_refused_with_its_name(tmp_path, content, says):
    if content is not None:
        (tmp_path / "mine.csv").write_text(content)
    with expected_error(code="bad-published", match=says) as caught:
        load("mine.csv", beside=tmp_path)
    assert caught.value.file.endswith("mine.csv")


def test_an_unknown_name_is_met_with_the_nearest_one():
    with expected_error(code="bad-published") as caught:
        load("one-percent-los")
    assert "one-percent-loss" in caught.value.fix


def test_figures_in_what_is_no_file_are_refused_unread(tmp_path):
    os.mkfifo(tmp_path / "mine.csv")
    with expected_error(code="bad-published", match="is a pipe") as caught:
        load("mine.csv", beside=tmp_path)
    assert caught.value.fix
