"""The prompts of `extract`: instructions, examples, system message, replaceable prompts; lists of texts."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

import guideway as gw
from guideway.generation import ExtractionPrompt, complete_extract, extraction
from guideway.generation.prompts import MAX_SCHEMA, extraction_prompt
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary

PACKAGE = Path(gw.__file__).parent
BYTES = Vocabulary([b"", *(bytes([b]) for b in range(256))], eos_ids=[0], special_ids=[0])
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


class Person(BaseModel):
    """A person."""

    name: str = Field(description="the full name")
    age: int | None = None
    title: str | None = None


@pytest.fixture(scope="module")
def plain() -> gw.Model:
    return ConstantModel(BYTES)


def prompt_of(model: gw.Model, text: str = "Ada, 36", **options: Any) -> Any:
    return extraction(model, text, Person, **options).prompt


def messages(text: str = "Ada, 36", **options: Any) -> list[dict[str, Any]]:
    made: Any = ExtractionPrompt(**options).messages(text, gw.constraints.PythonType(Person).schema)
    return made


def test_a_base_model_keeps_the_format_that_tiny_was_trained_on(plain: gw.Model) -> None:
    schema = gw.constraints.PythonType(Person).schema
    assert prompt_of(plain) == extraction_prompt("Ada, 36", schema)
    assert prompt_of(plain, instructions=None, examples=[]) == extraction_prompt("Ada, 36", schema)


def test_instructions_examples_and_system_of_a_base_model(plain: gw.Model) -> None:
    shown = {"name": "Zoë", "age": None, "title": None}
    made = prompt_of(plain, instructions="Names only.", system="You read.", examples=[("Zoë", shown)])
    schema = gw.constraints.PythonType(Person).schema
    first = extraction_prompt("Zoë", schema) + json.dumps(shown, ensure_ascii=False)
    assert made == f"You read.\n\nNames only.\n\n{first}\n\n{extraction_prompt('Ada, 36', schema)}"


def test_messages_have_descriptions_schema_and_instructions_once() -> None:
    made = messages(instructions="Names only.", system="You read.", examples=[("Zoë", '{"name": "Zoë"}')])
    assert [one["role"] for one in made] == ["system", "user", "assistant", "user"]
    first, last = made[1]["content"], made[3]["content"]
    assert "Names only." in first
    assert "the full name" in first
    assert '"properties"' in first
    assert first.endswith("Text:\nZoë")
    assert last == "Text:\nAda, 36"
    assert '"title": "Person"' not in first, "generated titles repeat the names"
    assert '"title": {' in first, "a property with the name title stays"


def test_a_long_schema_becomes_a_skeleton() -> None:
    schema = {
        "type": "object",
        "properties": {f"field{n}": {"type": "string", "description": "x" * 300} for n in range(100)},
    }
    content = ExtractionPrompt().messages("t", schema)[0]["content"]
    assert len(content) < MAX_SCHEMA
    assert "Shape of the record" in content
    assert '"field99": string' in content


def test_records_of_examples_may_be_values_of_the_type(plain: gw.Model) -> None:
    as_value = prompt_of(plain, examples=[("Zoë", Person(name="Zoë"))])
    assert as_value == prompt_of(plain, examples=[("Zoë", {"name": "Zoë", "age": None, "title": None})])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"examples": [("Zoë", {"age": "old"})]}, gw.errors.InvalidTextError, "the record of example 1 does not fit"),
        ({"examples": "ab"}, TypeError, "examples must be a list of pairs"),
        ({"examples": [("a", {}, 1)]}, TypeError, "example 1 must be a pair"),
        ({"examples": [("a", {"name": object()})]}, TypeError, "example 1 is no JSON data"),
        ({"instructions": 5}, TypeError, "instructions must be a str"),
        ({"prompt": 5}, TypeError, "prompt must be an ExtractionPrompt"),
        ({"prompt": ExtractionPrompt}, TypeError, "prompt must be an ExtractionPrompt"),
        ({"prompt": ExtractionPrompt(), "instructions": "x"}, ValueError, "exclude each other"),
        ({"instruction": "x"}, TypeError, "unknown options: instruction.*did you mean instructions"),
    ],
)
def test_wrong_options(plain: gw.Model, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        prompt_of(plain, **options)


def test_the_prompt_can_be_replaced(plain: gw.Model) -> None:
    def own(text: str, schema: Mapping[str, object]) -> str:
        return f"{sorted(schema)} {text}"

    assert prompt_of(plain, prompt=own).endswith("Ada, 36")

    class Short(ExtractionPrompt):
        def plain(self, text: str, schema: Mapping[str, object]) -> str:
            return f"{self.instructions}: {text}"

    assert prompt_of(plain, prompt=Short("Read")) == "Read: Ada, 36"


def test_extract_uses_the_prompt() -> None:
    seen: list[str] = []

    def own(text: str, schema: Mapping[str, object]) -> str:
        seen.append(text)
        return text

    model = ConstantModel(BYTES)
    texts = ["a", "b", "c"]
    values = gw.extract(model, texts, Person, prompt=own, max_tokens=60, progress=True)
    assert len(values) == 3
    assert seen == texts
    asyncio.run(gw.aextract(model, "d", Person, prompt=own, max_tokens=60))
    one = complete_extract(model, "e", Person, prompt=own, max_tokens=60)
    assert isinstance(one.value, Person)
    assert seen == [*texts, "d", "e"]
    assert one.prompt_tokens == 1


def test_a_failed_text_of_a_list_is_returned() -> None:
    model = ConstantModel(BYTES, context_size=400)
    texts = ["short", "x" * 1000, "short"]
    found = gw.extract(model, texts, Person, max_tokens=60, return_exceptions=True)
    assert isinstance(found[1], gw.errors.ContextOverflowError)
    assert isinstance(found[0], Person)
    assert isinstance(found[2], Person)


class Marked(BaseModel):
    name: Annotated[str, gw.Verbatim()]
    note: str | None = None


def test_verbatim_strings_occur_in_their_text() -> None:
    texts = ["Ada Lovelace, 36", "Zoë and Bob", 'a\r\nb "c"']
    for seed in range(5):
        options: Any = {"temperature": 1.5, "seed": seed, "max_tokens": 200, "return_exceptions": True}
        found = complete_extract(ConstantModel(BYTES), texts, Marked, verbatim=bool(seed % 2), **options)
        for text, one in zip(texts, found, strict=True):
            assert one.value.name in text
            assert {text[start:end] for start, end in one.spans["/name"]} == {one.value.name}
            if seed % 2:
                assert one.value.note is None or one.value.note in text


def test_spans_need_a_source() -> None:
    one = gw.complete(ConstantModel(BYTES), "x", int, max_tokens=30)
    with pytest.raises(ValueError, match="spans need a source text"):
        _ = one.spans


def test_a_text_without_words_fails_alone() -> None:
    found = gw.extract(ConstantModel(BYTES), ["Ada", " ", "Zoë"], Marked, max_tokens=300, return_exceptions=True)
    assert isinstance(found[1], gw.errors.UnsatisfiableError)
    assert [isinstance(one, Marked) for one in found] == [True, False, True]


def test_a_text_without_a_request_fails_alone() -> None:
    """The constraint of a text with a lone surrogate cannot be made, and the prompt function rejects a text."""

    def prompt(text: str, schema: object) -> str:
        return {"Ada": "a", "Zoë": "z", "\ud800": "s"}[text]

    model, texts = ConstantModel(BYTES), ["Ada", "\ud800", "Zoë", "Bob"]
    found = gw.extract(model, texts, Marked, prompt=prompt, max_tokens=300, return_exceptions=True)
    assert isinstance(found[1], gw.errors.InvalidConstraintError)
    assert "prompt 2 of 4: the source contains a lone surrogate" in str(found[1])
    assert isinstance(found[3], KeyError)
    assert [isinstance(one, Marked) for one in found] == [True, False, True, False]
    with pytest.raises(gw.errors.InvalidConstraintError, match="prompt 2 of 4: the source"):
        gw.extract(model, texts, Marked, max_tokens=300)
    with pytest.raises(gw.errors.InvalidConstraintError, match=r"^the source contains a lone surrogate"):
        gw.extract(model, "\ud800", Marked)


def test_records_of_examples_quote_their_own_text(plain: gw.Model) -> None:
    shown = [("Zoë, 5", {"name": "Zoë", "note": None})]
    assert "Zoë, 5" in extraction(plain, "Ada", Marked, examples=shown).prompt
    with pytest.raises(gw.errors.InvalidTextError, match="the record of example 1"):
        extraction(plain, "Ada", Marked, examples=[("Zoë, 5", {"name": "Ada", "note": None})])
    with pytest.raises(TypeError, match="verbatim must be a bool"):
        extraction(plain, "Ada", Marked, verbatim="yes")


def test_the_demo_invents_no_name() -> None:
    root = Path(__file__).parents[3] / "examples"
    if not (PACKAGE / "tiny" / "model.onnx").is_file():
        pytest.skip("the bundled model is not in this tree")
    records = runpy.run_path(str(root / "records.py"))["RECORDS"]
    model = gw.load("tiny")
    lines = [json.loads(line) for line in (root / "sentences.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) == 12
    for line in lines:
        one = complete_extract(model, line["text"], records[line["kind"]], verbatim=True)
        todo: list[Any] = [json.loads(one.text)]
        while todo:
            value = todo.pop()
            if isinstance(value, (dict, list)):
                todo += value.values() if isinstance(value, dict) else value
            elif (
                isinstance(value, str) and value not in ("low", "medium", "high", "urgent") and not value[:4].isdigit()
            ):
                assert value in line["text"]
    assert json.loads(complete_extract(model, lines[8]["text"], records["ticket"], verbatim=True).text)["reporter"] == (
        "Marta Lindqvist"
    )
