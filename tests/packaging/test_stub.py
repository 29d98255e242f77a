"""The committed `_kernel.pyi` equals what nanobind generates (`make stub`)."""

import subprocess
import sys
from pathlib import Path

from .repository import PACKAGE


def test_stub_is_current(tmp_path: Path) -> None:
    fresh = tmp_path / "_kernel.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "guideway._kernel", "-o", str(fresh)]
    subprocess.run(command, check=True, capture_output=True)
    assert fresh.read_text("utf-8") == (PACKAGE / "_kernel.pyi").read_text("utf-8"), "run `make stub`"
