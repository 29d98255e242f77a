"""The example editor: in a terminal, and key by key."""

from __future__ import annotations

import importlib.util
import os
import re
import select
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

import guideway as gw

curses = pytest.importorskip("curses", reason="this Python has no curses")
pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
SCRIPT = Path(__file__).parents[2] / "examples" / "editor.py"


def test_editor_is_short() -> None:
    assert len(SCRIPT.read_text("utf-8").splitlines()) <= 60


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("editor", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_changed_tokens_run() -> None:
    model = gw.load("tiny")
    model.prefixes.budget_bytes = 0
    editor = example().Editor(model, "the crab was born in")
    for key in " the year ":
        assert editor.key(key)
        assert editor.ran <= 3  # a letter may change the last word's tokens
    whole = len(editor.session)
    for _ in range(4):
        editor.key(curses.KEY_BACKSPACE)
        assert editor.ran <= 2
    assert editor.text == "the crab was born in the y"
    editor.key(curses.KEY_HOME)
    for _ in range(8):
        editor.key(curses.KEY_RIGHT)
    assert editor.session.text == "the crab"
    editor.key("\x7f")
    editor.key("y")
    assert editor.text == "the cray was born in the y"
    assert editor.ran < 5
    editor.key(curses.KEY_END)
    assert editor.session.text == editor.text
    assert 5 < editor.ran < whole
    fresh = model.session()
    fresh.feed(editor.text)
    best = [model.tokenizer.decode([token]) for token, _ in fresh.top_k(5)]
    assert editor.suggestions == best
    before = editor.text
    editor.key("\t")
    assert editor.text == before + best[0]
    editor.key(curses.KEY_RESIZE)
    assert not editor.key("\x1b")


def read_until(terminal: int, wanted: str, seconds: float = 60) -> str:
    """What the terminal shows, without its escapes, once it has shown this."""
    shown, end = "", time.monotonic() + seconds
    while wanted not in re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", "", shown):
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096).decode("utf-8", "replace")
    return shown


def test_editor_in_a_terminal() -> None:
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover: this is the other process
        environment = {
            **os.environ,
            "TERM": "xterm",
            "LINES": "24",
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
            "ESCDELAY": "1",
        }
        os.execve(sys.executable, [sys.executable, str(SCRIPT), "tiny", "The year of"], environment)
    try:
        assert "tokens run" in read_until(terminal, "The year of\u2502")
        os.write(terminal, b"x")
        read_until(terminal, "x\u2502")
        os.write(terminal, b"\x1b")
        _, status = os.waitpid(child, 0)
        child = 0
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        os.close(terminal)
        if child:
            os.kill(child, 9)
            os.waitpid(child, 0)
