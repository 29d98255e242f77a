"""One server for the tests of this folder."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The base URL of a server with the bundled model. `GUIDEWAY_PYTHON` is the interpreter that has Guideway."""
    python = os.environ.get("GUIDEWAY_PYTHON", sys.executable)
    command = [python, "-m", "guideway", "serve", "--model", "tiny", "--port", "0", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        server = json.loads(process.stderr.readline())["url"]
        until = time.monotonic() + 60
        while not is_ready(server):
            assert time.monotonic() < until
            time.sleep(0.05)
        yield f"{server}/v1"
    finally:
        process.terminate()
        process.communicate(timeout=60)


def is_ready(server: str) -> bool:
    try:
        with urllib.request.urlopen(f"{server}/ready") as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False
