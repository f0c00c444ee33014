"""A scenario built from Linux network namespaces: planned, put up, filled with real TCP traffic, and read out.

One code for two places: inside a user-mode kernel in virtual time (engine ``kernel``) and on this host in real time
(engine ``netns``). ``plan`` decides everything and needs no privileges; ``apply`` does it; ``traffic`` says what runs;
``tables`` turns what was seen into a run's tables. Inside the guest only what is light to import is used.
"""
