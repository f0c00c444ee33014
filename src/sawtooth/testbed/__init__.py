"""Testbed: a scenario built from Linux network namespaces, run with real TCP traffic, and measured.

The same code runs in two places: inside a user-mode kernel in virtual time (engine ``kernel``), and on this host in
real time (engine ``netns``). ``plan`` decides everything and needs no privileges; ``apply`` carries it out; ``traffic``
defines what runs; ``tables`` converts the measurements into a run's tables. Code inside the guest imports only light
modules.
"""
