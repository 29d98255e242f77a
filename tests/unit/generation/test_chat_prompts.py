"""Prompts of messages: tools in the chat template, templates without tools, other variables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.constraints.tools import FAMILIES, Reply, ToolCall
from guideway.constraints.tools.writing import messages_as_text, written_calls
from guideway.errors import ChatTemplateError, GuidewayError
from guideway.generation.chat_prompts import prompt_text, takes_tools, with_family

from ...helpers.chat_templates import TEMPLATES
from ...helpers.small_model import write_model

USER = {"role": "user", "content": "What is 1 + 2?"}


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


def model(tmp_path: Path, template: str) -> gw.Model:
    return gw.load(f"onnx:{write_model(tmp_path, chat_template=template, context=3000)}")


def prompt(one: gw.Model, messages: list[dict[str, Any]], output: Any = None, **options: Any) -> str:
    options = {"max_tokens": 1, **options}
    if output is not None:
        options["allow_truncation"] = True
    found = one.complete(messages, output, **options)
    return one.vocabulary.bytes_of(found.state.prompt, special=True).decode()


def test_which_templates_take_tools() -> None:
    taking = {name for name, template in TEMPLATES.items() if takes_tools(template)}
    assert taking == {"hermes", "llama", "mistral", "deepseek", "harmony"}
    assert not takes_tools("{{ messages[0].content }}{% if tools %}tools{% endif %}")
    assert not takes_tools("{{ raise_exception('no') }}")


@pytest.mark.parametrize("family", ["hermes", "llama", "mistral", "deepseek", "harmony"])
def test_generate_passes_the_tools_to_the_template(family: str, tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES[family])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = prompt(one, [USER], gw.ToolCalls([add]))
    assert text == one.tokenizer.render_chat([USER], tools=[add])
    assert "add" in text


def test_the_family_of_the_template_is_used(tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES["llama"])
    reply = one.generate([USER], gw.ToolCalls([add], choice="required"), max_tokens=60)
    assert reply.calls[0].name == "add"
    found = one.complete([USER], gw.ToolCalls([add], choice="required"), max_tokens=60)
    assert '"parameters"' in found.text
    hermes = one.complete([USER], gw.ToolCalls([add], choice="required", family="hermes"), max_tokens=60)
    assert "<tool_call>" in hermes.text


def test_tools_in_a_reasoning_answer(tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES["hermes"])
    output = gw.Reasoning(gw.ToolCalls([add]))
    assert "The first number." in prompt(one, [USER], output)
    bound = with_family(output, model(tmp_path / "b", TEMPLATES["llama"]).tokenizer)
    assert isinstance(bound, gw.Reasoning)
    assert bound.answer.family == FAMILIES["llama"]


@pytest.mark.parametrize("family", ["phi", "gemma"])
def test_templates_without_tools_get_a_description(family: str, tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES[family])
    with pytest.warns(UserWarning, match="the chat template takes no tools"):
        text = prompt(one, [USER], gw.ToolCalls([add]))
    assert '"name": "add"' in text
    assert "The first number." in text
    assert '<tool_call>\n{"name": "FUNCTION", "arguments": {"ARGUMENT": "VALUE"}}\n</tool_call>' in text
    assert ("<|system|>" in text) == (
        family == "phi"
    )  # Gemma has no system message: the description precedes the question
    assert text.index("FUNCTION") < text.index("What is 1 + 2?")


def test_the_description_is_added_to_the_system_message(tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES["phi"])
    messages = [{"role": "system", "content": "Be brief."}, USER]
    with pytest.warns(UserWarning, match="takes no tools"):
        text = prompt(one, messages, gw.ToolCalls([add]))
    assert text.count("<|system|>") == 1
    assert text.startswith("<|system|>Be brief.\n\nYou can call")
    assert messages[0] == {"role": "system", "content": "Be brief."}  # unchanged


def test_a_system_message_that_the_template_refuses(tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES["gemma"])
    with pytest.raises(ChatTemplateError, match="no system role"), pytest.warns(UserWarning, match="takes no tools"):
        prompt(one, [{"role": "system", "content": "x"}, USER], gw.ToolCalls([add]))


def test_calls_and_results_as_text() -> None:
    calls = ToolCall("add", {"a": 1, "b": 2}), ToolCall("add", {"a": 3, "b": 4})
    messages = [
        USER,
        Reply("Let me see.", calls).as_message(),
        {"role": "tool", "content": "3"},
        {"role": "tool", "content": [{"type": "text", "text": "7"}]},
        {"role": "assistant", "content": "3 and 7"},
        USER,
        {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}]},
        {"role": "tool", "content": None},
    ]
    tools = [gw.Tool.of(add)]
    made = messages_as_text(messages, tools, FAMILIES["hermes"])
    assert [one["role"] for one in made] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert made[3]["content"] == "<tool_response>\n3\n</tool_response>\n<tool_response>\n7\n</tool_response>"
    assert gw.ToolCalls(tools).parse(made[2]["content"]).calls == calls
    assert gw.ToolCalls(tools).parse(made[6]["content"]).calls[0].arguments == {"a": 1, "b": 1}
    assert messages_as_text(messages, [], FAMILIES["hermes"])[0]["role"] == "user"


def test_adjacent_results_of_tools_are_one_message() -> None:
    """At every place of a conversation, also after results that were joined before."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(3):
        calls = [{"function": {"name": "add", "arguments": {"n": n}}} for n in range(3)]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "content": f"{turn}{n}"} for n in range(3)]
    made = messages_as_text(messages, [], FAMILIES["hermes"])
    assert [one["role"] for one in made] == ["user", *["assistant", "user"] * 3]
    assert [made[2 + 2 * turn]["content"].count("<tool_response>") for turn in range(3)] == [3, 3, 3]


