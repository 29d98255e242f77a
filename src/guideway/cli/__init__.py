"""The command line: a file per command. Errors of the library go to stderr as one line, and the exit status is 2."""

from __future__ import annotations

from guideway.cli.app import main

__all__ = ["main"]
