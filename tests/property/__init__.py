"""Exhaustive tests of small cases and random tests of large ones, compared with `tests/oracle`."""
