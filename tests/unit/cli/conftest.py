"""A folder with a small model and input files, and a function that runs the command line in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the model of these tests is written with onnx")

from guideway.cli import main
from tests.helpers.small_model import write_model

RECORDS = """
from dataclasses import dataclass

@dataclass
class Person:
    name: str
    age: int | None

RECORDS = {"person": Person}
"""
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cli")
    (made / "model").mkdir()
    write_model(made / "model")
    (made / "records.py").write_text(RECORDS, "utf-8")
    (made / "schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    (made / "texts.txt").write_text("Ada is 36.\n\nZoë is not.\n", "utf-8")
    lines = [{"kind": "person", "text": "Ada is 36."}, {"kind": "person", "text": "Bob."}]
    (made / "sentences.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return made


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        found = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, found.out, found.err

    return call


MODEL = ("--model", "onnx:model")
