"""The intermediate representation: regular expressions over characters, and nodes that combine them."""

from __future__ import annotations
