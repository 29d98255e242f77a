"""Chat templates: what transformers gives them, and texts that begin with BOS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.testing import tiny_model
from guideway.tokenizers import Tokenizer
from guideway.tokenizers.chat_template import render_template

MESSAGES = [{"role": "user", "content": "hi"}]


def render(template: str, /, **given: Any) -> str:
    return render_template(template, MESSAGES, special_tokens={}, **given)


def test_generation_marks_have_no_text() -> None:
    template = "{% for m in messages %}{% generation %}[{{ m.content }}]{% endgeneration %}{% endfor %}!"
    assert render(template) == "[hi]!"


def test_a_variable_set_in_a_generation_block_stays_there() -> None:
    assert render("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}") == "21"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", '{"b": "é", "a": 1}'),
        ("ensure_ascii=True", '{"b": "\\u00e9", "a": 1}'),
        ("indent=2", '{\n  "b": "é",\n  "a": 1\n}'),
        ("separators=(',', ':')", '{"b":"é","a":1}'),
        ("sort_keys=True", '{"a": 1, "b": "é"}'),
    ],
)
def test_tojson_arguments(arguments: str, expected: str) -> None:
    assert render("{{ {'b': 'é', 'a': 1} | tojson(" + arguments + ") }}") == expected


def test_variables_may_have_any_name() -> None:
    assert render("{{ template }}{{ messages | length }}", template="x") == "x1"


def test_tools_and_documents_are_defined() -> None:
    template = "{{ tools is defined }} {{ tools is none }} {{ documents is defined }} {{ documents is none }}"
    assert render(template) == "True True True True"
    assert render("{{ tools[0].name }} {{ documents | length }}", tools=[{"name": "now"}], documents=[1, 2]) == "now 2"


def configured(tmp_path: Path, template: str, **config: Any) -> Path:
    folder = tiny_model("llama", tmp_path)
    known = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**known, "chat_template": template, **config}))
    return folder


NAMES = "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}|{{ additional_special_tokens | join(' ') }}"


def test_special_tokens_are_variables(tmp_path: Path) -> None:
    extra = {
        "unk_token": {"content": "</s>"},
        "pad_token": "<s>",
        "additional_special_tokens": ["<s>", {"content": "</s>"}],
        "add_bos_token": True,
    }
    tokenizer = Tokenizer.of(configured(tmp_path, NAMES, **extra))
    assert tokenizer.render_chat(MESSAGES) == "<s>|</s>|</s>|<s>|<s> </s>"


@pytest.mark.engine("transformers")
def test_special_tokens_of_transformers(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(
        configured(tmp_path, "{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}", unk_token="</s>")
    )
    expected = theirs.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert Tokenizer.of(theirs).render_chat(MESSAGES) == expected == "<s>|</s>|</s>|"


def test_a_text_that_begins_with_bos_gets_no_second_one() -> None:
    model = gw.load("tiny")
    plain = model.tokenizer.encode("Hello", special=True)
    assert model.tokenizer.encode("<bos>Hello", special=True) == plain
    session = model.session()
    session.feed("<bos>Hello")
    assert session.tokens == plain
    session.feed("<bos>")
    assert session.tokens == [*plain, *model.bos_ids]  # only at the beginning
    session.set_text("<bos>Hello")
    assert session.tokens == plain
    assert model.complete("<bos>Hello", max_tokens=1).state.prompt == tuple(plain)
