"""`--resume`: an interrupted command continues where it stopped, and failed rows run again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guideway.cli import generate as generate_command, lines, records

from .conftest import MODEL, Run

TEXTS = [{"id": number, "text": f"Text {number}."} for number in range(6)]
PROMPTS = [{"id": number, "prompt": f"Text {number}."} for number in range(6)]
SAMPLED = ("--regex", "[ab]{8}", "--temperature", "1", "--seed", "3")


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path.name


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [{key: value for key, value in row.items() if key != "tokens_per_second"} for row in rows]
    return sorted(kept, key=lambda row: (row["id"], json.dumps(row)))


def interrupt_after(count: int, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the user press Ctrl-C when this number of results is complete."""
    real = module.finished

    def stopped(job: Any) -> Iterator[Any]:
        for number, result in enumerate(real(job)):
            if number == count:
                raise KeyboardInterrupt
            yield result

    monkeypatch.setattr(module, "finished", stopped)


def test_extract_continues(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, out = write(folder / "six.jsonl", TEXTS), folder / "records.jsonl"
    command = ("extract", name, "--schema", "schema.json", "--batch-size", "2", "--resume", out.name, *MODEL)
    with monkeypatch.context() as patch:
        interrupt_after(3, records, patch)
        code, shown, err = run(*command)
    assert (code, shown) == (130, "")
    assert "interrupted; 3 lines were written; the same command with --resume records.jsonl continues" in err
    before = read(out)
    assert len(before) == 3
    code, shown, err = run(*command)
    assert (code, shown, err) == (0, "", "guideway: records.jsonl has 6 lines, 3 of them new\n")
    assert read(out)[:3] == before
    assert sorted(row["id"] for row in read(out)) == list(range(6))
    assert all(set(row) >= {"id", "text", "record"} for row in read(out))
    assert run(*command)[0] == 0
    assert len(read(out)) == 6  # nothing runs again


def test_a_continued_call_draws_what_an_uninterrupted_one_draws(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, out, whole = write(folder / "prompts.jsonl", PROMPTS), folder / "some.jsonl", folder / "whole.jsonl"
    command = ("generate", name, *SAMPLED, "--batch-size", "1", "--n", "2", *MODEL)
    assert run(*command, "--resume", whole.name)[0] == 0
    with monkeypatch.context() as patch:
        interrupt_after(5, generate_command, patch)  # the third prompt has one of two samples
        assert run(*command, "--resume", out.name)[0] == 130
    assert len(read(out)) == 5
    assert run(*command, "--resume", out.name)[0] == 0
    assert without_times(read(out)) == without_times(read(whole))
    assert len({row["text"] for row in read(whole)}) > 6


def test_a_continued_comparison_draws_what_an_uninterrupted_one_draws(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, out, whole = write(folder / "compared.jsonl", TEXTS[:4]), folder / "part.jsonl", folder / "all.jsonl"
    options = ("--compare", "--batch-size", "1", "--max-tokens", "40", "--temperature", "1", "--seed", "3")
    command = ("extract", name, "--schema", "schema.json", *options, *MODEL)
    assert run(*command, "--resume", whole.name)[0] == 0
    with monkeypatch.context() as patch:
        interrupt_after(2, records, patch)
        assert run(*command, "--resume", out.name)[0] == 130
    assert len(read(out)) == 2
    assert run(*command, "--resume", out.name)[0] == 0
    assert without_times(read(out)) == without_times(read(whole))
    assert len({row["without_constraint"] for row in read(whole)}) == 4


def test_failed_rows_and_half_lines_run_again(run: Run, folder: Path) -> None:
    name, out = write(folder / "rows.jsonl", TEXTS[:3]), folder / "half.jsonl"
    done = {**TEXTS[0], "record": {"ok": True}}
    out.write_text(json.dumps(done) + "\n" + json.dumps({**TEXTS[1], "error": "x"}) + '\n{"id": 2, "te', "utf-8")
    code, _, err = run("extract", name, "--schema", "schema.json", "--resume", out.name, *MODEL)
    assert code == 0
    assert "half.jsonl has 3 lines, 2 of them new" in err
    rows = read(out)
    assert rows[0] == done
    assert sorted(row["id"] for row in rows) == [0, 1, 2]
    assert not any("error" in row for row in rows)


def test_a_changed_row_runs_again(run: Run, folder: Path) -> None:
    name, out = write(folder / "changed.jsonl", TEXTS[:2]), folder / "old.jsonl"
    write(out, [{**TEXTS[0], "text": "Another text.", "record": {"ok": True}}])
    assert run("extract", name, "--schema", "schema.json", "--resume", out.name, *MODEL)[0] == 0
    assert [row["text"] for row in read(out)] == ["Another text.", "Text 0.", "Text 1."]


def test_score_continues(run: Run, folder: Path) -> None:
    name, out = write(folder / "scored.jsonl", PROMPTS[:3]), folder / "scores.jsonl"
    write(out, [{**PROMPTS[1], "scores": []}])
    assert run("score", name, "a", "b", "--resume", out.name, *MODEL)[0] == 0
    assert [row["id"] for row in read(out)] == [1, 0, 2]


def test_a_file_that_is_no_result_is_not_changed(run: Run, folder: Path) -> None:
    name, out = write(folder / "input.jsonl", TEXTS), folder / "notes.txt"
    for content in ("a note\n", "[1]\n"):
        out.write_text(content, "utf-8")
        code, _, err = run("extract", name, "--schema", "schema.json", "--resume", out.name, *MODEL)
        assert code == 2
        assert "notes.txt, line 1" in err
        assert out.read_text("utf-8") == content


def test_each_line_is_written_when_its_result_is_complete(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later row that is short is written while an earlier one runs."""
    rows = [{"id": 0, "prompt": "a", "regex": "[ab]{40}"}, {"id": 1, "prompt": "b", "regex": "[ab]"}]
    name = write(folder / "two.jsonl", rows)
    events: list[str] = []
    real_write, real = lines.ResultLines.write, generate_command.finished

    def write_line(self: Any, line: dict[str, Any], result: dict[str, Any]) -> None:
        events.append(f"written {line['id']}")
        real_write(self, line, result)

    def finished(job: Any) -> Iterator[Any]:
        for one in real(job):
            events.append(f"complete {one[0]}")
            yield one

    monkeypatch.setattr(lines.ResultLines, "write", write_line)
    monkeypatch.setattr(generate_command, "finished", finished)
    code, out, _ = run("generate", name, *MODEL)
    assert code == 0
    assert events == ["complete 1", "written 1", "complete 0", "written 0"]
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 0]


def test_a_lone_surrogate_in_a_row(run: Run, folder: Path) -> None:
    rows = [{"id": 0, "text": "a\ud800"}, {"id": 1, "text": "line\u2028é"}]
    name, out = write(folder / "surrogate.jsonl", rows), folder / "surrogates.jsonl"
    command = ("extract", name, "--schema", "schema.json", *MODEL)
    assert run(*command, "--resume", out.name)[0] == 2
    found = {row["id"]: row for row in read(out)}
    assert (found[0]["text"], "error" in found[0], "record" in found[1]) == ("a\ud800", True, True)
    assert run(*command, "--json")[0] == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"prompt": "Hello", "text": "x", "value": "x", "finish_reason": "stop"}\n',  # a result of `generate`
        '{"customer": "precious"}\n',
        '{"id": 1, "text": "Ada Lovelace, 36"}\n',  # an input line
        '{"type": "object"}',  # a document without the end of a line
        "precious",
    ],
)
def test_files_that_are_no_results_of_the_command_are_refused_and_kept(run: Run, folder: Path, text: str) -> None:
    write(folder / "notes.jsonl", [{"text": "Ada Lovelace, 36"}])
    path = folder / "other.jsonl"
    path.write_text(text, "utf-8")
    code, _, err = run("extract", "notes.jsonl", "--schema", "schema.json", "--resume", path.name, *MODEL)
    assert code == 2
    assert "other.jsonl" in err
    assert path.read_text("utf-8") == text


SLOW = """
import time
from guideway.batch.result_file import ResultFile
from guideway.cli.app import main
write = ResultFile.write
ResultFile.write = lambda self, text: (write(self, text), time.sleep(0.2))
main()
"""
"""The command line with a pause after each line, so that a test can interrupt it between two lines."""


def test_a_process_that_is_interrupted_continues_and_names_the_row_that_failed(folder: Path) -> None:
    """A user's steps: extract 40 rows, press Ctrl-C, give the same command again, read why one row failed."""
    texts = [{"id": number, "text": f"Ada Lovelace, {30 + number}"} for number in range(40)]
    texts[17]["text"] = "word " * 5000
    write(folder / "notes.jsonl", texts)
    out = folder / "people.jsonl"
    arguments = ["extract", "notes.jsonl", "--schema", "schema.json", "--batch-size", "1", "--resume", out.name]
    command = [sys.executable, "-m", "guideway", *arguments]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a shell ignores it in background jobs
    )
    until = time.monotonic() + 60
    while (
        process.poll() is None
        and time.monotonic() < until
        and not (out.exists() and out.read_bytes().count(b"\n") >= 4)
    ):
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)  # a line that is being written is removed
    _, err = process.communicate(timeout=60)
    before = read(out)
    assert process.returncode == 130, err
    assert (
        f"interrupted; {len(before)} lines were written; the same command with --resume people.jsonl continues" in err
    )
    assert 3 <= len(before) < 40
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 2
    assert 'texts have no record: see "error" in their lines of people.jsonl' in again.stderr
    rows = read(out)
    assert sorted(row["id"] for row in rows) == list(range(40))
    assert all(row in rows for row in before if "record" in row)
    (failed,) = (row for row in rows if "error" in row)
    assert failed["id"] == 17
    assert "shorten the text, or load a model with a larger context" in failed["error"]
