"""Studies: a scenario varied over axes and seeds, run on all cores and summarized, with published figures for
comparison."""

from sawtooth.study.dataset import Dataset
from sawtooth.study.export import run_into
from sawtooth.study.result import StudyResult
from sawtooth.study.runner import run_study
from sawtooth.study.runs import Runs
from sawtooth.study.study import Point, Study

__all__ = ["Dataset", "Point", "Runs", "Study", "StudyResult", "run_into", "run_study"]
