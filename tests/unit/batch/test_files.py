"""`guideway.batch.run`: from a file to a file, continued after an interruption; hostile lines and files."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.batch import files, result_file, run, survey
from guideway.batch.reading import Line, split_lines
from guideway.batch.result_file import ResultFile
from guideway.errors import InvalidFileError

from .conftest import Write


def own(number: int, **more: Any) -> dict[str, Any]:
    return {"custom_id": f"r{number}", "prompt": f"Text {number}: ", "regex": "[ab]{8}", "temperature": 1.0, **more}


def read(path: Path) -> list[dict[str, Any]]:
    data = path.read_text("utf-8")
    assert not data or data.endswith("\n")
    return [json.loads(line) for line in data.split("\n")[:-1]]


def texts(path: Path) -> dict[str, str]:
    found = read(path)
    assert len({one["custom_id"] for one in found}) == len(found)
    return {one["custom_id"]: one["text"] for one in found}


def test_a_run_continues(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, whole, cut = (
        write("in.jsonl", [own(n) for n in range(12)]),
        tmp_path / "whole.jsonl",
        tmp_path / "cut.jsonl",
    )
    assert run(tiny, source, whole).answered == 12
    lines = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:5]) + lines[5][:20])  # the sixth line is torn
    summary = run(tiny, source, cut, window=2, batch_size=3)
    assert (summary.answered, summary.errors, summary.skipped) == (7, 0, 5)
    assert cut.read_bytes().startswith(b"".join(lines[:5]))
    assert texts(cut) == texts(whole)
    assert len(set(texts(whole).values())) > 6
    before = cut.read_bytes()
    assert run(tiny, source, cut).skipped == 12
    assert cut.read_bytes() == before


def test_errors_and_repeated_results_are_removed(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, target = write("in.jsonl", [own(n) for n in range(4)]), tmp_path / "out.jsonl"
    kept = {"custom_id": "r1", "text": "kept"}
    failed = {"id": "x", "custom_id": "r2", "response": {"status_code": 400, "body": {}}, "error": None}
    rows = [{"custom_id": "r0", "error": {"code": "x"}}, kept, kept, failed, {"custom_id": None, "error": {}}]
    target.write_text("".join(json.dumps(one) + "\n" for one in rows) + "\n\n" + '{"custom_id": "r3", "te', "utf-8")
    os.chmod(target, 0o640)
    assert run(tiny, source, target).answered == 3
    assert read(target)[0] == kept
    assert sorted(texts(target)) == ["r0", "r1", "r2", "r3"]
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_blank_lines_of_an_output_do_not_shift_it(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, target = write("in.jsonl", [own(n) for n in range(3)]), tmp_path / "out.jsonl"
    target.write_text('\n\n\n\n{"custom_id": "r0", "text": "kept"}\n', "utf-8")
    assert run(tiny, source, target).skipped == 1
    rows = [json.loads(line) for line in target.read_text("utf-8").split("\n") if line]
    assert rows[0]["custom_id"] == "r0"
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not JSON\n", "line 1 is no result"),
        ("3\n", "expected an object"),
        ('{"id": 3, "text": "of another command"}\n', "no result of a batch"),
        ('{"custom_id": 3, "text": "a number as the identifier"}\n', "no result of a batch"),
        ('{"custom_id": "r1", "prompt": "a request"}\n', "no result of a batch"),
        ('{"custom_id": "r1", "method": "POST", "url": "/v1/completions", "body": {}}\n', "no result of a batch"),
    ],
)
def test_other_files_are_not_overwritten(tiny: gw.Model, write: Write, tmp_path: Path, text: str, message: str) -> None:
    source, target = write("in.jsonl", [own(1)]), tmp_path / "out.jsonl"
    target.write_text(text, "utf-8")
    with pytest.raises(InvalidFileError, match=message):
        run(tiny, source, target)
    assert target.read_text("utf-8") == text
    with pytest.raises(InvalidFileError, match="the same file"):
        run(tiny, source, source)
    with pytest.raises(InvalidFileError, match="cannot read"):
        run(tiny, tmp_path / "missing.jsonl", target)
    for unusable in (tmp_path, tmp_path / ("a" * 300)):
        with pytest.raises(InvalidFileError, match="cannot continue"):
            run(tiny, source, unusable)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidFileError, match="not a regular file"):
        run(tiny, source, tmp_path / "pipe")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a\ud800", "."], ids=["long", "NUL", "surrogate", "folder"])
def test_paths_that_cannot_be_used(name: str, tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, wrong = write("in.jsonl", [own(0)]), tmp_path / name
    for call, verb in (
        (lambda: run(tiny, wrong, tmp_path / "out.jsonl"), "read"),
        (lambda: run(tiny, source, wrong), "continue"),
        (lambda: survey(tiny, wrong), "read"),
        (lambda: survey(tiny, source, wrong), "read"),
    ):
        with pytest.raises(InvalidFileError) as found:
            call()
        assert str(found.value).startswith(f"cannot {verb} {wrong}: ")
    assert list(tmp_path.iterdir()) == [source]


def test_standard_input(tiny: gw.Model, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = write("in.jsonl", [own(1)]), tmp_path / "out.jsonl"
    with source.open("rb") as file, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", SimpleNamespace(buffer=file))
        with pytest.raises(InvalidFileError, match="the same file"):
            run(tiny, "-", source)
        assert run(tiny, "-", target).answered == 1
        patched.setattr(sys, "stdin", None)
        with pytest.raises(InvalidFileError, match="standard input is closed"):
            run(tiny, "-", target)


def test_a_symbolic_link_stays_one(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    real, link = write("real.jsonl", [{"custom_id": "r1", "error": {"code": "x"}}]), tmp_path / "out.jsonl"
    link.symlink_to(real)
    assert run(tiny, write("in.jsonl", [own(1)]), link).answered == 1
    assert link.is_symlink()
    assert list(texts(real)) == ["r1"]


@pytest.mark.parametrize("form", ["own", "openai"])
def test_changes_between_runs_are_counted(tiny: gw.Model, write: Write, tmp_path: Path, form: str) -> None:
    def lines(prompt: str) -> list[dict[str, Any]]:
        body = {"max_tokens": 4}
        if form == "own":
            return [own(1), {"custom_id": "r2", "prompt": prompt, **body}]
        request = {"method": "POST", "url": "/v1/completions"}
        return [
            {"custom_id": "r1", **request, "body": {"prompt": "a", **body}},
            {"custom_id": "r2", **request, "body": {"prompt": prompt, **body}},
        ]

    target = tmp_path / "out.jsonl"
    assert run(tiny, write("in.jsonl", lines("a")), target).answered == 2
    before = target.read_bytes()
    same = run(tiny, write("in.jsonl", lines("a")), target)
    assert (same.skipped, same.changed) == (2, 0)
    other = run(tiny, write("in.jsonl", lines("b")), target)
    assert (other.skipped, other.changed) == (2, 1)
    assert "2 already done (1 by another request, model or options)" in str(other)
    for output, options in ((None, {"max_tokens": 5}), (gw.Regex("a+"), {}), (None, {"sampler": gw.Sampler(0.5)})):
        assert run(tiny, tmp_path / "in.jsonl", target, output, **options).changed == 2
    assert survey(tiny, tmp_path / "in.jsonl", target).changed == 1
    assert target.read_bytes() == before
    rows = read(target)
    for row in rows:  # an older version wrote rows in this form, without a digest of the request
        row.pop("request_digest", None)
    target.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    if form == "own":
        assert run(tiny, tmp_path / "in.jsonl", target).changed == 0


def test_a_result_that_is_not_json_is_an_error(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    """It would make the file of results unreadable for the next run."""

    @dataclass
    class Odd:
        size: int

        def __post_init__(self) -> None:
            self.size = math.inf  # type: ignore[assignment]  # an int cannot be infinite

    target = tmp_path / "out.jsonl"
    source = write("in.jsonl", [{"custom_id": "r1", "prompt": "a"}, own(2)])
    summary = run(tiny, source, target, Odd)
    assert (summary.answered, summary.errors) == (1, 1)
    assert run(tiny, source, target, Odd).skipped == 1


def test_a_result_that_is_too_long_is_an_error(
    tiny: gw.Model, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 400)
    source, target = write("in.jsonl", [own(1), own(2, n=9)]), tmp_path / "out.jsonl"
    summary = run(tiny, source, target)
    assert (summary.answered, summary.errors) == (1, 1)
    (error,) = [one["error"] for one in read(target) if "error" in one]
    assert error["code"] == "result_too_long"
    assert run(tiny, source, target).skipped == 1


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_copy_is_written_to_no_other_file(kind: str, tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, target = (
        write("in.jsonl", [own(1), {"custom_id": "bad", "prompt": "a", "regex": "("}]),
        tmp_path / "out.jsonl",
    )
    run(tiny, source, target)
    before, other, part = target.read_bytes(), tmp_path / "other", tmp_path / "out.jsonl.part"
    other.write_text("mine")
    if kind == "link":
        part.symlink_to(other)
    else:
        os.mkfifo(part)
    with pytest.raises(InvalidFileError, match=r"out\.jsonl"):
        run(tiny, source, target)
    assert (target.read_bytes(), other.read_text()) == (before, "mine")


def test_a_file_that_was_replaced_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process opened it, replaced it by its copy and released it between the opening and the lock here."""
    target, lock = tmp_path / "out.jsonl", result_file._lock

    def late(descriptor: int, path: Path) -> None:
        (tmp_path / "new").write_text("")
        os.replace(tmp_path / "new", target)
        lock(descriptor, path)

    monkeypatch.setattr(result_file, "_lock", late)
    with pytest.raises(InvalidFileError, match="another process writes"):
        ResultFile(target, lambda entry: True)


