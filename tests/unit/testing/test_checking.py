"""`guideway check`: the report is clean if masks are right, and names the fault otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import guideway as gw
from guideway.cli.app import app
from guideway.testing import check, checking
from guideway.testing.checking import CheckReport
from guideway.tokenizers import Vocabulary

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "é"]}}, "required": ["a"]}
TOKENS = [b"", *(bytes([b]) for b in range(256)), b"ab", b"bc", b'{"', b'": ', "é".encode()]


def failed(report: CheckReport) -> set[str]:
    return {finding.what.split(":")[0] for finding in report.findings if finding.failed}


def test_correct_masks_pass() -> None:
    table = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0])
    for source in (gw.Regex("(ab|bc)*c?"), gw.JsonSchema(SCHEMA), gw.Choice(["abc", "été", ""])):
        report = check(source, table, walks=8, max_tokens=60)
        assert report.ok, report
        assert [finding.skipped for finding in report.findings[:2]] == ["", ""]
        assert sum(finding.cases for finding in report.findings) > 500
    report = check(gw.Regex("[ab]{3}"), table, walks=3, valid=["abc"], invalid=["aba"])
    assert failed(report) == {"completeness", "soundness"}
    assert any("'aba'" in text for finding in report.findings for text in finding.told)


def test_a_model_is_checked_too() -> None:
    with gw.load("tiny") as model:
        report = check(gw.JsonSchema(SCHEMA), model.tokenizer, model, walks=3, max_tokens=60)
    assert report.ok, report
    assert all(finding.cases for finding in report.findings)


@pytest.mark.parametrize("broken", ["more", "less"])
def test_masks_that_are_wrong_are_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks over another language than the constraint's: one with more texts, one with fewer."""
    table = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0])
    other = gw.Regex("[ab]{1,4}") if broken == "more" else gw.Regex("a[ab]")
    real = checking.compile
    monkeypatch.setattr(checking, "compile", lambda source, vocabulary: real(other, vocabulary))
    found = failed(check(gw.Regex("[ab]{1,3}"), table, walks=30))
    assert "both" in found
    assert ("soundness" if broken == "more" else "completeness") in found


def test_the_command(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA), "utf-8")
    run: Any = CliRunner().invoke
    found = run(app, ["check", "tiny", "--schema", str(schema), "--walks", "3", "--max-tokens", "60"])
    assert found.exit_code == 0, found.output
    assert "soundness" in found.output
    assert "engine" in found.output
    tokenizer = str(Path(gw.__file__).parent / "tiny" / "tokenizer.json")
    found = run(app, ["check", tokenizer, "--regex", "[0-9]+", "--walks", "3", "--invalid", "7"])
    assert found.exit_code == 1
    assert "'7' was given as invalid, and fits the constraint" in found.output
    assert run(app, ["check", "tiny"]).exit_code != 0


def test_a_text_given_as_valid_that_does_not_fit_is_said_so() -> None:
    report = check(gw.Regex("[AB]{3}"), gw.load("tiny").vocabulary, walks=3, valid=["abc"])
    assert failed(report) == {"completeness"}
    assert any("given as valid, and does not fit" in text for finding in report.findings for text in finding.told)
