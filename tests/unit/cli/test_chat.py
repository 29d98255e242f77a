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
import pydantic

import guideway as gw


def add(a: int, b: int) -> int:
    return a + b


async def later(a: int) -> int:
    return a


class Order(pydantic.BaseModel):
    item: str


lookup = gw.Tool("lookup", int)
number = 3
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tools.py:Order", "--tool tools.py:Order must be a Python function, or a Tool with a function"),
        ("tools.py:lookup", "--tool tools.py:lookup must be a Python function, or a Tool with a function"),
        ("tools.py:number", "--tool tools.py:number: a tool must be a Tool, a function or a dict, got 3"),
        ("tools.py", "'tools.py' is not the name of a function; expected FILE.py:NAME or MODULE:NAME"),
        ("tools.py:sub", "tools.py has no sub; it has add, later"),
    ],
)
def test_a_tool_without_a_function_is_refused_at_the_start(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n"))
    code, out, err = run("chat", "--tool", name, *MODEL)
    assert (code, out) == (2, "")
    assert message in err


def test_an_async_function_is_a_tool(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n"))
    code, _, err = run("chat", "--tool", "tools.py:later", *MODEL[:3], "200")
    assert (code, err) == (0, "")


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
