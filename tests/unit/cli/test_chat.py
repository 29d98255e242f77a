"""`guideway chat`: lines of the input as messages."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.helpers.chat_templates import TEMPLATES

from .conftest import Run

MODEL = ("--model", "onnx:model", "--max-tokens", "12")
TOOLS = """
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.fixture(autouse=True)
def template(folder: Path) -> None:
    config = {"eos_token": "<|endoftext|>", "chat_template": TEMPLATES["hermes"]}
    (folder / "model" / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    (folder / "tools.py").write_text(TOOLS, "utf-8")


def test_a_conversation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n\nAnd then?\n/undo\nAnd then?\n/quit\nno\n"))
    code, out, err = run("chat", "--system", "Be brief.", *MODEL)
    assert code == 0, err
    assert out.count("\n") >= 3
    assert err == ""


def test_tools(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n"))
    code, _, err = run("chat", "--tool", "tools.py:add", *MODEL[:3], "200")
    assert code == 0, err


def test_errors_do_not_end_the_conversation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("/undo\n" + "word " * 2000 + "\nHello\n"))
    code, out, err = run("chat", *MODEL)
    assert code == 0
    assert "error: cannot rewind 1 turns" in err
    assert "context" in err
    assert out


def test_wrong_arguments(run: Run) -> None:
    assert "tools.py has no nothing" in run("chat", "--tool", "tools.py:nothing", *MODEL)[2]
    assert run("chat", "--model", "nothing")[0] == 2
