"""What if: estimates the path from one measurement, and predicts in ``sim`` what other congestion controls would
get."""

from sawtooth.whatif.estimate import Estimate
from sawtooth.whatif.estimated import Estimated
from sawtooth.whatif.estimating import estimate
from sawtooth.whatif.inputs import observe
from sawtooth.whatif.numbers import from_numbers
from sawtooth.whatif.observed import Observed
from sawtooth.whatif.replay import Answer, SelfTest, replay
from sawtooth.whatif.saved import save_scenario
from sawtooth.whatif.text import words

__all__ = [
    "Answer",
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
