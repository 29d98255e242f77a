"""`Format` and its grammars, compared with the official JSON Schema test suite if its files are available."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import guideway as gw
from guideway.frontends.formats import FORMATS, format_language
from guideway.grammar.nodes import leaf
from guideway.grammar.recognizer import fits
from tests.helpers.byte_tokens import BYTES

DATA = Path(os.environ.get("GUIDEWAY_DATA", Path(__file__).parents[5] / "shared" / "data"))
SUITE = DATA / "json-schema-test-suite" / "tests"
OLD_NAMES = {"ip-address": "ipv4", "host-name": "hostname"}


def verdicts() -> Iterator[tuple[str, str, str, bool]]:
    for path in sorted([*SUITE.glob("*/optional/format/*.json"), *SUITE.glob("*/format/*.json")]):
        draft = path.relative_to(SUITE).parts[0]
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            name = schema.get("format") if isinstance(schema, dict) else None
            name = OLD_NAMES.get(name, name)
            if name not in FORMATS or (draft, name) == ("draft3", "time"):  # there without an offset
                continue
            for test in group["tests"]:
                if isinstance(test["data"], str):
                    yield draft, name, test["data"], test["valid"]


@pytest.mark.skipif(not SUITE.is_dir(), reason="needs the official test suite (GUIDEWAY_DATA)")
def test_official_suite() -> None:
    wrong, total = set(), 0
    for draft, name, text, valid in verdicts():
        total += 1
        if fits(leaf(format_language(name)), text) != valid:
            wrong.add((draft, name, text, valid))
    accepted = {(name, text) for _, name, text, valid in wrong if not valid}
    assert not accepted, "accepted, and must not be"
    assert total > 3000
    assert len(wrong) <= MOST_REJECTED * total, sorted(wrong)


MOST_REJECTED = 0.03  # A-labels (`xn--`), patterns with named groups, a joiner between letters


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_can_be_completed(name: str) -> None:
    matcher = gw.compile(gw.Format(name), BYTES, cache=False).matcher()
    assert gw.Format(name).parse(matcher.completion().decode()) is not None


def test_format_is_a_source() -> None:
    assert gw.Format("date").parse("2024-02-29") == "2024-02-29"
    assert gw.Format("date") == gw.Format("date") != gw.Format("time")
    with pytest.raises(gw.errors.InvalidTextError, match="date"):
        gw.Format("date").parse("2024-02-30")
    with pytest.raises(gw.errors.InvalidConstraintError, match="known formats: date"):
        gw.Format("dates")
    local = gw.Format("date-time") & gw.Regex(".*[Zz]")
    assert local.parse("2024-02-29T00:00:00Z")
    with pytest.raises(gw.errors.InvalidTextError):
        local.parse("2024-02-29T00:00:00+01:00")
