"""Replicas of a server share one cache directory; modified entries are not read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCHEMA = {
    "type": "object",
    "properties": {
        f"name {i}": {"type": "string", "maxLength": i + 1, "pattern": f"^[a-z]{{{i}}}"} for i in range(300)
    },
    "required": ["name 3", "name 7"],
}
"""Text of about 10 KB; compilation takes longer than the threshold for storage on disk."""

REPLICA = """
import hashlib, json, sys
import numpy as np
import guideway as gw
from guideway import constraints, disk
from guideway.integrations._common import Follower, requested

if sys.argv[1] == "reads":
    def refuse(constraint):
        raise RuntimeError("compiled from the source")
    constraints.of = refuse
table = gw.load("tiny").tokenizer
automaton = gw.compile(requested("json", sys.stdin.read()), table)
follower, digest = Follower(automaton, table.eos_ids), hashlib.sha256()
row = np.zeros(-(-len(table.vocabulary) // 32), np.uint32)
for token in table.encode('{"name 0": "a", "name 3": "abc'):
    follower.fill(row)
    digest.update(row.tobytes())
    assert follower.advance([token])
print(json.dumps({**disk.cache().as_dict(), "masks": digest.hexdigest()}))
"""


def replica(folder: Path, how: str = "compiles") -> dict[str, Any]:
    """Compiles the schema in a separate process; returns the statistics of its cache and a digest of a few masks."""
    environment = {**os.environ, "GUIDEWAY_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", REPLICA, how]
    done = subprocess.run(
        command, input=json.dumps(SCHEMA), env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder that was empty, and what the first replica saw of it."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, replica(folder)


@pytest.fixture
def first(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    """Returns the result of the first replica, which leaves its files in `tmp_path`."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return made[1]


def test_second_replica_reads_the_first_ones_entries(tmp_path: Path, first: dict[str, Any]) -> None:
    """The second one may not look at the source: all it has is the file, for the vocabulary and for the schema."""
    assert (first["hits"], first["writes"], first["entries"]) == (0, 2, 2)
    second = replica(tmp_path, "reads")
    assert (second["hits"], second["misses"], second["writes"]) == (2, 0, 0)
    assert second["masks"] == first["masks"]
    with pytest.raises(AssertionError, match="compiled from the source"):
        replica(tmp_path / "another", "reads")


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "another's content", "writable by all"])
def test_modified_entries_are_not_read(tmp_path: Path, first: dict[str, Any], how: str) -> None:
    files = sorted(tmp_path.rglob("*.entry"))
    whole = [file.read_bytes() for file in files]
    for file, data, other in zip(files, whole, reversed(whole), strict=True):
        if how == "writable by all":
            file.chmod(0o666)
            continue
        broken = {
            "flipped": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "cut": data[: len(data) // 2],
            "empty": b"",
            "another's content": other,
        }
        file.write_bytes(broken[how])
    found = replica(tmp_path)
    assert (found["hits"], found["damaged"], found["writes"]) == (0, 2, 2)
    assert found["masks"] == first["masks"]
    assert [file.read_bytes() for file in files] == whole
