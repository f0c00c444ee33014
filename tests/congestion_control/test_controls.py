"""The core lists the simulator's congestion controls once; every other place that names them must agree."""

import re
from pathlib import Path

import pytest

from expected_error import expected_error
from sawtooth import _core
from sawtooth.compare.fidelity import figure
from sawtooth.engines import model, sim
from sawtooth.figures import palette
from sawtooth.scenario import CONGESTION_CONTROLS, Scenario
from sawtooth.whatif import observation

ROOT = Path(__file__).parents[2]
CONTROLS = tuple(_core.congestion_controls())
IN_TEXT = {
    "README.md": r"^- (.*) behave as in Linux",
    "docs/design.md": r'^cc = "cubic" +# (.*)$',
    "docs/reference/whatif.md": r"or it is another than (.*) \|",
}
"""Places in pages that list the controls."""


def test_the_engine_has_what_the_core_lists_and_replay_uses_all_of_it() -> None:
    assert sim.controls() == CONTROLS
    assert set(observation.CONTROLS) == set(CONTROLS) - {"dctcp", "prague"}, "no measurement tells of marks"
    assert set(CONTROLS) <= set(CONGESTION_CONTROLS)


def test_the_closed_forms_are_of_controls_that_the_simulator_has() -> None:
    assert set(model.CONTROLS) <= set(CONTROLS)


def test_each_has_a_name_a_colour_and_a_place_of_its_own_in_figures() -> None:
    assert len({palette.colour(cc, 0) for cc in CONTROLS}) == len(CONTROLS)
    assert all(palette.shown(cc) != cc for cc in CONTROLS)
    assert set(figure._BESIDE) == set(CONTROLS)


@pytest.mark.parametrize("page", IN_TEXT)
def test_the_pages_name_all_of_them_and_no_other(page: str) -> None:
    found = re.search(IN_TEXT[page], (ROOT / page).read_text(), re.MULTILINE)
    assert found, f"{page} no longer says it as {IN_TEXT[page]}"
    named = set(re.findall(r"[a-z0-9]+", found[1])) - {"and"}
    # The README lists the controls in the kernel's record.
    measured = set(CONTROLS) - {"prague"}
    expected = {"docs/reference/whatif.md": set(observation.CONTROLS), "README.md": measured}
    assert named == expected.get(page, set(CONTROLS))


def flow(cc: object) -> Scenario:
    return Scenario.from_dict({"duration": "5 s", "path": {"loss": "1%"}, "flows": [{"cc": cc}]})


def test_a_variant_is_another_control_under_the_same_name() -> None:
    draft = flow({"name": "bbr3", "variant": "draft"})
    assert Scenario.from_dict(draft.to_dict()) == draft == flow("bbr3").set({"flows.0.cc.variant": "draft"})
    assert [one.name for one in draft.compile().flows] == ["bbr3-draft"]
    rows = [sim.Sim().run(one).tables["tcp_info"] for one in (draft, flow("bbr3"))]
    assert not rows[0].equals(rows[1])


@pytest.mark.parametrize("cc", [{"name": "bbr3", "variant": "drafd"}, {"name": "cubic", "variant": "draft"}])
def test_a_variant_that_is_not_there_is_refused(cc: dict[str, str]) -> None:
    with expected_error(code="unknown-name", field="flows.0.cc.variant", match="has no variant"):
        flow(cc)


def test_other_engines_refuse_a_variant() -> None:
    with expected_error(code="unsupported", field="flows.0.cc.variant", match="does not have the variant draft"):
        model.Model().check(flow({"name": "bbr3", "variant": "draft"}))
