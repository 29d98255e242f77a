"""`guideway batch`: statuses, defaults for requests, a dry run, an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guideway.batch import files

from .conftest import MODEL, Run

REQUESTS = [{"custom_id": f"r{number}", "prompt": f"Text {number}."} for number in range(5)]


def write(folder: Path, rows: list[Any]) -> str:
    (folder / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "results.jsonl").unlink(missing_ok=True)
    return "requests.jsonl"


def texts(folder: Path) -> dict[str, str]:
    lines = (folder / "results.jsonl").read_text("utf-8").splitlines()
    return {one["custom_id"]: one["text"] for one in map(json.loads, lines)}


def test_requests_of_a_file(run: Run, folder: Path) -> None:
    command = ("batch", write(folder, REQUESTS), "results.jsonl", "--regex", "[ab]{4}", "--temperature", "1", *MODEL)
    code, out, err = run(*command)
    assert (code, out) == (0, "")
    assert "5 results, 0 errors, 0 already done" in err
    found = texts(folder)
    assert sorted(found) == [f"r{number}" for number in range(5)]
    assert all(len(text) == 4 and set(text) <= set("ab") for text in found.values())
    assert "0 results, 0 errors, 5 already done" in run(*command)[2]


def test_errors_give_status_2(run: Run, folder: Path) -> None:
    code, _, err = run(
        "batch", write(folder, [*REQUESTS, {"custom_id": "x"}]), "results.jsonl", "--max-tokens", "2", *MODEL
    )
    assert code == 2
    assert '1 of 6 results are errors: see "error" in their lines' in err
    assert run("batch", "missing.jsonl", "results.jsonl", *MODEL)[0] == 2
    assert run("batch", "requests.jsonl", "requests.jsonl", *MODEL)[0] == 2


def test_dry_run(run: Run, folder: Path) -> None:
    name = write(folder, [*REQUESTS, {"custom_id": "x", "prompt": "a", "regex": "("}])
    code, out, _ = run("batch", name, "results.jsonl", "--choice", "yes", "--dry-run", *MODEL)
    assert code == 2
    assert "5 to run (5 own format), 0 already done" in out
    assert "line 6: invalid_constraint: " in out
    assert not (folder / "results.jsonl").exists()


def test_an_interrupted_batch_continues(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("batch", write(folder, REQUESTS), "results.jsonl", "--regex", "[ab]{4}", *MODEL)
    real = files.results

    def stopped(*arguments: Any, **options: Any) -> Any:
        for number, one in enumerate(real(*arguments, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(files, "results", stopped)
        code, _, err = run(*command)
    assert code == 130
    assert "interrupted; the results so far are written; the same command continues" in err
    assert len(texts(folder)) == 2
    assert "3 results, 0 errors, 2 already done" in run(*command)[2]
