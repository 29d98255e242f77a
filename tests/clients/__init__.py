"""Clients of other projects against `guideway serve`, which runs in another process. `make test-clients` runs them.

The libraries are in an environment without Guideway, because instructor needs older versions than `constraints.txt` has.
"""
