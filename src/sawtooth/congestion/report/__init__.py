"""The report of links that were probed: what is said of each and why, as a page, pictures and tables."""

from sawtooth.congestion.report.link import Assumed, Link
from sawtooth.congestion.report.page import write_report

__all__ = ["Assumed", "Link", "write_report"]
