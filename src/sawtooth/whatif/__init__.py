"""What if: estimates the path from one measurement, and predicts in ``sim`` what other congestion controls would
get."""

from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.estimators import estimate
from sawtooth.whatif.from_numbers import from_numbers
from sawtooth.whatif.inputs import observe
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.quantity import Choice, Estimated
from sawtooth.whatif.replay import Answer, SelfTest, replay
from sawtooth.whatif.scenario_file import save_scenario
from sawtooth.whatif.text import words

__all__ = [
    "Answer",
    "Choice",
    "Estimate",
    "Estimated",
    "Observed",
    "SelfTest",
    "estimate",
    "from_numbers",
    "observe",
    "replay",
    "save_scenario",
    "words",
]
