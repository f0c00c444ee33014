"""The report on probed links: the verdict on each with its reasons, as a page, pictures and tables."""

from sawtooth.link_estimate.report.link import Assumed, Link
from sawtooth.link_estimate.report.page import write_report

__all__ = ["Assumed", "Link", "write_report"]
