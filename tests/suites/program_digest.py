"""Digests of the programs of published schemas, to compare two versions of the library.

    python -m tests.suites.program_digest before.json        # with one version
    python -m tests.suites.program_digest after.json before.json  # with the other: lists the schemas that differ

A change that should only make the lowering faster leaves every program equal, byte for byte. A difference may still allow
the same texts. Needs GUIDEWAY_DATA.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import guideway as gw
from guideway.grammar.program import encode

from .verdicts import DATA

FOLDERS = ("maskbench-dev", "maskbench-hard")
PROFILES = ("generation", "exact")


def digest(schema: object, profile: str) -> str:
    """Returns the digest of the program of a schema; for a refused schema, the error."""
    try:
        source = gw.JsonSchema(schema, profile=profile, unknown_keywords="ignore")  # type: ignore[arg-type]  # any JSON
        return hashlib.sha256(encode(source.grammar())).hexdigest()
    except gw.GuidewayError as problem:
        return f"{type(problem).__name__}: {problem}"


def main() -> None:
    """Writes the digests; exits with 1 if some differ from those of another version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("written", type=Path, help="the file for the digests")
    parser.add_argument("other", type=Path, nargs="?", help="digests of another version")
    given = parser.parse_args()
    found: dict[str, str] = {}
    with gw.cache.disabled():
        for path in (path for folder in FOLDERS for path in sorted((DATA / folder).glob("*.json"))):
            schema = json.loads(path.read_text("utf-8"))["schema"]
            found |= {f"{path.stem} ({profile})": digest(schema, profile) for profile in PROFILES}
    given.written.write_text(json.dumps(found, indent=1), "utf-8")
    print(f"{len(found)} programs")
    if given.other is None:
        return
    other = json.loads(given.other.read_text("utf-8"))
    differing = [name for name in found.keys() | other.keys() if found.get(name) != other.get(name)]
    print(f"{len(differing)} differ", *sorted(differing), sep="\n  ")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
