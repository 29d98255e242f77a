"""A digest over many masks, to compare two versions of the library: `python -m tests.suites.mask_digest [SCHEMAS]`.

Walks the instances of SCHEMAS (300) published schemas in both profiles, and the texts of the grammar cases, over the
131,072 tokens of Tekken. Prints the number of masks and one digest per group. Needs mistral-common and GUIDEWAY_DATA.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tomllib
from benchmarks.harness import data

import guideway as gw
from guideway.masks import new_rows

CASES = Path(__file__).parents[1] / "conformance"
NOTATIONS: dict[str, Callable[[str], Any]] = {"gbnf": gw.Gbnf, "ebnf": gw.Ebnf, "lark": gw.Lark}


class MaskDigest:
    """A digest over the masks along texts."""

    def __init__(self) -> None:
        self.vocabulary = gw.Vocabulary(data.tekken(), eos_ids=[data.EOS])
        self.encode = data.encoder()
        self.masks = 0
        self.digest = hashlib.sha256()
        self._row = new_rows(1, len(self.vocabulary))[0]

    def add(self, make: Callable[[], Any], texts: Iterable[str]) -> None:
        """Adds the masks along the texts under a constraint, up to the first token that is refused."""
        try:
            automaton = gw.compile(make(), self.vocabulary)
        except gw.errors.ConstraintError as error:
            self.digest.update(type(error).__name__.removesuffix("Error").encode())
            return
        for text in texts:
            matcher = automaton.matcher()
            try:
                for token in [*self.encode(text), data.EOS]:
                    matcher.fill_mask(self._row)
                    self.digest.update(self._row.tobytes())
                    self.masks += 1
                    matcher.advance(token)
            except gw.GuidewayError as error:
                self.digest.update(type(error).__name__.removesuffix("Error").encode())


def main() -> None:
    schemas = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for profile in ("generation", "exact"):
        found = MaskDigest()
        for case in data.spread(data.cases(), schemas):
            texts = [data.text_of(instance) for instance, _ in case.instances]
            found.add(
                lambda case=case, profile=profile: gw.JsonSchema(
                    case.schema, profile=profile, unknown_keywords="ignore"
                ),
                texts,
            )  # type: ignore[misc]  # mypy infers no type for the defaults
        print(f"schemas, {profile}: {found.masks} masks, {found.digest.hexdigest()}", flush=True)
    found = MaskDigest()
    for name, make in NOTATIONS.items():
        for case in tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]:
            found.add(lambda case=case, make=make: make(case["grammar"]), case["pass"] + case["miss"])  # type: ignore[misc]  # mypy infers no type for the defaults
    print(f"grammars: {found.masks} masks, {found.digest.hexdigest()}")


if __name__ == "__main__":
    main()
