"""`python -m guideway`: the command line."""

from __future__ import annotations

from guideway.cli import main

if __name__ == "__main__":
    main()
