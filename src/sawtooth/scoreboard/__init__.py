"""Scoreboards: every congestion control on networks of every kind, compared in one table and one page."""

from sawtooth.scoreboard.board import Board
from sawtooth.scoreboard.networks import Control, Network, Networks
from sawtooth.scoreboard.page import write_page
from sawtooth.scoreboard.text import words

__all__ = ["Board", "Control", "Network", "Networks", "words", "write_page"]
