"""`guideway extract`: batches, copied keys, standard input, errors of rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.cli import records
from guideway.generation import scheduler
from tests.helpers.json_lines import lines_of

from .conftest import MODEL, Run

ROWS = [{"id": "a", "meta": {"page": 3}, "text": "Ada is 36.", "source": "x"}, {"text": "Bob."}]
SCHEMA = ("--schema", "schema.json")


def test_id_and_meta_are_copied(run: Run, folder: Path) -> None:
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    code, out, _ = run("extract", "rows.jsonl", *SCHEMA, "--json", *MODEL)
    found = {line["text"]: line for line in lines_of(out)}
    assert code == 0
    assert (found["Ada is 36."]["id"], found["Ada is 36."]["meta"]) == ("a", {"page": 3})
    assert not {"id", "meta", "source"} & found["Bob."].keys()


@pytest.mark.parametrize("as_objects", [True, False])
def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch, as_objects: bool) -> None:
    written = map(json.dumps, ROWS) if as_objects else (str(row["text"]) for row in ROWS)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n" + "\n".join(written) + "\n"))
    code, out, _ = run("extract", "-", *SCHEMA, "--json", *MODEL)
    assert code == 0
    assert {line["text"] for line in lines_of(out)} == {"Ada is 36.", "Bob."}
    assert sum("id" in line for line in lines_of(out)) == as_objects


def test_texts_run_in_batches(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "many.txt").write_text("".join(f"Text {n}.\n" for n in range(6)), "utf-8")
    sizes: list[int] = []
    real = scheduler.step

    def step(rows: Any, *args: Any, **options: Any) -> Any:
        sizes.append(len(list(rows)))
        return real(rows, *args, **options)

    monkeypatch.setattr(scheduler, "step", step)
    for size in (4, 1):
        sizes.clear()
        assert run("extract", "many.txt", *SCHEMA, "--json", "--batch-size", str(size), *MODEL)[0] == 0
        assert max(sizes) == size


def test_the_comparison_runs_only_when_it_is_wanted(run: Run) -> None:
    _, out, _ = run("extract", "Ada is 36.", *SCHEMA, "--json", *MODEL)
    assert not any(name.startswith("without") for name in lines_of(out)[0])
    _, out, _ = run("extract", "Ada is 36.", *SCHEMA, "--json", "--compare", *MODEL)
    assert lines_of(out)[0]["without_constraint_parses"] in (True, False)


def test_a_text_without_a_prompt_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def prompt(text: str, schema: object) -> str:
        if text == "bad":
            raise ValueError("no prompt")
        return text

    compared: list[Any] = []
    real: Any = records.run

    def run_all(job: Any) -> Any:
        compared.extend(real(job))
        return compared

    monkeypatch.setattr(records, "run", run_all)
    options = {"prompt": prompt, "max_tokens": 40}
    schema = gw.JsonSchema({"type": "object", "properties": {"a": {"enum": [1, 2]}}, "additionalProperties": False})
    found = dict(records.extract_all(gw.load("tiny"), ["bad", "Ada"], schema, options, compare=True))
    assert isinstance(found[0], ValueError)
    assert isinstance(compared[0], ValueError)
    assert found[1].free is compared[1]


@pytest.mark.parametrize("rows", [1, 2])
def test_a_failed_row_gives_an_error_line_whatever_the_number_of_rows(run: Run, folder: Path, rows: int) -> None:
    written = [{"id": 1, "text": "x" * 5000}, {"id": 2, "text": "Ada"}][:rows]
    (folder / "long.jsonl").write_text("\n".join(map(json.dumps, written)), "utf-8")
    code, out, err = run("extract", "long.jsonl", *SCHEMA, "--json", *MODEL)
    failed = [line for line in lines_of(out) if "error" in line]
    assert code == 2
    assert [line["id"] for line in failed] == [1]
    assert failed[0]["error"].startswith("ContextOverflowError: ")
    assert "prompt 1 of" not in failed[0]["error"]
    assert f'1 of {rows} texts have no record: see "error" in their lines' in err
    code, out, err = run("extract", "long.jsonl", *SCHEMA, *MODEL)  # the table: errors are on standard error
    assert (code, json.loads(err.splitlines()[0])["id"]) == (2, 1)
    code, out, _ = run("extract", "x" * 5000, *SCHEMA, "--json", *MODEL)
    assert (code, "error" in lines_of(out)[0]) == (2, True)


def test_sampling_options(run: Run, folder: Path) -> None:
    schema = {"properties": {"a": {"pattern": "^[a-z]{12}$", "type": "string"}}, "required": ["a"]}
    (folder / "words.json").write_text(json.dumps(schema), "utf-8")
    command = ("extract", "Ada", "--schema", "words.json", "--json", *MODEL)
    greedy = lines_of(run(*command)[1])[0]["record"]
    drawn = {str(lines_of(run(*command, "--temperature", "1.5", "--seed", str(n))[1])[0]["record"]) for n in range(4)}
    assert len(drawn) > 1
    assert lines_of(run(*command, "--temperature", "1.5", "--top-k", "1")[1])[0]["record"] == greedy
    code, _, err = run(*command, "--top-p", "2")
    assert (code, "top_p" in err) == (2, True)


def test_examples_are_a_part_of_the_prompt(run: Run, folder: Path) -> None:
    record = {"ok": True}
    (folder / "shown.jsonl").write_text(json.dumps({"text": "Zoë is 5.", "record": record}), "utf-8")
    code, _, _ = run("extract", "Ada is 36.", *SCHEMA, "--examples", "shown.jsonl", "--instructions", "Names.", *MODEL)
    assert code == 0
    (folder / "wrong.jsonl").write_text('{"text": "Zoë is 5."}', "utf-8")
    code, _, err = run("extract", "Ada is 36.", *SCHEMA, "--examples", "wrong.jsonl", *MODEL)
    assert code == 2
    assert 'example 1: "record" is missing' in err


def test_wrong_arguments_are_reported_before_any_work(run: Run, folder: Path) -> None:
    for page, problem in (("missing/page.html", "the folder missing does not exist"), (".", "is a folder")):
        code, _, err = run("extract", "Ada is 36.", *SCHEMA, "--html", page, *MODEL)
        assert code == 2
        assert problem in err
    code, _, err = run("extract", " ", *SCHEMA, *MODEL)
    assert code == 2
    assert "the text is empty" in err


def test_a_page_with_spans_and_probabilities(run: Run, folder: Path) -> None:
    options = ("--type", "records.py:Person", "--verbatim", "--html", "page.html", "--max-tokens", "200")
    code, _, _ = run("extract", "Ada <b> is 36.", *options, *MODEL)
    page = (folder / "page.html").read_text("utf-8")
    assert code == 0
    assert "<mark" in page
    assert "<td>/name</td>" in page
    assert "<b>" not in page, "the text is escaped"
    assert "http" not in page