def test_two_processes_cannot_write_one_file(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, target = write("in.jsonl", [own(1)]), tmp_path / "out.jsonl"
    with ResultFile(target, lambda entry: True), pytest.raises(InvalidFileError, match="another process"):
        run(tiny, source, target)
    assert run(tiny, source, target).answered == 1


def test_a_full_disk_loses_nothing(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, target = write("in.jsonl", [own(n) for n in range(9)]), tmp_path / "out.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(InvalidFileError, match=r"cannot write .*; it has \d complete results"):
            run(tiny, source, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    before = texts(target)
    assert 0 < len(before) < 9
    assert run(tiny, source, target).skipped == len(before)
    assert texts(target).items() >= before.items()
    assert len(texts(target)) == 9


def test_a_full_disk_while_errors_are_removed(write: Write, tmp_path: Path) -> None:
    target = write(
        "out.jsonl", [{"custom_id": f"{n}", "text": "a" * 50} for n in range(20)] + [{"custom_id": "x", "error": {}}]
    )
    before = target.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(InvalidFileError, match="cannot continue"):
            ResultFile(target, lambda entry: "error" not in entry)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_killed_run_continues(write: Write, tmp_path: Path) -> None:
    source, target = write("in.jsonl", [own(n) for n in range(60)]), tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "guideway", "batch", str(source), str(target), "--batch-size", "2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not target.exists() or target.read_bytes().count(b"\n") < 3):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    begun = target.read_bytes().count(b"\n")
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{60 - begun} results, 0 errors, {begun} already done" in result.stderr
    assert len(texts(target)) == 60


HOSTILE = [
    b"\xff\xfe",
    b'{"custom_id": "r0", "prompt": "\xc3"}',
    b"{" * 100_000,
    b'{"custom_id": "nan", "prompt": "a", "temperature": NaN}',
    b'{"custom_id": "inf", "prompt": "a", "meta": 1e999}',
    b'{"custom_id": "digits", "prompt": "a", "meta": ' + b"1" * 5000 + b"}",
    b"[1]",
    b"null",
    b'{"custom_id": 3, "prompt": "a"}',
    b'{"custom_id": "", "prompt": "a"}',
    {"prompt": "a"},
    {"custom_id": "both", "prompt": "a", "messages": [{}]},
    {"custom_id": "key", "prompt": "a", "promt": "b"},
    {"custom_id": "two", "prompt": "a", "regex": "a", "choice": ["b"]},
    {"custom_id": "wire", "prompt": "a", "constraint": {"guideway": 9, "kind": "regex", "spec": "a"}},
    {"custom_id": "eval", "prompt": "a", "constraint": {"guideway": 1, "kind": "__import__", "spec": "os"}},
    {"custom_id": "n", "prompt": "a", "n": 10**9},
    {"custom_id": "seed", "prompt": "a", "seed": "x"},
    {"custom_id": "words", "prompt": "a", "bad_words": {"a": 1}},
    {"custom_id": "healing", "prompt": "a", "token_healing": "yes"},
    {"custom_id": "tokens", "prompt": "a", "max_tokens": 10**30},
    {"custom_id": "ids", "prompt": [10**9]},
    {"custom_id": "r1", "prompt": "a", "regex": "[ab]"},
    {"custom_id": "r1", "prompt": "again", "regex": "[ab]"},
    {"custom_id": "\ud800", "prompt": "a", "regex": "[ab]"},
    {"custom_id": "lone", "prompt": "\ud800", "regex": "[ab]"},
    {"custom_id": "url", "method": "POST", "url": "/v1/embeddings", "body": {}},
    {"custom_id": "get", "method": "GET", "url": "/v1/completions", "body": {"prompt": "a"}},
    {"custom_id": "body", "method": "POST", "url": "/v1/completions", "body": []},
]


def test_hostile_lines(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    source, target = write("in.jsonl", HOSTILE), tmp_path / "out.jsonl"
    summary = run(tiny, source, target)
    assert (summary.answered, summary.errors) == (2, len(HOSTILE) - 2)
    found = read(target)
    assert len(found) == len(HOSTILE)
    named = [one["custom_id"] for one in found if one["custom_id"] is not None]
    assert len(named) == len(set(named))
    errors = [one["error"] for one in found if one.get("error")]
    assert all(set(one) == {"message", "type", "param", "code"} for one in errors)
    assert {"invalid_utf8", "invalid_json", "missing_custom_id", "duplicate_custom_id", "invalid_url"} <= {
        one["code"] for one in errors
    }
    assert any(one["message"].startswith("line 1: the line is not UTF-8: byte 0xff at offset 0") for one in errors)
    assert run(tiny, source, target).skipped == 2


@pytest.mark.parametrize("name", ["meta", "metadata", "user", "text", "tools"])
def test_a_repeated_field_that_is_nested_too_deeply_is_refused(
    name: str, tiny: gw.Model, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(depth: int) -> bytes:
        nested = "[" * depth + "]" * depth
        if name == "meta":
            return f'{{"custom_id": "a", "prompt": "a", "max_tokens": 2, "meta": {nested}}}'.encode()
        head = '{"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": {"input": "a", '
        return f'{head}"max_output_tokens": 2, "{name}": {nested}}}}}'.encode()

    target = tmp_path / "out.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(tiny.engine, "forward", None)  # the request is refused before it runs
        for depth in (257, 5000):
            assert run(tiny, write("deep.jsonl", [line(depth)]), target).errors == 1
            (found,) = read(target)
            error = found["error"] or found["response"]["body"]["error"]
            assert (error["type"], error["param"]) == ("invalid_request_error", name)
            assert error["code"] == "nested_too_deeply"
            assert error["message"].startswith(f"'{name}' is nested deeper than 256 levels")
    if name in ("meta", "metadata"):  # the types of the other fields do not allow a list of lists
        assert run(tiny, write("in.jsonl", [line(256)]), target).answered == 1
        assert run(tiny, write("in.jsonl", [line(256)]), target).skipped == 1


def test_long_lines_are_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"\xef\xbb\xbfone\n" + b"x" * 5000 + b"\n\n  \nlast")
    with open(path, "rb") as file:
        assert list(split_lines(file, 100)) == [
            Line(1, 7, b"one\n", 7),
            Line(2, 5001, None, 5008),
            Line(5, 4, b"last", 5016, False),
        ]


def test_a_survey(tiny: gw.Model, write: Write, tmp_path: Path) -> None:
    rows = [own(n) for n in range(4)] + [
        {"custom_id": "bad", "prompt": "a", "regex": "("},
        {"custom_id": "free", "prompt": "a"},
    ]
    source, target = write("in.jsonl", rows), tmp_path / "out.jsonl"
    found = survey(tiny, source, target, max_tokens=50)
    assert (found.requests, found.errors, found.constraints, found.unconstrained) == (5, 1, 1, 1)
    assert found.input_bytes == source.stat().st_size
    assert found.max_tokens == 250
    assert found.prompt_tokens == sum(
        len(tiny.bos_ids) + len(tiny.tokenizer.encode(one["prompt"])) for one in rows if one["custom_id"] != "bad"
    )
    assert found.shown_errors[0].startswith("line 5: invalid_constraint: ")
    assert not target.exists()
    run(tiny, source, target, max_tokens=50)
    assert survey(tiny, source, target).answered == 5


def test_a_survey_of_all_formats(tiny: gw.Model, write: Write) -> None:
    """Constraints count once, also if the reply around the answer has another constraint."""
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    form = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    said = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 30}
    bodies = [
        ("/v1/chat/completions", said | {"response_format": form}),
        ("/v1/responses", {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "r", "schema": schema}}}),
        ("/v1/completions", {"prompt": "Hi", "response_format": form}),
        ("/v1/chat/completions", said | {"tools": [tool], "tool_choice": "required"}),
    ]
    rows: list[dict[str, Any]] = [
        {"custom_id": str(number), "method": "POST", "url": url, "body": body}
        for number, (url, body) in enumerate(bodies)
    ]
    found = survey(tiny, write("in.jsonl", [*rows, {"custom_id": "own", "prompt": "Hi", "schema": schema}]))
    assert found.shown_errors == []
    assert (found.requests, found.errors, found.constraints, found.unconstrained) == (5, 0, 2, 0)


def test_without_a_terminal_there_is_no_bar(
    tiny: gw.Model, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tiny, write("in.jsonl", [own(1)]), tmp_path / "out.jsonl", progress=True)
    assert capsys.readouterr() == ("", "")