@pytest.mark.parametrize("name", FAMILIES)
def test_written_calls_are_parsed_again(name: str) -> None:
    def find(words: str, most: int = 1) -> None: ...

    family = FAMILIES[name]
    given = [("find", {"words": 'a "b"', "most": 3}), ("find", {"words": "c"})][: 2 if family.several else 1]
    calls = gw.ToolCalls([find], family=family).parse(written_calls(family, given)).calls
    assert [(one.name, one.json_arguments()) for one in calls] == given


def test_variables_of_the_template(tmp_path: Path) -> None:
    one = model(tmp_path, TEMPLATES["hermes"])
    assert prompt(one, [USER]).endswith("<|im_start|>assistant\n")
    options: dict[str, Any] = {"enable_thinking": False}
    assert prompt(one, [USER], chat_template_kwargs=options).endswith("</think>\n\n")
    continued = [USER, {"role": "assistant", "content": "It is"}]
    assert prompt(one, continued, chat_template_kwargs={"continue_final_message": True}).endswith("assistant\nIt is")
    assert prompt(one, [USER], chat_template_kwargs={"tools": [add]}) == one.tokenizer.render_chat([USER], tools=[add])
    assert prompt(one, [USER], chat_template_kwargs={"chat_template": "[{{ messages | length }}]"}) == "[1]"
    with pytest.raises(TypeError, match="chat_template_kwargs must be a dict"):
        prompt(one, [USER], chat_template_kwargs=[1])
    with pytest.raises(ValueError, match="exclude each other"):
        prompt(one, continued, chat_template_kwargs={"continue_final_message": True, "add_generation_prompt": True})


def test_templates_that_need_arguments_as_text(tmp_path: Path) -> None:
    template = (
        "{% for tool in tools or [] %}{{ tool.function.name }}{% endfor %}{% for message in messages %}"
        "{{ message.role + ':' + message.content }}"
        "{% for call in message.tool_calls or [] %}{{ '<tool_call>' + call.function.arguments }}{% endfor %}{% endfor %}"
    )
    one = model(tmp_path, template)
    messages = [USER, Reply(calls=(ToolCall("add", {"a": 1, "b": 2}),)).as_message()]
    expected = 'adduser:What is 1 + 2?assistant:<tool_call>{"a": 1, "b": 2}'
    assert prompt_text(one.tokenizer, messages, gw.ToolCalls([add])) == expected
    with pytest.raises(ChatTemplateError, match="can only concatenate"):
        prompt_text(one.tokenizer, [{"role": "user", "content": 3}], gw.ToolCalls([add]))


def test_the_choice_is_a_variable_of_the_template(tmp_path: Path) -> None:
    one = model(tmp_path, "{{ tools[0].function.name }} {{ tool_choice | default('free') }}")
    assert prompt_text(one.tokenizer, [USER], gw.ToolCalls([add], family="hermes")) == "add free"
    assert prompt_text(one.tokenizer, [USER], gw.ToolCalls([add], family="hermes", choice="required")) == "add required"


def test_the_bundled_model_has_a_template_with_tools() -> None:
    tiny = gw.load("tiny")
    assert tiny.tokenizer.has_chat_template
    assert not tiny.tokenizer.is_instruct
    assert tiny.tokenizer.render_chat([USER]) == "<bos>What is 1 + 2?"
    text = tiny.tokenizer.render_chat([USER], tools=[add])
    assert text.startswith('<bos>Tools:\n{"name": "add"')
    assert text.endswith("User: What is 1 + 2?\nAssistant: ")
    reply = tiny.generate([USER], gw.ToolCalls([add], choice="add"), max_tokens=80)
    message = reply.as_message()
    rendered = tiny.tokenizer.render_chat([USER, message], tools=[add], add_generation_prompt=False)
    assert gw.ToolCalls([add]).parse(rendered.split("Assistant: ")[1].removesuffix("<eos>\n")) == reply


def test_messages_of_a_model_without_a_template(tmp_path: Path) -> None:
    one = gw.load(f"onnx:{write_model(tmp_path)}")
    with pytest.raises(GuidewayError, match="no chat template"):
        prompt(one, [USER], gw.ToolCalls([add]))
