"""docs/gallery.md: each study has its picture, its distance from the kernel, and numbers from its table."""

import re
import shutil
from pathlib import Path

import gallery
import pandas as pd
import pytest
from PIL import Image, ImageChops

import sawtooth
from fake_engine import quick
from sawtooth.study import run_study
from sawtooth.study.shipped import shipped

PAGE = gallery.parted((gallery.DOCS / "gallery.md").read_text())[1]
TEMPLATE = gallery.parted((gallery.DOCS / "gallery.in.md").read_text())[1]


def test_the_page_has_the_sections_of_its_template_and_each_is_of_a_shipped_study() -> None:
    assert list(PAGE) == list(TEMPLATE)
    assert set(PAGE) == set(gallery.STUDIES) <= set(shipped())


@pytest.mark.parametrize("name", PAGE)
def test_the_page_says_what_the_template_says_with_numbers_in_place(name: str) -> None:
    words = " ".join(TEMPLATE[name].partition("<!-- ")[0].split())
    parts = [re.escape(part) for part in gallery.NUMBER.split(words)]
    pattern = r"-?[0-9]+(\.[0-9]+)?".join(parts[::2])
    assert re.match(pattern, " ".join(PAGE[name].split())), "python tools/gallery.py --again writes it anew"


@pytest.mark.parametrize("name", PAGE)
def test_it_has_a_picture_of_a_sane_size_and_a_distance_from_the_kernel(name: str) -> None:
    assert f"](images/{name}.png)" in PAGE[name]
    assert 5_000 < (gallery.DOCS / "images" / f"{name}.png").stat().st_size < 150_000
    near = re.search(rf"<!-- {name}: kernel -->\n(.+)\n<!-- end -->", PAGE[name], re.DOTALL)
    assert near is not None, "python tools/gallery.py --kernel measures it"


def test_a_study_made_again_has_the_numbers_and_the_picture_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: None
) -> None:
    name, docs = "policer", gallery.DOCS
    (tmp_path / "images").mkdir()
    for page in ("gallery.md", "gallery.in.md"):
        shutil.copy(docs / page, tmp_path)
    monkeypatch.setattr(gallery, "DOCS", tmp_path)
    study = sawtooth.load(name)
    assert isinstance(study, sawtooth.Study)
    result = run_study(study, out=tmp_path / "results", jobs=1)
    gallery.write(name, result, None)
    assert (tmp_path / "gallery.md").read_text() == (docs / "gallery.md").read_text()
    gallery.picture(name, result)
    with Image.open(tmp_path / "images" / f"{name}.png") as new, Image.open(docs / "images" / f"{name}.png") as old:
        assert new.size == old.size
        # Another processor may round the edge of a line differently, but nothing else.
        apart = ImageChops.difference(new.convert("L"), old.convert("L")).histogram()
        assert sum(apart[32:]) < 0.001 * sum(apart)


@pytest.mark.usefixtures("patience")
def test_a_number_is_of_the_one_point_that_its_keys_name(tmp_path: Path) -> None:
    result = quick(out=tmp_path)
    at = result.pooled.set_index("loss_percent")["mean_mbps"]
    assert gallery.number("mean_mbps; loss_percent=1; .1f", result) == f"{at[1]:.1f}"
    assert gallery.number("least mean_mbps; loss_percent=1|2; .0f", result) == f"{at[2]:.0f}"
    for wrong in ("mean_mbps; .1f", "mean_mbps; loss_percent=7; .1f"):
        with pytest.raises(LookupError):
            gallery.number(wrong, result)


def test_a_distance_is_the_kernel_s_percentage() -> None:
    class Found:
        def __init__(self, values: list[float]) -> None:
            self.pooled = pd.DataFrame({"mean_mbps": values, "retransmits": values})

    assert gallery.compared(Found([11, 10]), Found([10, 10]), "mean_mbps") == "goodput 5.0% (10.0%)"
    assert gallery.compared(Found([9, 2]), Found([10, 1]), "retransmits") == "retransmissions 10.0% (10.0%)"
