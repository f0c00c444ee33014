"""The laboratory in a browser: a page that simulates by itself, served on loopback or written out."""

from sawtooth.lab.server import Server
from sawtooth.lab.site import Site, built

__all__ = ["Server", "Site", "built"]
