"""Chat templates of model families are rendered as transformers renders them.

`make test-templates` downloads the templates of the families: they are in the source distribution of llama-cpp-python.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guideway.constraints.tools import Reply, Tool, ToolCall, ToolCalls, family_of
from guideway.errors import ChatTemplateError, UnsupportedError
from guideway.tokenizers.chat_template import render_template

from ...helpers.chat_templates import TEMPLATES

SDISTS = Path(sys.prefix) / ".sdists"
FAMILIES = {
    "Llama 3.1": "meta-llama-Llama-3.1-8B-Instruct",
    "Llama 3.2": "meta-llama-Llama-3.2-3B-Instruct",
    "Llama 3.3": "meta-llama-Llama-3.3-70B-Instruct",
    "Qwen 2.5": "Qwen-Qwen2.5-7B-Instruct",
    "Qwen 3": "Qwen-Qwen3-0.6B",
    "Qwen3-Coder": "Qwen3-Coder",
    "QwQ": "Qwen-QwQ-32B",
    "Mistral Nemo": "mistralai-Mistral-Nemo-Instruct-2407",
    "Mistral Small 3.2": "Mistral-Small-3.2-24B-Instruct-2506",
    "Hermes 2": "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
    "Hermes 3": "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    "Gemma 2": "google-gemma-2-2b-it",
    "Gemma 4": "google-gemma-4-31B-it",
    "Phi 3.5": "microsoft-Phi-3.5-mini-instruct",
    "DeepSeek R1": "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "DeepSeek V3.1": "deepseek-ai-DeepSeek-V3.1",
    "GLM 4.6": "GLM-4.6",
    "gpt-oss": "openai-gpt-oss-120b",
}

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'The weather of <a> city\'s "day" & night.',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Nâme 東京"},
                "days": {"type": "integer", "description": "How many days."},
            },
            "required": ["city"],
        },
    },
}
SYSTEM = {"role": "system", "content": " Be brief.\n"}
USER = {"role": "user", "content": "Weather in <b>Paris</b> & 東京?"}
ANSWER = {"role": "assistant", "content": "Sunny.", "reasoning_content": "It is summer."}
CALLS = Reply(calls=(ToolCall("weather", {"city": "Paris", "days": 2}, "abcdefghi"),)).as_message()
RESULT = {"role": "tool", "content": "18 degrees", "name": "weather", "tool_call_id": "abcdefghi"}
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "user": ([USER], {}),
    "system": ([SYSTEM, USER], {}),
    "history": ([SYSTEM, USER, ANSWER, USER], {}),
    "none": ([{**USER, "name": None}, {**ANSWER, "tool_calls": None}, USER], {}),
    "tools": ([USER], {"tools": [WEATHER]}),
    "tools and system": ([SYSTEM, USER], {"tools": [WEATHER]}),
    "calls": ([USER, CALLS, RESULT], {"tools": [WEATHER]}),
    "calls and history": ([SYSTEM, USER, CALLS, RESULT, ANSWER, USER], {"tools": [WEATHER]}),
    "thinking": ([USER], {"enable_thinking": True, "thinking": True}),
    "no thinking": ([USER], {"enable_thinking": False, "thinking": False}),
    "thinking and tools": ([USER, CALLS, RESULT], {"tools": [WEATHER], "enable_thinking": False}),
    "effort": ([USER], {"reasoning_effort": "high"}),
    "tool choice": ([USER], {"tools": [WEATHER], "tool_choice": "required"}),
    "no generation prompt": ([USER, ANSWER], {"add_generation_prompt": False}),
    "continue": ([USER, ANSWER], {"add_generation_prompt": False, "continue_final_message": True}),
    "documents": ([USER], {"documents": [{"title": "Rain", "text": "It rains."}]}),
    "parts": ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], {}),
}
NAMES = {"bos_token": "<s>", "eos_token": "</s>"}


def downloaded() -> dict[str, str]:
    file = next(SDISTS.glob("llama_cpp_python-*.tar.gz"), None)
    if file is None:
        return {}
    found = {}
    with tarfile.open(file) as archive:
        for member in archive:
            if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                content = archive.extractfile(member)
                assert content is not None
                found[Path(member.name).stem] = content.read().decode()
    return found


@pytest.fixture(scope="module")
def published() -> dict[str, str]:
    found = downloaded()
    if not found:
        pytest.skip(f"{SDISTS} has no source distribution of llama-cpp-python: run `make test-templates`")
    return found


@pytest.fixture(scope="module")
def theirs() -> Callable[..., str]:
    from transformers.utils.chat_template_utils import render_jinja_template

    def render(template: str, messages: list[dict[str, Any]], **options: Any) -> str:
        # `apply_chat_template` leaves out keys with None, and then calls this function.
        chat = [{key: value for key, value in message.items() if value is not None} for message in messages]
        (text,), _ = render_jinja_template([chat], chat_template=template, **NAMES, **options)
        return str(text)

    return render


def check(template: str, theirs: Callable[..., str]) -> int:
    """Compare all cases. Returns the number of cases that rendered a text."""
    rendered = 0
    for name, (messages, given) in CASES.items():
        options = {"add_generation_prompt": True, **given}
        try:
            expected = theirs(template, messages, **options)
        except Exception:
            with pytest.raises(ChatTemplateError):
                render_template(template, messages, special_tokens=NAMES, **options)
            continue
        assert render_template(template, messages, special_tokens=NAMES, **options) == expected, name
        rendered += 1
    return rendered


@pytest.mark.engine("transformers")
@pytest.mark.parametrize("family", FAMILIES)
def test_published_templates(family: str, published: dict[str, str], theirs: Callable[..., str]) -> None:
    assert check(published[FAMILIES[family]], theirs) >= 5


@pytest.mark.engine("transformers")
def test_all_published_templates(published: dict[str, str], theirs: Callable[..., str]) -> None:
    rendered = sum(check(template, theirs) for template in published.values())
    assert len(published) >= 60
    assert rendered >= 12 * len(published)


@pytest.mark.engine("transformers")
@pytest.mark.parametrize("family", TEMPLATES)
def test_templates_with_the_constructs_of_families(family: str, theirs: Callable[..., str]) -> None:
    assert check(TEMPLATES[family], theirs) >= 8


# Replies as messages: the notation in which a template writes calls is the one that `ToolCalls` parses.


def round_trip(template: str, reply: Reply) -> None:
    calls = ToolCalls([WEATHER, LOOKUP], family=family_of(template))
    options: dict[str, Any] = {"special_tokens": NAMES, "tools": [WEATHER, LOOKUP.to_openai()]}
    whole = render_template(template, [USER, reply.as_message()], **options, add_generation_prompt=False)
    before = common(render_template(template, [USER], **options), whole)
    if before.rfind("<") > before.rfind(">"):  # both texts continue with a marker, but with different ones
        before = before[: before.rfind("<")]
    written = whole[len(before) :].removesuffix(NAMES["eos_token"])
    found = calls.parse(written)
    assert [(one.name, one.arguments) for one in found.calls] == [(one.name, one.arguments) for one in reply.calls]
    assert all(one.id in ("", two.id) for one, two in zip(found.calls, reply.calls, strict=True))


def common(one: str, other: str) -> str:
    size = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:size]


LOOKUP = Tool("lookup", {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}})
REPLIES = {
    "one": Reply(calls=(ToolCall("weather", {"city": 'Par"is <é>', "days": 2}, "abcdefghi"),)),
    "two": Reply(
        calls=(
            ToolCall("weather", {"city": "Paris"}, "abcdefghi"),
            ToolCall("lookup", {"words": ["a", "b"]}, "jklmnopqr"),
        )
    ),
}


@pytest.mark.parametrize("family", [name for name in TEMPLATES if name not in ("gemma", "phi")])
def test_calls_that_a_template_writes_are_parsed_again(family: str) -> None:
    round_trip(TEMPLATES[family], REPLIES["one"])
    if family not in ("llama", "harmony"):
        round_trip(TEMPLATES[family], REPLIES["two"])


def test_calls_that_published_templates_write_are_parsed_again(published: dict[str, str]) -> None:
    known = 0
    for family, name in FAMILIES.items():
        template = published[name]
        try:
            family_of(template)
        except UnsupportedError:
            continue
        if family.startswith("DeepSeek R1"):  # its template writes the arguments only if they are a JSON text
            continue
        round_trip(template, REPLIES["one"])
        known += 1
    assert known >= 10
