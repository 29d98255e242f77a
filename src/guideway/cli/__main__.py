"""`python -m guideway.cli`."""

from __future__ import annotations

from guideway.cli import main

main()
