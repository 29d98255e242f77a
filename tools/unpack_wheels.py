"""Unpack the Python of wheels, each into a folder of its package's name: `python tools/unpack_wheels.py .wheels`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path


def main(folder: Path) -> None:
    """Unpacks Python files and version files; GPU libraries, the largest part, are not unpacked."""
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith((".py", "METADATA"))]
            archive.extractall(folder / wheel.name.split("-")[0], names)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
