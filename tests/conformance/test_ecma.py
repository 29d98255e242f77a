"""ECMA-262 patterns compared with results of node (ecma.json, from tools/gen_ecma_cases.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guideway._kernel import Automaton
from guideway.errors import UnsatisfiableError
from guideway.frontends.regex import parse_pattern
from guideway.grammar.nodes import leaf
from guideway.grammar.program import encode
from tests.helpers.byte_tokens import BYTES, END

CASES = json.loads(Path(__file__).with_name("ecma.json").read_text("utf-8"))


@pytest.mark.parametrize("part", range(8))
def test_verdicts_of_node(part: int) -> None:
    for case in CASES[part::8]:
        language = parse_pattern(case["pattern"], "ecma", search=True)
        try:
            matcher = Automaton.compile(BYTES.kernel, encode(leaf(language))).matcher()
        except UnsatisfiableError:
            assert not case["hit"], case["pattern"]
            continue
        for text in case["hit"] + case["miss"]:
            ids = [*text.encode("utf-8"), END]
            assert (matcher.validate(ids) == len(ids)) == (text in case["hit"]), (case["pattern"], text)
