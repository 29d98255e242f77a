"""The command line: tables, JSON lines, and errors as one line with exit status 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import guideway

from .conftest import MODEL, SCHEMA, Run


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"guideway {guideway.__version__}\n", "")


def test_extract_shows_a_table(run: Run) -> None:
    code, out, _ = run("extract", "Ada is 36.", "--schema", "schema.json", "--compare", *MODEL)
    assert code == 0
    for part in ("Ada is 36.", "ok: ", "tok/s", "forced", "without the constraint", "1 texts, 1 records that parse"):
        assert part in out


def test_extract_writes_json_lines(run: Run) -> None:
    code, out, _ = run("extract", "texts.txt", "--type", "records.py:Person", "--json", "--compare", *MODEL)
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert {line["text"] for line in lines} == {"Ada is 36.", "Zoë is not."}
    for line in lines:
        assert set(line["record"]) == {"name", "age"}
        assert line["forced"] + line["sampled"] == line["tokens"]
        assert line["finish_reason"] == "stop"
        assert isinstance(line["without_constraint_parses"], bool)
    _, out, _ = run("extract", "sentences.jsonl", "--schema", "schema.json", "--json", "--no-compare", *MODEL)
    assert [set(json.loads(line)["record"]) for line in out.splitlines()] == [{"ok"}] * 2
    assert "without" not in out


def test_a_byte_order_mark_is_no_text(folder: Path, run: Run) -> None:
    (folder / "marked.json").write_text("\ufeff" + json.dumps(SCHEMA), "utf-8")
    (folder / "marked.jsonl").write_text("\ufeff" + json.dumps({"text": "Ada is 36."}), "utf-8")
    code, out, err = run("extract", "marked.jsonl", "--schema", "marked.json", "--json", "--no-compare", *MODEL)
    assert code == 0, err
    assert json.loads(out)["text"] == "Ada is 36."


def test_bytes_that_are_not_utf8_are_named_with_their_line(folder: Path, run: Run) -> None:
    (folder / "latin.txt").write_bytes("Ada is 36.\nZo\u00eb is not.\n".encode("latin-1"))
    code, _, err = run("extract", "latin.txt", "--schema", "schema.json", *MODEL)
    assert code == 2
    assert "cannot read latin.txt: line 2 is not UTF-8" in err


@pytest.mark.parametrize(
    ("closed", "text", "message"),
    [("stdin", "-", "standard input is closed"), ("stdout", "texts.txt", "standard output is closed")],
)
def test_closed_streams_are_errors(
    run: Run, monkeypatch: pytest.MonkeyPatch, closed: str, text: str, message: str
) -> None:
    monkeypatch.setattr(sys, closed, None)
    code, _, err = run("extract", text, "--schema", "schema.json", "--json", *MODEL)
    assert code == 2
    assert message in err


def test_a_folder_is_no_text(run: Run) -> None:
    code, _, err = run("extract", "model", "--schema", "schema.json", *MODEL)
    assert code == 2
    assert "model is a folder" in err


def test_numbers_that_are_not_finite_are_named(folder: Path, run: Run) -> None:
    for number in ("NaN", "1e999"):
        (folder / "odd.jsonl").write_text(f'{{"id": {number}, "text": "Ada"}}', "utf-8")
        code, _, err = run("extract", "odd.jsonl", "--schema", "schema.json", *MODEL)
        assert code == 2
        assert f"odd.jsonl, line 1 is not JSON: {'NaN' if number == 'NaN' else 'the number 1e999'} is" in err


SHELL = """
cd "$1"
"$2" -m guideway explain --regex a >&-
echo "$?"
"$2" -m guideway batch many.jsonl made.jsonl --regex "[ab]" --model onnx:model <&- >&- 2>&-
echo "$?"
"""


def test_closed_descriptors(folder: Path) -> None:
    """Without standard streams, the file of results must not get the number of one of them."""
    (folder / "many.jsonl").write_text('{"custom_id": "a", "prompt": "a"}\n', "utf-8")
    found = subprocess.run(
        ["bash", "-c", SHELL, "bash", str(folder), sys.executable], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["2", "0"]
    assert "standard output is closed, so the result is lost" in found.stderr
    assert json.loads((folder / "made.jsonl").read_text("utf-8"))["custom_id"] == "a"


def test_an_interruption_during_the_imports(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("guideway.cli.app.main", _interrupted)
    assert run("demo") == (130, "", "guideway: interrupted\n")


def _interrupted(_: object) -> None:
    raise KeyboardInterrupt


def test_a_mistyped_file_is_no_text(run: Run) -> None:
    code, _, err = run("extract", "missing.md", "--schema", "schema.json", *MODEL)
    assert code == 2
    assert "file missing.md does not exist" in err


def test_demo(run: Run) -> None:
    code, out, _ = run("demo", "--examples", ".", *MODEL)
    assert code == 0
    assert "Person by onnx:model" in out
    assert "2 texts, 2 records that parse" in out
    _, out, _ = run("demo", "--examples", ".", "--json", *MODEL)
    assert len(out.splitlines()) == 2


def test_generate(run: Run) -> None:
    code, out, _ = run("generate", "Ada", "--regex", r"[a-c]{4}é", *MODEL)
    assert code == 0
    assert len(out) == 6
    assert out.endswith("é\n")
    code, out, _ = run("generate", "Ada", "--schema", "schema.json", *MODEL)
    assert json.loads(out)["ok"] in (True, False)
    assert run("generate", "Ada", "--max-tokens", "3", *MODEL)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("extract", "x", "--schema", "schema.json", "--model", "huge"), "there is no model 'huge'"),
        (("extract", "x", *MODEL), "give either --type"),
        (("extract", "x", "--type", "records.py:Animal", *MODEL), "no Animal; it has Person"),
        (("extract", "x", "--type", "records.py", *MODEL), "is not the name of a type"),
        (("extract", "x", "--type", "nowhere.py:A", *MODEL), "cannot read nowhere.py"),
        (("extract", "x", "--type", "no_such_module:A", *MODEL), "cannot load no_such_module"),
        (("extract", "x", "--schema", "records.py", *MODEL), "records.py: the text is not JSON at line"),
        (("extract", "x", "--schema", "nowhere.json", *MODEL), "cannot read nowhere.json"),
        (("extract", "x", "--schema", "schema.json", "--max-tokens", "2", *MODEL), "max_tokens is 2"),
        (("extract", "x" * 5000, "--schema", "schema.json", *MODEL), "context"),
        (("demo", "--examples", "nowhere"), "cannot read nowhere"),
        (("generate", "x", "--regex", "(", *MODEL), "("),
    ],
)
def test_errors_are_one_line_without_a_trace(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("guideway: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("line", ["{", "[]", '{"text": 3}', "3"])
def test_damaged_lines_are_numbered(run: Run, folder: Path, line: str) -> None:
    (folder / "damaged.jsonl").write_text(f'{{"text": "a"}}\n{line}\n', "utf-8")
    code, _, err = run("extract", "damaged.jsonl", "--schema", "schema.json", *MODEL)
    assert code == 2
    assert "line 2" in err


def test_usage_errors_exit_2(run: Run) -> None:
    assert run("extract")[0] == 2
    assert run("no-such-command")[0] == 2
    assert run("generate", "x", "--max-tokens", "0", *MODEL)[0] == 2


def test_generate_reads_and_writes_json_lines(run: Run, folder: Path) -> None:
    lines = [
        {"id": 1, "prompt": "Ada", "regex": "[ab]{3}"},
        {"id": 2, "prompt": "Zoë", "schema": SCHEMA, "seed": 4},
        {"id": 3, "prompt": "the", "max_tokens": 4, "stop": ["e"]},
    ]
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    code, out, err = run("generate", "prompts.jsonl", "--n", "2", "--logprobs", "1", *MODEL)
    assert code == 0
    assert err == ""  # no progress bar without a terminal
    found = sorted((json.loads(line) for line in out.splitlines()), key=lambda line: int(line["id"]))
    assert [line["id"] for line in found] == [1, 1, 2, 2, 3, 3]
    assert set(found[0]["text"]) <= set("ab")
    assert isinstance(found[2]["value"]["ok"], bool)
    assert all(line["tokens"] <= 4 and "e" not in line["text"] for line in found[4:])
    assert all(len(line["steps"]) == line["tokens"] for line in found)
    assert {"token_id", "logprob", "mask_logprob", "masked_mass", "forced", "alternatives"} == set(found[0]["steps"][0])
    code, out, _ = run("generate", "Ada", "--regex", "[a-c]{4}", "--json", "--bad-words", "a", *MODEL)
    assert (code, "a" in json.loads(out)["value"]) == (0, False)
    (folder / "broken.jsonl").write_text('{"prompt": "a"}\n{"text": "b"}', "utf-8")
    code, _, err = run("generate", "broken.jsonl", *MODEL)
    assert code == 2
    assert 'broken.jsonl, line 2: expected an object with a string under "prompt"' in err
    code, _, err = run("generate", "Ada", "--regex", "a", "--schema", "schema.json", *MODEL)
    assert (code, "one of --regex" in err) == (2, True)


def test_generate_takes_any_constraint(run: Run, folder: Path) -> None:
    (folder / "sums.lark").write_text('start: "a" start "b" | "c"', "utf-8")
    (folder / "sums.gbnf").write_text('root ::= "ac"', "utf-8")
    (folder / "odd.gbnf").write_text('root ::= "a', "utf-8")
    assert run("generate", "x", "--choice", "abc", "--choice", "cab", *MODEL)[1] in ("abc\n", "cab\n")
    assert len(run("generate", "x", "--format", "date", *MODEL)[1]) == 11
    assert "c" in run("generate", "x", "--grammar", "sums.lark", *MODEL)[1]
    assert run("generate", "x", "--grammar", "sums.gbnf", *MODEL)[1] == "ac\n"
    for grammar, message in (
        ("odd.gbnf", "odd.gbnf: "),
        ("records.py", "must end in .lark"),
        ("no.lark", "cannot read"),
    ):
        code, _, err = run("generate", "x", "--grammar", grammar, *MODEL)
        assert (code, message in err) == (2, True)
    code, _, err = run("generate", "x", "--choice", "a", "--format", "date", *MODEL)
    assert (code, "got --choice and --format" in err) == (2, True)
    lines = [
        {"prompt": "x", "choice": ["ab"]},
        {"prompt": "x", "format": "date"},
        {"prompt": "x", "gbnf": 'root ::= "ac"'},
    ]
    (folder / "any.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    found = [json.loads(line)["text"] for line in run("generate", "any.jsonl", *MODEL)[1].splitlines()]
    assert (found[0], len(found[1]), found[2]) == ("ab", 10, "ac")


@pytest.mark.parametrize(
    ("command", "line", "message"),
    [
        ("generate", {"max_token": 3}, 'line 2: unknown key "max_token"; did you mean "max_tokens"?'),
        ("generate", {"reg": "a"}, 'line 2: unknown key "reg"'),
        ("score", {"option": ["a"]}, 'line 2: unknown key "option"; did you mean "options"?'),
    ],
)
def test_unknown_keys_of_a_line_are_refused(
    run: Run, folder: Path, command: str, line: dict[str, object], message: str
) -> None:
    lines = [{"prompt": "a", "id": 1, "meta": {"b": 2}}, {"prompt": "a", **line}]
    (folder / "vain.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    code, out, err = run(command, "vain.jsonl", *MODEL)
    assert (code, out) == (2, "")
    assert message in err


def test_a_text_without_a_record_does_not_stop_the_others(run: Run, folder: Path) -> None:
    texts = [{"text": "Ada"}, {"text": "x" * 5000}, {"text": "Bob"}]
    (folder / "long.jsonl").write_text("\n".join(map(json.dumps, texts)), "utf-8")
    code, out, err = run("extract", "long.jsonl", "--schema", "schema.json", "--json", "--no-compare", *MODEL)
    found = {line["text"][:3]: line for line in map(json.loads, out.splitlines())}
    assert code == 2
    assert {text: "record" in line for text, line in found.items()} == {"Ada": True, "xxx": False, "Bob": True}
    assert found["xxx"]["error"].startswith("ContextOverflowError: ")
    assert "1 of 3 texts have no record" in err


def test_an_error_of_a_line_says_what_was_wrong_in_it(run: Run, folder: Path) -> None:
    own = [{"id": 0, "regex": "("}, {"id": 1, "regex": "a{600}"}, {"id": 2, "schema": "schema.json"}]
    (folder / "wrong.jsonl").write_text("\n".join(json.dumps({"prompt": "x", **one}) for one in own), "utf-8")
    code, out, _ = run("generate", "wrong.jsonl", *MODEL)
    lines = sorted((json.loads(line) for line in out.splitlines()), key=lambda line: int(line["id"]))
    errors = [line["error"] for line in lines]
    assert code == 2
    assert errors[1].startswith("BudgetTooSmallError: the shortest output")
    assert "not the name of a file" in errors[2]


def test_validator_error_is_one_line(run: Run, folder: Path) -> None:
    code = "from typing import Annotated\nfrom pydantic import AfterValidator\n"
    code += "def broken(x: bool) -> bool:\n    return 1 / 0\n\nBad = Annotated[bool, AfterValidator(broken)]\n"
    (folder / "bad.py").write_text(code, "utf-8")
    status, _, err = run("generate", "x", "--type", "bad.py:Bad", "--json", *MODEL)
    assert status == 2
    assert "ZeroDivisionError" in err
    assert "Traceback" not in err


def test_demo_finds_its_own_examples(run: Run) -> None:
    code, out, _ = run("demo", "--no-compare", "--json", *MODEL)  # not in this folder, as after an installation
    assert code == 0
    assert any("Ada Lovelace" in line for line in out.splitlines())


def test_help_says_what_flags_are_without_a_type(run: Run) -> None:
    for command in ("generate", "extract", "score", "demo", "check"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "<bool>" not in out
        assert '"tiny", "onnx:FOLDER", "hf:NAME", "gguf:FILE"' in " ".join(out.split())


def test_generate_writes_a_page(run: Run, folder: Path) -> None:
    code, out, _ = run("generate", "Ada <b>", "--regex", "[<a]{3}é", "--html", "page.html", *MODEL)
    assert code == 0
    assert out.endswith("é\n")  # the text alone, however much the page shows
    assert len(out) == 5
    page = (folder / "page.html").read_text("utf-8")
    assert "<b>" not in page  # text of prompts and models is escaped
    assert "Ada &lt;b&gt;" in page
    code, out, _ = run("generate", "Ada <b>", "--regex", "[<a]{3}é", "--html", "page.html", "--json", *MODEL)
    assert page.count('class="t') == json.loads(out)["tokens"]
    assert "steps" not in json.loads(out)


def test_score(run: Run, folder: Path) -> None:
    code, out, _ = run("score", "Ada is ", "36", "37", *MODEL)
    assert code == 0
    assert "probability" in out
    assert "%" in out
    code, out, _ = run("score", "Ada is ", "36", "37", "--json", *MODEL)
    scores = json.loads(out)["scores"]
    assert [one["option"] for one in scores] == ["36", "37"]
    assert sum(one["probability"] for one in scores) == pytest.approx(1.0)
    lines = [{"id": 7, "prompt": "Ada", "options": ["x", "y", "z"]}, {"prompt": "Zoë"}]
    (folder / "choices.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    code, out, _ = run("score", "choices.jsonl", "p", "q", *MODEL)
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [len(line["scores"]) for line in found] == [3, 2]
    assert found[0]["id"] == 7
    code, out, err = run("score", "choices.jsonl", *MODEL)
    assert (code, "1 of 2 results are errors" in err) == (2, True)
    first, second = (json.loads(line) for line in out.splitlines())
    assert len(first["scores"]) == 3
    assert second == {"prompt": "Zoë", "error": "ValueError: options must have at least one item"}
    assert run("score", "Ada", "a", "a", *MODEL)[0] == 2
