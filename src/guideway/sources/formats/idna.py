"""Internationalised host names."""

from __future__ import annotations

from guideway.grammar.regular import Regular

from .network import hostname

__all__ = ["idn_hostname"]


def idn_hostname() -> Regular:
    """Those that are host names in ASCII."""
    return hostname()
