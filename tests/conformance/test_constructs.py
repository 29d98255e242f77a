"""Every construct of docs/patterns.md: texts, settings, masks compared with the oracle, captures with `re`."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

import guideway as gw
from tests.packaging.repository import ROOT

from .test_conformance import cases, holds
from .test_notations import masks_agree

CASES = cases("constructs.toml")


def source_of(case: dict[str, Any]) -> gw.Regex:
    return gw.Regex(case["pattern"], flags=case.get("flags", ""), dialect=case.get("dialect", "python"))


@pytest.mark.parametrize("case", CASES)
def test_texts(case: dict[str, Any]) -> None:
    source = source_of(case)
    if source.dialect == "python":
        flags = sum(int(re.RegexFlag[letter.upper()]) for letter in case.get("flags", ""))
        for text in case["pass"] + case["miss"]:
            found = re.compile(case["pattern"], flags).fullmatch(text)
            assert bool(found) == (text in case["pass"]), f"the case itself is wrong: {text!r}"
            if found:
                captured = {name: took for name, took in found.groupdict().items() if took is not None}
                assert dict(source.captures(text)) == captured
    holds(source, case["pass"], case["miss"])


@pytest.mark.parametrize("case", CASES)
def test_masks(case: dict[str, Any]) -> None:
    masks_agree(source_of(case), case["pattern"], case["pass"], case["miss"])


def test_every_construct_has_its_texts() -> None:
    table = (ROOT / "docs" / "patterns.md").read_text("utf-8").split("<!-- constructs -->")[1]
    rows = [line.split("|")[1] for line in table.replace("\\|", "¦").splitlines() if line.startswith("| ")]
    documented = [row.strip().replace("¦", "|") for row in rows[1:]]
    passing, missing = Counter[str](), Counter[str]()
    for one in CASES:
        (case,) = one.values
        passing[case["construct"]] += len(case["pass"])
        missing[case["construct"]] += len(case["miss"])
    assert len(documented) == len(set(documented)) > 25
    assert set(documented) == set(passing)
    few = {one: (passing[one], missing[one]) for one in passing if passing[one] < 3 or missing[one] < 3}
    assert not few
