"""What model families write around a tool call, after the chat templates that their makers publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from guideway.errors import NotAvailable

__all__ = ["FAMILIES", "Family", "family_of"]


@dataclass(frozen=True)
class Family:
    """A reply is text, or (text and) `opening`, calls with `separator` between them, and `closing`.

    A call is `prefix`, the name, `middle`, the arguments and `suffix`. `trigger`: what text before calls must not hold;
    "" where there is no text before calls, and a reply that begins like a call is one. `arguments`: one JSON object, or
    keys and values between tags of their own (GLM). `several`: whether one reply may hold more than one call.
    `thoughts`, `answer`: what stands around reasoning and around the text of a reply, where that is marked (Harmony).
    """

    prefix: str
    middle: str
    suffix: str
    trigger: str = ""
    opening: str = ""
    separator: str = ""
    closing: str = ""
    arguments: Literal["json", "pairs"] = "json"
    several: bool = True
    thoughts: tuple[str, str] | None = None
    answer: str = ""


_HERMES = Family(
    trigger="<tool_call>",
    prefix='<tool_call>\n{"name": "',
    middle='", "arguments": ',
    suffix="}\n</tool_call>",
    separator="\n",
)

FAMILIES: dict[str, Family] = {
    "llama": Family(prefix='{"name": "', middle='", "parameters": ', suffix="}", separator="; "),
    "hermes": _HERMES,
    "qwen": _HERMES,
    "mistral": Family(
        trigger="[TOOL_CALLS]",
        opening="[TOOL_CALLS][",
        prefix='{"name": "',
        middle='", "arguments": ',
        suffix="}",
        separator=", ",
        closing="]",
    ),
    "deepseek": Family(
        trigger="<｜tool▁calls▁begin｜>",
        opening="<｜tool▁calls▁begin｜>",
        prefix="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        middle="\n```json\n",
        suffix="\n```<｜tool▁call▁end｜>",
        separator="\n",
        closing="<｜tool▁calls▁end｜>",
    ),
    "glm": Family(
        trigger="<tool_call>",
        prefix="<tool_call>",
        middle="\n",
        suffix="</tool_call>",
        separator="\n",
        arguments="pairs",
    ),
    "harmony": Family(
        trigger="<|",
        prefix="<|channel|>commentary to=functions.",
        middle=" <|constrain|>json<|message|>",
        suffix="<|call|>",
        several=False,
        thoughts=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        answer="<|channel|>final<|message|>",
    ),
}
"""By name: Llama 3 and 4; Hermes; Qwen 2.5 and 3; Mistral; DeepSeek V3 and R1; GLM 4.5; gpt-oss (Harmony)."""

# What a chat template holds, the telling ones first.
_SIGNS = (
    ("<｜tool▁call▁begin｜>", "deepseek"),
    ("<arg_key>", "glm"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|channel|>", "harmony"),
    ("<tool_call>", "hermes"),
    ("<|python_tag|>", "llama"),
    ("<|python_start|>", "llama"),
    ('"parameters": dictionary', "llama"),
)


def family_of(chat_template: str) -> str:
    """The family whose tool calls a chat template writes. Raises `NotAvailable` where it shows none."""
    for sign, name in _SIGNS:
        if sign in chat_template:
            return name
    raise NotAvailable(f"the chat template shows no known form of tool calls; name a family: {', '.join(FAMILIES)}")
