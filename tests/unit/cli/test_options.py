"""Options that several commands share: the model, lines with messages, documents for `$ref`, types, the progress bar."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.cli import options
from tests.helpers.json_lines import lines_of

from .conftest import MODEL, Run

TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "x", "--regex", "a"),
        ("extract", "x", "--schema", "schema.json"),
        ("score", "x", "a", "b"),
        ("demo", "--examples", "."),
    ],
)
def test_the_model_gets_device_dtype_and_context_size(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    given: dict[str, Any] = {}

    def load(name: str, **options: Any) -> Any:
        given.update(options, name=name)
        return gw.load(name)

    monkeypatch.setattr(options, "load", load)
    code, _, err = run(*command, "--device", "cpu", "--dtype", "float32", "--context-size", "300", *MODEL)
    assert code == 0, err
    assert given == {"name": "onnx:model", "device": "cpu", "dtype": "float32", "context_size": 300}


@pytest.mark.parametrize(
    "command", [("generate", "x"), ("extract", "x", "--schema", "schema.json"), ("score", "x", "a"), ("demo",)]
)
def test_a_model_of_an_api_is_refused_where_a_local_one_is_needed(run: Run, command: tuple[str, ...]) -> None:
    code, _, err = run(*command, "--model", "openai:name")
    assert (code, "needs a local model" in err) == (2, True)


@pytest.mark.parametrize("option", ["--base-url", "--dialect"])
def test_options_of_endpoints_are_refused_for_a_local_model(run: Run, option: str) -> None:
    code, _, err = run("batch", "in.jsonl", "out.jsonl", option, "vllm", *MODEL)
    assert (code, f"{option} is for models served by an API" in err) == (2, True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("serve", "--model", "tiny", "--dialect", "vllm"), "--dialect needs --upstream"),
        (("serve", "--model", "tiny", "--formatter", "tiny"), "--formatter needs --upstream"),
        (("serve", "--model", "tiny", "--keep", "3"), "--keep needs --memory"),
        (("serve", "--model", "tiny", "--pin", "tiny"), "--pin needs --memory"),
        (("explain", "--regex", "a", "--profile", "exact"), "--profile needs a schema file"),
        (("explain", "--regex", "a", "--resource", "name.json"), "--resource needs a schema file"),
    ],
)
def test_options_that_need_another_one(run: Run, command: tuple[str, ...], message: str) -> None:
    code, _, err = run(*command)
    assert (code, message in err) == (2, True), err


def test_a_context_size_limits_the_text(run: Run) -> None:
    code, _, err = run("generate", "x", "--regex", "a{60}", "--context-size", "40", *MODEL)
    assert (code, "the context has room for" in err) == (2, True)
    code, _, err = run("generate", "x", "--dtype", "float16", *MODEL)
    assert (code, "dtype" in err) == (2, True)


def test_lines_with_messages(run: Run, folder: Path) -> None:
    messages = [{"role": "user", "content": "Ada"}]
    rows = [{"id": 1, "messages": messages, "regex": "[ab]{3}"}, {"id": 2, "prompt": "x", "regex": "[ab]{3}"}]
    (folder / "chat.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    code, out, err = run("generate", "chat.jsonl", *MODEL)
    found = {line["id"]: line for line in lines_of(out)}
    assert code == 2  # this model has no chat template
    assert found[1]["error"].startswith("ChatTemplateError: ")
    assert "text" in found[2]
    (folder / "model" / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}), "utf-8")
    try:
        code, out, err = run("generate", "chat.jsonl", *MODEL)
        assert code == 0, out
        assert all(len(line["text"]) == 3 for line in lines_of(out))
        assert next(line for line in lines_of(out) if line["id"] == 1)["messages"] == messages
        (folder / "chat2.jsonl").write_text(json.dumps({"messages": messages, "options": ["a", "b"]}), "utf-8")
        assert len(lines_of(run("score", "chat2.jsonl", *MODEL)[1])[0]["scores"]) == 2
    finally:
        (folder / "model" / "tokenizer_config.json").unlink()
    for wrong in ([], "Ada", ["Ada"]):
        (folder / "wrong.jsonl").write_text(json.dumps({"messages": wrong}), "utf-8")
        code, _, err = run("generate", "wrong.jsonl", *MODEL)
        assert (code, "line 1" in err) == (2, True)
    (folder / "wrong.jsonl").write_text(json.dumps({"prompt": "x", "messages": messages}), "utf-8")
    assert "got both" in run("generate", "wrong.jsonl", *MODEL)[2]


@pytest.mark.parametrize("identified", [True, False])
def test_documents_for_references(run: Run, folder: Path, identified: bool) -> None:
    uri = "https://example.org/name" if identified else "name.json"
    name = {"type": "string", "enum": ["Ada", "Bob"], **({"$id": uri} if identified else {})}
    (folder / "name.json").write_text(json.dumps(name), "utf-8")
    schema = {"type": "object", "properties": {"name": {"$ref": uri}}, "required": ["name"]}
    (folder / "ref.json").write_text(json.dumps(schema), "utf-8")
    for command in (("generate", "x", "--schema", "ref.json", "--json"), ("extract", "x", "--schema", "ref.json")):
        assert run(*command, *MODEL)[0] == 2
        for given in ("name.json", f"{uri}=name.json"):
            code, out, err = run(*command, "--resource", given, *MODEL)
            assert code == 0, err
            assert "Ada" in out or "Bob" in out
    code, out, _ = run("explain", "ref.json", "--resource", "name.json")
    assert (code, '"Ada"' in out) == (0, True)
    code, _, err = run("generate", "x", "--regex", "a", "--resource", "name.json", *MODEL)
    assert (code, "--resource needs --schema" in err) == (2, True)


def test_a_type_of_a_module_in_the_working_directory(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_records.py").write_text("from typing import Literal\nMood = Literal['fine', 'tired']\n", "utf-8")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(folder))])
    assert run("generate", "x", "--type", "own_records:Mood", *MODEL)[1].strip() in ('"fine"', '"tired"')
    assert str(folder) not in sys.path


def test_probabilities_need_json(run: Run) -> None:
    code, out, err = run("generate", "x", "--regex", "a", "--logprobs", "2", *MODEL)
    assert (code, out) == (2, "")
    assert "--logprobs needs --json" in err
    assert "steps" in lines_of(run("generate", "x", "--regex", "a", "--logprobs", "2", "--json", *MODEL)[1])[0]


def test_scores_have_the_tokens(run: Run) -> None:
    with gw.load("onnx:model") as model:
        wanted = [list(one.tokens) for one in gw.score(model, "Ada is ", ["36", "37"])]
    assert all(wanted)
    scores = lines_of(run("score", "Ada is ", "36", "37", "--json", *MODEL)[1])[0]["scores"]
    assert [one["tokens"] for one in scores] == wanted


def command_of(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "guideway", *arguments]


def test_the_package_is_a_command() -> None:
    done = subprocess.run(command_of("--version"), capture_output=True, text=True, check=True)
    assert done.stdout == f"guideway {gw.__version__}\n"


def test_the_progress_bar_needs_a_terminal_and_ends_at_100_percent(run: Run, folder: Path) -> None:
    rows = [{"prompt": "x", "regex": "[ab]{3}"}, {"prompt": "x", "regex": "a{600}"}, {"prompt": "x" * 5000}]
    (folder / "three.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    code, _, err = run("generate", "three.jsonl", *MODEL)
    assert (code, err.count("\n")) == (2, 1)
    assert "generating" not in err
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    subprocess.run(
        command_of("generate", "three.jsonl", *MODEL),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment,
        check=False,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert b"generating" in shown
    assert b"100%" in shown
