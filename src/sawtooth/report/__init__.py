"""Reports: figures as files, and one page that shows a study's results beside what was published."""

from sawtooth.report.page import write_report

__all__ = ["write_report"]
