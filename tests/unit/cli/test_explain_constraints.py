"""`guideway explain` for types, patterns and grammars; `guideway check` with a profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


def test_explain_a_type(run: Run) -> None:
    code, out, _ = run("explain", "--type", "records.py:Person")
    assert code == 0
    for part in ("/properties/age", "enforced", 'fits: {"name": '):
        assert part in out


def test_explain_a_pattern(run: Run) -> None:
    code, out, _ = run("explain", "--regex", "[ab]{2}c", "--examples", "2")
    texts = [line.removeprefix("fits: ") for line in out.splitlines() if line.startswith("fits: ")]
    assert code == 0
    assert len(texts) == 2
    assert all(text[-1] == "c" and len(text) == 3 for text in texts)
    code, out, _ = run("explain", "--regex", "a(?!a)a")
    assert (code, "no text can fit" in out) == (1, True)
    assert run("explain", "--regex", "(")[0] == 2


def test_explain_a_grammar(run: Run, folder: Path) -> None:
    (folder / "some.gbnf").write_text('root ::= "a" | "b" lost\nlost ::= "c" lost\nunused ::= "d"', "utf-8")
    code, out, _ = run("explain", "--grammar", "some.gbnf")
    assert code == 0
    assert "not reachable from root: unused" in out
    assert "no text, in root: lost" in out
    assert "fits: a" in out


def test_explain_takes_one_constraint(run: Run) -> None:
    for arguments in ((), ("schema.json", "--regex", "a"), ("--regex", "a", "--type", "records.py:Person")):
        code, _, err = run("explain", *arguments)
        assert (code, "give one of a schema file" in err) == (2, True)


TWO = {
    "type": "object",
    "properties": {"a": {"type": "number", "multipleOf": 0.1}, "b": {"type": "array", "items": {"type": "string"}}},
    "required": ["a", "b"],
}
OTHER_ORDER = '{ "b":["\\u00e9"],\n"a":3e-1}'


@pytest.fixture
def tokenizer(run: Run, folder: Path) -> str:
    (folder / "two.json").write_text(json.dumps(TWO), "utf-8")
    return "onnx:model"


def checked(run: Run, tokenizer: str, *arguments: str) -> tuple[int, str]:
    code, out, err = run("check", tokenizer, "--walks", "2", "--max-tokens", "60", *arguments)
    return code, " ".join((out + err).split())


def test_check_says_how_a_value_is_written_under_the_profile(run: Run, tokenizer: str) -> None:
    code, out = checked(run, tokenizer, "--schema", "two.json", "--valid", OTHER_ORDER)
    assert code == 0, out
    assert """the value fits; it is written '{"a": 0.3, "b": ["é"]}' under this profile""" in out
    assert "does not fit" not in out
    code, out = checked(run, tokenizer, "--schema", "two.json", "--profile", "exact", "--valid", OTHER_ORDER)
    assert code == 0, out
    assert "the value fits" not in out
    code, out = checked(run, tokenizer, "--schema", "two.json", "--valid", '{"a": 0.35, "b": []}')
    assert (code, "was given as valid, and does not fit the constraint" in out) == (1, True)
    code, out = checked(run, tokenizer, "--type", "records.py:Person", "--valid", '{"age":3,"name":"A"}')
    assert """it is written '{"name": "A", "age": 3}' under this profile""" in out
    code, out = checked(run, tokenizer, "--regex", "a", "--profile", "exact")
    assert (code, "--profile needs --schema" in out) == (2, True)


def test_multiples_of_decimals_are_judged_exactly(run: Run, folder: Path, tokenizer: str) -> None:
    for step, good, bad in (("0.1", "0.3", "0.35"), ("0.01", "4.35", "4.355"), ("1e-3", "1.001", "1.0005")):
        (folder / "step.json").write_text(f'{{"type": "number", "multipleOf": {step}, "minimum": {good}}}', "utf-8")
        code, out = checked(run, tokenizer, "--schema", "step.json", "--valid", good, "--invalid", bad)
        assert code == 0, out
    (folder / "whole.json").write_text('{"type": "integer"}', "utf-8")
    code, out = checked(run, tokenizer, "--schema", "whole.json", "--profile", "exact", "--valid", "3.0")
    assert code == 0, out
