"""Which congestion control sent the data of a captured connection? ``captured.identify_file`` answers for a file.

>>> from sawtooth.capture.identify.captured import identify_file
>>> print(identify_file("download.pcap").text())
"""

from __future__ import annotations

from sawtooth.capture.identify.classifier import Identification, identify

__all__ = ["Identification", "identify"]
